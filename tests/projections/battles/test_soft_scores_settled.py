"""Pairings as battles: by their outcomes, by a judge's marks, and beside people's votes."""

from dataclasses import replace as replace_field
from math import exp

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ledger.events.imports import CodedColumn
from ledger.events.judging import PairReconciled
from ledger.events.ratings import BradleyTerryParameters, TieModel
from ledger.events.registry import Event
from projections.battles.columns import battles_of
from projections.battles.imported import battles_of_set, scored_preferences
from projections.battles.soft_scores import (
    BY_SCORES,
    CannotCalibrate,
    ScoredBattles,
    calibrate,
    calibrate_judge,
    scored_orders,
    votes_with_margins,
)
from projections.ratings.bradley_terry.rate import rate_points
from projections.tournament.settlement import Settlement, settle
from projections.verdicts.policies import CONCATENATE, Rule
from tests.support.builders.battles import Battle, imported_battles, in_columns
from tests.support.builders.events import known, opened, responses, verdict
from tests.support.builders.worlds import (
    JURORS,
    RUBRICS,
    SLOT_A,
    TIE,
    A,
    B,
    Said,
    answered,
    court,
    cup,
    everything,
    failure,
    heard,
    history,
    marked,
    matches_of,
    settled,
)


def by_marks(*events: Event) -> ScoredBattles:
    """Return the battles that the first judge's marks make."""
    tournament = known(*events)
    return scored_orders(
        tournament, settle(tournament, everything(tournament), tournament.panel[0], BY_SCORES)
    )


def test_each_order_is_a_battle_by_the_marks_of_its_reply() -> None:
    """Zoe in slot A had 7 to 3, in slot B 5 to 4; the pair after it was told in one order."""
    found = by_marks(
        *marked(
            court(1),
            [((7, 3), (4, 5)), ((0, 0), (2, 9))],
        )
    )

    assert found.margin.tolist() == [4.0, 1.0, 0.0, 7.0]
    assert found.battles.score.tolist() == [1.0, 1.0, 0.5, 1.0]
    assert found.battles.cluster.tolist() == [0, 0, 0, 0]
    assert found.battles.prompts == ("p1",)


def test_replies_without_marks_are_no_battles() -> None:
    """A verdict alone says not by how much."""
    assert not len(by_marks(*heard(court(1), [A, A])).battles)


def test_identical_responses_are_a_tie_at_any_temperature() -> None:
    """Nobody was asked about them, so there is no reply with marks."""
    opening = opened(judges=JURORS[:1])
    same: list[Event] = [replace(each, text="Aspirin.") for each in responses(known(*opening))]
    (match,) = matches_of(known(*opening, *same))
    tie = PairReconciled(
        outcome="tie", basis="identical", **match.key(JURORS[0].judge_id)._asdict()
    )

    found = by_marks(*opening, *same, tie)

    assert found.margin.tolist() == [0.0, 0.0]
    assert found.soft(2.0).score.tolist() == [0.5, 0.5]


def test_preferences_of_judges_are_marks_again() -> None:
    """A tie of 0.5 is a margin of 0; people and replies that were not read gave no marks."""
    table = battles_of_set(
        [
            imported_battles(
                ("x",) * 4,
                ("y",) * 4,
                prefs=CodedColumn.of([1 / (1 + exp(1.2)), 0.5, None, 0.2]),
                winners=CodedColumn.of(["model_a", "tie", "no verdict", "model_a"]),
                sources=CodedColumn.of(["llm-judge"] * 3 + ["human"]),
                prompts=CodedColumn.of(["q1", "q2", "q3", "q4"]),
            )
        ]
    )

    found = scored_preferences(table)

    assert found.margin.tolist() == pytest.approx([4.0, 0.0], abs=1e-12)
    assert found.battles.score.tolist() == [1.0, 0.5]
    assert found.battles.prompts[:2] == ("q1", "q2")


def in_all_ways() -> tuple[Settlement, ...]:
    """Return pairs with two verdicts in all ways, then one with a verdict in one order."""
    ways: list[Said] = [A, TIE, B, SLOT_A, ("A", "TIE"), ("TIE", "A")]
    events = heard(answered(cup(3)), ways)
    seventh = matches_of(known(*events))[6]
    return settled(known(*events, verdict(seventh.forward_key, "A"), failure(seventh.swapped)))


def test_each_verdict_counts_by_itself() -> None:
    """Agreement is 1, a tie beside a win 3/4 of it, opposite winners and two ties are 1/2."""
    played = battles_of(in_all_ways()).by_verdicts("half")

    assert played.score.tolist() == [1.0, 0.5, 0.0, 0.5, 0.75, 0.25, 1.0]
    assert played.weight.tolist() == [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.5]


def test_where_a_tie_is_an_outcome_verdicts_that_differ_are_two_battles() -> None:
    """Davidson's model knows wins and ties, and nothing between."""
    played = battles_of(in_all_ways()).by_verdicts("davidson")

    assert played.score.tolist() == [1.0, 0.5, 0.0, 1.0, 0.0, 1.0, 0.5, 0.5, 0.0, 1.0]
    assert played.weight.tolist() == [1.0, 1.0, 1.0, *[0.5] * 7]


@pytest.mark.parametrize("ties", ["half", "davidson"])
@given(seed=st.integers(0, 999))
@settings(max_examples=3)
def test_ratings_are_those_of_every_order_as_a_game(ties: TieModel, seed: int) -> None:
    """A pair with the mean score of its verdicts and its orders one by one have the same fit."""
    draw = np.random.default_rng(seed).choice(["A", "A", "B", "TIE"], (24, 2))
    state = known(*heard(answered(cup(8)), [(one, other) for one, other in draw.tolist()]))
    orders = settle(state, everything(state), state.panel[0], Rule(CONCATENATE))
    parameters = BradleyTerryParameters(ties=ties)

    found = rate_points(battles_of(settled(state)).by_verdicts(ties), parameters)
    expected = rate_points(battles_of(orders).by_verdicts(ties), parameters)

    assert found.rating == pytest.approx(expected.rating, nan_ok=True)


def test_battles_of_one_prompt_are_one_cluster_in_all_dimensions() -> None:
    """They share its peculiarities, and no interval may count them as independent."""
    tournament = known(*history(opened(rubrics=RUBRICS), "a", "b"))

    played = battles_of(settled(tournament)).by_verdicts("half")

    assert played.cluster.tolist() == [0, 0]


def judged(*rows: tuple[str, str, str, float]) -> ScoredBattles:
    """Return battles of a and b on a prompt, by how much the mark of a is above that of b."""
    margin = np.array([margin for *_, margin in rows], dtype=np.float64)
    return ScoredBattles(in_columns(Battle(a, b, 0.5, prompt) for a, b, prompt, _ in rows), margin)


def test_a_vote_meets_the_marks_of_the_same_two_on_the_same_prompt() -> None:
    """Whichever of them either source calls a; what only one of them has is left out."""
    votes = in_columns(
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
    votes = in_columns(Battle("zoe", "amy", score, "p1") for score in (1.0, 0.0, 0.5))
    marked = judged(("zoe", "amy", "p1", 2.0), ("amy", "zoe", "p1", 1.0))

    shared = votes_with_margins(marked, votes)

    assert shared.margin.tolist() == [2.0, -1.0] * 3
    assert set(shared.battles.cluster.tolist()) == {0}


def test_what_is_calibrated_is_what_both_have() -> None:
    """With the likelihood there, and at the temperature that JudgeArena has."""
    rows = [Battle("zoe", "amy", float(n % 3 > 0), f"p{n}") for n in range(12)]
    marked = judged(*(("zoe", "amy", f"p{n}", 1.0) for n in range(20)))

    found = calibrate_judge("utility", marked, in_columns(rows))

    assert found.found == calibrate(in_columns(rows), np.ones(12))
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
    votes = in_columns([Battle("zoe", "amy", 1.0, "p1")])

    with pytest.raises(CannotCalibrate, match=why):
        votes_with_margins(judged(("zoe", "amy", prompt, margin)), votes)


def test_battles_on_prompts_without_a_name_meet_no_vote() -> None:
    """Numbers of two tables say nothing of each other."""
    battles, margin = judged(("zoe", "amy", "p1", 1.0))
    nameless = ScoredBattles(replace_field(battles, prompts=()), margin)

    with pytest.raises(CannotCalibrate, match="no human vote"):
        votes_with_margins(nameless, in_columns([Battle("zoe", "amy", 1.0, "p1")]))
