"""A run's folder on the disk."""

import shutil
from collections.abc import Mapping
from pathlib import Path

from ledger.errors import CannotWrite


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write a folder that is there whole or not at all.

    Raises:
        CannotWrite: The place refuses, or the folder is there already; nothing is left behind.
    """
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
