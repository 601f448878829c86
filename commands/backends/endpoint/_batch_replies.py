"""Decode and check what OpenAI's Batch API answers: batches, files, and lines of results."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Annotated, Final, Literal, TypeAlias

import msgspec

from commands.backends.endpoint.askers import reply_of
from commands.backends.endpoint.refused_parameters import remedy_of
from commands.backends.endpoint.server import is_out_of_credit
from commands.backends.remote.bodies import count_in, decode_json, text_of, time_of
from commands.backends.remote.outcomes import REJECTED, undecodable
from commands.ports import Answer, BatchState, NoReply, Then
from commands.settings.api_keys import redacted
from ledger.events.requests import ParameterRefused
from ledger.identity import Digest
from projections.verdicts.queries import queries_digest

_LIFE: Final = timedelta(hours=24)
_OF_ALL: Final = frozenset({401, 403, 404})
_ENDED: Final = frozenset({"completed", "failed", "expired", "cancelled"})
_DIGEST: Final = "tourney_queries"
_SIZE: Final = "tourney_n_queries"
_DIGITS: Final = 10  # that no size has


def metadata_of(keys: Iterable[Digest]) -> dict[str, str]:
    """Return the metadata that tells a batch's queries, whatever its status."""
    digests = tuple(keys)
    return {_DIGEST: queries_digest(digests), _SIZE: str(len(digests))}


class _Fault(msgspec.Struct, frozen=True):
    code: str | int | None = None
    message: str | None = None
    line: int | None = None
    param: object = None

    @property
    def detail(self) -> str:
        """The fault in one line, without keys."""
        place = "" if self.line is None else f" (line {self.line})"
        return redacted(f"{self.code or 'error'}: {self.message or ''}{place}")


class _Faults(msgspec.Struct, frozen=True):
    data: tuple[_Fault, ...] | None = None


class ServerBatch(msgspec.Struct, frozen=True):
    """A batch as the server tells it; only its id and its status are relied on."""

    id: Annotated[str, msgspec.Meta(min_length=1)]
    status: str
    created_at: object = None
    input_file_id: object = None
    expires_at: object = None
    output_file_id: object = None
    error_file_id: object = None
    request_counts: object = None
    errors: msgspec.Raw = msgspec.Raw(b"null")
    metadata: object = None

    @property
    def has_ended(self) -> bool:
        """Whether nothing more is done on it."""
        return self.status in _ENDED

    @property
    def is_complete(self) -> bool:
        """Whether its files hold a line for each query."""
        return self.status == "completed"

    @property
    def result_files(self) -> Mapping[str, int]:
        """The ids of the files of results, each with the least number of its lines.

        Without counts that add up what the files say counts.
        """
        n_completed, n_failed, _ = self._counts if self._adds_up else (1, 0, 0)
        files = {text_of(self.output_file_id): n_completed, text_of(self.error_file_id): n_failed}
        return {name: n_least for name, n_least in files.items() if name is not None}

    @property
    def lacks_a_file(self) -> bool:
        """Whether queries were answered, and no file of answers is named."""
        return self._counts[0] > 0 and text_of(self.output_file_id) is None

    def is_whole(self, n_lines: int, n_least: int, n_odd: int) -> bool:
        """Say whether a download of a file is whole, by its results and by its other lines."""
        return n_lines >= n_least and (self._adds_up or not n_odd)

    @property
    def state(self) -> BatchState:
        """Its state; the server counts the queries only once it has read them all."""
        created_at = time_of(self.created_at) or datetime.now(UTC)  # it has no time: may be new
        n_completed, n_failed, n_total = self._counts if self.has_ended else (0, 0, 0)
        unanswered = {self.status: max(0, n_total - n_completed - n_failed)}
        return BatchState(
            provider_batch_id=self.id,
            created_at=created_at,
            expires_at=time_of(self.expires_at) or created_at + _LIFE,
            has_ended=self.has_ended,
            n_queries=self._counts[2],
            n_succeeded=n_completed,
            n_errored=n_failed + unanswered.get("failed", 0),
            n_canceled=unanswered.get("cancelled", 0),
            n_expired=unanswered.get("expired", 0),
            n_results=self._n_results,
            queries_digest=Digest(digest) if (digest := self._metadata(_DIGEST)) else None,
            failure=self._why if self.status == "failed" else None,
        )

    @property
    def _counts(self) -> tuple[int, int, int]:
        """Return how many queries were answered, failed, and there are."""
        size, counts = self._metadata(_SIZE) or "", self.request_counts
        is_size = size.isdecimal() and len(size) < _DIGITS
        n_total = count_in(counts, "total") or (int(size) if is_size else 0)
        return count_in(counts, "completed"), count_in(counts, "failed"), n_total

    @property
    def _adds_up(self) -> bool:
        n_completed, n_failed, n_total = self._counts
        return 0 < n_completed + n_failed <= n_total

    @property
    def _n_results(self) -> int | None:
        """Return how many queries have a result; of those that failed without a file, none has."""
        n_completed, n_failed, n_total = self._counts
        if not self.has_ended or n_completed + n_failed == 0:
            return None
        n_left = 0 if self.is_complete else max(0, n_total - n_completed - n_failed)
        has_failures = text_of(self.error_file_id) is not None
        return n_completed + n_left + (n_failed if has_failures or not self.is_complete else 0)

    def _metadata(self, name: str) -> str | None:
        return text_of(self.metadata.get(name)) if isinstance(self.metadata, dict) else None

    @property
    def _why(self) -> str:
        try:
            faults = (_FAULTS.decode(self.errors) or _Faults()).data or ()
        except msgspec.DecodeError:
            faults = ()
        return "; ".join(fault.detail for fault in faults[:3]) or "the server gives no reason"

    def unanswered(self, query_key: Digest) -> NoReply:
        """Return why a query of an ended batch has no line in the files of results."""
        if self.status == "failed":
            return NoReply(query_key, "errored", f"the batch was found invalid: {self._why}")
        if self.status == "cancelled":
            return NoReply(query_key, "canceled", "the batch was canceled before this query's turn")
        return NoReply(query_key, "expired", "the batch expired before this query's turn")


class BatchPage(msgspec.Struct, frozen=True):
    """A page of the list of batches."""

    data: tuple[ServerBatch, ...]
    has_more: bool = False


class ServerFile(msgspec.Struct, frozen=True):
    """A file at the server."""

    id: Annotated[str, msgspec.Meta(min_length=1)]


class _Line(msgspec.Struct, frozen=True):
    custom_id: str
    response: msgspec.Raw = msgspec.Raw(b"null")
    error: msgspec.Raw = msgspec.Raw(b"null")


class _Response(msgspec.Struct, frozen=True):
    status_code: int
    body: msgspec.Raw = msgspec.Raw(b"null")


class _Refusal(msgspec.Struct, frozen=True):
    error: _Fault


SERVER_BATCH: Final = msgspec.json.Decoder(ServerBatch)
BATCH_PAGE: Final = msgspec.json.Decoder(BatchPage)
SERVER_FILE: Final = msgspec.json.Decoder(ServerFile)
_LINE: Final = msgspec.json.Decoder(_Line)
_RESPONSE: Final[msgspec.json.Decoder[_Response | None]] = msgspec.json.Decoder(_Response | None)
_REFUSAL: Final = msgspec.json.Decoder(_Refusal)
_FAULTS: Final[msgspec.json.Decoder[_Faults | None]] = msgspec.json.Decoder(_Faults | None)
_FAULT: Final[msgspec.json.Decoder[_Fault | str | None]] = msgspec.json.Decoder(_Fault | str | None)


def query_key_in(line: bytes) -> Digest | None:
    """Return the query of a line; None if it was cut off."""
    try:
        return Digest(decode_json(line, _LINE).custom_id)
    except msgspec.DecodeError:
        return None


RefusedIn: TypeAlias = Callable[[Digest, str, object], Sequence[ParameterRefused] | None]
"""Returns what is certain of the parameters that a query's rejection names in its words, or by a
field; None: a request can do without none of them."""


def answer_in(line: bytes, refused_in: RefusedIn) -> Answer | None:
    """Return the answer in a line of results; None if the line was cut off."""
    try:
        told = decode_json(line, _LINE)
    except msgspec.DecodeError:
        return None
    query_key = Digest(told.custom_id)
    try:
        response = _RESPONSE.decode(told.response)
        if response is None:
            return _not_asked(query_key, told.error)
        if response.status_code == HTTPStatus.OK:
            return reply_of(query_key, bytes(response.body))
        return _failed(query_key, response, refused_in)
    except msgspec.DecodeError as error:
        return undecodable(query_key, error)


def _not_asked(query_key: Digest, error: msgspec.Raw) -> NoReply:
    """Return why a query was not asked, told as an object or a text."""
    told = _FAULT.decode(error)
    fault = told if isinstance(told, _Fault) else _Fault(message=told)
    return NoReply(query_key, _NOT_ASKED.get(fault.code, "errored"), fault.detail)


_NOT_ASKED: Final[Mapping[object, Literal["expired", "canceled"]]] = {
    "batch_expired": "expired",
    "batch_cancelled": "canceled",
}


def _failed(query_key: Digest, response: _Response, refused_in: RefusedIn) -> NoReply:
    """Return why the model did not answer; a query is rejected for good only if it is at fault."""
    status, fault = response.status_code, _REFUSAL.decode(response.body).error
    detail = f"HTTP {status}: {fault.detail}"
    if (refused := refused_in(query_key, detail, fault.param)) is not None:
        return NoReply(query_key, "errored", detail, then="wait", refused=refused)
    remedy = remedy_of(detail, fault.param)
    if remedy is not None:
        return NoReply(query_key, "errored", f"{detail}; {remedy}", then="stop")
    is_of_all = status in _OF_ALL or is_out_of_credit(status, [fault.code], detail)
    is_final = status in REJECTED and not is_of_all
    then: Then = "stop" if is_of_all else "go on"
    return NoReply(query_key, "rejected" if is_final else "errored", detail, then=then)
