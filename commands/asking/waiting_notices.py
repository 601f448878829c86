"""Report requests that a server leaves unanswered: after a minute, then ever more rarely."""

from collections.abc import Callable
from datetime import datetime, timedelta
from math import inf
from typing import Final

from commands.errors import counted
from commands.ports import Tell

_FIRST_S: Final = 60.0  # many models think that long


class WaitingNotices:
    """Reports requests under way if no answer came for 1 minute, then for 2, 4, 8 ... minutes."""

    def __init__(
        self, server: str, *, timeout_s: float, now: Callable[[], datetime], tell: Tell
    ) -> None:
        """Take the server's name in messages, and its timeout for one request in seconds."""
        self._server, self._timeout, self._now = server, timedelta(seconds=timeout_s), now
        self._tell = tell
        self._sent_at: dict[int, datetime] = {}  # of the requests under way, the oldest first
        self._since, self._patience_s = now(), _FIRST_S

    def sent(self, number: int) -> None:
        """Note that a request of a number is under way."""
        if not self._sent_at:
            self._begin()
        self._sent_at[number] = self._now()

    def ended(self, number: int) -> None:
        """Note that a request ended, with or without an answer."""
        del self._sent_at[number]
        self._begin()

    @property
    def due_s(self) -> float:
        """Seconds until the next report; infinite if nothing is under way."""
        if not self._sent_at:
            return inf
        return max(0.0, self._patience_s - (self._now() - self._since).total_seconds())

    def tell_if_due(self) -> None:
        """Report the server, how many requests wait, since when, and when they time out."""
        if self.due_s > 0:
            return
        self._patience_s *= 2
        since = next(iter(self._sent_at.values()))
        until = since + self._timeout
        self._tell(
            f"waiting for {self._server} since {since.astimezone():%H:%M:%S}:"
            f" {counted(len(self._sent_at), 'request')} without an answer; the oldest times out at"
            f" {until.astimezone():%H:%M:%S}, after {self._timeout.total_seconds():g} s"
        )

    def _begin(self) -> None:
        self._since, self._patience_s = self._now(), _FIRST_S
