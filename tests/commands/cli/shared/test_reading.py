"""What is said beside every table of ratings, and where a variable changes nothing."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from commands.cli.shared.reading import ignored_variables, notes_of
from commands.reading.judged_tournament import Perspective, judged_tournament
from projections.verdicts.policies import MAJORITY, Rule
from tests.support.builders.events import known
from tests.support.builders.worlds import SLOT_A, TIE, A, B, Said, court, heard


def warnings(*said: Said) -> Sequence[str]:
    """Return the warnings on a judge who says this of some of six pairs."""
    state = known(*heard(court(1), said))
    notes = notes_of(judged_tournament(state, Path("tournament.db"), None, Perspective()))
    return [note for note in notes if note.startswith("WARNING")]


@pytest.mark.parametrize("said", [(), (A,), (A, TIE), (A, TIE, A, A, SLOT_A)], ids=len)
def test_verdicts_that_rank_are_not_doubted(said: Sequence[Said]) -> None:
    """Up to a fifth of the judged pairs may be inconsistent, and some may be tied."""
    assert warnings(*said) == []


def test_a_judge_that_often_contradicts_itself_is_doubted() -> None:
    """A tie beside a win is no contradiction, and is told from opposite winners."""
    [warning] = warnings(A, A, A, TIE, SLOT_A, ("A", "TIE"))

    assert warning == (
        "WARNING: factuality: 33% of the judged pairs are inconsistent (2 of 6: 1 with opposite"
        " winners, 1 with a tie beside a win); ratings and shares of wins count each verdict by"
        " itself. `tourney project bias` shows more."
    )


def test_a_panel_without_a_majority_is_doubted() -> None:
    """Such pairs have no outcome, whatever the orders said."""
    state = known(*heard(court(2), [A, A, A], [B, B, B]))
    perspective = Perspective(rule=Rule(MAJORITY))

    notes = notes_of(judged_tournament(state, Path("tournament.db"), None, perspective))

    assert notes[-1] == (
        "WARNING: factuality: on 100% of the judged pairs no outcome has a majority; they do not"
        " count."
    )


def test_a_judge_that_sees_no_difference_is_doubted() -> None:
    """A table of equal ratings would look like a result."""
    assert warnings(TIE, TIE) == [
        "WARNING: factuality: all 2 pairs with an outcome are ties, so there is no ranking."
    ]


@pytest.mark.parametrize(
    ("name", "value", "note"),
    [
        ("TOURNEY_ELO_K", "32", "`tourney project elo --k 32` does"),
        (
            "TOURNEY_ELO_K_SWEEP",
            "[1,4]",
            "it counts once `tourney run` or `tourney apply` recorded it",
        ),
        ("TOURNEY_ELO_KK", "32", "[elo] has no key 'kk'"),
        ("TOURNEY_BRADLEY_TERRY_TIES", "half", "`tourney project bt --ties half` does"),
        (
            "TOURNEY_BRADLEY_TERRY_PRIOR_SD",
            "100",
            "it counts once `tourney run` or `tourney apply` recorded it",
        ),
    ],
)
def test_a_variable_that_reading_ignores_is_told(name: str, value: str, note: str) -> None:
    """Whoever set it would take the recorded K for theirs."""
    followed = ("TOURNEY_LEDGER", "TOURNEY_TOURNAMENT_ID", "TOURNEY_PORT", "HOME")
    environ = {**dict.fromkeys(followed, "x"), name: value}

    assert [*ignored_variables(environ)] == [f"{name} changes nothing here: {note}"]
