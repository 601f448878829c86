"""Whether intervals hold the truth as often as they say, where answers have luck on some prompts.

This is quick, and told with a margin; `tests.benchmarks.coverage` measures it.
"""

import pytest

from ledger.events.ratings import BradleyTerryParameters, IntervalKind
from tests.projections.simulated import bradley_terry, coverage, tournaments, truth


@pytest.mark.parametrize("interval", ["sandwich", "bayesian", "multinomial"])
def test_intervals_over_prompts_hold_the_truth_as_often_as_they_say(
    interval: IntervalKind,
) -> None:
    """95 % of them, to what 150 tournaments can tell."""
    parameters = BradleyTerryParameters(interval=interval, resamples=200)

    found = coverage(bradley_terry(tournaments(150), parameters), truth())

    assert 0.92 <= found.share <= 0.98


def test_intervals_over_battles_hold_it_too_rarely() -> None:
    """Battles of one prompt share its answers; who takes them for independent is too sure."""
    drawn = tournaments(200, own=2.0)

    found = coverage(bradley_terry(drawn, BradleyTerryParameters(unit="battles")), truth(own=2.0))

    assert found.share < 0.93
