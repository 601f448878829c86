"""A judge's marks held against what people said of the same."""

from dataclasses import replace

import numpy as np
import pytest

from projections.battles.columns import Battle, battles_of
from projections.battles.settled import ScoredBattles, calibrate_judge, votes_with_margins
from projections.battles.soft_scores import CannotCalibrate, calibrate


def judged(*rows: tuple[str, str, str, float]) -> ScoredBattles:
    """Return battles of a and b on a prompt, by how much the mark of a is above that of b."""
    margin = np.array([margin for *_, margin in rows], dtype=np.float64)
    return ScoredBattles(battles_of(Battle(a, b, 0.5, prompt) for a, b, prompt, _ in rows), margin)


def test_a_vote_meets_the_marks_of_the_same_two_on_the_same_prompt() -> None:
    """Whichever of them either source calls a; what only one of them has is left out."""
    votes = battles_of(
        [
            Battle("zoe", "amy", 1.0, "p1"),
            Battle("amy", "zoe", 0.0, "p2"),
            Battle("zoe", "kim", 1.0, "p1"),
            Battle("zoe", "amy", 1.0, "p3"),
        ]
    )
    marked = judged(("zoe", "amy", "p1", 2.0), ("zoe", "amy", "p2", 3.0), ("zoe", "bob", "p1", 9.0))

    shared = votes_with_margins(marked, votes)

    assert shared.margin.tolist() == [2.0, -3.0]
    assert shared.battles.score.tolist() == [1.0, 0.0]
    assert shared.battles.cluster.tolist() == [0, 1]


def test_each_order_is_held_against_each_vote() -> None:
    """Two orders and three votes make six pairs, all of one prompt."""
    votes = battles_of(Battle("zoe", "amy", score, "p1") for score in (1.0, 0.0, 0.5))
    marked = judged(("zoe", "amy", "p1", 2.0), ("amy", "zoe", "p1", 1.0))

    shared = votes_with_margins(marked, votes)

    assert shared.margin.tolist() == [2.0, -1.0] * 3
    assert set(shared.battles.cluster.tolist()) == {0}


def test_what_is_calibrated_is_what_both_have() -> None:
    """With the likelihood there, and at the temperature that JudgeArena has."""
    rows = [Battle("zoe", "amy", float(n % 3 > 0), f"p{n}") for n in range(12)]
    marked = judged(*(("zoe", "amy", f"p{n}", 1.0) for n in range(20)))

    found = calibrate_judge("utility", marked, battles_of(rows))

    assert found.found == calibrate(battles_of(rows), np.ones(12))
    assert found.name == "utility"
    assert found.log_likelihood > found.log_likelihood_usual


@pytest.mark.parametrize(
    ("margin", "prompt", "why"),
    [
        (1.0, "p2", "no human vote has a prompt and two entrants in common"),
        (np.inf, "p1", "1 of 1 preferences are 0 or 1, which no finite scores give"),
    ],
)
def test_what_cannot_be_held_against_votes_is_refused(margin: float, prompt: str, why: str) -> None:
    """Sets that name prompts in two ways meet nowhere; wins without marks say nothing of T."""
    votes = battles_of([Battle("zoe", "amy", 1.0, "p1")])

    with pytest.raises(CannotCalibrate, match=why):
        votes_with_margins(judged(("zoe", "amy", prompt, margin)), votes)


def test_battles_on_prompts_without_a_name_meet_no_vote() -> None:
    """Numbers of two tables say nothing of each other."""
    battles, margin = judged(("zoe", "amy", "p1", 1.0))
    nameless = ScoredBattles(replace(battles, prompts=()), margin)

    with pytest.raises(CannotCalibrate, match="no human vote"):
        votes_with_margins(nameless, battles_of([Battle("zoe", "amy", 1.0, "p1")]))
