"""Say who is waited for while a server answers nothing."""

from collections.abc import Callable
from datetime import datetime, timedelta
from math import inf
from typing import Final

from commands.errors import counted
from commands.ports import Tell

_FIRST_S: Final = 60.0  # many models think that long


class Silence:
    """Tells of requests under way once nothing came back for a minute, then ever more rarely."""

    def __init__(
        self, server: str, *, timeout_s: float, now: Callable[[], datetime], tell: Tell
    ) -> None:
        """Take the server's name in messages, and the seconds after which it fails a request."""
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
        """Note that a request came back, whatever became of it."""
        del self._sent_at[number]
        self._begin()

    @property
    def due_s(self) -> float:
        """Seconds until there is something to tell; infinite if nothing is under way."""
        if not self._sent_at:
            return inf
        return max(0.0, self._patience_s - (self._now() - self._since).total_seconds())

    def tell_if_due(self) -> None:
        """Say who is waited for, how many requests, since when, and until when."""
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
