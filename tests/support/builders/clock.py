"""A clock that only sleeping moves on."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from commands.asking.pace import Pace
from tests.support.builders.events import NOON


@dataclass
class Clock:
    """Stands at noon until somebody sleeps."""

    moment: datetime = NOON
    slept_s: list[float] = field(default_factory=list)

    def now(self) -> datetime:
        """Return the time."""
        return self.moment

    def sleep(self, seconds: float) -> None:
        """Let it be later."""
        self.slept_s.append(seconds)
        self.moment += timedelta(seconds=seconds)

    def pace(self) -> Pace:
        """Return a pace by this clock."""
        return Pace(now=self.now, sleep=self.sleep)
