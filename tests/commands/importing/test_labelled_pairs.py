"""Pairs of answers that people have labelled, in the layouts of the sets that have them."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from commands.errors import ConfigurationError
from commands.importing.answer_tables import AnswersTable, read_table
from commands.importing.labelled_pairs import LabelledPairs

Row = Mapping[str, Any]


def labelled(folder: Path, rows: Sequence[Row]) -> LabelledPairs:
    """Read rows as JSON."""
    (folder / "rows.json").write_text(json.dumps(rows))
    found = read_table(folder / "rows.json", n_named=0)
    assert isinstance(found, AnswersTable)
    assert found.labelled is not None
    return found.labelled


LAYOUTS: Mapping[str, tuple[Row, list[tuple[str, str]]]] = {
    "JudgeBench": (
        {"question": "Q", "response_A": "x", "response_B": "y", "label": "B>A"},
        [("gold", "model_b")],
    ),
    "LLMBar": ({"input": "Q", "output_1": "x", "output_2": "y", "label": 1}, [("gold", "model_a")]),
    "PandaLM": (
        {
            "instruction": "Q",
            "input": "",
            "response1": "x",
            "response2": "y",
            "annotator1": 1,
            "annotator2": 2,
            "annotator3": 0,
        },
        [("annotator1", "model_a"), ("annotator2", "model_b"), ("annotator3", "tie")],
    ),
    "Auto-J": (
        {"prompt": "Q", "response 1": "x", "response 2": "y", "label": 2},
        [("gold", "tie")],
    ),
    "LMArena": (
        {
            "prompt": '["Q"]',
            "response_a": '["x"]',
            "response_b": '["y"]',
            "winner_model_a": 0,
            "winner_model_b": 1,
            "winner_tie": 0,
        },
        [("gold", "model_b")],
    ),
    "AlpacaEval": (
        {"instruction": "Q", "output_1": "x", "output_2": "y", "preference": 2, "annotator": "ann"},
        [("ann", "model_b")],
    ),
    "own": (
        {"prompt": "Q", "response_a": "x", "response_b": "y", "winner": "model_a", "rater": "me"},
        [("me", "model_a")],
    ),
}


@pytest.mark.parametrize("tool", LAYOUTS)
def test_labels_are_read_as_each_set_means_them(tool: str, tmp_path: Path) -> None:
    """2 is the second answer for LLMBar, and a tie for Auto-J."""
    row, votes = LAYOUTS[tool]

    pairs = labelled(tmp_path, [row])

    (prompt,) = pairs.prompts
    assert prompt["text"] == "Q"
    assert list(pairs.pairs.values()) == [("x", "y")]
    assert [(who, won) for _, who, won in pairs.votes] == votes


def test_rows_that_cannot_be_used_are_counted_and_swapped_ones_are_turned(tmp_path: Path) -> None:
    """A second vote on the same answers counts; other answers to the prompt do not."""
    row = {"prompt": "Q", "response_a": "-x", "response_b": "y", "winner": "model_a"}
    rows = [
        row,
        {**row, "response_a": "y", "response_b": "-x"},
        {**row, "response_a": "z"},
        {**row, "winner": "who knows"},
        {**row, "prompt": ""},
    ]

    pairs = labelled(tmp_path, rows)

    assert [won for _, _, won in pairs.votes] == ["model_a", "model_b"]
    assert (pairs.n_unlike, pairs.n_without) == (1, 2)
    assert "'-x,y" in pairs.files()["pairs.csv"]  # no formula, and read back as it was


@pytest.mark.parametrize("yes", [1, 1.0, True, "true"])
def test_votes_in_columns_of_their_own_are_read_as_any_file_writes_them(
    yes: object, tmp_path: Path
) -> None:
    """CSV has digits, Parquet numbers or truths."""
    row = {"prompt": "Q", "response_a": "x", "response_b": "y", "winner_model_b": yes}

    assert [won for _, _, won in labelled(tmp_path, [row]).votes] == ["model_b"]


@pytest.mark.parametrize("labels", [(0, 1), (-1, 0, 1), (-1, 2)])
def test_numbers_that_may_mean_another_thing_are_refused(
    labels: tuple[int, ...], tmp_path: Path
) -> None:
    """0 and 1 are a and b to one, and a tie and a to another: kappa would be nonsense."""
    row = {"prompt": "Q", "response_a": "x", "response_b": "y"}

    with pytest.raises(ConfigurationError, match=r"the labels are .*: write model_a, model_b or"):
        labelled(tmp_path, [{**row, "label": label} for label in labels])


ASKED = ("One?", "Two?")


TURNS = [
    {"prompt": [*ASKED], "response_a": ["1", "2"], "response_b": ["I", "II"], "winner": "model_a"},
    {
        "prompt": json.dumps(ASKED),
        "response_a": '["1", "2"]',
        "response_b": '["I", "II"]',
        "winner_model_a": 1,
    },
    {
        f"conversation_{side}": [
            turn
            for question, answer in zip(ASKED, answers, strict=True)
            for turn in (
                {"role": "user", "content": question},
                {"role": "assistant", "content": [{"type": "text", "text": answer}]},
            )
        ]
        for side, answers in {"a": ("1", "2"), "b": ("I", "II")}.items()
    }
    | {"winner": "model_a"},
]


@pytest.mark.parametrize("row", TURNS)
def test_conversations_are_pairs_of_several_turns(tmp_path: Path, row: Row) -> None:
    """As LMArena has them, in each of its layouts; both sides answer every question."""
    unlike = {**row, "response_a": ["1"], "conversation_a": []}

    found = labelled(tmp_path, [row, unlike])

    [prompt] = found.prompts
    assert prompt["turns"] == [*ASKED]
    assert [*found.pairs.values()] == [('["1", "2"]', '["I", "II"]')]
    assert [won for _, _, won in found.votes] == ["model_a"]
    assert found.n_without == 1


@pytest.mark.parametrize("text", ["[1, 2]", "[]", "[null]", '{"role": "user"}', "[x"])
def test_a_text_that_looks_like_a_list_is_a_text(tmp_path: Path, text: str) -> None:
    """An answer may be code."""
    row = {"prompt": "Sort it.", "response_a": text, "response_b": "no", "winner": "model_a"}

    assert [*labelled(tmp_path, [row]).pairs.values()] == [(text, "no")]
