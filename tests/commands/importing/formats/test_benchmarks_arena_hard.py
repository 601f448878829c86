"""arena-hard-auto's judgments, of both versions."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands.importing.formats.rows import BadRow, Fields
from ledger.events.imports import ImportedBattle, Winner
from tests.support.builders.formats import battles_of_rows, mirrored, read_text, why_not

_V2 = """\
{"uid": "9f2c", "category": "hard_prompt", "judge": "gpt-4.1", "model": "qwq-32b", \
"baseline": "o3-mini-2025-01-31", "games": [\
{"score": "B>>A", "judgment": {"answer": "[[B>>A]]"}, "prompt": [{"role": "user"}]}, \
{"score": "A>B", "judgment": {"answer": "[[A>B]]"}, "prompt": [{"role": "user"}]}]}
"""
_V0_1 = """\
{"question_id": "328c", "model": "gpt-4-0613", "judge": "gpt-4-1106-preview", "games": [\
{"user_prompt": "?", "judgment": "[[A=B]]", "score": "A=B"}, \
{"user_prompt": "?", "judgment": "no label", "score": null}]}
"""
_LABELS = ["A>>B", "A>B", "A=B", "B>A", "B>>A", "A<<B", "A<B", "B=A", "B<A", "B<<A"]


def row(*scores: object, **fields: object) -> dict[str, object]:
    """Return a judgment of version 2 with these scores, one a game."""
    games = [{"score": score} for score in scores]
    return {"uid": "u", "judge": "j", "model": "m", "baseline": "b", "games": games} | fields


def won(model_a: str, model_b: str, winner: Winner, weight: float = 1.0) -> ImportedBattle:
    """Return a battle of the judge j on the prompt u."""
    return ImportedBattle(model_a, model_b, winner, None, "u", "llm-judge", "j", weight)


def exchanged(label: str) -> str:
    """Return a label with A and B exchanged."""
    return label.translate(str.maketrans("AB", "BA"))


def test_the_baseline_is_in_slot_a_first_and_the_model_second(tmp_path: Path) -> None:
    """Readers have taken the second game for the first, and turned its verdicts round."""
    read = read_text("arena-hard", tmp_path / "qwq-32b.jsonl", _V2)

    first = ImportedBattle(
        *("o3-mini-2025-01-31", "qwq-32b", "model_b", None, "9f2c", "llm-judge", "gpt-4.1", 3.0),
        categories=("hard_prompt",),
    )
    second = first._replace(
        model_a="qwq-32b", model_b="o3-mini-2025-01-31", winner="model_a", weight=1.0
    )
    assert read == [first, second]


def test_version_0_1_means_its_one_baseline_and_keeps_a_game_beside_a_failed_one(
    tmp_path: Path,
) -> None:
    """Its rows do not name the baseline, and a reply without a label is no tie."""
    read = read_text("arena-hard", tmp_path / "gpt-4-0613.jsonl", _V0_1)

    judge = "gpt-4-1106-preview"
    assert read == [
        ImportedBattle("gpt-4-0314", "gpt-4-0613", "tie", None, "328c", "llm-judge", judge),
        ImportedBattle("gpt-4-0613", "gpt-4-0314", "no verdict", None, "328c", "llm-judge", judge),
    ]


@pytest.mark.parametrize(
    ("label", "winner", "weight"),
    [
        ("A>>B", "model_a", 3),
        ("A>B", "model_a", 1),
        ("A=B", "tie", 1),
        ("B>A", "model_b", 1),
        ("B>>A", "model_b", 3),
    ],
)
def test_a_label_says_who_is_better_and_whether_by_much(
    label: str, winner: Winner, weight: float
) -> None:
    """The five labels that the judge is asked for."""
    assert battles_of_rows("arena-hard", row(label)) == [won("b", "m", winner, weight)]


@given(st.sampled_from(_LABELS))
def test_a_label_means_the_same_read_from_either_side(label: str) -> None:
    """A>>B is B<<A: judges write both."""
    reversed_signs = exchanged(label).translate(str.maketrans("<>", "><"))

    assert battles_of_rows("arena-hard", row(reversed_signs)) == battles_of_rows(
        "arena-hard", row(label)
    )


@given(st.sampled_from([*_LABELS, None]), st.sampled_from([*_LABELS, None]))
def test_exchanging_model_and_baseline_changes_no_battle(
    first: str | None, second: str | None
) -> None:
    """The two games are the same pair in both orders."""
    read = battles_of_rows("arena-hard", row(first, second))
    other_way = battles_of_rows("arena-hard", row(second, first, model="b", baseline="m"))

    assert other_way == read[::-1]


@given(st.sampled_from(_LABELS))
def test_a_judge_that_follows_the_answers_says_mirrored_battles(label: str) -> None:
    """Consistent verdicts are the same verdict, seen from both orders."""
    first, second = battles_of_rows("arena-hard", row(label, exchanged(label)))

    assert second == mirrored(first)


def test_a_game_that_the_judge_failed_is_no_verdict() -> None:
    """The row has null where no reply came."""
    failed = row(games=[None, {"score": "A>B"}])

    assert battles_of_rows("arena-hard", failed) == [
        won("b", "m", "no verdict"),
        won("m", "b", "model_a"),
    ]


@pytest.mark.parametrize(
    ("judgment", "why"),
    [
        (row("A>>>B", "A>B"), "score is 'A>>>B', but must be one of A>>B, A>B, A=B, "),
        (row("a>b", "A>B"), "score is 'a>b', but must be one of A>>B, "),
        (row(), "there are 0 games; there must be one or two"),
        (row("A>B", "A>B", "A>B"), "there are 3 games; there must be one or two"),
        (row("A>B", games="A>B"), "games: must be a list, not a text"),
        (row("A>B", baseline=None), "baseline is None, but must be a text"),
        (row("A>B", model="b"), "'b' battles itself"),
    ],
)
def test_a_row_that_is_no_judgment_is_told(judgment: Fields, why: str) -> None:
    """The original stops at such a label, or leaves the game out."""
    assert why_not("arena-hard", judgment).startswith(why)


def test_a_bad_row_keeps_neither_of_its_games(tmp_path: Path) -> None:
    """Half a judgment would be an order without its counterpart."""
    text = json.dumps(row("A>B", "?")) + "\n" + json.dumps(row("A>B", "B>A"))

    read = read_text("arena-hard", tmp_path / "m.jsonl", text)

    assert [type(each) for each in read] == [BadRow, ImportedBattle, ImportedBattle]
