"""Battles in plain columns."""

import pytest

from commands.importing.formats.rows import BattleRow
from tests.commands.battle_readers.reading import battles, read_rows, why_not

ROW: dict[str, object] = {"model_a": "x", "model_b": "y", "winner": "model_a"}


def test_three_columns_are_a_battle_that_people_judged() -> None:
    """Whoever has no more to say must not be asked for it."""
    assert battles("plain", ROW) == [BattleRow("x", "y", "model_a", None, None, "human", None)]


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

    as_numbers, as_texts = battles("plain", ROW | given, ROW | spelt)

    assert as_numbers == BattleRow("x", "y", "model_b", 0.75, "7", "llm-judge", "gpt-4", 3.0)
    assert as_texts == as_numbers


@pytest.mark.parametrize("nothing", [None, "", float("nan")])
def test_what_is_not_known_may_be_null_empty_or_nan(nothing: object) -> None:
    """Each kind of file has its own word for nothing."""
    names = ("pref", "question_id", "source", "judge_model", "weight")

    assert battles("plain", ROW | dict.fromkeys(names, nothing)) == battles("plain", ROW)


def test_a_battle_that_names_its_judge_is_by_it() -> None:
    """Nobody names a judge for what people said."""
    (by_judge,) = battles("plain", ROW | {"judge_model": "gpt-4"})

    assert by_judge.source == "llm-judge"


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"winner": "A"}, "winner is 'A', but must be one of model_a, model_b, tie, tie (bothbad)"),
        ({"winner": None}, "winner is None"),
        ({"model_a": ""}, "model_a is '', but must be a text"),
        ({"model_b": "x"}, "'x' battles itself"),
        ({"model_b": True}, "model_b is True"),
        ({"model_a": "\ud800"}, "model_a is '\\ud800'"),
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
        ({"weight": 0}, "weight is 0.0, but must be above 0"),
    ],
)
def test_a_row_that_is_no_battle_says_why(wrong: dict[str, object], why: str) -> None:
    """An unknown winner is no tie; arena-rank counts it as one."""
    assert why_not("plain", ROW | wrong).startswith(why)


@pytest.mark.parametrize(
    ("winner", "pref"),
    [("model_a", 0), ("model_a", 0.5), ("model_b", 0.5), ("model_b", 1), ("tie", 0), ("tie", 0.6)],
)
def test_a_preference_may_go_with_its_winner_or_any_tie(winner: str, pref: float) -> None:
    """How near to even a judge calls a tie is the judge's."""
    (battle,) = battles("plain", ROW | {"winner": winner, "pref": pref})

    assert (battle.winner, battle.pref) == (winner, pref)


def test_a_bad_row_has_its_line_and_stops_no_other() -> None:
    """All that is wrong is told at once."""
    bad, good = read_rows("plain", ROW | {"winner": "A"}, ROW)

    assert bad[0] == 1
    assert good == battles("plain", ROW)[0]


def test_a_value_that_is_wrong_is_shown_in_part() -> None:
    """It may be a whole conversation."""
    assert len(why_not("plain", ROW | {"winner": "A" * 100_000})) < 200
