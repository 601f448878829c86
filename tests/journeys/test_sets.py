"""An imported set is shown as a tournament is: Elo, win rates, matches, fragility."""

import json
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import pytest

import tourney as library
from tests.support.command_line.launching import Tourney, launch
from tests.support.command_line.settled import fields

HEADER = "model_a,model_b,winner,question_id,source,judge_model\n"
PAIRS = (("zoe", "amy"), ("amy", "kim"), ("kim", "zoe"))
WINNERS = ("model_a", "tie", "model_b", "model_a", "no verdict")
N_BATTLES = 45
ALONE = ("elo", "winrates", "matches", "fragility", "bt")


def battles() -> str:
    """Return battles of three entrants on fifteen prompts, by people and by a judge."""
    rows = zip(cycle(PAIRS), islice(cycle(WINNERS), N_BATTLES), cycle((",human,", ",,opus")))
    return HEADER + "".join(
        f"{a},{b},{winner},q{n // 3}{by}\n" for n, ((a, b), winner, by) in enumerate(rows)
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder with a ledger that holds a set of battles, and no tournament."""
    found = tmp_path_factory.mktemp("sets")
    (found / "battles.csv").write_text(battles())
    launch(found, "import", "battles", "battles.csv", "--name", "arena")
    return found


@pytest.fixture
def tourney(folder: Path) -> Tourney:
    """Give a function that runs the command line in the folder."""
    return partial(launch, folder)


@pytest.mark.parametrize("words", ALONE)
def test_a_set_needs_no_tournament(tourney: Tourney, words: str) -> None:
    """Who has battles alone gets each table of them, and what it is of."""
    shown = tourney("project", *words.split(), "--name", "arena")
    found = fields(tourney("project", *words.split(), "--name", "arena", "--json"))

    assert shown.returncode == 0, shown.stderr
    assert "arena: 45 battles = 27 decided + 9 tied + 9 without a verdict" in shown.stdout
    assert (found["battles"], found["as_of"]) == ("arena", 1)
    assert {row["dimension"] for row in found["rows"]} == {"arena"}


def test_elo_of_a_set_is_that_of_its_decided_battles(tourney: Tourney) -> None:
    """Of who won, with ties dropped or as half, and by the defaults of [elo]."""
    dropped, half = (
        fields(tourney("project", "elo", "--name", "arena", "--ties", ties, "--json"))
        for ties in ("drop", "half")
    )

    assert (dropped["parameters"]["k"], dropped["judge"], dropped["judges"]) == (
        16,
        "opus",
        ["opus"],
    )
    assert sum(row["n_matches"] for row in dropped["rows"]) == 2 * 27
    assert sum(row["n_matches"] for row in half["rows"]) == 2 * (27 + 9)
    assert sum(row["rating"] for row in half["rows"]) == pytest.approx(3 * 1400)
    assert all(row["ci95_low"] < row["rating"] < row["ci95_high"] for row in half["rows"])


def test_who_has_sets_alone_is_told_how_to_read_them(tourney: Tourney) -> None:
    """Not sent to start a tournament, with battles at hand."""
    done = tourney("project", "elo")

    assert done.returncode == 2
    assert "tournament.db holds no tournament; of imported battles it holds arena" in done.stderr
    assert "see `tourney project elo --name arena`; name another ledger" in done.stderr


@pytest.mark.parametrize("command", ["elo", "winrates", "matches", "fragility", "bt"])
@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("--name arenas", "no battles were imported as 'arenas'; there are: arena"),
        ("--name arena --judge opus", "apply to a tournament's battles: leave out --name"),
    ],
)
def test_a_set_that_there_is_not_is_refused(
    tourney: Tourney, command: str, words: str, why: str
) -> None:
    """In the same words by each command."""
    done = tourney("project", command, *words.split())

    assert done.returncode == 2
    assert why in done.stderr


TOPICS = """model_a,model_b,winner,question_id,category,language,judge_model
zoe,amy,model_a,q1,math,en,opus
amy,zoe,model_a,q2,math,de,opus
zoe,amy,tie,q3,code,en,gpt
kim,amy,model_b,q4,code,de,gpt
"""


@pytest.fixture(scope="module")
def topics(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder with a ledger of a set whose battles have categories and languages."""
    found = tmp_path_factory.mktemp("topics")
    (found / "topics.csv").write_text(TOPICS)
    launch(found, "import", "battles", "topics.csv", "--name", "topics")
    return found


@pytest.mark.parametrize("command", ["elo", "winrates", "matches", "bt", "fragility"])
def test_some_battles_of_a_set_are_shown_alone(topics: Path, command: str) -> None:
    """By category, with a line that says so; entrants without a battle there are not listed."""
    words = ("project", *command.split(), "--name", "topics", "--where", "category=math")

    shown = launch(topics, *words)
    found = fields(launch(topics, *words, "--json"))

    assert shown.returncode == 0, shown.stderr
    assert "topics: only battles of category=math." in shown.stdout
    assert "topics: 2 battles = 2 decided + 0 tied + 0 without a verdict" in shown.stdout
    assert "kim" not in shown.stdout
    assert found["where"] == {"category": ["math"]}
    assert (found["judge"], found["judges"]) == ("opus", ["opus"])


def test_several_columns_must_all_be_right(topics: Path) -> None:
    """Values of one column are alternatives; Python takes the same."""
    where = ("--where", "language=en", "--where", "category=math", "--where", "category=code")

    found = fields(launch(topics, "project", "matches", "--name", "topics", *where, "--json"))
    chosen = {"language": "en", "category": ["math", "code"]}
    view = library.read_set(topics / "tournament.db", name="topics", where=chosen)

    assert [row["prompt"] for row in found["rows"]] == ["q1", "q3"]
    assert [row.prompt for row in view.outcomes()] == ["q1", "q3"]


def test_matches_are_listed_by_where_too(topics: Path) -> None:
    """Beside a column of the set, which alone narrows the count below the table."""
    words = ("project", "matches", "--name", "topics", "--where", "category=math")

    listed = launch(topics, *words, "--where", "prompt=q1", "--where", "outcome=decided")
    found = fields(launch(topics, *words, "--where", "prompt=q1", "--json"))
    refused = launch(topics, "project", "matches", "--name", "topics", "--where", "entrants=kim")

    assert "topics: 2 battles = 2 decided" in listed.stdout, listed.stderr
    assert found["where"] == {"category": ["math"]}
    assert [row["prompt"] for row in found["rows"]] == ["q1"]
    assert "--where 'entrants' is not known; did you mean 'entrant'" in refused.stderr


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (
            "--name topics --where topic=math",
            (
                "--where topic=math: 'topics' has no column 'topic'; it has category: code, math;"
                " language: de, en; judge: gpt, opus; source: llm-judge"
            ),
        ),
        (
            "--name topics --where category=maths",
            "--where category=maths: 'topics' has no such battle; did you mean 'math'?",
        ),
        (
            "--name topics --where language=zh",
            "--where language=zh: 'topics' has no such battle; it has de, en",
        ),
        (
            "--name topics --where judge=opus --where category=code",
            "--where: no battle of 'topics' has all of these",
        ),
        ("--name topics --where math", "--where 'math': write it as category=math"),
        ("--unread tie", "--unread is for battles of an imported set: add --name"),
        ("--name topics --judge opus", "a set's judge is chosen by --where judge=NAME"),
    ],
)
def test_battles_that_there_are_not_are_refused(topics: Path, words: str, why: str) -> None:
    """With the columns and values that there are."""
    done = launch(topics, "project", "winrates", *words.split())

    assert done.returncode == 2
    assert why in done.stderr


def test_agreement_is_of_the_judges_of_a_set(topics: Path, tourney: Tourney) -> None:
    """Kappa of judges that judged the same; who is alone is shown alone."""
    twice = TOPICS + TOPICS.split("\n", 1)[1].replace("opus", "gpt").replace("model_b", "tie")
    (topics / "twice.csv").write_text(twice)
    launch(topics, "import", "battles", "twice.csv", "--name", "twice")

    found = fields(launch(topics, "project", "agreement", "--name", "twice", "--json"))
    shown = launch(topics, "project", "agreement", "--name", "twice").stdout
    alone = fields(tourney("project", "agreement", "--name", "arena", "--json"))

    rows = {(row["judges"], row["measure"]): (row["value"], row["n"]) for row in found["rows"]}
    assert rows["gpt, opus", "agreement"] == (1.0, 2)
    assert (found["battles"], found["judges"]) == ("twice", ["gpt", "opus"])
    assert "Kappa: (agreement - by chance) / (1 - by chance). Each pair has one" in shown
    assert "A share of A far from 0.5" not in shown
    assert {row["judges"] for row in alone["rows"]} == {"opus"}


def test_ratings_and_battles_of_a_set_are_exported(folder: Path, tourney: Tourney) -> None:
    """From an anchor."""
    options = ("--name", "arena", "--anchor", "amy=1200")
    done = tourney("export", "elo-ratings", *options, "-o", "ratings.json")
    assert done.returncode == 0, done.stderr
    shown = fields(tourney("project", "bt", *options, "--json"))["rows"]
    battles = tourney("export", "battles", "--name", "arena", "--where", "judge=opus")

    written = json.loads((folder / "ratings.json").read_text())
    expected = {row["entrant"]: [row[name] for name in ("rating", "low", "high")] for row in shown}
    found = {
        row["model"]: [row[name] for name in ("rating", "ci_low", "ci_high")]
        for row in written["ratings"]
    }
    assert found == {name: pytest.approx(each, abs=1e-3) for name, each in expected.items()}
    assert written["interval"] == "sandwich"
    assert expected["amy"][0] == pytest.approx(1200)
    assert {json.loads(line).get("judge_model") for line in battles.stdout.splitlines()} == {"opus"}
    refused = tourney("export", "elo-ratings", "--name", "arena", "--anchor", "amie")
    assert "the anchor 'amie' is not an entrant; known: amy, kim, zoe" in refused.stderr


def test_elo_takes_no_weights(tmp_path: Path) -> None:
    """It says so, and what does; win rates count a battle by its weight."""
    rows = "a,b,model_a,q1,3\nb,a,model_a,q2,1\n"
    (tmp_path / "weighed.csv").write_text(f"model_a,model_b,winner,question_id,weight\n{rows}")
    launch(tmp_path, "import", "battles", "weighed.csv", "--name", "weighed")

    refused = launch(tmp_path, "project", "elo", "--name", "weighed")
    [row] = fields(launch(tmp_path, "project", "winrates", "--name", "weighed", "--json"))["rows"]

    assert "Elo cannot use weights" in refused.stderr
    assert "use Bradley-Terry, or remove the weights" in refused.stderr
    assert (row["a_wins"], row["b_wins"], row["win_rate"]) == (1, 1, 0.75)


def test_python_reads_a_set_as_the_command_line_does(folder: Path, tourney: Tourney) -> None:
    """The same rows to the last digit, with no tournament on the ledger."""
    view = library.read_set(folder / "tournament.db", name="arena", as_of=1)
    by_library: dict[str, library.Rows[Any]] = {
        "elo --k 32": view.elo(k=32),
        "bt": view.bradley_terry(),
        "bt --ties davidson": view.bradley_terry(ties="davidson"),
        "winrates": view.win_rates(),
        "fragility": view.fragility(),
        "matches": view.outcomes(),
    }

    for words, rows in by_library.items():
        found = fields(tourney("project", *words.split(), "--name", "arena", "--json"))["rows"]
        names = [name for name in rows.kind._fields if name != "order"]
        read = [{name: getattr(row, name) for name in names} for row in rows]
        assert read
        assert json.loads(json.dumps(read)) == [
            {name: row[name] for name in names} for row in found
        ], words
    with pytest.raises(library.TourneyError, match="no battles were imported as 'x'"):
        library.read_set(folder / "tournament.db", name="x")
