"""Tournaments to start from, which ship: own answers, models by name, two prompts for one model."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from commands.settings.inputs import RUBRICS, shipped_data


class Example(StrEnum):
    """A tournament that ships."""

    RAG = "rag"
    MODELS = "models"
    PROMPTS = "prompts"


_GUIDES: Final[Mapping[Example, Mapping[str, str]]] = {
    Example.RAG: {"factuality": "factuality_general"},
    Example.MODELS: {"quality": "quality"},
    Example.PROMPTS: {"quality": "quality"},
}
"""The shipped rubric of each dimension."""


def files_of_example(example: Example) -> dict[str, str]:
    """Return the texts of an example's files by name."""
    folder = shipped_data() / "examples" / example
    files = {file.name: file.read_text(encoding="utf-8") for file in sorted(folder.iterdir())}
    guides = {**_GUIDES[example], "judge": "judge"}
    for name, shipped in guides.items():
        files[f"rubrics/{name}.md"] = (RUBRICS / f"{shipped}.md").read_text(encoding="utf-8")
    return files
