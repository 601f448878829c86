"""Watching events arrive."""

from collections.abc import Callable

import pytest

from commands.follow import follow
from ledger.store import Ledger
from tests.builders import STREAM, key, verdict


class Enough(Exception):
    """Nobody looks any longer."""


def appending(ledger: Ledger, *batches: int) -> Callable[[], None]:
    """Return a wait in which others append so many events each time; then it ends."""
    remaining = iter(batches)
    names = iter(range(10**9))

    def wait() -> None:
        n_events = next(remaining, None)
        if n_events is None:
            raise Enough
        ledger.append(STREAM, [verdict(key(str(next(names)))) for _ in range(n_events)])

    return wait


@pytest.mark.parametrize("batches", [(), (1,), (2, 0, 3), (1_500, 1)])
@pytest.mark.parametrize("after", [0, 1])
def test_every_event_is_seen_once_and_in_order(
    ledger: Ledger, batches: tuple[int, ...], after: int
) -> None:
    """However many arrive between two looks, none is shown twice or left out."""
    ledger.append(STREAM, [verdict(key("first")), verdict(key("second"))])
    seen: list[int] = []

    with pytest.raises(Enough):
        seen.extend(row.position for row in follow(ledger, after, appending(ledger, *batches)))

    assert seen == list(range(after + 1, 3 + sum(batches)))
