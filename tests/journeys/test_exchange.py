"""What others recorded: battles and ledgers, taken in once and written out again."""

import json
import shutil
from functools import partial
from pathlib import Path

import pytest

from commands.decisions.recorder import Recorder
from commands.importing.formats.catalogue import FORMATS
from ledger.events.registry import Event
from ledger.store import Ledger
from tests.support.builders.commands import P1, P2
from tests.support.builders.events import STREAM, entrant, opened, prompt
from tests.support.builders.games import CHANGE, generated, judged
from tests.support.builders.worlds import JURORS, RUBRICS, A, B, answered, heard
from tests.support.command_line.launching import Tourney, launch
from tests.support.command_line.settled import fields, head_of
from tests.support.faults.hostile import tamper

VOTES = "model_a,model_b,winner\nbase,tuned,tie\nbase,other,model_a\n"
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
def place_with_votes(tmp_path: Path) -> Path:
    """Give a folder with a tournament's ledger, and with votes."""
    with Ledger.open(tmp_path / "tournament.db") as ledger:
        judged(generated(Recorder(ledger, STREAM)))
    (tmp_path / "votes.csv").write_text(VOTES)
    return tmp_path


@pytest.fixture
def tourney_with_votes(place_with_votes: Path) -> Tourney:
    """Give a function that runs the command line beside the votes."""
    return partial(launch, place_with_votes)


def test_what_is_exported_imported_and_exported_is_the_same(
    place_with_votes: Path, tourney_with_votes: Tourney
) -> None:
    """Byte for byte but for the dimension: nothing that the format can say is lost on the way."""
    exported = tourney_with_votes(
        "export", "battles", "--policy", "concatenate", "-o", "first.jsonl"
    )
    there = ("-l", "there.db")
    done = tourney_with_votes(
        "import", "battles", "first.jsonl", "--layout", "judgearena", *there, "--json"
    )
    again = tourney_with_votes(
        "export", "battles", "--name", "judgearena", "-o", "second.jsonl", *there
    )

    assert [each.returncode for each in (exported, done, again)] == [0, 0, 0], done.stderr
    first = (place_with_votes / "first.jsonl").read_bytes()
    assert (place_with_votes / "second.jsonl").read_bytes() == first.replace(DIMENSION, b"")
    assert len(first.splitlines()) == fields(done)["rows"][0]["battles"] == 4


def test_an_export_says_beside_it_what_is_no_battle(tourney_with_votes: Tourney) -> None:
    """A pair that is pending is not there, and who counts lines must know why."""
    done = tourney_with_votes("export", "battles")

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


def test_battles_of_others_stay_apart_from_the_tournament(tourney_with_votes: Tourney) -> None:
    """The ledger's only tournament is still meant where none is named."""
    before = tourney_with_votes("project", "winrates", "--json")

    assert tourney_with_votes("import", "battles", "votes.csv").returncode == 0

    assert (
        fields(tourney_with_votes("project", "winrates", "--json"))["rows"]
        == fields(before)["rows"]
    )
    assert [
        row["tournament"] for row in fields(tourney_with_votes("status", "--json"))["rows"]
    ] == [STREAM]
    assert tourney_with_votes("verify").returncode == 0


def test_an_import_says_what_it_took_in(tourney_with_votes: Tourney) -> None:
    """And, of a second one, that all of it was there."""
    first = fields(
        tourney_with_votes("import", "battles", "votes.csv", "--name", "people", "--json")
    )
    second = fields(
        tourney_with_votes("import", "battles", "votes.csv", "--name", "people", "--json")
    )

    assert first["rows"] == second["rows"]
    assert first["rows"] == [
        {
            "file": "votes.csv",
            "name": "people",
            "format": "plain@2",
            "battles": 2,
            "entrants": 3,
            "ties": 1,
            "no_verdict": 0,
            "skipped": 0,
            "judges": None,
        }
    ]
    assert (first["n_known"], second["n_known"]) == (0, 2)


def test_files_that_join_a_set_say_what_the_set_holds(
    place_with_votes: Path, tourney_with_votes: Tourney
) -> None:
    """Several in one command; of one that holds the old votes, too, the new ones are taken."""
    header = "model_a,model_b,winner,question_id\n"
    votes = [f"a,b,tie,q{n}\n" for n in range(8)]
    (place_with_votes / "votes.csv").write_text("".join((header, *votes)))
    (place_with_votes / "new.csv").write_text("model_a,model_b,winner\nA,tuned,tie\n")
    (place_with_votes / "grown.csv").write_text("".join((header, "a,b,tie,q8\n", *votes[::-1])))
    tourney_with_votes("import", "battles", "votes.csv", "--name", "people")

    joined = tourney_with_votes("import", "battles", "new.csv", "grown.csv", "--name", "people")
    (people,) = fields(tourney_with_votes("status", "--json"))["imported"]

    assert joined.returncode == 0, joined.stderr
    assert "8 battles were already on record and left out" in joined.stdout
    assert "people now holds 10 battles" in joined.stdout
    assert people["battles"] == 10
    assert "'A' and 'a' look alike, but count as different entrants" in joined.stdout


def test_help_says_which_columns_a_plain_table_has(tourney_with_votes: Tourney) -> None:
    """Whoever writes one by hand has no other program's file to look at."""
    said = tourney_with_votes("import", "battles", "--help").stdout.splitlines()

    for name in (*PLAIN.required, *PLAIN.optional):
        assert any(line.startswith(f"    {name}: ") for line in said), name
    assert "    winner: model_a | model_b | tie | tie (bothbad) | no verdict" in said


def test_rows_that_are_no_battles_are_listed(
    place_with_votes: Path, tourney_with_votes: Tourney
) -> None:
    """With their lines, and nothing is taken in until they are put right or left out."""
    (place_with_votes / "votes.csv").write_text(f"{VOTES}base,tuned,draw\n")

    refused = tourney_with_votes("import", "battles", "votes.csv")
    skipped = tourney_with_votes("import", "battles", "votes.csv", "--skip-bad", "--json")

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
            "import battles votes.csv --layout plane",
            "'plane' is not a layout of battles; did you",
        ),
        (
            "import battles votes.csv --layout x",
            "'x' is not a layout of battles; known: verdicts, orq-arena, ",
        ),
        ("import battles votes.csv --name a:b", "--name 'a:b': use only letters, digits, dots"),
        (
            "import battles votes.csv --layout judgearena --name=",
            "--name '': use only letters, digits, dots",
        ),
        ("import elo-ratings votes.csv", "votes.csv is not an elo_ratings.json"),
        ("export battles --name people", "no battles were imported as 'people'; there are: none"),
        ("export battles --name people --judge x", "apply to a tournament's battles: leave out"),
        ("export battles --name people --policy concatenate", "leave out --name"),
        (
            "export battles -o battles.json",
            "the suffix is '.json', but must be .csv, .jsonl or .parquet; the suffix chooses",
        ),
        ("export elo-ratings -o x.csv", "must be .json; `tourney project bt --format csv` writes"),
        ("export battles --diff 3", "No such option"),
        ("export elo-ratings --diff 3", "No such option"),
        ("export battles --policy majority", "the panel has one; see [[jury]]"),
    ],
)
def test_what_cannot_be_meant_is_refused(tourney_with_votes: Tourney, words: str, why: str) -> None:
    """By what was wrong, and what there is instead."""
    done = tourney_with_votes(*words.split())

    assert done.returncode == 2
    assert why in done.stderr


def test_ratings_of_others_are_taken_in_and_shown(
    place_with_votes: Path, tourney_with_votes: Tourney
) -> None:
    """JudgeArena's file, as it stands beside its battles, from the best down.

    Whoever opens a colleague's ledger learns from `status` the names that --name and --with take.
    """
    ratings = [
        {"model": name, "rating": rating, "n_battles": 700, "source": "human"}
        for name, rating in (("gpt-3.5", 900.0), ("gpt-4", 1100.5))
    ]
    written = {"arena": "A", "judge_model": "opus", "ratings": ratings}
    (place_with_votes / "elo_ratings.json").write_text(json.dumps(written))
    before = fields(tourney_with_votes("status", "--json"))["imported_ratings"]

    words = ("import", "elo-ratings", "elo_ratings.json", "--name")
    done = tourney_with_votes(*words, "people", "--json")
    tourney_with_votes("import", "battles", "votes.csv", "--name", "people")
    shown, status = fields(done), fields(tourney_with_votes("status", "--json"))
    tourney_with_votes(*words, "lab")
    said = tourney_with_votes("status").stdout

    assert (done.returncode, before) == (0, []), done.stderr
    assert status["imported_ratings"] == shown["rows"]
    assert "rated in people: gpt-4 1100.5, gpt-3.5 900.0\n" in said
    assert "imported as people: 2 battles of 3 entrants and 2 imported ratings\n" in said
    assert "imported as lab: 2 imported ratings\n" in said
    assert shown["sets"] == [{"set": "people", "arena": "A", "judge_model": "opus"}]
    assert [row["entrant"] for row in shown["rows"]] == ["gpt-4", "gpt-3.5"]
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
    assert status["imported"] == [
        {
            "name": "people",
            "battles": 2,
            "decided": 1,
            "tied": 1,
            "no_verdict": 0,
            "entrants": 3,
            "ratings": 2,
        }
    ]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Give a folder with two ledgers that began as one: each judged another prompt."""
    with Ledger.open(tmp_path / "tournament.db") as ledger:
        generated(Recorder(ledger, STREAM))
    shutil.copy(tmp_path / "tournament.db", tmp_path / "theirs.db")
    judge(tmp_path / "tournament.db", judged_first=True)
    judge(tmp_path / "theirs.db", judged_first=False)
    return tmp_path


def judge(path: Path, *, judged_first: bool) -> None:
    """Judge one of two prompts in a ledger."""
    with Ledger.open(path) as ledger:
        judged(Recorder(ledger, STREAM), [P1 if judged_first else P2])


def disagree(place: Path) -> None:
    """Let their judge have answered our queries, too, otherwise."""
    with Ledger.open(place / "theirs.db") as ledger:
        judged(Recorder(ledger, STREAM), [P1], lambda _: "VERDICT: TIE")


def test_an_export_is_the_same_to_a_file_and_to_a_pipe(place: Path, tourney: Tourney) -> None:
    """One is kept, the other goes through ssh; both are lines of JSON and nothing else."""
    piped = tourney("export", "events")

    done = tourney("export", "events", "-o", "events.jsonl")

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (place / "events.jsonl").read_text() == piped.stdout
    assert len(piped.stdout.splitlines()) == head_of(place / "tournament.db").position + 2


def test_an_export_as_of_earlier_is_the_beginning_of_it(place: Path, tourney: Tourney) -> None:
    """What was known then, and nothing that came after."""
    tourney("export", "events", "-o", "events.jsonl", "--as-of", "5")

    tourney("merge", "events.jsonl", "-l", "new.db")

    assert head_of(place / "new.db").position == 5


def test_a_damaged_ledger_is_not_handed_on(place: Path, tourney: Tourney) -> None:
    """Whoever gets it could no longer tell; what was exported before stays as it was."""
    (place / "events.jsonl").write_text("older")
    tamper(place / "tournament.db", CHANGE("recorded_us = 0", 3))
    tamper(place / "theirs.db", CHANGE("recorded_us = 0", 3))

    exported = tourney("export", "events", "-o", "events.jsonl")
    merged = tourney("merge", "theirs.db", "-l", "new.db")

    assert (exported.returncode, merged.returncode) == (8, 8)
    assert "tournament.db, position 3: its content is not" in " ".join(exported.stderr.split())
    assert "theirs.db, position 3: its content is not" in " ".join(merged.stderr.split())
    assert (place / "events.jsonl").read_text() == "older"


def test_a_merge_that_contradicts_ours_is_done_with_gaps(place: Path, tourney: Tourney) -> None:
    """All that could be taken is; what was left lies with the user, who is told each."""
    disagree(place)

    done = tourney("merge", "theirs.db", "--json")

    found = fields(done)
    assert done.returncode == 6
    assert "2 events contradict this ledger, whose own were kept" in done.stderr
    assert (found["n_new"], found["n_left"]) == (5, 1)
    assert [row["type"] for row in found["rows"]] == ["VerdictReceived"] * 2
    assert tourney("verify").returncode == 0


@pytest.mark.parametrize("spoil", ["changed", "empty"])
def test_a_broken_file_takes_nothing_in(place: Path, tourney: Tourney, spoil: str) -> None:
    """It was cut or changed on its way; half of it would pass for the whole."""
    text = tourney("export", "events", "-l", "theirs.db").stdout
    broken = {
        "changed": text.replace("tuned on", "Tuned on", 1),
        "empty": "",
    }
    (place / "theirs.jsonl").write_text(broken[spoil])
    head = head_of(place / "tournament.db")

    done = tourney("merge", "theirs.jsonl")

    assert done.returncode == 1
    assert "export or download the file again" in " ".join(done.stderr.split())
    assert head_of(place / "tournament.db") == head


def test_a_ledger_is_not_merged_into_itself_twice(place: Path, tourney: Tourney) -> None:
    """A slip of the hand: everything is here already, and nothing waits for itself."""
    head = head_of(place / "tournament.db")

    done = tourney("merge", "tournament.db")

    assert done.returncode == 0, done.stderr
    assert head_of(place / "tournament.db") == head
