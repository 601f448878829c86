"""Questions with lettered choices, from each layout."""

from pathlib import Path

import pytest

from commands.evaluating.shipped.multiple_choice import (
    LetterChoices,
    LetterRollout,
    MmluChoices,
    MmluRollout,
)
from tests.support.builders.evaluating import made, refusals, write_lines

WHICH = "Which vitamin prevents scurvy?"
VITAMINS = ("A", "B12", "C", "D")
BY_LETTER = dict(zip("ABCD", VITAMINS, strict=True))
MMLU = {"question": WHICH, "choices": VITAMINS, "answer": 2, "subject": "nutrition"}
MEDMCQA = {"question": WHICH, "cop": 2, "exp": None, "subject_name": "Biochemistry"} | {
    f"op{letter}": text for letter, text in zip("abcd", VITAMINS, strict=True)
}
MEDQA = {"question": WHICH, "answer": "C", "options": BY_LETTER, "answer_idx": "C"}
MEDQA_LIST = MEDQA | {"options": [{"key": key, "value": text} for key, text in BY_LETTER.items()]}
LETTERED = f"{WHICH}\nA. A\nB. B12\nC. C\nD. D"


@pytest.mark.parametrize(
    ("layout", "row"),
    [("mmlu", MMLU), ("medmcqa", MEDMCQA), ("medqa", MEDQA), ("medqa", MEDQA_LIST)],
)
def test_a_layout_gives_the_same_question_weighed_or_asked(
    tmp_path: Path, layout: str, row: object
) -> None:
    """What an entrant sees does not depend on who published the question."""
    write_lines(tmp_path / "rows.jsonl", row)

    weighed = made(f"{layout}-choices", LetterChoices, tmp_path, path="rows.jsonl")
    asked = made(f"{layout}-rollout", LetterRollout, tmp_path, path="rows.jsonl")

    assert weighed.get(0) == (f"{LETTERED}\nAnswer:", [" A", " B", " C", " D"], 2)
    assert asked.get(0) == (f"{LETTERED}\nAnswer with the letter alone.", "C")
    assert weighed.label(0) == asked.label(0) == "rows.jsonl:1"


@pytest.mark.parametrize(
    ("layout", "row", "why"),
    [
        ("mmlu", MMLU | {"answer": 4}, "the answer is 4; it must be from 0 to 3"),
        (
            "mmlu",
            MMLU | {"choices": ["A"], "answer": 0},
            "there are 1 choices; there must be 2 to 26",
        ),
        ("mmlu", MMLU | {"answer": "C"}, "answer: Expected int, got str"),
        ("medmcqa", MEDMCQA | {"cop": -1}, "cop is -1, as in the test split, whose answers are"),
        ("medmcqa", MEDMCQA | {"cop": 4}, "cop is 4: it must count from 0, as the release on"),
        ("medqa", MEDQA | {"answer_idx": "E"}, "answer_idx is 'E'; the options are ['A', 'B',"),
    ],
)
def test_a_question_without_an_answer_is_refused_with_its_line(
    tmp_path: Path, layout: str, row: object, why: str
) -> None:
    """It would be scored, and against the wrong choice."""
    write_lines(tmp_path / "rows.jsonl", row)

    (found,) = refusals(f"{layout}-choices", tmp_path, path="rows.jsonl")

    assert found.startswith(f"rows.jsonl:1: {why}")


@pytest.mark.parametrize(
    ("said", "letter"),
    [
        ("B", "B"),
        ("b", "B"),
        (" (b) B12", "B"),
        ("**C.** C, of course", "C"),
        ("I think that the answer is: D.", "D"),
        ("Answer: A", "A"),
        ("The answer is a vitamin", ""),
        ("Vitamin C", ""),
        ("", ""),
    ],
)
def test_the_letter_is_read_where_an_answer_gives_one(
    tmp_path: Path, said: str, letter: str
) -> None:
    """Entrants wrap it in words and marks; an article is no letter."""
    write_lines(tmp_path / "rows.jsonl", MMLU)
    asked = made("mmlu-rollout", MmluRollout, tmp_path, path="rows.jsonl")

    assert asked.clean(said) == letter
    assert asked.check("C", letter) is (letter == "C")


def test_choices_are_in_the_order_of_the_file(tmp_path: Path) -> None:
    """Published figures are of that order."""
    write_lines(tmp_path / "rows.jsonl", MMLU, MMLU | {"answer": 0})

    weighed = made("mmlu-choices", MmluChoices, tmp_path, path="rows.jsonl")

    assert [weighed.get(index)[2] for index in range(len(weighed))] == [2, 0]
