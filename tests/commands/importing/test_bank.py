"""A bank on the Hub: its columns are found as those of a table, or as the address says."""

from pathlib import Path

import pytest

from commands.errors import ConfigurationError
from commands.importing.bank import bank_named
from commands.importing.formats.rows import Record, Sheet
from commands.settings.hub_dataset import HubDataset
from ledger.events.registration import Prompt

SET = "hf://datasets/org/set"
ROW = {"Question": "Why?", "answer": "So.", "hint": ["a", "b"], "level": 2}


def read(query: str = "", *rows: dict[str, object], samples: int = 1) -> tuple[Prompt, ...]:
    """Read the bank of some rows."""
    rows = rows or (ROW,)

    def opened(dataset: HubDataset) -> Sheet:
        assert dataset.name == "org/set"
        return Sheet([*rows[0]], (Record(n, row) for n, row in enumerate(rows, start=1)))

    return bank_named(SET + query, Path(), opened, samples)


def test_the_usual_columns_are_a_prompts_fields() -> None:
    """The data set is the source; a pilot draws in proportion to it."""
    (prompt,) = read()

    assert (prompt.text, prompt.gold_answer, prompt.source) == ("Why?", "So.", "org/set")


def test_the_address_says_other_columns_or_none() -> None:
    """A column that is said to be one field is no other."""
    (prompt,) = read("?text=answer&category=level&source=hint", {**ROW, "hint": "mine"})
    (other,) = read("?gold_answer=")

    assert (prompt.text, prompt.gold_answer, prompt.category) == ("So.", None, "2")
    assert prompt.source == "mine"
    assert other.gold_answer is None


def test_turns_are_a_conversation_and_samples_follow() -> None:
    """As in a file of the same content: the same text is the same prompt wherever it is from."""
    first, second = read("?turns=hint", samples=2)

    assert [content for _, content in first.turns] == ["a", "b"]
    assert second.prompt_id == f"{first.prompt_id}#2"


@pytest.mark.parametrize(
    ("query", "rows", "why"),
    [
        ("?text=Q", (ROW,), r"no column 'Q', which text= names \(there: Question, answer,"),
        ("", ({"q": "Why?"},), r"say which, as &text=COLUMN \(there: q\)"),
        ("?text=hint", (ROW,), "'text' is a list, not a text"),
        ("", (ROW, ROW), ":2: the prompt is that of line 1"),
        ("?category=level", ({"prompt": "Why?", "level": "x\udc00"},), "half of a surrogate"),
    ],
)
def test_rows_that_are_no_prompts_are_refused(
    query: str, rows: tuple[dict[str, object], ...], why: str
) -> None:
    """With the address and the row."""
    with pytest.raises(ConfigurationError, match=rf"^{SET}.*{why}"):
        read(query, *rows)
