"""Where the data that ships with tourney lies: in the wheel, or in the repository."""

from pathlib import Path
from typing import Final

_PACKAGE: Final = Path(__file__).parent


def shipped_data() -> Path:
    """Return the folder that the repository calls data/."""
    in_wheel = _PACKAGE / "shipped_data"
    return in_wheel if in_wheel.is_dir() else _PACKAGE.parent / "data"
