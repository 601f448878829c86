"""Battles of others, from the command line: taken in once, told apart, and written out again."""

import json
import os
import random
import signal
from pathlib import Path

import pytest

from commands.backends.wiring import open_parquet
from commands.decisions.recorder import Recorder
from commands.importing.battles import import_battles
from commands.importing.formats.catalogue import FORMATS
from commands.importing.formats.files import records_of
from ledger.audit import audit
from ledger.events.imports import MAX_BATTLES, BattlesImported
from ledger.events.registry import Event
from ledger.storage.writer import EventWriter
from ledger.store import Ledger
from tests.builders import STREAM, entrant, opened, prompt
from tests.commands.cli.conftest import Tourney, launch
from tests.commands.cli.settled import fields
from tests.commands.cli.warm import begin
from tests.commands.games import generated, judged
from tests.projections.juries import JURORS, A, B, heard
from tests.projections.worlds import RUBRICS, answered
from tests.support.death import before

VOTES = "model_a,model_b,winner\nbase,tuned,tie\nbase,other,model_a\n"
N_EVENTS = 3  # that a file of votes becomes
PLAIN = FORMATS["plain"]
DIMENSION = b', "dimension": "factuality"'


def won_by_turns() -> tuple[Event, ...]:
    """Return a tournament of one prompt, where zoe wins on factuality and amy on utility."""
    opening = opened(
        prompts=[prompt("p1")],
        rubrics=RUBRICS,
        entrants=[entrant("zoe"), entrant("amy")],
        judges=JURORS[:1],
    )
    return heard(answered(opening), [A, B])


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Give a folder with a tournament's ledger, and with votes."""
    with Ledger.open(tmp_path / "tournament.db") as ledger:
        judged(generated(Recorder(ledger, STREAM)))
    (tmp_path / "votes.csv").write_text(VOTES)
    return tmp_path


@pytest.mark.parametrize("policy", ["swap-consistent", "concatenate"])
def test_what_is_exported_imported_and_exported_is_the_same(
    place: Path, tourney: Tourney, policy: str
) -> None:
    """Byte for byte but for the dimension: nothing that the format can say is lost on the way."""
    exported = tourney("export", "battles", "--policy", policy, "-o", "first.jsonl")
    there = ("-l", "there.db")
    done = tourney("import", "battles", "first.jsonl", "--from", "judgearena", *there, "--json")
    again = tourney("export", "battles", "--name", "judgearena", "-o", "second.jsonl", *there)

    assert [each.returncode for each in (exported, done, again)] == [0, 0, 0], done.stderr
    first = (place / "first.jsonl").read_bytes()
    assert (place / "second.jsonl").read_bytes() == first.replace(DIMENSION, b"")
    n_lines = len((place / "first.jsonl").read_text().splitlines())
    assert n_lines == (4 if policy == "concatenate" else 2)
    assert fields(done)["rows"][0]["battles"] == n_lines


def test_an_export_says_beside_it_what_is_no_battle(tourney: Tourney) -> None:
    """A pair that is pending is not there, and who counts lines must know why."""
    done = tourney("export", "battles")

    assert json.loads(done.stdout.splitlines()[0]) == {
        "model_a": "base",
        "model_b": "tuned",
        "winner": "model_b",
        "pref": 1.0,
        "source": "llm-judge",
        "judge_model": "chrF2",
        "question_id": "p1",
        "dimension": "factuality",
    }
    assert done.stderr == "factuality: 2 pairs = 2 decided + 0 tied + 0 inconsistent + 0 pending\n"


def test_battles_of_several_dimensions_are_told_apart(tmp_path: Path) -> None:
    """On each someone else may win; taken for one they would cancel each other out."""
    with Ledger.open(tmp_path / "tournament.db") as ledger:
        ledger.append(STREAM, won_by_turns())

    every = launch(tmp_path, "export", "battles")
    one = launch(tmp_path, "export", "battles", "--dimension", "utility")

    written = [json.loads(line) for line in every.stdout.splitlines()]
    assert [(each["dimension"], each["winner"]) for each in written] == [
        ("factuality", "model_a"),
        ("utility", "model_b"),
    ]
    assert every.stderr.splitlines()[-1] == (
        "the file holds 2 dimensions, in the field `dimension`, which readers of"
        " JudgeArena's format ignore: export one of them with --dimension"
    )
    assert [json.loads(line) for line in one.stdout.splitlines()] == written[1:]
    assert "--dimension" not in one.stderr


def test_battles_of_others_stay_apart_from_the_tournament(tourney: Tourney) -> None:
    """The ledger's only tournament is still meant where none is named."""
    before = tourney("project", "winrates", "--json")

    assert tourney("import", "battles", "votes.csv").returncode == 0

    assert fields(tourney("project", "winrates", "--json"))["rows"] == fields(before)["rows"]
    assert [row["tournament"] for row in fields(tourney("status", "--json"))["rows"]] == [STREAM]
    assert tourney("verify").returncode == 0


def test_an_import_says_what_it_took_in(tourney: Tourney) -> None:
    """And, of a second one, that all of it was there."""
    first = fields(tourney("import", "battles", "votes.csv", "--name", "people", "--json"))
    second = fields(tourney("import", "battles", "votes.csv", "--name", "people", "--json"))

    assert first["rows"] == second["rows"]
    assert first["rows"] == [
        {
            "name": "people",
            "format": "plain@1",
            "battles": 2,
            "entrants": 3,
            "ties": 1,
            "no_verdict": 0,
            "skipped": 0,
            "judges": None,
        }
    ]
    assert (first["n_known"], second["n_known"]) == (0, 2)


def test_a_file_that_joins_a_set_says_what_the_set_holds(place: Path, tourney: Tourney) -> None:
    """One that holds the old votes, too, would make them count twice: nothing of it is taken."""
    (place / "new.csv").write_text("model_a,model_b,winner\nother,tuned,tie\n")
    votes = "model_a,model_b,winner,question_id\n" + "".join(f"a,b,tie,q{n}\n" for n in range(8))
    (place / "votes.csv").write_text(votes)
    (place / "grown.csv").write_text(f"{votes}a,b,tie,q8\n")
    tourney("import", "battles", "votes.csv", "--name", "people")

    joined = tourney("import", "battles", "new.csv", "--name", "people")
    grown = tourney("import", "battles", "grown.csv", "--name", "people")
    (people,) = fields(tourney("status", "--json"))["imported"]

    assert joined.returncode == 0, joined.stderr
    assert "people now holds 9 battles, earlier ones included" in joined.stdout
    assert grown.returncode == 2
    assert "grown.csv: 8 of its 9 battles are already in set 'people'" in grown.stderr
    assert people["battles"] == 9


def test_help_says_which_columns_a_plain_table_has(tourney: Tourney) -> None:
    """Whoever writes one by hand has no other program's file to look at."""
    said = tourney("import", "battles", "--help").stdout.splitlines()

    for name in (*PLAIN.required, *PLAIN.optional):
        assert any(line.startswith(f"    {name}: ") for line in said), name
    assert "    winner: model_a | model_b | tie | tie (bothbad) | no verdict" in said


def test_rows_that_are_no_battles_are_listed(place: Path, tourney: Tourney) -> None:
    """With their lines, and nothing is taken in until they are put right or left out."""
    (place / "votes.csv").write_text(f"{VOTES}base,tuned,draw\n")

    refused = tourney("import", "battles", "votes.csv")
    skipped = tourney("import", "battles", "votes.csv", "--skip-bad", "--json")

    why = "votes.csv:4: winner is 'draw', but must be one of model_a, model_b, tie,"
    assert refused.returncode == 2
    assert "votes.csv: 1 row cannot be read as format plain: nothing was imported" in refused.stderr
    assert why in refused.stderr
    assert skipped.returncode == 0
    assert why in skipped.stderr
    assert fields(skipped)["rows"][0]["skipped"] == 1
    assert fields(skipped)["n_known"] == 0


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (
            "import battles votes.csv --from plane",
            "'plane' is not a format of battles; did you",
        ),
        (
            "import battles votes.csv --from x",
            "'x' is not a format of battles; known: plain, judgearena, ",
        ),
        ("import battles votes.csv --name a:b", "--name 'a:b': use only letters, digits, dots"),
        (
            "import battles votes.csv --from judgearena --name=",
            "--name '': use only letters, digits, dots",
        ),
        ("import elo-ratings votes.csv", "votes.csv is not an elo_ratings.json"),
        ("export battles --name people", "no battles were imported as 'people'; there are: none"),
        ("export battles --name people --judge x", "apply to a tournament's battles: leave out"),
        ("export battles --name people --policy concatenate", "leave out --name"),
        ("export battles --policy majority", "the panel has one; see [[jury]]"),
    ],
)
def test_what_cannot_be_meant_is_refused(tourney: Tourney, words: str, why: str) -> None:
    """By what was wrong, and what there is instead."""
    done = tourney(*words.split())

    assert done.returncode == 2
    assert why in done.stderr


def write_ratings(place: Path) -> None:
    """Write what people say of two entrants."""
    ratings = [
        {"model": name, "rating": rating, "n_battles": 700, "source": "human"}
        for name, rating in (("gpt-3.5", 900.0), ("gpt-4", 1100.5))
    ]
    written = {"arena": "A", "judge_model": "opus", "ratings": ratings}
    (place / "elo_ratings.json").write_text(json.dumps(written))


def test_ratings_of_others_are_taken_in_and_shown(place: Path, tourney: Tourney) -> None:
    """JudgeArena's file, as it stands beside its battles, from the best down."""
    write_ratings(place)
    before = fields(tourney("project", "imported", "--json"))

    done = tourney("import", "elo-ratings", "elo_ratings.json", "--name", "people", "--json")

    shown = fields(tourney("project", "imported", "--json"))
    assert (done.returncode, before["rows"]) == (0, []), done.stderr
    assert shown == fields(done)
    assert shown["sets"] == [{"set": "people", "arena": "A", "judge_model": "opus"}]
    assert [(row["entrant"], row["rating"]) for row in shown["rows"]] == [
        ("gpt-4", 1100.5),
        ("gpt-3.5", 900.0),
    ]
    assert shown["rows"][0] == {
        "set": "people",
        "dimension": None,
        "entrant": "gpt-4",
        "rating": 1100.5,
        "ci_low": None,
        "ci_high": None,
        "n_battles": 700,
        "source": "human",
    }


def test_status_says_what_was_imported(place: Path, tourney: Tourney) -> None:
    """Whoever opens a colleague's ledger learns the names that --name and --with take."""
    write_ratings(place)
    tourney("import", "battles", "votes.csv", "--name", "people")
    tourney("import", "elo-ratings", "elo_ratings.json", "--name", "people")
    tourney("import", "elo-ratings", "elo_ratings.json", "--name", "lab")

    said = tourney("status").stdout

    assert "imported as people: 2 battles of 3 entrants and 2 imported ratings\n" in said
    assert "imported as lab: 2 imported ratings\n" in said
    assert fields(tourney("status", "--json"))["imported"][1] == {
        "name": "people",
        "battles": 2,
        "decided": 1,
        "tied": 1,
        "no_verdict": 0,
        "entrants": 3,
        "ratings": 2,
    }


def test_an_import_killed_in_the_middle_is_made_once(tmp_path: Path) -> None:
    """Half a file would be rated as if it were whole; whoever imports again need not ask."""
    write_votes(tmp_path / "votes.csv")
    words = ("import", "battles", "votes.csv")
    expected = battles_of(tmp_path / "votes.csv")

    death = before(EventWriter.append, call=N_EVENTS)
    killed = begin(tmp_path, words, os.environ, death=death).wait()
    left = battles_in(tmp_path / "tournament.db")
    done = launch(tmp_path, *words)

    assert killed.code == -signal.SIGKILL, killed.err
    assert len(expected) == N_EVENTS
    assert left == []
    assert done.returncode == 0, done.stderr
    assert battles_in(tmp_path / "tournament.db") == expected


def battles_of(path: Path) -> list[BattlesImported]:
    """Return what an undisturbed import of a file makes of it."""
    with Ledger.in_memory() as ledger:
        records = records_of(path, PLAIN, open_parquet)
        import_battles(ledger, path, PLAIN, records, name="plain")
        return [each.event for each in ledger.read() if isinstance(each.event, BattlesImported)]


def write_votes(path: Path) -> None:
    """Write votes, each on a question of its own."""
    rng = random.Random(0)  # noqa: S311  # battles, not secrets
    rows = (f"x,y,tie,{rng.getrandbits(128):032x}\n" for _ in range(N_EVENTS * MAX_BATTLES))
    path.write_text("model_a,model_b,winner,question_id\n" + "".join(rows))


def battles_in(path: Path) -> list[BattlesImported]:
    """Return what was imported into a ledger that must be without fault."""
    with Ledger.read_only(path) as ledger:
        assert audit(ledger) == ()
        events = [recorded.event for recorded in ledger.read()]
    assert all(isinstance(event, BattlesImported) for event in events)
    return [event for event in events if isinstance(event, BattlesImported)]
