"""The documents' page on evaluations, and the code in it."""

from pathlib import Path

from tests.docs import pages
from tests.support.command_line.launching import lay_out_small

PAGE = pages.DOCS / "evaluations.md"


def blocks(language: str) -> list[str]:
    """Return the page's blocks of code in a language."""
    return [block.text for block in pages.blocks(PAGE) if block.language == language]


def lay_out_judged(folder: Path) -> Path:
    """Lay out a small demo with the evaluation that a judge scores, as the page has it."""
    lay_out_small(folder)
    for block in pages.blocks(PAGE):
        kind, _, name = block.mark.partition(": ")
        if kind == "file":
            with (folder / name).open("a", encoding="utf-8") as file:
                file.write(f"\n{block.text}" if name.endswith(".toml") else block.text)
    return folder
