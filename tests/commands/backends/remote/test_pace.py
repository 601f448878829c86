"""A server is sent as many requests at a time as it takes, and waited for as it asks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands.backends.remote.pace import Pace, back_off_s
from tests.support.builders.anthropic import FakeTime


def test_without_a_limit_nothing_is_held_up() -> None:
    """As many are sent as are wanted at a time."""
    pace = FakeTime().pace()

    assert [pace.n_free(n, 64) for n in (0, 60, 64)] == [64, 4, 0]
    assert pace.wait_s == 0.0


def test_the_wait_that_a_server_asks_for_is_kept_for_all() -> None:
    """Coming sooner is refused again, and later is idle."""
    clock = FakeTime()
    pace = clock.pace()

    pace.rejected(7.0, 64)

    assert pace.wait_s == 7.0
    clock.sleep(7.0)
    assert pace.wait_s == 0.0


def test_half_as_many_are_sent_after_a_rejection_and_one_more_with_each_answer() -> None:
    """So a server's limit is found from below."""
    pace = FakeTime().pace()

    pace.rejected(1.0, 64)

    assert pace.n_free(0, 64) == 32
    pace.answered()
    assert pace.n_free(0, 64) == 33


def test_rejections_of_the_same_moment_count_once() -> None:
    """Eight that were under way together must not wait for eight times as long."""
    pace = FakeTime().pace()

    waits = [pace.rejected(None, 64 - n) for n in range(8)]

    assert max(waits) <= 0.5
    assert pace.wait_s <= 0.5
    assert pace.n_free(0, 64) == 32


@given(n_at_a_time=st.integers(1, 256), outage_s=st.floats(1.0, 3600.0))
def test_an_outage_is_forgotten_once_as_many_were_answered(
    n_at_a_time: int, outage_s: float
) -> None:
    """It says nothing of how much a server takes when it is back."""
    clock = FakeTime()
    pace = Pace(now=clock.now)
    began = clock.now()
    while (clock.now() - began).total_seconds() < outage_s:
        pace.rejected(None, pace.n_free(0, n_at_a_time))
        clock.sleep(max(0.1, pace.wait_s))

    n_rounds = 0
    while (n_sent := pace.n_free(0, n_at_a_time)) < n_at_a_time:
        n_rounds += 1
        for _ in range(n_sent):
            pace.answered()

    assert n_rounds <= 8  # of as many at a time as are allowed: 1, 2, 4 ... 256


def test_else_each_rejection_waits_longer_up_to_a_limit() -> None:
    """Jitter keeps many clients from coming back at once."""
    for n_before, limit in [(0, 0.5), (1, 1.0), (2, 2.0), (20, 60.0), (10_000, 60.0)]:
        assert all(limit / 2 <= back_off_s(n_before) <= limit for _ in range(20))


@pytest.mark.parametrize("asked_s", [None, 0.0])
def test_a_server_that_rejects_again_and_names_no_time_is_not_hammered(
    asked_s: float | None,
) -> None:
    """Each rejection may have its price."""
    clock = FakeTime()
    pace = clock.pace()
    pace.rejected(asked_s, 1)
    clock.sleep(60.0)

    assert pace.rejected(asked_s, 1) >= 0.5
