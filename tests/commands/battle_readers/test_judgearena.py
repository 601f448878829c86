"""JudgeArena's battles, in both layouts."""

import json
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]  # it says no types
from pyarrow import parquet as pq

from commands.importing.formats.rows import BattleRow
from tests.commands.battle_readers.reading import battles, read_file, read_text, why_not

WON: dict[str, object] = {
    "model_a": "x",
    "model_b": "y",
    "winner": "model_a",
    "pref": 0.25,
    "pref_hard": 0.0,
    "source": "llm-judge",
    "judge_model": "gpt-4",
    "question_id": "q1",
}
TIED = WON | {"winner": "tie", "pref": 0.5, "pref_hard": 0.5}
UNREAD = WON | {"winner": "tie", "pref": None, "pref_hard": 0.5}
BY_PEOPLE = {"model_a": "x", "model_b": "y", "winner": "tie", "source": "human"}

READ = [
    BattleRow("x", "y", "model_a", 0.25, "q1", "llm-judge", "gpt-4"),
    BattleRow("x", "y", "tie", 0.5, "q1", "llm-judge", "gpt-4"),
    BattleRow("x", "y", "no verdict", None, "q1", "llm-judge", "gpt-4"),
]


def test_a_tie_without_a_preference_is_no_verdict(tmp_path: Path) -> None:
    """JudgeArena could not read the reply; its hard mode counts half a win for each."""
    path = tmp_path / "battles.parquet"
    pq.write_table(pa.Table.from_pylist([dict(row) for row in (WON, TIED, UNREAD)]), path)

    assert read_file("judgearena", path) == READ


def test_nan_is_no_preference_in_either_layout(tmp_path: Path) -> None:
    """Both are pandas: a missing number becomes NaN, in JSON a word that JSON does not have."""
    path = tmp_path / "battles.parquet"
    pq.write_table(pa.Table.from_pylist([UNREAD | {"pref": float("nan")}]), path)
    line = json.dumps(UNREAD | {"pref": float("nan")})

    assert "NaN" in line
    assert read_file("judgearena", path) == READ[2:]
    assert read_text("judgearena", tmp_path / "battles.jsonl", line) == READ[2:]


def test_a_tie_of_the_first_draft_is_a_tie() -> None:
    """It has no preferences, so that none is missing."""
    draft = {name: value for name, value in TIED.items() if not name.startswith("pref")}

    by_judge, by_people = battles("judgearena", draft, BY_PEOPLE)

    assert (by_judge.winner, by_people.winner) == ("tie", "tie")


def test_people_give_no_preference_with_their_tie() -> None:
    """A battle of theirs may be written with all fields of a judge's."""
    (row,) = battles("judgearena", BY_PEOPLE | {"pref": None, "judge_model": None})

    assert row == BattleRow("x", "y", "tie", None, None, "human", None)


def test_ratings_are_no_battles() -> None:
    """They lie in the same folder; what each battle was cannot be told from them."""
    why = why_not("judgearena", {"arena": "LMArena", "ratings": []})

    assert why == "these are ratings, not battles; use `tourney import elo-ratings`"
