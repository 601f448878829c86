"""Requests to a server that speaks OpenAI's API, as vLLM and SGLang do, and what faults mean."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from threading import Event
from typing import Final, Literal, TypeVar

import msgspec
import openai

from commands.backends._remote import first_line, replace_surrogates, run_concurrently
from commands.errors import ConfigurationError, NoCredentials, ProviderError, SpendLimitReached
from commands.ports import GenerationFailure, NoReply

KEY_VARIABLE: Final = "OPENAI_API_KEY"
_NO_KEY: Final = "none"  # the client wants one, and a server that needs none takes any

_REJECTED: Final = frozenset({400, 413, 422})  # the request itself is refused, and would be again
_OVERLOADED: Final = frozenset({503, 529})  # a server that is full, or starts, takes no request
_OUT_OF_CREDIT: Final = frozenset(
    {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"}
)
_NO_CREDIT: Final = re.compile(
    r"credit balance|insufficient (?:credit|balance|funds|quota)", re.IGNORECASE
)

Read = TypeVar("Read")


@dataclass(frozen=True)
class UnansweredRequest:
    """A request that got no answer, where others may."""

    reason: Literal["errored", "rejected"]
    detail: str
    may_be_billed: bool = False  # the server took it, and may have worked on it


@dataclass(frozen=True)
class Endpoint:
    """One server, and who is asked there."""

    base_url: str  # as http://localhost:8000/v1
    whom: str  # for messages
    api_key: str | None = field(repr=False)  # None or empty where the server needs none
    max_retries: int = 2  # of a request that got no answer, a 429, or an error of the server's
    timeout_s: float = 600.0  # for each part of an answer

    def client(self) -> openai.OpenAI:
        """Return a client, for as many threads as you like; whoever asks for it closes it."""
        return openai.OpenAI(
            base_url=self.base_url,
            api_key=self.api_key or _NO_KEY,
            max_retries=self.max_retries,
            timeout=self.timeout_s,
        )

    def answer(
        self, send: Callable[[], bytes], read: Callable[[bytes], Read]
    ) -> Read | UnansweredRequest:
        """Return what is read out of the answer to a request.

        Args:
            send: Puts the request by a client, and returns the answer's body.
            read: Raises msgspec.DecodeError where the body is no such answer.

        Raises:
            NoCredentials: The server wants a key, or another.
            ConfigurationError: The server does not serve the model.
            SpendLimitReached: Nothing is left to pay the server with.
            ProviderError: The server cannot be reached, or is none of its kind.
        """
        try:
            return read(send())
        except msgspec.DecodeError as error:
            raise self._not_the_api(first_line(error)) from error
        except openai.APITimeoutError:
            return UnansweredRequest(
                "errored", "the server took too long to answer", may_be_billed=True
            )
        except openai.APIConnectionError as error:
            raise self._unreachable(error) from error
        except openai.APIStatusError as error:
            return self._handle_status(error)

    def _handle_status(self, error: openai.APIStatusError) -> UnansweredRequest:
        detail = _error_message(error)
        match error:
            case openai.AuthenticationError() | openai.PermissionDeniedError():
                why = f"{self.base_url} refuses the key with HTTP {error.status_code}"
                instead = "name another server by base_url"
                raise NoCredentials(why, KEY_VARIABLE, instead=instead) from None  # quotes it
            case _ if _is_out_of_credit(error):
                raise SpendLimitReached(detail) from error
            case openai.NotFoundError():
                raise ConfigurationError([self._not_served(detail)]) from error
            case openai.InternalServerError():  # of this request, perhaps; others may fare better
                is_taken = error.status_code not in _OVERLOADED
                return UnansweredRequest("errored", detail, may_be_billed=is_taken)
            case _ if error.status_code in _REJECTED:
                return UnansweredRequest("rejected", detail)
            case _:
                raise ProviderError(f"{self.base_url} answers {detail}") from error

    def _not_served(self, detail: str) -> str:
        return (
            f"{self.whom} is not at {self.base_url} ({detail}); correct the model's name or"
            " base_url, which often ends in /v1"
        )

    def _unreachable(self, error: openai.APIConnectionError) -> ProviderError:
        cause = (
            first_line(error.__cause__)
            if isinstance(error.__cause__, Exception)
            else first_line(error)
        )
        return ProviderError(
            f"no answer from {self.base_url} ({cause}); start the server or correct base_url"
        )

    def _not_the_api(self, why: str) -> ProviderError:
        return ProviderError(
            f"{self.base_url} does not answer as OpenAI's API does ({why}); correct base_url"
        )


def _error_message(error: openai.APIStatusError) -> str:
    """Return what a server said in words; vLLM and SGLang put it in different places."""
    words = error.body.get("message") if isinstance(error.body, dict) else None
    return replace_surrogates(f"HTTP {error.status_code}: {words or first_line(error)}")


def _is_out_of_credit(error: openai.APIStatusError) -> bool:
    """Tell whether a request cannot be paid for; some servers say so only in words."""
    is_told = not _OUT_OF_CREDIT.isdisjoint({str(error.code), str(error.type)})
    is_said = error.status_code == HTTPStatus.BAD_REQUEST and _NO_CREDIT.search(
        _error_message(error)
    )
    return is_told or bool(is_said) or error.status_code == HTTPStatus.PAYMENT_REQUIRED


N_PROBES: Final = 8  # requests in vain: it is the server that fails, and not a prompt
Request = TypeVar("Request")
Answer = TypeVar("Answer")


class ServerProbe:
    """What is found out about a server, call by call: whether it takes what it is asked at all.

    It is trusted once it answers, or says different things of different questions. That it broke
    on one, or took too long, says nothing either way.
    """

    def __init__(self, server: Endpoint) -> None:
        """Trust the server with nothing yet."""
        self._server, self._is_trusted = server, False
        self._n_in_vain = 0  # questions so far that it did not answer
        self._words: set[str] = set()  # of its rejections so far
        self._n_kept = 0  # of those, yielded

    def ask_all(
        self,
        questions: Sequence[Request],
        ask: Callable[[Request], Answer],
        *,
        n_at_a_time: int,
        stops: Event | None = None,
    ) -> Iterator[Answer]:
        """Yield answers as `run_concurrently` does, a few at a time until the server is trusted.

        `stops` is heeded between those: a few are too few to be stopped.

        Raises:
            ProviderError: The server answered nothing, and all that it rejected, in this call and
                before, it rejected in the same words; the last few are not yielded.
        """
        rest, stops = questions, stops or Event()
        while rest and not self._is_trusted and not stops.is_set():
            few, rest = _probe_requests(rest)
            yield from self._hold_rejections(run_concurrently(few, ask, n_at_a_time=n_at_a_time))
        yield from run_concurrently(rest, ask, n_at_a_time=n_at_a_time, stops=stops)

    def _hold_rejections(self, answers: Iterator[Answer]) -> Iterator[Answer]:
        """Yield answers, rejections last: by then it is known whose fault they are."""
        rejections: list[Answer] = []
        for answer in answers:
            self._note(answer)
            if _rejection_message(answer) is None:
                yield answer
            else:
                rejections.append(answer)
        if rejections and self._n_in_vain >= N_PROBES and not self._is_trusted:
            raise self._rejecting(len(rejections))
        self._n_kept += len(rejections)
        yield from rejections

    def _note(self, answer: object) -> None:
        """Take note of what an answer says about the server."""
        said = _rejection_message(answer)
        if said is not None:
            self._words.add(said)
        is_in_vain = said is not None or _is_retryable(answer)
        self._n_in_vain += is_in_vain
        self._is_trusted |= not is_in_vain or len(self._words) > 1

    def _rejecting(self, n_held: int) -> ProviderError:
        [words] = self._words
        return ProviderError(
            f"{self._server.whom} at {self._server.base_url} answered none of the first"
            f" {self._n_in_vain} requests and rejected {self._n_kept + n_held} in the same words,"
            f" {words!r}, {self._n_kept or 'none'} of them on record; put the server or the"
            f" settings right (if it is those prompts, `tourney apply ... --limit {N_PROBES - 1}`"
            f" records them, {N_PROBES - 1} at a time)"
        )


def _probe_requests(questions: Sequence[Request]) -> tuple[Sequence[Request], Sequence[Request]]:
    """Take a few from all over, as neighbours may be of one prompt, and return the rest, too."""
    step = max(1, len(questions) // N_PROBES)
    chosen = range(0, len(questions), step)[:N_PROBES]
    rest = [question for index, question in enumerate(questions) if index not in chosen]
    return [questions[index] for index in chosen], rest


def _rejection_message(answer: object) -> str | None:
    """Return the words of a rejection; None: the answer is none."""
    if isinstance(answer, NoReply | GenerationFailure) and answer.reason == "rejected":
        return answer.detail
    return None


def _is_retryable(answer: object) -> bool:
    """Tell whether a server left a question without an answer, which may be asked again."""
    return isinstance(answer, NoReply | UnansweredRequest)
