"""Battles in plain columns, and JudgeArena's in both layouts."""

import json
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]  # it says no types
import pytest
from pyarrow import parquet as pq

from commands.importing.formats import plain
from ledger.events.imports import ImportedBattle, JurorVote
from tests.support.builders.formats import battles_of_rows, read_file, read_rows, read_text, why_not

ROW: dict[str, object] = {"model_a": "x", "model_b": "y", "winner": "model_a"}


def test_three_columns_are_a_battle_of_unknown_source() -> None:
    """Whoever has no more to say must not be asked for it; that people voted, nobody said."""
    assert battles_of_rows("plain", ROW) == [
        ImportedBattle("x", "y", "model_a", None, None, "unknown", None)
    ]


def test_every_column_is_kept() -> None:
    """As numbers and nulls of Parquet, or as the texts of CSV."""
    given = {
        "winner": "model_b",
        "pref": 0.75,
        "question_id": 7,
        "source": "llm-judge",
        "judge_model": "gpt-4",
        "weight": 3,
        "turns": 1,
    }
    spelt = {name: str(value) for name, value in given.items()}

    as_numbers, as_texts = battles_of_rows("plain", ROW | given, ROW | spelt)

    assert as_numbers == ImportedBattle("x", "y", "model_b", 0.75, "7", "llm-judge", "gpt-4", 3.0)
    assert as_texts == as_numbers


def test_what_is_known_beside_the_result_is_kept() -> None:
    """As lists and numbers of Parquet and JSON, or as the texts of CSV."""
    given = {
        "category": ["math", "code"],
        "language": "de",
        "length_a": 12,
        "length_b": 0.0,
        "votes": [["gpt-4", "model_a"], ["opus", "inconsistent"]],
    }
    spelt = {
        "category": " math; code;math;",
        "language": "de",
        "length_a": "12",
        "length_b": "0",
        "votes": '[["gpt-4", "model_a"], ["opus", "inconsistent"]]',
    }

    as_lists, as_texts = battles_of_rows("plain", ROW | given, ROW | spelt)

    assert as_lists == ImportedBattle(
        *("x", "y", "model_a", None, None, "unknown", None, 1.0),
        votes=(JurorVote("gpt-4", "model_a"), JurorVote("opus", "inconsistent")),
        categories=("math", "code"),
        language="de",
        length_a=12,
        length_b=0,
    )
    assert as_texts == as_lists


@pytest.mark.parametrize("nothing", [None, "", float("nan")])
def test_what_is_not_known_may_be_null_empty_or_nan(nothing: object) -> None:
    """Each kind of file has its own word for nothing."""
    names = plain.OPTIONAL

    assert battles_of_rows("plain", ROW | dict.fromkeys(names, nothing)) == battles_of_rows(
        "plain", ROW
    )


def test_a_battle_that_names_its_judge_is_by_it() -> None:
    """Nobody names a judge for what people said."""
    (by_judge,) = battles_of_rows("plain", ROW | {"judge_model": "gpt-4"})

    assert by_judge.source == "llm-judge"


@pytest.mark.parametrize(
    ("judge", "named"),
    [
        ("expert_1", ("expert_1", "human")),
        ("author_2", ("author_2", "human")),
        ("arena_user_5", ("arena_user_5", "human")),
        ("gpt4_pair", ("gpt4_pair", "llm-judge")),
        (["gpt-4", "pair-v2"], ("gpt-4", "llm-judge")),
        ('["gpt-4", "pair-v2"]', ("gpt-4", "llm-judge")),
        ("['gpt-4', 'pair-v2']", ("gpt-4", "llm-judge")),
        (["gpt-4"], ("gpt-4", "llm-judge")),
        (7, ("7", "llm-judge")),
        ("[7", ("[7", "llm-judge")),
        (None, (None, "unknown")),
    ],
)
@pytest.mark.parametrize("from_", ["plain", "mt-bench"])
def test_the_column_judge_names_who_voted(from_: str, judge: object, named: object) -> None:
    """MT-bench's votes have it; without it nobody's agreement could be told."""
    row = ROW | {"judge": judge, "question_id": 81}
    if from_ == "mt-bench" and judge is None:
        assert why_not(from_, row) == "judge is None, but must be a text"
        return

    (vote,) = battles_of_rows(from_, row)

    assert (vote.judge_model, vote.source, vote.question_id) == (*named, "81")  # type: ignore[misc]


def test_what_a_table_says_of_itself_comes_before_what_a_name_seems_to_say() -> None:
    """A judge may be called `expert-7b`."""
    given = {"judge": "expert-7b", "source": "llm-judge"}
    both = {"judge": "expert_1", "judge_model": "gpt-4"}

    said, named_twice = battles_of_rows("plain", ROW | given, ROW | both)

    assert (said.judge_model, said.source) == ("expert-7b", "llm-judge")
    assert (named_twice.judge_model, named_twice.source) == ("gpt-4", "llm-judge")


@pytest.mark.parametrize("from_", ["plain", "judgearena", "mt-bench", "lmarena-100k"])
def test_a_winner_with_a_tie_in_it_is_a_tie(from_: str) -> None:
    """FastChat's compute_agreement.py counts `tie (inconsistent)` so, and both were even."""
    row = {"winner": "tie (inconsistent)", "judge": ["gpt-4", "pair-v2"], "question_id": 81}

    (battle,) = battles_of_rows(from_, ROW | row)

    assert battle.winner == "tie"


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"winner": "A"}, "winner is 'A', but must be one of model_a, model_b, tie, tie (bothbad)"),
        ({"winner": None}, "winner is None"),
        ({"model_a": ""}, "model_a is '', but must be a text"),
        ({"model_b": "x"}, "'x' battles itself"),
        ({"model_b": True}, "model_b is True"),
        ({"model_a": "\ud800"}, "model_a is '\\ud800', which is not UTF-8"),
        ({"pref": 1.5}, "pref is 1.5, but must be from 0 to 1"),
        ({"pref": "half"}, "pref is 'half', but must be a number"),
        ({"pref": float("inf")}, "pref is inf, but must be a number"),
        ({"pref": 10**400}, "pref is 1000"),
        ({"pref": [0.5]}, "pref is [0.5], but must be a number"),
        ({"winner": "no verdict", "pref": 0.5}, "winner is no verdict, but pref is 0.5"),
        ({"pref": 0.95}, "winner is model_a, but pref, the probability that b is better, is 0.95"),
        (
            {"winner": "model_b", "pref": 0.05},
            "winner is model_b, but pref, the probability that b is better, is 0.05",
        ),
        ({"source": "oracle"}, "source is 'oracle', but must be one of llm-judge, human"),
        ({"question_id": ["q"]}, "question_id is ['q'], but must be a text"),
        ({"weight": 0}, "weight is 0.0, but must be from 1e-06 to 1,000,000"),
        ({"weight": "1e308"}, "weight is 1e+308, but must be from 1e-06 to 1,000,000"),
        ({"category": 7.5}, "category is 7.5, but must be a text"),
        ({"category": ["math", {}]}, "category is {}, but must be a text"),
        ({"length_a": -1}, "length_a is -1, but must be a whole number, 0 or more"),
        ({"length_b": "1.5"}, "length_b is '1.5', but must be a whole number, 0 or more"),
        ({"votes": "gpt-4"}, "votes is 'gpt-4', but must be JSON: "),
        ({"votes": [["gpt-4"]]}, "votes[0]: must have 2 entries, not 1"),
        ({"votes": [["gpt-4", "A"]]}, "votes[0][1]: 'A' is none of its values"),
        ({"votes": [["\ud800", "tie"]]}, "votes is '\\ud800', which is not UTF-8"),
    ],
)
def test_a_row_that_is_no_battle_says_why(wrong: dict[str, object], why: str) -> None:
    """An unknown winner is no tie; arena-rank counts it as one."""
    assert why_not("plain", ROW | wrong).startswith(why)


@pytest.mark.parametrize("winner", ["auntie-7b", "tie-7b", "necktie"])
def test_a_model_whose_name_holds_a_tie_is_no_tie(winner: str) -> None:
    """A column of names instead of sides would become ties, and nobody would be told."""
    row = {"model_a": winner, "model_b": "y", "winner": winner}

    assert "must be one of" in why_not("plain", row)


@pytest.mark.parametrize(
    ("winner", "pref"),
    [("model_a", 0), ("model_a", 0.5), ("model_b", 0.5), ("model_b", 1), ("tie", 0), ("tie", 0.6)],
)
def test_a_preference_may_go_with_its_winner_or_any_tie(winner: str, pref: float) -> None:
    """How near to even a judge calls a tie is the judge's."""
    (battle,) = battles_of_rows("plain", ROW | {"winner": winner, "pref": pref})

    assert (battle.winner, battle.pref) == (winner, pref)


def test_a_bad_row_has_its_line_and_stops_no_other() -> None:
    """All that is wrong is told at once."""
    bad, good = read_rows("plain", ROW | {"winner": "A"}, ROW)

    assert bad[0] == 1
    assert good == battles_of_rows("plain", ROW)[0]


def test_a_value_that_is_wrong_is_shown_in_part() -> None:
    """It may be a whole conversation."""
    assert len(why_not("plain", ROW | {"winner": "A" * 100_000})) < 200


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
    ImportedBattle("x", "y", "model_a", 0.25, "q1", "llm-judge", "gpt-4"),
    ImportedBattle("x", "y", "tie", 0.5, "q1", "llm-judge", "gpt-4"),
    ImportedBattle("x", "y", "no verdict", None, "q1", "llm-judge", "gpt-4"),
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

    by_judge, by_people = battles_of_rows("judgearena", draft, BY_PEOPLE)

    assert (by_judge.winner, by_people.winner) == ("tie", "tie")


def test_people_give_no_preference_with_their_tie() -> None:
    """A battle of theirs may be written with all fields of a judge's."""
    (row,) = battles_of_rows("judgearena", BY_PEOPLE | {"pref": None, "judge_model": None})

    assert row == ImportedBattle("x", "y", "tie", None, None, "human", None)


def test_ratings_are_no_battles() -> None:
    """They lie in the same folder; what each battle was cannot be told from them."""
    why = why_not("judgearena", {"arena": "LMArena", "ratings": []})

    assert why == "these are ratings, not battles; use `tourney import elo-ratings`"
