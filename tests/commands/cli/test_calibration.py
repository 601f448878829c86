"""`tourney project calibration`: whether an entrant's p_correct can be believed."""

from functools import partial
from pathlib import Path

import pytest

from ledger.store import Ledger
from tests.builders import STREAM
from tests.commands.cli.conftest import Tourney, launch
from tests.commands.cli.settled import fields
from tests.projections.juries import TIE, A, B, court, heard
from tests.projections.test_calibration import sure

N_OPENING = 9  # events until two prompts, a rubric, three entrants and two judges are known


@pytest.fixture
def tourney(tmp_path: Path) -> Tourney:
    """Give a function that runs the command line beside a ledger in which zoe says p_correct."""
    events = heard(sure(court(2), {"zoe": 0.9}), [A, TIE, A, A, A], [B, B])
    with Ledger.open(tmp_path / "tournament.db") as ledger:
        ledger.append(STREAM, events)
    return partial(launch, tmp_path)


def test_responses_are_held_against_gold_answers(tourney: Tourney) -> None:
    """No response of this ledger holds `aspirin`."""
    found = fields(tourney("project", "calibration", "--json"))

    (measures,) = found["measures"]
    assert (found["against"], found["tournament"]) == ("gold", STREAM)
    assert (measures["entrant"], measures["n"], measures["ece"]) == ("zoe", 2, 0.9)


def test_responses_are_held_against_a_judges_verdicts(tourney: Tourney) -> None:
    """By the judge that is named, and by the rule that is named: ann gives zoe 3.5 of 4."""
    judged = ("project", "calibration", "--against", "judged", "--json")
    first = fields(tourney(*judged, "--dimension", "factuality"))
    named = fields(tourney(*judged, "--judge", "bob"))

    assert (first["judge"], first["rows"][9]["correctness"]) == ("ann", 0.875)
    assert (named["judge"], named["rows"][9]["correctness"]) == ("bob", 0.0)
    assert named["measures"][0]["n_left_out"] == 1


def test_nothing_to_show_is_no_failure(tourney: Tourney) -> None:
    """So it is before the first response, and in a tournament of plain weights."""
    done = tourney("project", "calibration", "--as-of", str(N_OPENING))

    assert done.returncode == 0, done.stderr
    assert "needs_uncertainty = true" in done.stdout


@pytest.mark.parametrize(
    "option",
    [("--judge", "ann"), ("--dimension", "factuality"), ("--policy", "majority")],
)
def test_options_of_verdicts_are_refused_beside_gold_answers(
    tourney: Tourney, option: tuple[str, str]
) -> None:
    """Whoever names a judge believes to see that judge's verdicts."""
    done = tourney("project", "calibration", *option)

    assert (done.returncode, done.stdout) == (2, "")
    assert "--against judged" in done.stderr
