"""`tourney project temperature`, and ratings by marks that are read at it."""

from functools import partial

import pytest
from msgspec.structs import replace

from ledger.events.registration import TournamentOpened
from ledger.store import Ledger
from projections.verdicts.parsers import JudgeScores
from tests.builders import STREAM
from tests.commands.cli.conftest import Tourney, launch
from tests.commands.cli.settled import fields
from tests.projections.juries import court, marked

BY_MARKS = ("--parser", "judgearena-score", "--policy", "concatenate")
UP, DOWN = (
    (JudgeScores(8, 6), JudgeScores(6, 8)),
    (JudgeScores(5, 7), JudgeScores(7, 5)),
)  # of a against b, in both orders
GIVEN = [UP, UP, DOWN, DOWN, UP, UP]  # zoe-amy, zoe-kim, amy-kim, and the same of p2
VOTES = """model_a,model_b,winner,question_id
zoe,amy,model_a,p1
zoe,kim,model_a,p1
kim,amy,model_a,p1
zoe,amy,model_b,p2
zoe,kim,model_b,p2
amy,kim,model_b,p2
amy,kim,tie,p2
zoe,kim,model_a,elsewhere
"""
JUDGED = "model_a,model_b,winner,pref,question_id,source,judge_model\n" + "".join(
    f"new,old,model_a,0.4,q{n},llm-judge,opus\n" for n in range(12)
)
VOTED = "model_a,model_b,winner,question_id\n" + "".join(
    f"new,old,{'model_b' if n < 4 else 'model_a'},q{n}\n" for n in range(12)
)


@pytest.fixture(scope="module")
def tourney(tmp_path_factory: pytest.TempPathFactory) -> Tourney:
    """Give the command line beside a tournament that was judged by marks, and votes."""
    folder = tmp_path_factory.mktemp("marks")
    opening, *others = marked(court(1), GIVEN)
    assert isinstance(opening, TournamentOpened)
    with Ledger.open(folder / "tournament.db") as ledger:
        ledger.append(STREAM, [replace(opening, configuration="{}"), *others])
    for name, text in (("votes", VOTES), ("judged", JUDGED), ("voted", VOTED)):
        (folder / f"{name}.csv").write_text(text)
        launch(folder, "import", "battles", f"{name}.csv", "--name", name)
    return partial(launch, folder)


def test_a_tournaments_marks_are_calibrated_against_votes(tourney: Tourney) -> None:
    """People agreed with 4 of 6 pairs, in both orders 2 marks apart: sigma(2 T) = 2 / 3."""
    found = fields(tourney("project", "temperature", "--against", "votes", "--json"))

    (row,) = found["rows"]
    assert (found["schema"], found["judge"], found["against"]) == (
        "tourney/temperature@1",
        "ann",
        "votes",
    )
    assert row["temperature"] == pytest.approx(0.34657359, abs=1e-6)
    assert row["low"] < row["temperature"] < row["high"]
    assert (row["n_prompts"], row["n_pairs"], row["n_ties"]) == (2, 12, 2)
    assert row["log_likelihood_usual"] < row["log_likelihood"] < 0


def test_imported_preferences_are_calibrated_against_votes(tourney: Tourney) -> None:
    """Odds of 3 : 2 that people made 2 : 1: marks are to be read a little more steeply."""
    done = tourney("project", "temperature", "--name", "judged", "--against", "voted")
    words = ("--name", "judged", "--against", "voted", "--made-at", "1", "--json")
    (row,) = fields(tourney("project", "temperature", *words))["rows"]

    assert "judged: preferences are taken as made at temperature 0.3 (--made-at)." in done.stdout
    assert "clusters: prompts" in done.stdout
    assert row["temperature"] == pytest.approx(1.7095113, abs=1e-6)  # log 2 / log 1.5


def test_a_tournament_is_rated_by_marks(tourney: Tourney) -> None:
    """Each order took sigma(2 T) or the rest of it; among anchors, too."""
    alone = fields(tourney("project", "bt", "--temperature", "0.3", *BY_MARKS, "--json"))
    whole = fields(tourney("project", "bt", *BY_MARKS, "--json"))
    among = fields(
        tourney("project", "bt", "--temperature", "0.3", *BY_MARKS, "--with", "votes", "--json")
    )
    shown = tourney("project", "bt", "--temperature", "0.3", *BY_MARKS).stdout

    spread = [each["rows"][0]["rating"] - each["rows"][-1]["rating"] for each in (alone, whole)]
    assert 0 < spread[0] < spread[1]
    assert (alone["temperature"], among["temperature"]) == (0.3, 0.3)
    assert {row["n_battles"] for row in alone["rows"]} == {8}
    assert {row["source"] for row in among["rows"]} == {"human"}
    assert "Soft scores: a judge's scores at temperature 0.3." in shown


def test_votes_alone_are_not_read_at_a_temperature(tourney: Tourney) -> None:
    """Ratings that no temperature could change would look as if it had."""
    done = tourney("project", "bt", "--name", "voted", "--temperature", "1")
    among = tourney("project", "bt", "--temperature", "1", *BY_MARKS, "--with", "votes")

    assert done.returncode == 2
    assert "--temperature: 'voted' has no judge's preferences" in done.stderr
    assert "Soft scores: a judge's scores at temperature 1." in among.stdout


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("--against nobody", "no battles were imported as 'nobody'"),
        ("--against judged", "'judged' has no human votes"),
        ("--against voted", "no human vote has a prompt and two entrants in common"),
        ("--name judged --against voted --judge ann", "leave out --name"),
        ("--name judged --against voted --made-at 0", "--made-at 0: a temperature is above 0"),
        ("--against voted --made-at 1", "--made-at applies to imported preferences: add --name"),
    ],
)
def test_what_tells_no_temperature_is_refused(tourney: Tourney, words: str, why: str) -> None:
    """By what was wrong, and what there is instead."""
    done = tourney("project", "temperature", *words.split())

    assert done.returncode in {1, 2}
    assert why in done.stderr
