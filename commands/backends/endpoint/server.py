"""A server with OpenAI's API: its client, and what its failures tell of a request's fate."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final, TypeAlias, TypeVar

import httpx2
import msgspec
import openai

from commands.backends.remote.bodies import (
    CONNECT_S,
    TIMEOUT_S,
    decode_json,
    first_line,
    replace_surrogates,
    retry_after_s,
    was_not_sent,
)
from commands.backends.remote.guarded_client import GuardedClient
from commands.backends.remote.outcomes import REJECTED, failed, fate_of
from commands.errors import ConfigurationError, NoCredentials, ProviderError, SpendLimitReached
from commands.ports import Host, NoReply
from commands.settings.api_keys import OPENAI_KEY, redacted, remember
from ledger.identity import Digest, Json

_NO_KEY: Final = "none"  # the client requires a key; servers without keys ignore it

_BUSY: Final = frozenset({429, 503, 529})  # a full or starting server
_OUT_OF_CREDIT: Final = frozenset(
    {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"}
)
_NO_CREDIT: Final = re.compile(
    r"credit balance|insufficient (?:credit|balance|funds|quota)|(?:usage|spend\w*) limit",
    re.IGNORECASE,
)
_OF_THE_REQUEST: Final = re.compile(
    r"too long|context (?:length|window)|content management policy|moderation|flagged",
    re.IGNORECASE,
)

Answer = TypeVar("Answer")
Post: TypeAlias = Callable[[str, Mapping[str, Json]], bytes]
"""Sends a body once, to a path below the server's base_url, and returns the answer's body.

It raises openai.APIConnectionError if no answer came, and openai.APIStatusError if the server
refused or failed. Threads may share it.
"""


class _Model(msgspec.Struct, frozen=True):
    id: str


class _Models(msgspec.Struct, frozen=True):
    data: tuple[_Model, ...]


_MODELS: Final = msgspec.json.Decoder(_Models)


class _OpenAIClient(GuardedClient, openai.DefaultHttpxClient):
    """Has the SDK's limits."""


class AskOtherwise(Exception):  # it says what to do
    """A rejection, perhaps billed, of a request that may be answered in another form."""

    def __init__(self, rejection: openai.APIStatusError) -> None:
        super().__init__(str(rejection))
        self.rejection = rejection


def post_by(client: openai.OpenAI) -> Post:
    """Return what posts to a client's server, in the client's name."""
    return lambda path, body: client.post(path, body=body, cast_to=httpx2.Response).content


@dataclass(frozen=True)
class Endpoint:
    """A server, and the entrant or judge that it runs."""

    base_url: str  # such as http://localhost:8000/v1
    model: str  # its name in messages
    api_key: str | None = field(repr=False)  # None or empty if the server needs none
    key_variable: str = OPENAI_KEY  # where the key is from, for messages
    timeout_s: float = TIMEOUT_S  # for each part of an answer
    n_at_a_time: int = 1  # requests under way, at most
    remedy_of: Callable[[str, object], str | None] = lambda *_: None  # of a rejection of all

    def __post_init__(self) -> None:
        """Keep the key out of whatever servers answer."""
        remember(self.api_key)

    @property
    def host(self) -> Host:
        """Who is asked."""
        name = f"{self.model} at {self.base_url}"
        return Host(name, self.n_at_a_time, self.timeout_s)

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

    def doubt(self, models: Iterable[str]) -> str | None:
        """Return which models the server does not list, asking it free of charge.

        Raises:
            NoCredentials: The server needs a key, or refuses it.
            ProviderError: The server cannot be reached.
        """
        listed = self._listed_models()
        if listed is None:
            return None
        names = {name.removeprefix("models/") for name in listed}  # as Google's server lists them
        # SGLang lists an adapter by its own name, and is asked for it as "model:adapter".
        missing = [each for each in models if names.isdisjoint((each, each.rpartition(":")[2]))]
        return f"{self.base_url} does not list {', '.join(missing)}" if missing else None

    def _listed_models(self) -> frozenset[str] | None:
        """Return the models that the server says it has; None: it does not say."""
        with self.client() as client:
            try:
                body = client.get(
                    "/models", cast_to=httpx2.Response, options={"timeout": CONNECT_S}
                ).content
                return frozenset(each.id for each in decode_json(body, _MODELS).data)
            except msgspec.DecodeError:
                return None
            except openai.APIConnectionError as error:
                raise self._unreachable(error) from None
            except openai.APIStatusError as error:
                fatal = self.fatal_error(error)
                if isinstance(fatal, NoCredentials):
                    raise fatal from None  # the error quotes the key
                return None

    def answer(
        self, key: Digest, send: Callable[[], bytes], read: Callable[[bytes], Answer]
    ) -> Answer | NoReply:
        """Send a request, and decode the answer.

        Args:
            key: Names the request.
            send: Sends the request, and returns the answer's body; raises `AskOtherwise`, too.
            read: Decodes the body; raises msgspec.DecodeError if it is not such an answer.
        """
        try:
            body = send()
        except openai.APIConnectionError as error:
            return self._not_answered(key, error)
        except openai.APIStatusError as error:
            return self._failure(key, error)
        except AskOtherwise as otherwise:
            why = ProviderError(f"{self.base_url} replied {self.describe(otherwise.rejection)}")
            return failed(key, why, "perhaps billed", "wait")
        try:
            return read(body)
        except msgspec.DecodeError as error:
            if (within := _error_within(body, self.base_url)) is not None:
                return self._failure(key, within)
            why = self.not_the_api(first_line(error))
            return failed(key, why, "perhaps billed", "stop", is_certain=False)

    def _not_answered(self, key: Digest, error: openai.APIConnectionError) -> NoReply:
        if was_not_sent(error.__cause__):
            return failed(key, self._unreachable(error), "not sent", "ask again")
        if isinstance(error, openai.APITimeoutError):
            why = "the server took too long to answer"
            return NoReply(key, "errored", why, "perhaps billed")
        return NoReply(key, "errored", self._cut(error), "perhaps billed")

    def _failure(self, key: Digest, error: openai.APIStatusError) -> NoReply:
        """Return what became of a request that was answered with an error."""
        detail, status = self.describe(error), error.status_code
        fate = fate_of(status, kinds_of(error))
        fatal = self.fatal_error(error)
        if fatal is not None and status != HTTPStatus.FORBIDDEN:
            return failed(key, fatal, fate, "stop")
        replied = ProviderError(f"{self.base_url} replied {detail}")
        if status in _BUSY:
            asked_s = retry_after_s(error.response.headers)
            return failed(key, replied, fate, "wait", asked_s=asked_s)
        if status == HTTPStatus.NOT_FOUND:
            return failed(key, ConfigurationError([self._not_served(detail)]), fate, "stop")
        if status < HTTPStatus.BAD_REQUEST:
            return failed(key, replied, fate, "stop")
        remedy = self.remedy_of(detail, details_of(error).get("param"))
        if status in REJECTED and remedy is not None:
            fault = f"{self.base_url} rejects {self.model} ({detail}); {remedy}"
            return failed(key, ConfigurationError([fault]), fate, "stop")
        if status in REJECTED:
            is_certain = _OF_THE_REQUEST.search(detail) is not None
            return NoReply(key, "rejected", detail, fate, error=fatal, is_certain=is_certain)
        return NoReply(key, "errored", detail, fate)  # perhaps of this request only

    def fatal_error(self, error: openai.APIError) -> NoCredentials | SpendLimitReached | None:
        """Return an error if no further request can succeed; else None."""
        if not isinstance(error, openai.APIStatusError):
            return None
        status = error.status_code
        if is_out_of_credit(status, kinds_of(error), error_message(error)):
            return SpendLimitReached(self.describe(error))
        if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
            wrong = f"refuses the key in {self.key_variable}" if self.api_key else "wants a key"
            # with status 401 some servers repeat parts of the key
            words = self.describe(error) if status == HTTPStatus.FORBIDDEN else f"HTTP {status}"
            instead = "set base_url to another server"
            why = f"{self.base_url} {wrong} ({words})"
            return NoCredentials(why, self.key_variable, instead=instead)
        return None

    def describe(self, error: openai.APIError) -> str:
        """Describe an error in one line, without keys."""
        if isinstance(error, openai.APITimeoutError):
            return f"no answer from {self.base_url} in time"
        if isinstance(error, openai.APIStatusError):
            return redacted(error_message(error))
        return (
            f"the connection to {self.base_url} failed ({type(error.__cause__ or error).__name__})"
        )

    def _not_served(self, detail: str) -> str:
        return (
            f"{self.base_url} does not have {self.model} ({detail}); correct the model's name, or"
            " base_url, which often ends in /v1"
        )

    def _cut(self, error: openai.APIConnectionError) -> str:
        cause = first_line(error.__cause__ if isinstance(error.__cause__, Exception) else error)
        return f"no answer from {self.base_url} ({cause})"

    def _unreachable(self, error: openai.APIConnectionError) -> ProviderError:
        return ProviderError(f"{self._cut(error)}; start the server or correct base_url")

    def not_the_api(self, why: str) -> ProviderError:
        """Return the error for a reply that does not come from OpenAI's API."""
        return ProviderError(
            f"{self.base_url} does not reply like OpenAI's API ({why}); correct base_url"
        )


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
    errors = (each.get("error") for each in places if isinstance(each, dict))
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


def details_of(error: openai.APIStatusError) -> Mapping[str, object]:
    """Return what a server says of an error: code, type, param, message; Google sends a list."""
    told = error.body
    if isinstance(told, list) and told:
        told = told[0]
    if isinstance(told, dict):
        told = told.get("error", told)
    return told if isinstance(told, dict) else {}


def kinds_of(error: openai.APIStatusError) -> tuple[object, ...]:
    """Return by which words a server's error says what it is; Google's `status` is one."""
    told = details_of(error)
    return tuple(told.get(name) for name in ("code", "type", "status"))


def error_message(error: openai.APIStatusError) -> str:
    """Return a server's error message; vLLM and SGLang put it in different places."""
    words = details_of(error).get("message") or error.body or first_line(error)
    if error.response.has_redirect_location:
        words = f"moved to {error.response.headers['location']}"
    return replace_surrogates(f"HTTP {error.status_code}: {words}")


def is_out_of_credit(status: int, codes: Iterable[object], message: str) -> bool:
    """Return whether the credit is used up; some servers say so only in the message."""
    is_told = not _OUT_OF_CREDIT.isdisjoint(map(str, codes))
    is_said = status == HTTPStatus.BAD_REQUEST and _NO_CREDIT.search(message)
    return is_told or bool(is_said) or status == HTTPStatus.PAYMENT_REQUIRED
