"""Decode and check what OpenAI's Batch API answers: batches, files, and lines of results."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Final

import msgspec

from commands.backends.endpoint._replies import reply_of
from commands.backends.endpoint.requests import remedy_of
from commands.backends.endpoint.server import is_out_of_credit
from commands.backends.remote.bodies import decode_json
from commands.backends.remote.outcomes import REJECTED, undecodable
from commands.ports import Answer, BatchState, NoReply
from commands.settings.api_keys import redacted
from ledger.events.values import Count
from ledger.identity import Digest
from projections.verdicts.queries import queries_digest

_LIFE: Final = timedelta(hours=24)
_OF_ALL: Final = frozenset(
    {
        HTTPStatus.UNAUTHORIZED,
        HTTPStatus.FORBIDDEN,
        HTTPStatus.NOT_FOUND,
    }
)
_ENDED: Final = frozenset({"completed", "failed", "expired", "cancelled"})
_DIGEST: Final = "tourney_queries"
_SIZE: Final = "tourney_n_queries"


def metadata_of(keys: Iterable[Digest]) -> dict[str, str]:
    """Return the metadata that tells a batch's queries, whatever its status."""
    known = tuple(keys)
    return {_DIGEST: queries_digest(known), _SIZE: str(len(known))}


class _Counts(msgspec.Struct, frozen=True):
    total: Count = 0
    completed: Count = 0
    failed: Count = 0


class _Fault(msgspec.Struct, frozen=True):
    code: str | int | None = None
    message: str | None = None
    line: int | None = None

    @property
    def detail(self) -> str:
        """The fault in one line, without keys."""
        place = "" if self.line is None else f" (line {self.line})"
        return redacted(f"{self.code or 'error'}: {self.message or ''}{place}")


class _Faults(msgspec.Struct, frozen=True):
    data: tuple[_Fault, ...] | None = None


class ServerBatch(msgspec.Struct, frozen=True):
    """A batch as the server tells it."""

    id: str
    status: str
    created_at: Count  # seconds
    input_file_id: str
    expires_at: Count | None = None
    output_file_id: str | None = None
    error_file_id: str | None = None
    request_counts: _Counts | None = None
    errors: _Faults | None = None
    metadata: Mapping[str, str] | None = None

    @property
    def has_ended(self) -> bool:
        """Whether nothing more is done on it."""
        return self.status in _ENDED

    @property
    def is_complete(self) -> bool:
        """Whether its files hold a line for each query."""
        return self.status == "completed"

    @property
    def result_files(self) -> tuple[tuple[str, int], ...]:
        """The ids of the files of results, each with the least number of its lines."""
        counts = self.request_counts or _Counts()
        files = ((self.output_file_id, counts.completed), (self.error_file_id, counts.failed))
        return tuple((name, n_lines) for name, n_lines in files if name is not None)

    @property
    def state(self) -> BatchState:
        """Its state; the server counts the queries only once it has read them all."""
        counts, told = self.request_counts or _Counts(), self.metadata or {}
        created_at = datetime.fromtimestamp(self.created_at, UTC)
        size = told.get(_SIZE, "")
        n_queries = counts.total or (int(size) if size.isdecimal() else 0)
        n_left = n_queries - counts.completed - counts.failed if self.has_ended else 0
        is_canceled, is_failed = self.status == "cancelled", self.status == "failed"
        return BatchState(
            provider_batch_id=self.id,
            created_at=created_at,
            expires_at=datetime.fromtimestamp(self.expires_at, UTC)
            if self.expires_at
            else created_at + _LIFE,
            has_ended=self.has_ended,
            n_queries=n_queries,
            n_succeeded=counts.completed if self.has_ended else 0,
            n_errored=(counts.failed if self.has_ended else 0) + (n_left if is_failed else 0),
            n_canceled=n_left if is_canceled else 0,
            n_expired=0 if is_canceled or is_failed else n_left,
            queries_digest=Digest(told[_DIGEST]) if _DIGEST in told else None,
            failure=self._why if is_failed else None,
        )

    @property
    def _why(self) -> str:
        faults = (self.errors.data if self.errors else None) or ()
        return "; ".join(fault.detail for fault in faults[:3]) or "the server gives no reason"

    def unanswered(self, query_key: Digest) -> NoReply:
        """Return why a query of an ended batch has no line in the files of results."""
        match self.status:
            case "failed":
                return NoReply(query_key, "errored", f"the batch was found invalid: {self._why}")
            case "cancelled":
                why = "the batch was canceled before this query's turn"
                return NoReply(query_key, "canceled", why)
            case _:
                why = "the batch expired before this query's turn"
                return NoReply(query_key, "expired", why)


class BatchPage(msgspec.Struct, frozen=True):
    """A page of the list of batches."""

    data: tuple[ServerBatch, ...]
    has_more: bool = False


class ServerFile(msgspec.Struct, frozen=True):
    """A file at the server."""

    id: str


class _Line(msgspec.Struct, frozen=True):
    custom_id: str
    response: msgspec.Raw = msgspec.Raw(b"null")
    error: _Fault | None = None


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


def query_key_in(line: bytes) -> Digest | None:
    """Return the query of a line; None if it was cut off."""
    try:
        return Digest(decode_json(line, _LINE).custom_id)
    except msgspec.DecodeError:
        return None


def answer_in(line: bytes) -> Answer | None:
    """Return the answer in a line of results; None if the line was cut off."""
    try:
        told = decode_json(line, _LINE)
    except msgspec.DecodeError:
        return None
    query_key = Digest(told.custom_id)
    try:
        response = _RESPONSE.decode(told.response)
        if response is None:
            return _not_asked(query_key, told.error or _Fault())
        if response.status_code == HTTPStatus.OK:
            return reply_of(query_key, bytes(response.body))
        return _failed(query_key, response)
    except msgspec.DecodeError as error:
        return undecodable(query_key, error)


def _not_asked(query_key: Digest, fault: _Fault) -> NoReply:
    match fault.code:
        case "batch_expired":
            return NoReply(query_key, "expired", fault.detail)
        case "batch_cancelled":
            return NoReply(query_key, "canceled", fault.detail)
        case _:
            return NoReply(query_key, "errored", fault.detail)


def _failed(query_key: Digest, response: _Response) -> NoReply:
    """Return why the model did not answer; a query is rejected for good only if it is at fault."""
    status, fault = response.status_code, _REFUSAL.decode(response.body).error
    detail = f"HTTP {status}: {fault.detail}"
    remedy = remedy_of(detail)
    if remedy is not None:
        return NoReply(query_key, "errored", f"{detail}; {remedy}", is_of_all=True)
    is_of_all = status in _OF_ALL or is_out_of_credit(status, [fault.code], detail)
    is_final = status in REJECTED and not is_of_all
    return NoReply(query_key, "rejected" if is_final else "errored", detail, is_of_all=is_of_all)
