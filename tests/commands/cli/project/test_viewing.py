"""`tourney view` and `annotate` find what they show, and votes are there for every projection."""

from pathlib import Path

import pytest

from commands.importing.votes import open_ballot_box
from ledger.events.imports import SampleDesign
from ledger.identity import Dimension
from ledger.store import Ledger
from projections.fold import fold
from projections.tournament.state import tournament_of
from tests.support.builders.events import STREAM, entrant, opened, prompt
from tests.support.builders.worlds import RUBRICS, history
from tests.support.command_line.launching import launch

OPENING = opened(
    prompts=[prompt(f"p{n}") for n in range(8)],
    entrants=[entrant("zoe"), entrant("amy")],
    rubrics=RUBRICS,
)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Give a folder with a ledger of two dimensions: zoe wins on every other prompt."""
    with Ledger.open(tmp_path / "tournament.db") as ledger:
        ledger.append(STREAM, history(OPENING, *("a", "a", "b", "b") * 4))
    return tmp_path


def vote(place: Path, name: str, design: SampleDesign = "random") -> None:
    """Let ann prefer what stands left, on each pair that is drawn."""
    with Ledger.open(place / "tournament.db") as ledger:
        state = fold(tournament_of(STREAM), ledger.read())
        box = open_ballot_box(
            ledger, state, name, "ann", dimension=Dimension("utility"), design=design
        )
        for number in range(len(box.ballots)):
            box.cast(number, "a", n_before=0)


def test_votes_are_taken_at_once(place: Path) -> None:
    """Agreement and corrected ratings need no further step."""
    vote(place, "votes")

    agreed = launch(place, "project", "agreement", "--truth", "votes")
    own = launch(place, "project", "agreement", "--name", "votes")
    rated = launch(place, "project", "bt", "--truth", "votes", "--dimension", "utility")

    assert agreed.returncode == own.returncode == rated.returncode == 0, rated.stderr
    assert "reference, ann  Cohen's kappa" in agreed.stdout.partition("utility")[2]
    assert "ann" not in agreed.stdout.partition("utility")[0]
    assert "ann     tied share          0.000  8  pairs" in own.stdout
    assert "utility: 8 votes of 'votes' on 8 prompts" in rated.stdout


def test_votes_correct_what_they_are_on_and_were_drawn_for(place: Path) -> None:
    """Else the correction would be none."""
    vote(place, "votes")

    refused = launch(place, "project", "bt", "--truth", "votes")

    assert refused.returncode == 2
    assert "has votes on utility: add --dimension utility" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("annotate",), "Missing option '--annotator'"),
        (("annotate", "--annotator", "ann"), "choose one with --dimension: factuality, utility"),
        (("annotate", "--annotator", "ann", "--name", "a b"), "use only letters, digits"),
        (
            ("annotate", "--annotator", "ann", "--dimension", "utility", "--disagreement"),
            "on 'utility' judges disagree on no pair",
        ),
        (("view", "--tournament", "cup"), "holds no tournament 'cup'"),
        (("project", "agreement", "--name", "a", "--truth", "b"), "no battles were imported as"),
    ],
)
def test_what_cannot_be_shown_is_told(
    place: Path, arguments: tuple[str, ...], message: str
) -> None:
    """Before anything is served."""
    done = launch(place, *arguments)

    assert done.returncode == 2
    assert message in done.stderr
    assert done.stdout == ""
