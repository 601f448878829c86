"""When a rejection is the request's own fault, and when it is the server's.

A server that is set up wrongly, or whose account has reached a limit, rejects whatever it is sent,
often with the status of an invalid request. Such rejections must not be recorded as final.
"""

import re
from collections import Counter
from dataclasses import replace
from typing import Final, Generic, TypeVar

from commands.ports import NoReply
from ledger.errors import TourneyError

MOST_ALIKE: Final = 8  # rejections in the same words without an answer: the server is at fault
_MOST_UNLIKE: Final = 2 * MOST_ALIKE  # likewise in whatever words
_OWN_WORDS: Final = re.compile(
    r"https?://\S+"  # URLs
    r"|'[^']*'|\"[^\"]*\"|`[^`]*`"  # what is quoted of the request
    r"|\(request [\w-]+\)|\breq[_-][\w-]+"  # ids
    r"|\b[\w.:-]*\d[\w.:-]*"  # numbers, times, hexadecimal digits and further ids
)
Request = TypeVar("Request")


class HeldRejections(Generic[Request]):
    """Keeps rejections back until it is known whether the requests or the server are at fault.

    The requests are, once the server answers a request that was sent after the first rejection
    came. The server is, once too many came in the same words without such an answer, or too many in
    whatever words without any answer between them.
    """

    def __init__(self) -> None:
        self.has_answered = False  # the server has answered a request
        self._held: list[tuple[Request, NoReply]] = []
        self._n_sent = 0  # when the first of them came
        self._n_alike = Counter[str]()  # of all since such an answer, by their words
        self._n_in_a_row = 0  # since any answer

    @property
    def blames_server(self) -> bool:
        """Whether so many were rejected that the server is at fault."""
        return self._n_most_alike >= MOST_ALIKE or self._n_in_a_row >= _MOST_UNLIKE

    @property
    def tally(self) -> str:
        """How many were rejected, for messages."""
        if self._n_in_a_row >= MOST_ALIKE:
            return f"{self._n_in_a_row} requests in a row"
        return f"{self._n_most_alike} requests in the same words"

    @property
    def _n_most_alike(self) -> int:
        return max(self._n_alike.values(), default=0)

    def add(self, request: Request, rejection: NoReply, n_sent: int) -> None:
        """Hold a rejection.

        Args:
            request: What was rejected.
            rejection: In which words.
            n_sent: How many requests were sent until now.
        """
        if not self._held:
            self._n_sent = n_sent
        self._held.append((request, rejection))
        self._n_alike[_OWN_WORDS.sub("", rejection.detail)] += 1
        self._n_in_a_row += 1

    def answered(self, number: int) -> list[tuple[Request, NoReply]]:
        """Return the rejections that are final since the request of a number was answered."""
        self.has_answered = True
        if self.blames_server:
            return []
        self._n_in_a_row = 0
        if number <= self._n_sent:
            return []
        self._n_alike.clear()
        return self._taken()

    def at_end(self, *, has_failed: bool) -> list[tuple[Request, NoReply]]:
        """Return what is still held: final if the run went well, else left for another time."""
        self._n_sent = 0
        if not has_failed:
            return self._taken()
        return [
            (request, replace(rejection, reason="errored")) for request, rejection in self._taken()
        ]

    def blame(self) -> TourneyError | None:
        """Return what is wrong with a server that rejected all and answered nothing, if known."""
        errors = [rejection.error for _, rejection in self._held if not rejection.is_certain]
        return errors[0] if errors and None not in errors and not self.has_answered else None

    def _taken(self) -> list[tuple[Request, NoReply]]:
        held, self._held = self._held, []
        return held
