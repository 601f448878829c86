"""Leaderboards of other programs, each by two commands: import, and project.

Every expected number is computed here as the program's own script does it.
"""

import json
import random
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import permutations
from math import log10
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
import typer.main
from click.testing import CliRunner

from commands.cli.app import command_line

Row = dict[str, Any]
MODELS = ("alpha", "beta", "gamma")
EVEN = 0.5  # a preference for neither


def two_commands(imported: Sequence[str], projected: Sequence[str]) -> list[Row]:
    """Import, project, and return the rows of the table."""
    runner = CliRunner()
    for words in (imported, (*projected, "--json")):
        app = typer.main.get_command(command_line([each for each in words if each[0] != "-"]))
        done = runner.invoke(app, [*words], "tourney")
        assert done.exit_code == 0, done.output
    rows: list[Row] = json.loads(done.stdout)["rows"]
    return rows


def told(*words: str) -> str:
    """Return what a command says, or why it refuses, in one line."""
    app = typer.main.get_command(command_line([*words[:2]]))
    done = CliRunner().invoke(app, [*words])
    return " ".join(f"{done.output} {done.exception or ''}".split())


def write_lines(path: Path, rows: Sequence[Row]) -> str:
    """Write JSON lines; return the file's name."""
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return str(path)


def shares_against(rows: Sequence[Row], baseline: str) -> dict[str, float]:
    """Return the share that each model takes of its battles against the baseline."""
    of_a = {row["entrant_a"]: row["win_rate"] for row in rows if row["entrant_b"] == baseline}
    of_b = {row["entrant_b"]: 1 - row["win_rate"] for row in rows if row["entrant_a"] == baseline}
    return of_a | of_b


@pytest.fixture(autouse=True)
def _place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Be in a folder without a tournament."""
    monkeypatch.chdir(tmp_path)


def fastchat_vote(rng: random.Random, number: int) -> Row:
    """Return a row of FastChat's clean_battle_*.json."""
    a, b = rng.sample(MODELS, 2)
    won = ["model_a", "model_b", "tie", "tie (bothbad)"]
    return {
        "question_id": f"{number:032x}",
        "model_a": a,
        "model_b": b,
        "winner": rng.choices(won, [3 - MODELS.index(a), 3 - MODELS.index(b), 1, 0.5])[0],
        "judge": f"arena_user_{number}",
        "turn": 1,
        "anony": True,
        "language": "English",
        "tstamp": 1682351591.1322,
    }


def likeliest_elo(votes: Sequence[Row]) -> Mapping[str, float]:
    """Return the maximum likelihood by Zermelo's iteration, as of FastChat's elo_analysis.py.

    A tie is half a win for each, and the mean is 1000.
    """
    wins: dict[str, float] = dict.fromkeys(MODELS, 0)
    for vote in votes:
        taken = {"model_a": 1, "model_b": 0}.get(vote["winner"], 0.5)
        wins[vote["model_a"]] += taken
        wins[vote["model_b"]] += 1 - taken
    met = Counter(
        name for vote in votes for name in permutations((vote["model_a"], vote["model_b"]))
    )
    strength = dict.fromkeys(MODELS, 1.0)
    for _ in range(300):
        strength = {
            a: wins[a] / sum(met[a, b] / (strength[a] + strength[b]) for b in MODELS if b != a)
            for a in MODELS
        }
    ratings = {name: 400 * log10(each) for name, each in strength.items()}
    return {name: rating - fmean(ratings.values()) + 1000 for name, rating in ratings.items()}


def test_fastchats_table_is_import_and_bt(tmp_path: Path) -> None:
    """Ratings by maximum likelihood, a tie as half a win for each."""
    rng = random.Random(1)  # noqa: S311  # votes, not secrets
    votes = [fastchat_vote(rng, number) for number in range(300)]
    (tmp_path / "clean_battle.json").write_text(json.dumps(votes))

    rows = two_commands(
        ["import", "battles", "clean_battle.json"],
        ["project", "bt", "--name", "lmarena-100k"],
    )

    assert {row["entrant"]: row["rating"] for row in rows} == pytest.approx(
        likeliest_elo(votes), abs=1e-6
    )


COLUMNS_OF_CLEAN_BATTLE = (
    *("model_a", "model_b", "winner", "judge", "turn", "anony", "language", "tstamp"),
    *("conv_metadata", "is_code", "is_refused", "dedup_tag", "category_tag"),
)


def clean_battle_row(number: int, **said: object) -> Row:
    """Return a row of LMArena's public clean_battle_*_public.json, which has no question_id."""
    tag = {"high_freq": False, "sampled": True}
    row = {
        **fastchat_vote(random.Random(number), number),  # noqa: S311  # a vote, no secret
        "conv_metadata": {"turns": 1},
        "is_code": False,
        "is_refused": False,
        "dedup_tag": tag,
        "category_tag": {"math_v0.1": {"math": False}},
        **said,
    }
    return {name: row[name] for name in COLUMNS_OF_CLEAN_BATTLE}


@pytest.mark.parametrize("as_lines", [False, True])
def test_votes_that_fastchat_leaves_out_are_left_out(tmp_path: Path, *, as_lines: bool) -> None:
    """Its elo_analysis.py rates blind votes only: 20 even ones are even, whatever others say."""
    pair = {"model_a": "alpha", "model_b": "beta"}
    blind = [
        clean_battle_row(n, **pair, winner=("model_a", "model_b")[n % 2], anony=True)
        for n in range(20)
    ]
    open_ = [clean_battle_row(n, **pair, winner="model_a", anony=False) for n in range(20, 60)]
    often = [
        clean_battle_row(n, **pair, winner="model_b", dedup_tag={"sampled": False})
        for n in range(60, 67)
    ]
    votes = [*blind, *open_, *often]
    text = "\n".join(map(json.dumps, votes)) if as_lines else json.dumps(votes)
    name = "clean_battle.jsonl" if as_lines else "clean_battle.json"
    (tmp_path / name).write_text(text)
    imported = ["import", "battles", name]

    rows = two_commands(imported, ["project", "bt", "--name", "lmarena-100k"])
    again = told(*imported)

    assert [row["rating"] for row in rows] == pytest.approx([1000, 1000])
    assert [row["n_battles"] for row in rows] == [20, 20]
    assert "40 votes left out: not blind (anony is not true)" in again
    assert "7 votes left out: a prompt asked too often (dedup_tag is not sampled)" in again
    assert "20 battles were already on record and left out" in again


def test_a_file_of_open_votes_alone_says_why_it_has_no_battle(tmp_path: Path) -> None:
    """All were read, and none counts."""
    votes = [clean_battle_row(n, anony=False) for n in range(3)]
    (tmp_path / "open.json").write_text(json.dumps(votes))

    why = told("import", "battles", "open.json")

    assert "has no battle of format lmarena-100k; 3 votes left out: not blind" in why


def judgearena_battle(rng: random.Random, number: int) -> Row:
    """Return a row of JudgeArena's battles: an unread reply is a tie without a preference."""
    a, b = rng.sample(MODELS, 2)
    pref = rng.choice([None, 0.1, 0.5, 0.8]) if a < b else rng.choice([None, 0.3, 0.5, 0.9])
    won = "tie" if pref is None or pref == EVEN else "model_a" if pref < EVEN else "model_b"
    about = {"source": "llm-judge", "judge_model": "gpt-4.1", "question_id": str(number)}
    return {"model_a": a, "model_b": b, "winner": won, "pref": pref, **about}


def test_judgearenas_hard_ratings_count_an_unread_reply_as_a_tie(tmp_path: Path) -> None:
    """By default it is left out, as in JudgeArena's soft ones."""
    rng = random.Random(4)  # noqa: S311  # preferences, not secrets
    battles = [judgearena_battle(rng, number) for number in range(200)]
    file = write_lines(tmp_path / "battles.jsonl", battles)
    imported = ["import", "battles", file, "--layout", "judgearena"]
    projected = ["project", "bt", "--name", "judgearena", "--prefs", "hard"]

    as_ties = two_commands(imported, [*projected, "--unread", "tie"])
    left_out = two_commands(imported, projected)

    read = [battle for battle in battles if battle["pref"] is not None]
    for rows, counted in ((as_ties, battles), (left_out, read)):
        found = {row["entrant"]: row["rating"] for row in rows}
        assert found == pytest.approx(likeliest_elo(counted), abs=1e-6)


def arena_hard_row(rng: random.Random, model: str, uid: str) -> Row:
    """Return a row of arena-hard-auto's model_judgment, whose judge fails now and then."""
    labels = ["A>>B", "A>B", "A=B", "B>A", "B>>A", None]
    scores = rng.choices(labels, [1, 2, 2, 3, 2, 1], k=2)
    games: list[Row] = [
        {"score": score, "judgment": {"answer": ""}, "prompt": []} for score in scores
    ]
    category = "creative_writing" if uid.endswith("7") else "hard_prompt"
    about = {"uid": uid, "category": category, "judge": "gpt-4.1", "baseline": "o3-mini"}
    return {**about, "model": model, "games": games}


def arena_hard_score(rows: Sequence[Row]) -> float:
    """Score a model as show_result.py of v2.0: prompts without one of the labels are dropped."""
    scored = {"A>>B": [1.0] * 3, "A>B": [1.0], "A=B": [0.5], "B>A": [0.0], "B>>A": [0.0] * 3}
    taken: list[float] = []
    for row in rows:
        first, second = (game["score"] for game in row["games"])
        if first is not None and second is not None:
            taken += scored[second]
            taken += [1 - each for each in scored[first]]
    return fmean(taken)


def test_arena_hards_table_is_import_and_winrates(tmp_path: Path) -> None:
    """The score against the baseline, `much better` three times, of one category of prompts."""
    rng = random.Random(2)  # noqa: S311  # labels, not secrets
    judged = {
        model: [arena_hard_row(rng, model, f"q{number}") for number in range(60)]
        for model in MODELS
    }
    files = [write_lines(tmp_path / f"{model}.jsonl", rows) for model, rows in judged.items()]

    found = two_commands(
        ["import", "battles", *files],
        [
            *("project", "winrates", "--name", "arena-hard", "--unread", "drop-pair"),
            *("--where", "category=hard_prompt"),
        ],
    )

    assert shares_against(found, "o3-mini") == pytest.approx(
        {
            model: arena_hard_score([row for row in rows if row["category"] == "hard_prompt"])
            for model, rows in judged.items()
        }
    )


def test_alpaca_evals_table_is_import_and_winrates(tmp_path: Path) -> None:
    """The win rate is the mean preference, which weighs how sure the annotator was."""
    rng = random.Random(3)  # noqa: S311  # preferences, not secrets
    annotations: list[Row] = [
        {
            "dataset": "koala",
            "instruction": f"Do {number}.",
            "output_1": "Done.",
            "generator_1": "gpt4_1106_preview",
            "output_2": "So be it.",
            "generator_2": model,
            "annotator": "weighted_alpaca_eval_gpt4_turbo",
            "preference": None if number == 5 else 1 + rng.betavariate(1, 2),
        }
        for model in MODELS
        for number in range(40)
    ]
    (tmp_path / "annotations.json").write_text(json.dumps(annotations))
    taken: defaultdict[str, list[float]] = defaultdict(list)
    for row in annotations:
        if row["preference"] is not None:
            taken[row["generator_2"]].append(row["preference"] - 1)

    found = two_commands(
        ["import", "battles", "annotations.json"],
        ["project", "winrates", "--name", "alpaca-eval"],
    )

    assert shares_against(found, "gpt4_1106_preview") == pytest.approx(
        {model: fmean(shares) for model, shares in taken.items()}
    )
