"""Tournaments laid out as pages say: the tutorial's, with a faked server, and a judged one."""

import json
from pathlib import Path
from typing import Final

from tests.docs import pages
from tests.providers.openai import FakeOpenAI, Json, Said
from tests.support.command_line.launching import lay_out_small

PAGE: Final = pages.DOCS / "tutorial.md"
EVALUATIONS: Final = pages.DOCS / "evaluations.md"
ADDRESS: Final = "http://localhost:8000/v1"
_KNOWN_TO_THE_SMALL: Final = 2  # of the prompts, the first


def lay_out(folder: Path, url: str) -> None:
    """Write the page's files into a folder, with the fake server's address."""
    for name, text in files().items():
        (folder / name).write_text(text.replace(ADDRESS, url), encoding="utf-8")


def files() -> dict[str, str]:
    """Return the page's files, by name."""
    marked = ((block.mark.partition(": "), block.text) for block in pages.blocks(PAGE))
    return {name: text for (kind, _, name), text in marked if kind == "file"}


def blocks(language: str) -> list[str]:
    """Return the blocks of code in a language of the page on evaluations."""
    return [each.text for each in pages.blocks(EVALUATIONS) if each.language == language]


def lay_out_judged(folder: Path) -> Path:
    """Lay out a small demo with the evaluation that a judge scores, as its page has it."""
    lay_out_small(folder)
    for block in pages.blocks(EVALUATIONS):
        kind, _, name = block.mark.partition(": ")
        if kind == "file":
            with (folder / name).open("a", encoding="utf-8") as file:
                file.write(f"\n{block.text}" if name.endswith(".toml") else block.text)
    return folder


def server() -> FakeOpenAI:
    """Return a server of the page's three models."""
    fake = FakeOpenAI(_say)
    fake.traffic.models = frozenset({"small-3b", "large-32b", "judge-70b"})
    return fake


def _say(body: Json) -> Said:
    """Answer as the model that is asked: the large one knows more, and the judge knows all."""
    asked = str(body["messages"])
    bank = [json.loads(line) for line in files()["bank.jsonl"].splitlines()]
    (number,) = (n for n, prompt in enumerate(bank) if prompt["text"] in asked)
    gold = bank[number]["gold_answer"]
    match body["model"]:
        case "judge-70b":
            return Said(f"The reference answer decides.\nVERDICT: {_better(asked, gold)}")
        case "small-3b" if number >= _KNOWN_TO_THE_SMALL:
            return Said("I am not sure.")
        case "large-32b" if number == 0:
            return Said("Vitamin A.")
        case model:
            return Said(f"{gold}, says {model}.")


def _better(asked: str, gold: str) -> str:
    """Say whose response holds the gold answer, of the two that were shown."""
    a, _, b = asked.partition("<<< response A ")[2].partition("<<< response B ")
    right = {"A": f"{gold}, says" in a, "B": f"{gold}, says" in b}
    return "TIE" if right["A"] == right["B"] else max(right, key=lambda slot: right[slot])
