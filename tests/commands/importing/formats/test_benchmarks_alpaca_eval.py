"""AlpacaEval's annotations."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands.importing.formats.rows import Fields
from ledger.events.imports import ImportedBattle, Winner
from tests.support.builders.formats import battles_of_rows, mirrored, read_text, why_not

_ANNOTATIONS = """\
[
  {
    "dataset":"helpful_base",
    "instruction":"Name two actors.",
    "output_1":"Ada and Bea.",
    "generator_1":"gpt4_1106_preview",
    "output_2":"Cid.",
    "generator_2":"Llama-3",
    "annotator":"weighted_alpaca_eval_gpt4_turbo",
    "preference":1.25
  },
  {
    "dataset":"helpful_base",
    "instruction":"Name a state.",
    "output_1":"Ohio.",
    "generator_1":"gpt4_1106_preview",
    "output_2":"Iowa.",
    "generator_2":"Llama-3",
    "annotator":"weighted_alpaca_eval_gpt4_turbo",
    "preference":null
  }
]
"""


def row(**fields: object) -> Fields:
    """Return an annotation of x beside y."""
    plain = {"instruction": "Why?", "generator_1": "x", "generator_2": "y", "annotator": "judge"}
    return plain | fields


def test_a_preference_is_one_more_than_how_probably_the_second_is_better(tmp_path: Path) -> None:
    """1 is the first, mostly the reference; and null, where the annotator failed, is no tie."""
    first, second = read_text("alpaca-eval", tmp_path / "annotations.json", _ANNOTATIONS)

    judge = "weighted_alpaca_eval_gpt4_turbo"
    assert first == ImportedBattle(
        *("gpt4_1106_preview", "Llama-3", "model_a", 0.25, "af37d1e6e8366b5c", "llm-judge", judge),
        categories=("helpful_base",),
        length_a=12,
        length_b=4,
    )
    assert isinstance(second, ImportedBattle)
    assert (second.winner, second.pref) == ("no verdict", None)


@pytest.mark.parametrize(
    ("preference", "winner", "pref"),
    [
        (1, "model_a", 0),
        (1.5, "tie", 0.5),
        (2, "model_b", 1),
        (1.000039552, "model_a", 3.9552e-05),
        (0, "tie", 0.5),
        (float("nan"), "no verdict", None),
    ],
)
def test_a_preference_names_the_winner(
    preference: float, winner: Winner, pref: float | None
) -> None:
    """0 was a tie in the first releases; and subtraction adds no digits to the file's."""
    (battle,) = battles_of_rows("alpaca-eval", row(preference=preference))

    assert (battle.winner, battle.pref) == (winner, pref)


@given(st.floats(min_value=1, max_value=2))
def test_exchanging_the_outputs_mirrors_the_battle(preference: float) -> None:
    """Who is called the first is chance."""
    (battle,) = battles_of_rows("alpaca-eval", row(preference=preference))
    swapped = row(generator_1="y", generator_2="x", preference=3 - preference)

    (other,) = battles_of_rows("alpaca-eval", swapped)

    expected = mirrored(battle)
    assert other.pref == pytest.approx(expected.pref, abs=1e-15)
    assert other._replace(pref=expected.pref) == expected


def test_battles_over_the_same_instruction_have_the_same_prompt() -> None:
    """They are no independent evidence, and AlpacaEval has no id but the text."""
    once, again, other = battles_of_rows(
        "alpaca-eval",
        row(preference=1),
        row(preference=2, generator_2="z"),
        row(preference=1, instruction="Why not?"),
    )

    assert once.question_id == again.question_id != other.question_id


@pytest.mark.parametrize(
    ("annotation", "why"),
    [
        (row(), "preference is missing; it may be null"),
        (row(preference=2.5), "preference is 2.5, but must be from 1 to 2"),
        (row(preference=-1), "preference is -1.0, but must be from 1 to 2"),
        (row(preference="first"), "preference is 'first', but must be a number"),
        (row(preference=1, generator_1=None), "generator_1 is None, but must be a text"),
    ],
)
def test_a_row_that_is_no_annotation_is_told(annotation: Fields, why: str) -> None:
    """An output that nobody annotated yet, say."""
    assert why_not("alpaca-eval", annotation) == why
