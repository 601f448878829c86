"""Read the training texts: the bank's prompts with their right responses, and a plain corpus."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ledger.identity import PromptId

HERE = Path(__file__).parent


class Prompt(NamedTuple):
    """A prompt of the bank, its right response, and the group that it may be confused in."""

    prompt_id: PromptId
    text: str
    gold_answer: str | None
    right: str
    group: str


class Corpus(NamedTuple):
    """Training texts besides the bank."""

    sentences: Sequence[str]
    asked: Sequence[tuple[str, str]]  # (question, response)


def read_prompts(bank: Path) -> list[Prompt]:
    """Read the bank; curated prompts have no gold answer and get a response written here."""
    lines = (HERE / "curated_responses.tsv").read_text(encoding="utf-8").splitlines()
    curated = dict(line.split("\t") for line in lines)
    records = map(json.loads, bank.read_text(encoding="utf-8").splitlines())
    return [as_prompt(record, curated) for record in records]


def as_prompt(record: dict[str, Any], curated: dict[str, str]) -> Prompt:
    """Turn one bank record into a prompt; facts are confused within their subject."""
    prompt_id, text = PromptId(record["prompt_id"]), record["text"]
    if record["source"] == "curated":
        return Prompt(prompt_id, text, None, curated[prompt_id], "curated")
    gold_answer = record["gold_answer"]
    group = record["subject"] if record["source"] == "recall" else record["tags"][0]
    return Prompt(prompt_id, text, gold_answer, gold_answer.rstrip(".") + ".", group)


def read_corpus() -> Corpus:
    """Read plain sentences, and the lines of the form `question? response`."""
    lines = (HERE / "corpus.txt").read_text(encoding="utf-8").splitlines()
    asked = [line.partition("? ") for line in lines if "? " in line]
    return Corpus(
        [line for line in lines if "? " not in line],
        [(question + "?", response) for question, _, response in asked],
    )
