"""Battles by a judge's marks, of a tournament's replies and of imported preferences."""

from math import exp

import pytest
from msgspec.structs import replace

from ledger.events.imports import CodedColumn
from ledger.events.judging import PairReconciled
from ledger.events.registry import Event
from projections.battles.imported import table_of
from projections.battles.settled import BY_SCORES, ScoredBattles, scored_orders, scored_preferences
from projections.tournament.settlement import settle
from projections.verdicts.parsers import JudgeScores
from projections.verdicts.policies import DEFAULT_POLICY
from tests.battles import battles
from tests.builders import known, opened, responses
from tests.projections.juries import JURORS, A, court, heard, marked
from tests.projections.worlds import everything, matches_of


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
            [(JudgeScores(7, 3), JudgeScores(4, 5)), (JudgeScores(0, 0), JudgeScores(2, 9))],
        )
    )

    assert found.margin.tolist() == [4.0, 1.0, 0.0, 7.0]
    assert found.battles.score.tolist() == [1.0, 1.0, 0.5, 1.0]
    assert found.battles.cluster.tolist() == [0, 0, 0, 0]
    assert found.battles.prompts == ("p1",)


def test_soft_scores_say_by_how_much() -> None:
    """JudgeArena's preference of the first order is 1 less this."""
    found = by_marks(*marked(court(1), [(JudgeScores(9, 2), JudgeScores(2, 2))]))

    assert found.soft(0.3).score.tolist() == pytest.approx([1 - 0.10909682119561293, 0.5])
    assert found.soft(0.3).cluster.tolist() == found.battles.cluster.tolist()


def test_replies_without_marks_are_no_battles() -> None:
    """A verdict alone says not by how much."""
    assert not len(by_marks(*heard(court(1), [A, A])).battles)


def test_identical_responses_are_a_tie_at_any_temperature() -> None:
    """Nobody was asked about them, so there is no reply with marks."""
    opening = opened(judges=JURORS[:1])
    same: list[Event] = [replace(each, text="Aspirin.") for each in responses(known(*opening))]
    (match,) = matches_of(known(*opening, *same))
    tie = PairReconciled(
        outcome="tie", basis="identical", **match.key(JURORS[0].judge_id, DEFAULT_POLICY)._asdict()
    )

    found = by_marks(*opening, *same, tie)

    assert found.margin.tolist() == [0.0, 0.0]
    assert found.soft(2.0).score.tolist() == [0.5, 0.5]


def test_preferences_of_judges_are_marks_again() -> None:
    """A tie of 0.5 is a margin of 0; people and replies that were not read gave no marks."""
    table = table_of(
        [
            battles(
                ("x",) * 4,
                ("y",) * 4,
                prefs=CodedColumn.of([1 / (1 + exp(1.2)), 0.5, None, 0.2]),
                winners=CodedColumn.of(["model_a", "tie", "no verdict", "model_a"]),
                sources=CodedColumn.of(["llm-judge"] * 3 + ["human"]),
                prompts=CodedColumn.of(["q1", "q2", "q3", "q4"]),
            )
        ]
    )

    found = scored_preferences(table, made_at=0.3)

    assert found.margin.tolist() == pytest.approx([4.0, 0.0], abs=1e-12)
    assert found.battles.score.tolist() == [1.0, 0.5]
    assert found.battles.prompts[:2] == ("q1", "q2")
