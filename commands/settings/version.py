"""The versions of tourney and of the packages that a tournament's opening records."""

from functools import cache
from typing import Final

VERSION: Final = "0.1.0"
_RECORDED_PACKAGES: Final = ("torch", "transformers", "peft", "sacrebleu", "numpy")


@cache
def package_versions() -> tuple[tuple[str, str], ...]:
    """Return the versions of installed packages that a tournament's opening records."""
    from importlib.metadata import (  # noqa: PLC0415  # most commands record no versions
        PackageNotFoundError,
        version,
    )

    found = [("tourney", VERSION)]
    for package in _RECORDED_PACKAGES:
        try:
            found.append((package, version(package)))
        except PackageNotFoundError:
            continue
    return tuple(found)
