"""A run's folder on the disk."""

import shutil
from collections.abc import Mapping
from pathlib import Path

from commands.errors import FolderTaken
from ledger.errors import CannotWrite


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write a folder that is there whole or not at all.

    Raises:
        FolderTaken: Something is there already.
        CannotWrite: The place refuses; nothing is left behind.
    """
    if folder.is_file() or (folder.is_dir() and any(folder.iterdir())):
        raise FolderTaken(folder)
    draft = folder.with_name(f".{folder.name}.draft")
    try:
        shutil.rmtree(draft, ignore_errors=True)
        for name, content in files.items():
            file = draft / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        draft.rename(folder)
    except OSError as error:
        shutil.rmtree(draft, ignore_errors=True)
        raise CannotWrite(folder, str(error)) from error
