"""The contexts of tasks: description, examples, and the question, as plain text."""

from typing import Any, Final

import pytest

from commands.entrants.chats import plain_text
from commands.evaluating.shipped.task_files._documents import ContextWriter, ExampleSampler
from commands.evaluating.shipped.task_files._settings import TaskKeys

KEYS: Final[dict[str, Any]] = {
    "task": "a",
    "dataset_path": "json",
    "doc_to_text": "Q: {{q}}",
    "doc_to_target": "a",
}
FIRST: Final[dict[str, Any]] = {"sampler": "first_n"}
EXAMPLES: Final = [{"q": f"{n}", "a": f"answer {n}"} for n in range(9)]


def context(**changes: object) -> str:
    """Return the context of one document."""
    keys = TaskKeys.model_validate({**KEYS, **changes})
    return plain_text(ContextWriter(keys, ("q", "a"), EXAMPLES).write({"q": "?", "a": "!"}))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "Q: ?"),
        ({"description": "Of {{q}}.\n"}, "Of ?.\nQ: ?"),
        ({"gen_prefix": "A:"}, "Q: ? A:"),
        ({"gen_prefix": "A:", "target_delimiter": "\n"}, "Q: ?\nA:"),
        (
            {"num_fewshot": 2, "fewshot_config": FIRST, "fewshot_split": "dev"},
            "Q: 0 answer 0\n\nQ: 1 answer 1\n\nQ: ?",
        ),
        (
            {
                "num_fewshot": 1,
                "fewshot_split": "dev",
                "fewshot_config": FIRST | {"fewshot_delimiter": "\n", "gen_prefix": "A:"},
            },
            "Q: 0 A: answer 0\nQ: ?",
        ),
        (
            {
                "num_fewshot": 1,
                "doc_to_choice": ["no", "yes"],
                "doc_to_target": "{{1}}",
                "fewshot_split": "dev",
                "fewshot_config": FIRST | {"doc_to_target": 0, "target_delimiter": ": "},
            },
            "Q: 0: no\n\nQ: ?",
        ),
        (
            {
                "num_fewshot": 1,
                "doc_to_choice": ["no", "yes"],
                "doc_to_text": "q",  # a field of digits, which counts no choice
                "fewshot_split": "dev",
                "fewshot_config": FIRST,
            },
            "0 answer 0\n\n?",
        ),
        (
            {
                "num_fewshot": 2,
                "doc_to_target": "{{''}}",
                "fewshot_split": "dev",
                "fewshot_config": FIRST | {"gen_prefix": "A:"},
            },
            "Q: 0 A:Q: 1 A:Q: ?",
        ),
    ],
)  # fmt: skip
def test_a_context_is_description_examples_and_question(
    changes: dict[str, object], expected: str
) -> None:
    """A space more or less is another number."""
    assert context(**changes) == expected


def sampler(**changes: object) -> ExampleSampler:
    """Return the sampler of two examples."""
    return ExampleSampler(TaskKeys.model_validate({**KEYS, "num_fewshot": 2, **changes}), EXAMPLES)


@pytest.mark.parametrize(
    ("split", "drawn"),
    [
        ("train", [["7", "1"], ["0", "1"], ["0", "1"]]),
        ("test", [["7", "1"], ["0", "5"], ["1", "8"]]),  # of which a document is taken out
    ],
)
def test_examples_are_drawn_as_the_harness_draws_them(split: str, drawn: list[list[str]]) -> None:
    """Its ContextSampler of version 0.4.13 draws these, by Random(1234)."""
    found = sampler(fewshot_split=split, test_split="test")

    assert [[each["q"] for each in found.draw(EXAMPLES[n])] for n in range(3)] == drawn


@pytest.mark.parametrize("kind", ["default", "first_n"])
def test_a_document_is_no_example_of_itself(kind: str) -> None:
    """Where examples are drawn from the split that is asked."""
    drawn = sampler(test_split="test", fewshot_split="test", fewshot_config={"sampler": kind})

    shown = [(document, drawn.draw(document)) for document in EXAMPLES]

    assert all(len(examples) == 2 and document not in examples for document, examples in shown)
