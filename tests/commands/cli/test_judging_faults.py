"""A paid judge that leaves requests unanswered, and batches that nobody knows: what is said."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.anthropic_api.faults import Fault
from tests.anthropic_api.server import FakeAnthropic
from tests.commands.cli import paid

DIRECT: Final = ("apply", "judge", "--yes", "--provider", "anthropic")


@pytest.fixture
def fake() -> Iterator[FakeAnthropic]:
    """Give a provider whose batches end at the first look."""
    with FakeAnthropic() as fake:
        yield fake


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Give a tournament of one prompt, answered by four entrants: 36 queries."""
    place = paid.lay_out(tmp_path / "paid", n_prompts=1, judge={"prewarm": False})
    paid.record_responses(place)
    return place


def test_requests_that_are_billed_and_cut_off_stay_below_the_cap(
    folder: Path, fake: FakeAnthropic
) -> None:
    """Nothing of them is on record but that they may have been billed, and each command asks."""
    fake.inject(Fault(endpoint="messages", kind="cut_after", n=100))

    first = paid.tourney(folder, *DIRECT, "--max-usd", "0.4", url=fake.url)
    n_billed = len(fake.bill().paid)
    second = paid.tourney(folder, *DIRECT, "--max-usd", "0.4", url=fake.url)

    assert (first.code, second.code) == (5, 5), first.err + second.err
    assert "the cap is $0.4000: " in second.err
    assert "perhaps billed, and the next query may cost" in second.err
    assert len(fake.bill().paid) == n_billed < 36


def test_adopting_a_batch_that_nobody_knows_is_a_usage_error(
    folder: Path, fake: FakeAnthropic
) -> None:
    """A typing error: there is nothing to try again, and nothing to give up."""
    sent = paid.tourney(folder, "apply", "judge", "--yes", "--limit", "2", url=fake.url)
    assert sent.code == 0, sent.err

    done = paid.tourney(folder, "batch", "adopt", "nobody", url=fake.url)

    assert done.code == 2, done.err
    assert "'nobody'" in done.err
    assert "recorded here: msgbatch_" in done.err
    assert "forget" not in done.err
