"""Ask a server a few things first: one that is set up wrongly rejects whatever it is asked.

A rejection that is recorded is final, and that is right only where it is the prompt that a server
does not take.
"""

from collections.abc import Callable, Iterator, Sequence
from threading import Event
from typing import Final, TypeVar

from commands.backends.abreast import abreast
from commands.backends.endpoint import Endpoint
from commands.errors import ProviderError
from commands.ports import GenerationFailure, NoReply

ENOUGH: Final = 8  # requests in vain: it is the server that fails, and not a prompt
Question = TypeVar("Question")
Answer = TypeVar("Answer")


class Trial:
    """What is found out about a server once: whether it takes what it is asked at all."""

    def __init__(self, server: Endpoint) -> None:
        """Trust the server with nothing yet."""
        self._server, self._is_over = server, False

    def asked(
        self,
        questions: Sequence[Question],
        ask: Callable[[Question], Answer],
        *,
        n_at_a_time: int,
        stops: Event | None = None,
    ) -> Iterator[Answer]:
        """Yield answers as `abreast` does, the rest after the first few while this is not over.

        `stops` is of the rest: the first few are too few to be stopped.

        Raises:
            ProviderError: The first few were all rejected in the same words; they are not yielded.
        """
        few, rest = ([], questions) if self._is_over else _parted(questions)
        yield from self._held(abreast(few, ask, n_at_a_time=n_at_a_time), len(few))
        yield from abreast(rest, ask, n_at_a_time=n_at_a_time, stops=stops)

    def _held(self, answers: Iterator[Answer], n_asked: int) -> Iterator[Answer]:
        """Yield answers, rejections last: by then it is known whose fault they are."""
        rejections: list[Answer] = []
        words: set[str] = set()
        for answer in answers:
            if (said := _rejected(answer)) is None:
                yield answer
            else:
                rejections.append(answer)
                words.add(said)
        is_in_vain = len(rejections) == n_asked and len(words) <= 1
        if is_in_vain and n_asked == ENOUGH:
            raise self._rejecting(*words)
        self._is_over |= not is_in_vain
        yield from rejections

    def _rejecting(self, words: str) -> ProviderError:
        return ProviderError(
            f"{self._server.whom} at {self._server.base_url} rejected the first {ENOUGH} requests"
            f" in the same words, {words!r}, and none of that is recorded; put the server or the"
            f" settings right (if it is those prompts, `tourney apply ... --limit {ENOUGH - 1}`"
            " records it)"
        )


def _parted(questions: Sequence[Question]) -> tuple[Sequence[Question], Sequence[Question]]:
    """Take a few from all over, as neighbours may be of one prompt, and return the rest, too."""
    step = max(1, len(questions) // ENOUGH)
    chosen = range(0, len(questions), step)[:ENOUGH]
    rest = [question for index, question in enumerate(questions) if index not in chosen]
    return [questions[index] for index in chosen], rest


def _rejected(answer: object) -> str | None:
    """Return the words of a rejection; None: the answer is none."""
    if isinstance(answer, NoReply | GenerationFailure) and answer.reason == "rejected":
        return answer.detail
    return None
