"""Send requests to a server with OpenAI's API, and interpret its failures.

`Endpoint` handles one request; `ServerProbe` tests a server with a few requests before it trusts
the server's rejections.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from threading import Event
from typing import Final, Literal, TypeVar

import msgspec
import openai

from commands.backends._remote import REJECTED, first_line, replace_surrogates, run_concurrently
from commands.errors import ConfigurationError, NoCredentials, ProviderError, SpendLimitReached
from commands.ports import GenerationFailure, NoReply
from commands.settings.keys import OPENAI_KEY

_NO_KEY: Final = "none"  # the client requires a key; servers without keys ignore it

_OVERLOADED: Final = frozenset({503, 529})  # a full or starting server takes no request
_OUT_OF_CREDIT: Final = frozenset(
    {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"}
)
_NO_CREDIT: Final = re.compile(
    r"credit balance|insufficient (?:credit|balance|funds|quota)", re.IGNORECASE
)

Read = TypeVar("Read")


@dataclass(frozen=True)
class UnansweredRequest:
    """A request without an answer; other requests may still get one."""

    reason: Literal["errored", "rejected"]
    detail: str
    may_be_billed: bool = False  # the server accepted it, and may have worked on it


@dataclass(frozen=True)
class Endpoint:
    """A server, and the entrant or judge that it runs."""

    base_url: str  # such as http://localhost:8000/v1
    model: str  # its name in messages
    api_key: str | None = field(repr=False)  # None or empty if the server needs none
    key_variable: str = OPENAI_KEY  # where the key is from, for messages
    max_retries: int = 2  # after a timeout, a 429 or a server error
    timeout_s: float = 600.0  # for each part of an answer
    remedy_of: Callable[[str], str | None] = lambda _: None  # of a rejection of all requests

    def client(self) -> openai.OpenAI:
        """Return a thread-safe client; the caller must close it."""
        return openai.OpenAI(
            base_url=self.base_url,
            api_key=self.api_key or _NO_KEY,
            max_retries=self.max_retries,
            timeout=self.timeout_s,
        )

    def answer(
        self, send: Callable[[], bytes], read: Callable[[bytes], Read]
    ) -> Read | UnansweredRequest:
        """Send a request, and decode the answer.

        Args:
            send: Sends the request, and returns the answer's body.
            read: Decodes the body; raises msgspec.DecodeError if it is not such an answer.

        Raises:
            NoCredentials: The server needs a key, or refuses it.
            ConfigurationError: The server does not have the model, or does not know a setting.
            SpendLimitReached: The server's credit is used up.
            ProviderError: The server cannot be reached, or is another API.
        """
        try:
            return read(send())
        except msgspec.DecodeError as error:
            raise self.not_the_api(first_line(error)) from error
        except openai.APITimeoutError:
            return UnansweredRequest(
                "errored", "the server took too long to answer", may_be_billed=True
            )
        except openai.APIConnectionError as error:
            raise self._unreachable(error) from error
        except openai.APIStatusError as error:
            return self._handle_status(error)

    def _handle_status(self, error: openai.APIStatusError) -> UnansweredRequest:
        fatal, detail = self.fatal_error(error), self.describe(error)
        if fatal is not None:
            raise fatal from None  # it quotes the key
        match error:
            case openai.NotFoundError():
                raise ConfigurationError([self._not_served(detail)]) from error
            case openai.InternalServerError():  # perhaps of this request only
                is_taken = error.status_code not in _OVERLOADED
                return UnansweredRequest("errored", detail, may_be_billed=is_taken)
            case _ if error.status_code in REJECTED:
                self._require_known(detail)
                return UnansweredRequest("rejected", detail)
            case _:
                raise ProviderError(f"{self.base_url} replied {detail}") from error

    def fatal_error(self, error: openai.APIError) -> NoCredentials | SpendLimitReached | None:
        """Return an error if no further request can succeed; else None."""
        if isinstance(error, openai.AuthenticationError | openai.PermissionDeniedError):
            wrong = f"refuses the key in {self.key_variable}" if self.api_key else "wants a key"
            why = f"{self.base_url} {wrong} (HTTP {error.status_code})"
            instead = "set base_url to another server"
            return NoCredentials(why, self.key_variable, instead=instead)
        if isinstance(error, openai.APIStatusError) and _is_out_of_credit(error):
            return SpendLimitReached(self.describe(error))
        return None

    def describe(self, error: openai.APIError) -> str:
        """Describe an error in one line, with the key removed."""
        if isinstance(error, openai.APITimeoutError):
            return f"no answer from {self.base_url} in time"
        if isinstance(error, openai.APIStatusError):
            message = _error_message(error)
            return message.replace(self.api_key, "[key]") if self.api_key else message
        return (
            f"the connection to {self.base_url} failed ({type(error.__cause__ or error).__name__})"
        )

    def _require_known(self, detail: str) -> None:
        """Stop if every request would be rejected, and a setting can change that."""
        remedy = self.remedy_of(detail)
        if remedy is not None:
            raise ConfigurationError([f"{self.base_url} rejects {self.model} ({detail}); {remedy}"])

    def _not_served(self, detail: str) -> str:
        return (
            f"{self.base_url} does not have {self.model} ({detail}); correct the model's name, or"
            " base_url, which often ends in /v1"
        )

    def _unreachable(self, error: openai.APIConnectionError) -> ProviderError:
        cause = first_line(error.__cause__ if isinstance(error.__cause__, Exception) else error)
        return ProviderError(
            f"no answer from {self.base_url} ({cause}); start the server or correct base_url"
        )

    def not_the_api(self, why: str) -> ProviderError:
        """Return the error for a reply that does not come from OpenAI's API."""
        return ProviderError(
            f"{self.base_url} does not reply like OpenAI's API ({why}); correct base_url"
        )


def _error_message(error: openai.APIStatusError) -> str:
    """Return a server's error message; vLLM and SGLang put it in different places."""
    words = error.body.get("message") if isinstance(error.body, dict) else None
    return replace_surrogates(f"HTTP {error.status_code}: {words or first_line(error)}")


def _is_out_of_credit(error: openai.APIStatusError) -> bool:
    """Return whether the credit is used up; some servers say so only in the message."""
    is_told = not _OUT_OF_CREDIT.isdisjoint({str(error.code), str(error.type)})
    is_said = error.status_code == HTTPStatus.BAD_REQUEST and _NO_CREDIT.search(
        _error_message(error)
    )
    return is_told or bool(is_said) or error.status_code == HTTPStatus.PAYMENT_REQUIRED


N_PROBES: Final = 8  # requests; if all of them fail, the server is at fault, not a prompt
Request = TypeVar("Request")
Answer = TypeVar("Answer")


class ServerProbe:
    """Finds out whether a server accepts requests at all, before its rejections are trusted.

    A server is trusted once it answers a request, or rejects requests with different messages.
    Timeouts and server errors prove nothing.
    """

    def __init__(self, server: Endpoint) -> None:
        self._server, self._is_trusted = server, False
        self._n_failed = 0  # requests so far without an answer
        self._messages: set[str] = set()  # of its rejections so far
        self._n_kept = 0  # rejections yielded so far

    def ask_all(
        self,
        requests: Sequence[Request],
        ask: Callable[[Request], Answer],
        *,
        n_at_a_time: int,
        stops: Event | None = None,
    ) -> Iterator[Answer]:
        """Yield answers like `run_concurrently`, but in small groups until the server is trusted.

        `stops` takes effect between groups.

        Raises:
            ProviderError: The server answered none of the first requests, and rejected them with
                the same message; the last few rejections are not yielded.
        """
        rest, stops = requests, stops or Event()
        while rest and not self._is_trusted and not stops.is_set():
            few, rest = _probe_requests(rest)
            yield from self._hold_rejections(run_concurrently(few, ask, n_at_a_time=n_at_a_time))
        yield from run_concurrently(rest, ask, n_at_a_time=n_at_a_time, stops=stops)

    def _hold_rejections(self, answers: Iterator[Answer]) -> Iterator[Answer]:
        """Yield answers, rejections last: by then it is known whether the server is at fault."""
        rejections: list[Answer] = []
        for answer in answers:
            self._note(answer)
            if _rejection_message(answer) is None:
                yield answer
            else:
                rejections.append(answer)
        if rejections and self._n_failed >= N_PROBES and not self._is_trusted:
            raise self._rejecting(len(rejections))
        self._n_kept += len(rejections)
        yield from rejections

    def _note(self, answer: object) -> None:
        """Update the trust in the server by an answer."""
        message = _rejection_message(answer)
        if message is not None:
            self._messages.add(message)
        is_failure = message is not None or isinstance(answer, NoReply | UnansweredRequest)
        self._n_failed += is_failure
        self._is_trusted |= not is_failure or len(self._messages) > 1

    def _rejecting(self, n_held: int) -> ProviderError:
        [message] = self._messages
        return ProviderError(
            f"{self._server.model} at {self._server.base_url} answered none of the first"
            f" {self._n_failed} requests and rejected {self._n_kept + n_held} with the same"
            f" message, {message!r} ({self._n_kept or 'none'} recorded); correct the server or the"
            f" settings. If the prompts are at fault, `tourney apply ... --limit {N_PROBES - 1}`"
            f" records {N_PROBES - 1} rejections at a time"
        )


def _probe_requests(requests: Sequence[Request]) -> tuple[Sequence[Request], Sequence[Request]]:
    """Split off a few requests from all over, since neighbours may share a prompt."""
    step = max(1, len(requests) // N_PROBES)
    chosen = range(0, len(requests), step)[:N_PROBES]
    rest = [request for index, request in enumerate(requests) if index not in chosen]
    return [requests[index] for index in chosen], rest


def _rejection_message(answer: object) -> str | None:
    """Return the message of a rejection; None if the answer is not a rejection."""
    if isinstance(answer, NoReply | GenerationFailure) and answer.reason == "rejected":
        return answer.detail
    return None
