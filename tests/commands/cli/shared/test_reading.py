"""What is said beside every table of ratings."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from commands.cli.shared.reading import notes_of
from commands.runs.judged_tournament import Perspective, judged_tournament
from tests.support.builders.events import known
from tests.support.builders.worlds import SLOT_A, TIE, A, Said, court, heard


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
    """Two of six pairs count for nobody."""
    [warning] = warnings(A, A, A, TIE, SLOT_A, SLOT_A)

    assert warning.startswith("WARNING: factuality: 33% of the judged pairs are inconsistent")
    assert "`tourney project bias`" in warning


def test_a_judge_that_sees_no_difference_is_doubted() -> None:
    """A table of equal ratings would look like a result."""
    assert warnings(TIE, TIE) == [
        "WARNING: factuality: all 2 pairs with an outcome are ties, so there is no ranking."
    ]
