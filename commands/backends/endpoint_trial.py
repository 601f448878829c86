"""Ask a server a few things first: one that is set up wrongly rejects whatever it is asked.

A rejection that is recorded is final, and that is right only where it is the prompt that a server
does not take.
"""

from collections.abc import Callable, Iterator, Sequence
from threading import Event
from typing import Final, TypeVar

from commands.backends.abreast import abreast
from commands.backends.endpoint import Endpoint, Unanswered
from commands.errors import ProviderError
from commands.ports import GenerationFailure, NoReply

ENOUGH: Final = 8  # requests in vain: it is the server that fails, and not a prompt
Question = TypeVar("Question")
Answer = TypeVar("Answer")


class Trial:
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

    def asked(
        self,
        questions: Sequence[Question],
        ask: Callable[[Question], Answer],
        *,
        n_at_a_time: int,
        stops: Event | None = None,
    ) -> Iterator[Answer]:
        """Yield answers as `abreast` does, a few at a time until the server is trusted.

        `stops` is heeded between those: a few are too few to be stopped.

        Raises:
            ProviderError: The server answered nothing, and all that it rejected, in this call and
                before, it rejected in the same words; the last few are not yielded.
        """
        rest, stops = questions, stops or Event()
        while rest and not self._is_trusted and not stops.is_set():
            few, rest = _parted(rest)
            yield from self._held(abreast(few, ask, n_at_a_time=n_at_a_time))
        yield from abreast(rest, ask, n_at_a_time=n_at_a_time, stops=stops)

    def _held(self, answers: Iterator[Answer]) -> Iterator[Answer]:
        """Yield answers, rejections last: by then it is known whose fault they are."""
        rejections: list[Answer] = []
        for answer in answers:
            self._heed(answer)
            if _words_of(answer) is None:
                yield answer
            else:
                rejections.append(answer)
        if rejections and self._n_in_vain >= ENOUGH and not self._is_trusted:
            raise self._rejecting(len(rejections))
        self._n_kept += len(rejections)
        yield from rejections

    def _heed(self, answer: object) -> None:
        """Take note of what an answer says about the server."""
        said = _words_of(answer)
        if said is not None:
            self._words.add(said)
        is_in_vain = said is not None or _is_left(answer)
        self._n_in_vain += is_in_vain
        self._is_trusted |= not is_in_vain or len(self._words) > 1

    def _rejecting(self, n_held: int) -> ProviderError:
        [words] = self._words
        return ProviderError(
            f"{self._server.whom} at {self._server.base_url} answered none of the first"
            f" {self._n_in_vain} requests and rejected {self._n_kept + n_held} in the same words,"
            f" {words!r}, {self._n_kept or 'none'} of them on record; put the server or the"
            f" settings right (if it is those prompts, `tourney apply ... --limit {ENOUGH - 1}`"
            f" records them, {ENOUGH - 1} at a time)"
        )


def _parted(questions: Sequence[Question]) -> tuple[Sequence[Question], Sequence[Question]]:
    """Take a few from all over, as neighbours may be of one prompt, and return the rest, too."""
    step = max(1, len(questions) // ENOUGH)
    chosen = range(0, len(questions), step)[:ENOUGH]
    rest = [question for index, question in enumerate(questions) if index not in chosen]
    return [questions[index] for index in chosen], rest


def _words_of(answer: object) -> str | None:
    """Return the words of a rejection; None: the answer is none."""
    if isinstance(answer, NoReply | GenerationFailure) and answer.reason == "rejected":
        return answer.detail
    return None


def _is_left(answer: object) -> bool:
    """Tell whether a server left a question without an answer, which may be asked again."""
    return isinstance(answer, NoReply | Unanswered)
