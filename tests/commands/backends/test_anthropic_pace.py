"""When requests may go."""

import httpx2
import pytest

from tests.commands.backends.anthropic_builders import FakeTime


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after": "-1"}, 0.0),
    ],
)
def test_the_wait_that_the_provider_asks_for_is_kept(
    headers: dict[str, str], seconds: float
) -> None:
    """Coming sooner is refused again, and later is idle."""
    clock = FakeTime()
    pace = clock.pace()

    pace.back_off(0, httpx2.Headers(headers))
    pace.wait()

    assert sum(clock.slept) == seconds


@pytest.mark.parametrize("headers", [None, {}, {"retry-after": "Fri, 01 Jan 2027 00:00:00 GMT"}])
def test_else_each_attempt_waits_longer_up_to_a_limit(headers: dict[str, str] | None) -> None:
    """Jitter keeps many clients from coming back at once."""
    clock = FakeTime()
    pace = clock.pace()

    for attempt in (0, 1, 2, 20):
        pace.back_off(attempt, None if headers is None else httpx2.Headers(headers))
        pace.wait()

    limits = [0.5, 1.0, 2.0, 32.0]
    assert all(
        limit / 2 <= slept <= limit for slept, limit in zip(clock.slept, limits, strict=True)
    )


def test_a_limit_with_nothing_left_holds_until_it_is_reset_but_no_longer_than_a_minute() -> None:
    """The provider's clock may be wrong, or ours."""
    clock = FakeTime()
    pace = clock.pace()
    for resets_at in ("2026-10-01T00:00:20Z", "2026-10-02T00:00:00Z", "2026-09-01T00:00:00Z"):
        headers = {
            "anthropic-ratelimit-tokens-remaining": "0",
            "anthropic-ratelimit-tokens-reset": resets_at,
            "anthropic-ratelimit-requests-remaining": "5",
            "anthropic-ratelimit-requests-reset": "2026-10-01T01:00:00Z",
        }
        pace.follow_limits(httpx2.Headers(headers))
        pace.wait()

    assert clock.slept == [20.0, 60.0]
