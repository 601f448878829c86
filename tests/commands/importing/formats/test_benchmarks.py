"""Judgments of MT-bench, arena-hard-auto and AlpacaEval."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands.importing.formats.rows import BadRow, Fields
from ledger.events.imports import ImportedBattle, Winner
from tests.support.builders.formats import battles_of_rows, mirrored, read_text, why_not

_PAIRS = """\
{"question_id": 81, "model_1": "alpaca-13b", "model_2": "gpt-4", "g1_winner": "model_2", \
"g2_winner": "model_1", "judge": ["gpt-4", "pair-v2"], "g1_user_prompt": "?", \
"g1_judgment": "[[B]]", "g2_user_prompt": "?", "g2_judgment": "[[B]]", "turn": 1, "tstamp": 1.5}
{"question_id": 81, "model_1": "alpaca-13b", "model_2": "gpt-4", "g1_winner": "error", \
"g2_winner": "tie", "judge": ["gpt-4", "pair-v2-multi-turn"], "g1_user_prompt": "?", \
"g1_judgment": "$ERROR$", "g2_user_prompt": "?", "g2_judgment": "[[C]]", "turn": 2, "tstamp": 2.5}
"""
_NAMES = ["model_1", "model_2", "tie", "error"]


def mt_bench(**fields: object) -> Fields:
    """Return a pair, of which both games were tied."""
    pair = {"question_id": 81, "model_1": "x", "model_2": "y", "judge": ["gpt-4", "pair-v2"]}
    return pair | {"g1_winner": "tie", "g2_winner": "tie"} | fields


def other_number(winner: str) -> str:
    """Return what a winner is called where the models are numbered the other way."""
    return {"model_1": "model_2", "model_2": "model_1"}.get(winner, winner)


def test_each_game_is_a_battle_in_the_order_that_was_shown(tmp_path: Path) -> None:
    """This judge chose slot B twice; merging the games to a tie first would hide it."""
    read = read_text("mt-bench", tmp_path / "gpt-4_pair.jsonl", _PAIRS)

    first = ImportedBattle("alpaca-13b", "gpt-4", "model_b", None, "81", "llm-judge", "gpt-4")
    second = ImportedBattle("gpt-4", "alpaca-13b", "model_b", None, "81", "llm-judge", "gpt-4")
    assert read[:2] == [first, second]
    assert read[2:] == [first._replace(winner="no verdict"), second._replace(winner="tie")]


@given(st.sampled_from(_NAMES), st.sampled_from(_NAMES))
def test_numbering_the_models_the_other_way_changes_no_battle(first: str, second: str) -> None:
    """Who is model_1 decides only which game comes first."""
    read = battles_of_rows("mt-bench", mt_bench(g1_winner=first, g2_winner=second))
    renumbered = mt_bench(
        model_1="y",
        model_2="x",
        g1_winner=other_number(second),
        g2_winner=other_number(first),
    )

    assert battles_of_rows("mt-bench", renumbered) == read[::-1]


@pytest.mark.parametrize(
    ("pair", "why"),
    [
        (
            mt_bench(g2_winner="x"),
            "g2_winner is 'x', but must be one of model_2, model_1, tie, error",
        ),
        (mt_bench(judge=["gpt-4"]), "judge is ['gpt-4'], but must be [model, prompt]"),
        (mt_bench(judge=["", "pair-v2"]), "judge is ['', 'pair-v2'], but must be [model, prompt]"),
        (mt_bench(judge="gpt-4"), "judge: must be a list, not a text"),
        (mt_bench(question_id=None), "question_id is None, but must be a text"),
    ],
)
def test_a_row_that_is_no_pair_is_told(pair: Fields, why: str) -> None:
    """A winner by its name, say, as other programs write it."""
    assert why_not("mt-bench", pair) == why


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


def arena_hard(*scores: object, **fields: object) -> dict[str, object]:
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
    assert battles_of_rows("arena-hard", arena_hard(label)) == [won("b", "m", winner, weight)]


@given(st.sampled_from(_LABELS))
def test_a_label_means_the_same_read_from_either_side(label: str) -> None:
    """A>>B is B<<A: judges write both."""
    reversed_signs = exchanged(label).translate(str.maketrans("<>", "><"))

    assert battles_of_rows("arena-hard", arena_hard(reversed_signs)) == battles_of_rows(
        "arena-hard", arena_hard(label)
    )


@given(st.sampled_from([*_LABELS, None]), st.sampled_from([*_LABELS, None]))
def test_exchanging_model_and_baseline_changes_no_battle(
    first: str | None, second: str | None
) -> None:
    """The two games are the same pair in both orders."""
    read = battles_of_rows("arena-hard", arena_hard(first, second))
    other_way = battles_of_rows("arena-hard", arena_hard(second, first, model="b", baseline="m"))

    assert other_way == read[::-1]


@given(st.sampled_from(_LABELS))
def test_a_judge_that_follows_the_answers_says_mirrored_battles(label: str) -> None:
    """Consistent verdicts are the same verdict, seen from both orders."""
    first, second = battles_of_rows("arena-hard", arena_hard(label, exchanged(label)))

    assert second == mirrored(first)


def test_a_game_that_the_judge_failed_is_no_verdict() -> None:
    """The row has null where no reply came."""
    failed = arena_hard(games=[None, {"score": "A>B"}])

    assert battles_of_rows("arena-hard", failed) == [
        won("b", "m", "no verdict"),
        won("m", "b", "model_a"),
    ]


@pytest.mark.parametrize(
    ("judgment", "why"),
    [
        (arena_hard("A>>>B", "A>B"), "score is 'A>>>B', but must be one of A>>B, A>B, A=B, "),
        (arena_hard("a>b", "A>B"), "score is 'a>b', but must be one of A>>B, "),
        (arena_hard(), "there are 0 games; there must be one or two"),
        (arena_hard("A>B", "A>B", "A>B"), "there are 3 games; there must be one or two"),
        (arena_hard("A>B", games="A>B"), "games: must be a list, not a text"),
        (arena_hard("A>B", baseline=None), "baseline is None, but must be a text"),
        (arena_hard("A>B", model="b"), "'b' battles itself"),
    ],
)
def test_a_row_that_is_no_judgment_is_told(judgment: Fields, why: str) -> None:
    """The original stops at such a label, or leaves the game out."""
    assert why_not("arena-hard", judgment).startswith(why)


def test_a_bad_row_keeps_neither_of_its_games(tmp_path: Path) -> None:
    """Half a judgment would be an order without its counterpart."""
    text = json.dumps(arena_hard("A>B", "?")) + "\n" + json.dumps(arena_hard("A>B", "B>A"))

    read = read_text("arena-hard", tmp_path / "m.jsonl", text)

    assert [type(each) for each in read] == [BadRow, ImportedBattle, ImportedBattle]


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


def alpaca(**fields: object) -> Fields:
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
    (battle,) = battles_of_rows("alpaca-eval", alpaca(preference=preference))

    assert (battle.winner, battle.pref) == (winner, pref)


@given(st.floats(min_value=1, max_value=2))
def test_exchanging_the_outputs_mirrors_the_battle(preference: float) -> None:
    """Who is called the first is chance."""
    (battle,) = battles_of_rows("alpaca-eval", alpaca(preference=preference))
    swapped = alpaca(generator_1="y", generator_2="x", preference=3 - preference)

    (other,) = battles_of_rows("alpaca-eval", swapped)

    expected = mirrored(battle)
    assert other.pref == pytest.approx(expected.pref, abs=1e-15)
    assert other._replace(pref=expected.pref) == expected


def test_battles_over_the_same_instruction_have_the_same_prompt() -> None:
    """They are no independent evidence, and AlpacaEval has no id but the text."""
    once, again, other = battles_of_rows(
        "alpaca-eval",
        alpaca(preference=1),
        alpaca(preference=2, generator_2="z"),
        alpaca(preference=1, instruction="Why not?"),
    )

    assert once.question_id == again.question_id != other.question_id


@pytest.mark.parametrize(
    ("annotation", "why"),
    [
        (alpaca(), "preference is missing; it may be null"),
        (alpaca(preference=2.5), "preference is 2.5, but must be from 1 to 2"),
        (alpaca(preference=-1), "preference is -1.0, but must be from 1 to 2"),
        (alpaca(preference="first"), "preference is 'first', but must be a number"),
        (alpaca(preference=1, generator_1=None), "generator_1 is None, but must be a text"),
    ],
)
def test_a_row_that_is_no_annotation_is_told(annotation: Fields, why: str) -> None:
    """An output that nobody annotated yet, say."""
    assert why_not("alpaca-eval", annotation) == why
