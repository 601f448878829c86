"""Lay out the demo: the shipped bank, rubric, instructions and tiny weights."""

from pathlib import Path
from typing import Final

from commands.errors import ConfigurationError
from commands.settings.inputs import RUBRICS, shipped_data
from ledger.storage.files import write_files

_NOT_COPIED: Final = frozenset({".py", ".txt", ".tsv"})  # what the weights were trained by and on
_COMPILED: Final = "__pycache__"  # of those, by pip


def lay_out_demo(folder: Path) -> None:
    """Fill a folder with the quickstart tournament, unless it holds a tournament already.

    Raises:
        ConfigurationError: The folder holds something else.
        CannotWrite: The place refuses.
    """
    folder = folder.resolve()
    if (folder / "tournament.toml").exists():
        return
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise ConfigurationError([f"{folder} exists and is not a demo; name a new folder"])
    quickstart = shipped_data() / "quickstart"
    files = {
        str(file.relative_to(quickstart)): file.read_bytes()
        for file in sorted(quickstart.rglob("*"))
        if file.is_file()
        and (file.parent != quickstart or file.suffix not in _NOT_COPIED)
        and file.parent.name != _COMPILED
    }
    for beside in ("bank.jsonl", "distractors.jsonl"):
        files[beside] = (shipped_data() / beside).read_bytes()
    for guide in ("factuality.md", "judge_medical.md"):
        files[f"rubrics/{guide}"] = (RUBRICS / guide).read_bytes()
    write_files(folder, files)
