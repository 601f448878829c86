"""A server is asked as fast as it takes requests, and no faster."""

from collections import deque
from datetime import datetime, timedelta

import pytest

from commands.backends.remote.pace import Pace, back_off_s
from tests.support.builders.anthropic import FakeTime


class RateLimited:
    """A server that takes so many requests in any second, and says when to come again."""

    def __init__(self, clock: FakeTime, per_second: int) -> None:
        self.clock, self.per_second = clock, per_second
        self.taken: deque[datetime] = deque()
        self.n_answered = self.n_rejected = 0

    def takes(self) -> bool:
        """Take a request, or reject it."""
        now = self.clock.now()
        while self.taken and self.taken[0] <= now - timedelta(seconds=1):
            self.taken.popleft()
        if len(self.taken) >= self.per_second:
            self.n_rejected += 1
            return False
        self.taken.append(now)
        self.n_answered += 1
        return True


def sent_by(pace: Pace, server: RateLimited, n: int, *, asked_s: float | None) -> float:
    """Send n requests through a server, 64 at a time; return the seconds that it took."""
    clock = server.clock
    began, n_left = clock.now(), n
    while n_left:
        for _ in range(pace.grant(min(64, n_left))):
            if server.takes():
                pace.answered()
                n_left -= 1
            else:
                pace.rejected(asked_s)
        clock.sleep(max(pace.wait_s, 0.001))
    return (clock.now() - began).total_seconds()


@pytest.mark.parametrize("per_second", [5, 40, 400])
@pytest.mark.parametrize("asked_s", [1.0, None])
def test_nine_tenths_of_what_a_server_allows_are_used(
    per_second: int, asked_s: float | None
) -> None:
    """Without knowing how much that is; and few requests are rejected."""
    clock = FakeTime()
    server = RateLimited(clock, per_second)

    took_s = sent_by(Pace(now=clock.now), server, 125 * per_second, asked_s=asked_s)

    assert server.n_answered / took_s >= 0.9 * per_second
    assert server.n_rejected < 0.05 * server.n_answered + 64 * 6


def test_without_a_limit_nothing_is_held_up() -> None:
    """As many as are wanted are granted."""
    pace = FakeTime().pace()

    assert [pace.grant(n) for n in (64, 1, 8)] == [64, 1, 8]
    assert pace.wait_s == 0.0


def test_the_wait_that_a_server_asks_for_is_kept_for_all() -> None:
    """Coming sooner is refused again, and later is idle."""
    clock = FakeTime()
    pace = clock.pace()

    pace.rejected(7.0)

    assert (pace.grant(5), pace.wait_s) == (0, 7.0)
    clock.sleep(7.0)
    assert pace.grant(5) == 5


def test_rejections_of_the_same_moment_count_once() -> None:
    """Eight that were under way together must not wait for eight times as long."""
    clock = FakeTime()
    pace = clock.pace()

    waits = [pace.rejected(None) for _ in range(8)]

    assert max(waits) <= 0.5
    assert pace.wait_s <= 0.5


def test_else_each_rejection_waits_longer_up_to_a_limit() -> None:
    """Jitter keeps many clients from coming back at once."""
    for n_before, limit in [(0, 0.5), (1, 1.0), (2, 2.0), (20, 60.0), (10_000, 60.0)]:
        assert all(limit / 2 <= back_off_s(n_before) <= limit for _ in range(20))


def test_a_short_hold_forgets_no_rate() -> None:
    """A client may hold for no time at all after each answer."""
    clock = FakeTime()
    pace = clock.pace()
    for _ in range(10):
        pace.answered()
    pace.rejected(0.0)
    clock.sleep(0.1)

    pace.grant(100)
    pace.hold(0.0)

    assert pace.wait_s > 0.0
    assert pace.grant(1) == 0
