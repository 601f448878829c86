"""What both sides read: questions with choices, and documents."""

import json
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple

ROOT: Final = Path(__file__).parents[4]
WEIGHTS: Final = ROOT / "data" / "quickstart" / "weights"
BANK: Final = ROOT / "data" / "bank.jsonl"
DISTRACTORS: Final = ROOT / "data" / "distractors.jsonl"
N_CHOICES: Final = 4
CORPUS: Final = ROOT / "data" / "quickstart" / "corpus.txt"
BEGINNING: Final = "<|endoftext|>"  # written out: lm-evaluation-harness leaves it to the tokenizer


class Question(NamedTuple):
    """A prompt of the bank, its gold answer, and the distractors that were written for it."""

    context: str
    choices: Sequence[str]
    gold: int


class Items(NamedTuple):
    """All that is read."""

    questions: Sequence[Question]
    documents: Sequence[str]


def made_items(n_questions: int) -> Items:
    """Return items of the bank, and documents from one letter to several windows long."""
    wrong = {each["prompt_id"]: each["distractors"] for each in _lines(DISTRACTORS)}
    prompts = [prompt for prompt in _lines(BANK) if prompt["prompt_id"] in wrong][:n_questions]
    rng = Random(0)  # noqa: S311  # an order is no secret
    corpus = CORPUS.read_text(encoding="utf-8")
    return Items(
        [
            _question(each["text"], each["gold_answer"], wrong[each["prompt_id"]], rng)
            for each in prompts
        ],
        ["A", corpus, *corpus.splitlines()[:20]],
    )


def _lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _question(text: str, gold: str, distractors: Sequence[str], rng: Random) -> Question:
    choices = [f" {each}" for each in distractors]
    place = rng.randrange(len(choices) + 1)
    choices.insert(place, f" {gold}")
    return Question(f"{BEGINNING}{text}\nAnswer:", choices, place)
