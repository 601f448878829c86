"""Tournaments that ship: the demo, by tiny weights or their answers, and examples to start from."""

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Final

from commands.errors import ConfigurationError
from commands.settings.inputs import RUBRICS, shipped_data
from ledger.storage.files import write_files

_RECORDED: Final = {"tournament.toml": "recorded.toml", "answers.csv": "answers.csv"}
_NOT_COPIED: Final = frozenset({".py", ".txt", ".tsv"})  # what the weights were trained by and on
_COMPILED: Final = "__pycache__"  # of those, by pip


def lay_out_demo(folder: Path, *, weights: bool = True) -> None:
    """Fill a folder with the quickstart tournament, unless it holds a tournament already.

    Args:
        folder: A new folder, or an empty one, or one that holds a demo.
        weights: Whether its entrants are weights that generate; else their recorded answers.

    Raises:
        ConfigurationError: The folder holds something else.
        CannotWrite: The place refuses.
    """
    folder = folder.resolve()
    if (folder / "tournament.toml").exists():
        if weights and (folder / "answers.csv").exists():
            raise ConfigurationError([f"{folder} is a demo without weights; name a new folder"])
        return
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise ConfigurationError([f"{folder} exists and is not a demo; name a new folder"])
    quickstart = shipped_data() / "quickstart"
    if weights:
        files = dict(_with_weights(quickstart))
    else:
        files = {name: (quickstart / file).read_bytes() for name, file in _RECORDED.items()}
    for beside in ("bank.jsonl", "distractors.jsonl"):
        files[beside] = (shipped_data() / beside).read_bytes()
    for guide in ("factuality.md", "judge_medical.md"):
        files[f"rubrics/{guide}"] = (RUBRICS / guide).read_bytes()
    write_files(folder, files)


def _with_weights(quickstart: Path) -> Iterator[tuple[str, bytes]]:
    for file in sorted(quickstart.rglob("*")):
        is_apart = file.parent == quickstart and (
            file.suffix in _NOT_COPIED or file.name in _RECORDED.values()
        )
        if file.is_file() and not is_apart and file.parent.name != _COMPILED:
            yield str(file.relative_to(quickstart)), file.read_bytes()


class Example(StrEnum):
    """A tournament to start from: own answers, models by name, or two prompts for one model."""

    RAG = "rag"
    MODELS = "models"
    PROMPTS = "prompts"


def files_of_example(example: Example) -> dict[str, str]:
    """Return the texts of an example's files by name."""
    folder = shipped_data() / "examples" / example
    files = {file.name: file.read_text(encoding="utf-8") for file in sorted(folder.iterdir())}
    is_of_facts = example is Example.RAG
    guides = {"factuality": "factuality_general"} if is_of_facts else {"quality": "quality"}
    for name, shipped in {**guides, "judge": "judge"}.items():
        files[f"rubrics/{name}.md"] = (RUBRICS / f"{shipped}.md").read_text(encoding="utf-8")
    return files
