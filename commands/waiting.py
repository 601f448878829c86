"""Waiting for a provider: when to look again, and whether to wait at all."""

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from ledger.store import utc_now

_FIRST_S: Final = 5.0
_GROWTH: Final = 1.5
_JITTER: Final = 0.1  # of a delay: processes that began together do not ask together


@dataclass(frozen=True)
class Waiting:
    """The clock on the wall, and the patience of whoever looks at it."""

    poll_s: float  # between looks, at most
    settle_s: float  # until a batch that was sent without an answer shows, if it exists
    waits: bool = True  # False: come back later
    sleep: Callable[[float], None] = time.sleep
    now: Callable[[], datetime] = utc_now
    rng: random.Random = field(default_factory=random.Random)  # no secret

    def delays_s(self) -> Iterator[float]:
        """Yield how long to sleep between looks: longer and longer, up to `poll_s`."""
        delay_s = min(_FIRST_S, self.poll_s)
        while True:
            yield delay_s * self.rng.uniform(1 - _JITTER, 1 + _JITTER)
            delay_s = min(delay_s * _GROWTH, self.poll_s)
