"""A server with OpenAI's API: its client, one request to it, and what its failures tell.

A request is of a judge or of an entrant.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Final, TypeVar
from weakref import finalize

import httpx2
import msgspec
import openai

from commands.backends.endpoint.refused_parameters import LearntParameters, adapted
from commands.backends.remote.bodies import (
    CONNECT_S,
    TIMEOUT_S,
    GuardedClient,
    date_in,
    decode_json,
    first_line,
    replace_surrogates,
    retry_after_s,
    was_not_sent,
)
from commands.backends.remote.outcomes import REJECTED, Failure, failed, fate_of
from commands.errors import ConfigurationError, NoCredentials, ProviderError, SpendLimitReached
from commands.ports import GeneratedText, GenerationFailure, Host, NoReply, Reply
from commands.settings.api_keys import OPENAI_KEY, redacted, remember
from ledger.events.judging import Fate
from ledger.events.requests import ParameterRefused
from ledger.identity import Digest, Json

_NO_KEY: Final = "none"  # the client requires a key; servers without keys ignore it
_OUT_OF_CREDIT: Final = frozenset(
    {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"}
)
_NO_CREDIT: Final = re.compile(
    r"credit balance|insufficient (?:credit|balance|funds|quota)|(?:usage|spend\w*) limit",
    re.IGNORECASE,
)
_INVALID: Final = frozenset({400, 422})
_OF_THE_REQUEST: Final = re.compile(
    r"too long|context (?:length|window)|content management policy|moderation|flagged",
    re.IGNORECASE,
)
_Read = TypeVar("_Read", bound=Reply | GeneratedText | GenerationFailure | NoReply)


class _OpenAIClient(GuardedClient, openai.DefaultHttpxClient):
    """Has the SDK's limits."""


@dataclass(frozen=True)
class Endpoint:
    """A server, and the entrant or judge that it runs."""

    base_url: str  # such as http://localhost:8000/v1
    model: str  # its name in messages
    api_key: str | None = field(repr=False)  # None or empty if the server needs none
    key_variable: str = OPENAI_KEY  # where the key is from, for messages
    timeout_s: float = TIMEOUT_S  # for each part of an answer
    n_at_a_time: int = 1  # requests under way, at most

    def __post_init__(self) -> None:
        """Keep the key out of whatever servers answer."""
        remember(self.api_key)

    @property
    def host(self) -> Host:
        """Who is asked."""
        return Host(f"{self.model} at {self.base_url}", self.n_at_a_time, self.timeout_s)

    def client(self) -> openai.OpenAI:
        """Return a thread-safe client that sends each request once; the caller must close it."""
        timeout = openai.Timeout(self.timeout_s, connect=min(self.timeout_s, CONNECT_S))
        return openai.OpenAI(
            base_url=self.base_url,
            api_key=self.api_key or _NO_KEY,
            max_retries=0,
            timeout=timeout,
            # a key and a prompt are not carried to another address unasked
            http_client=_OpenAIClient(timeout=timeout, follow_redirects=False),
        )

    def failure_of(self, error: openai.APIError) -> Failure:
        """Return what the SDK's error of a call tells."""
        if isinstance(error, openai.APIStatusError):
            return self._answered(error)
        fate: Fate = "not sent" if was_not_sent(error.__cause__) else "perhaps billed"
        if isinstance(error, openai.APITimeoutError):
            return Failure(f"no answer from {self.base_url} in time", fate)
        cause = type(error.__cause__ or error).__name__
        return Failure(f"the connection to {self.base_url} failed ({cause})", fate)

    def _answered(self, error: openai.APIStatusError) -> Failure:
        status, kinds, detail = error.status_code, _kinds_of(error), _message(error)
        fatal: NoCredentials | SpendLimitReached | None = None
        if is_out_of_credit(status, kinds, detail):
            fatal = SpendLimitReached(detail)
        elif status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
            fatal = self._refuses_key(status, detail)
        param, headers = _details_of(error).get("param"), error.response.headers
        fate, asked_s = fate_of(status, kinds), retry_after_s(headers)
        return Failure(detail, fate, status, asked_s, fatal, param, date_in(headers))

    def _refuses_key(self, status: int, detail: str) -> NoCredentials:
        wrong = f"refuses the key in {self.key_variable}" if self.api_key else "wants a key"
        # with status 401 some servers repeat parts of the key
        words = detail if status == HTTPStatus.FORBIDDEN else f"HTTP {status}"
        why = f"{self.base_url} {wrong} ({words})"
        return NoCredentials(why, self.key_variable, instead="set base_url to another server")

    def cut(self, error: openai.APIError) -> str:
        """Say that no answer came."""
        cause = first_line(error.__cause__ if isinstance(error.__cause__, Exception) else error)
        return f"no answer from {self.base_url} ({cause})"

    def unreachable(self, error: openai.APIError) -> ProviderError:
        """Return the error for a server that cannot be reached."""
        return ProviderError(f"{self.cut(error)}; start the server or correct base_url")

    def not_the_api(self, why: Exception) -> ProviderError:
        """Return the error for a reply that does not come from OpenAI's API."""
        return ProviderError(
            f"{self.base_url} does not reply like OpenAI's API ({first_line(why)});"
            " correct base_url"
        )


class Asker:
    """Sends requests in one model's name, without what its server was found not to take."""

    def __init__(
        self,
        server: Endpoint,
        model: str,
        refused: Sequence[ParameterRefused],
        *,
        remedy_of: Callable[[str, object], str | None] = lambda *_: None,
    ) -> None:
        """Take whom to ask.

        Args:
            server: The server.
            model: Its name on the server.
            refused: What servers were found not to take.
            remedy_of: Returns what to change if a server rejects all requests, by its words.
        """
        self._server, self._remedy_of = server, remedy_of
        self._learnt = LearntParameters(server.base_url, model, refused)
        self.client = server.client()
        finalize(self, self.client.close)

    def ask(
        self, key: Digest, path: str, body: Mapping[str, Json], read: Callable[[bytes], _Read]
    ) -> _Read | NoReply:
        """Send a request once, or without a parameter that the server does not take.

        One that was perhaps billed is not sent again by itself: it is given back, to be recorded
        and sent as another.

        Args:
            key: Names the request.
            path: Where it goes, below the server's base_url.
            body: What is asked.
            read: Decodes the answer; it raises msgspec.DecodeError of anything else.
        """
        without = self._learnt.without
        while True:
            sent = adapted(body, without)
            try:
                answer = self.client.post(path, body=sent, cast_to=httpx2.Response).content
            except openai.APIConnectionError as error:
                return self._not_answered(key, error)
            except openai.APIStatusError as error:
                failure = self._server.failure_of(error)
                if failure.status not in _INVALID:
                    return self._failure(key, failure)
                found = self._learnt.refusals_in(failure.detail, failure.param, sent, without)
                if not found:
                    return self._failure(key, failure)
                without = {**without, **found}
                if failure.fate == "perhaps billed":
                    self._learnt.suspect(found)
                    return failed(key, self._replied(failure.detail), failure.fate, "wait")
            else:
                self._learnt.believe(without)
                return self._decoded(key, answer, read)

    def _decoded(self, key: Digest, body: bytes, read: Callable[[bytes], _Read]) -> _Read | NoReply:
        try:
            answer = read(body)
        except msgspec.DecodeError as error:
            if (within := _error_within(body, self._server.base_url)) is not None:
                return self._failure(key, self._server.failure_of(within))
            why = self._server.not_the_api(error)
            return failed(key, why, "perhaps billed", "stop", is_certain=False)
        if isinstance(answer, Reply | GeneratedText):
            return replace(answer, refused=self._learnt.news())
        return answer

    def _not_answered(self, key: Digest, error: openai.APIConnectionError) -> NoReply:
        fate = self._server.failure_of(error).fate
        if fate == "not sent":
            return failed(key, self._server.unreachable(error), fate, "ask again")
        is_late = isinstance(error, openai.APITimeoutError)
        why = "the server took too long to answer" if is_late else self._server.cut(error)
        return NoReply(key, "errored", why, fate)

    def _failure(self, key: Digest, failure: Failure) -> NoReply:
        """Return what became of a request that was answered with an error."""
        server, detail, fault = self._server, failure.detail, None
        if failure.status == HTTPStatus.NOT_FOUND:
            fault = (
                f"{server.base_url} does not have {server.model} ({detail}); correct the model's"
                " name, or base_url, which often ends in /v1"
            )
        elif failure.status in REJECTED:
            remedy = self._remedy_of(detail, failure.param)
            fault = remedy and f"{server.base_url} rejects {server.model} ({detail}); {remedy}"
        return failure.of_request(
            key,
            why=self._replied(detail),
            remedy=ConfigurationError([fault]) if fault else None,
            is_of_request=_OF_THE_REQUEST.search(detail) is not None,
        )

    def _replied(self, detail: str) -> ProviderError:
        return ProviderError(f"{self._server.base_url} replied {detail}")


def _error_within(body: bytes, url: str) -> openai.APIStatusError | None:
    """Return the error that an answer holds in place of a text, or of a choice; None: no error.

    So gateways answer, with status 200. A code that is a status counts as the answer's.
    """
    try:
        told = decode_json(body, _OBJECT)
    except msgspec.DecodeError:
        return None
    choices = told.get("choices")
    places = [told, *(choices if isinstance(choices, list) else ())]
    errors = (place.get("error") for place in places if isinstance(place, dict))
    error = next((each for each in errors if each and isinstance(each, str | dict)), None)
    if error is None:
        return None
    details = error if isinstance(error, dict) else {"message": error}
    code = str(details.get("code"))
    status = int(code) if code in _STATUSES else HTTPStatus.INTERNAL_SERVER_ERROR
    response = httpx2.Response(status, request=httpx2.Request("POST", url))
    words = str(details.get("message") or "an error without words")
    return openai.APIStatusError(words, response=response, body=details)


_OBJECT: Final = msgspec.json.Decoder(dict[str, object])
_STATUSES: Final = frozenset(map(str, range(400, 600)))  # of errors


def _details_of(error: openai.APIStatusError) -> Mapping[str, object]:
    """Return what a server says of an error: code, type, param, message; Google sends a list."""
    told = error.body
    if isinstance(told, list) and told:
        told = told[0]
    if isinstance(told, dict):
        told = told.get("error", told)
    return told if isinstance(told, dict) else {}


def _kinds_of(error: openai.APIStatusError) -> tuple[object, ...]:
    """Return by which words a server's error says what it is; Google's `status` is one."""
    told = _details_of(error)
    return tuple(told.get(name) for name in ("code", "type", "status"))


def _message(error: openai.APIStatusError) -> str:
    """Return an error message without keys; vLLM and SGLang put it in different places."""
    words = _details_of(error).get("message") or error.body or first_line(error)
    if error.response.has_redirect_location:
        words = f"moved to {error.response.headers['location']}"
    return redacted(replace_surrogates(f"HTTP {error.status_code}: {words}"))


def is_out_of_credit(status: int, codes: Iterable[object], message: str) -> bool:
    """Return whether the credit is used up; some servers say so only in the message."""
    is_told = not _OUT_OF_CREDIT.isdisjoint(map(str, codes))
    is_said = status == HTTPStatus.BAD_REQUEST and _NO_CREDIT.search(message)
    return is_told or bool(is_said) or status == HTTPStatus.PAYMENT_REQUIRED
