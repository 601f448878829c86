"""What became of pairings, as battles."""

import pytest

from ledger.events.ratings import TieRule
from projections.battles.settled import settled_battles
from tests.builders import known, opened
from tests.projections.worlds import RUBRICS, cup, history, settled


@pytest.mark.parametrize(("ties", "counted"), [("drop", [1.0, 0.0]), ("half", [1.0, 0.5, 0.0])])
def test_ties_count_as_the_rule_says(ties: TieRule, counted: list[float]) -> None:
    """The customer drops ties; counting them as halves is a choice that the terms record."""
    tournament = known(*history(cup(), "a", "tie", "b", "inconsistent", "refused", "pending"))

    played = settled_battles(settled(tournament), ties=ties)

    assert played.score.tolist() == counted
    assert [played.entrants[side[0]] for side in (played.a, played.b)] == ["zoe", "amy"]


def test_battles_of_one_prompt_are_one_cluster_in_all_dimensions() -> None:
    """They share its peculiarities, and no interval may count them as independent."""
    tournament = known(*history(opened(rubrics=RUBRICS), "a", "b"))

    played = settled_battles(settled(tournament), ties="drop")

    assert played.cluster.tolist() == [0, 0]
