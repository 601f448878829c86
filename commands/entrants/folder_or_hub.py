"""Find weights by what the settings call them: a folder on this machine, or a name on the Hub."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from commands.errors import MissingExtra, NotFetched, WeightsError

_NAME: Final = re.compile(
    r"(?P<name>[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*)(?:@(?P<revision>\S+))?", re.ASCII
)


class HubSnapshot(NamedTuple):
    """A model's files at one commit, in the Hub's cache on this machine."""

    folder: Path
    commit: str


FetchSnapshot: TypeAlias = Callable[[str, str | None], HubSnapshot]
"""Returns the files of `org/name` at a branch, tag or commit, from the Hub or its cache here.

It raises NotFetched where neither has them, and MissingExtra without the Hub's client.
"""


class FoundWeights(NamedTuple):
    """Where weights or an adapter lie on this machine."""

    folder: Path
    label: str  # which may end in the step of a training
    commit: str | None = None  # on the Hub; None: a folder of the user's own


def find_weights(named: Path, folder: Path, fetch: FetchSnapshot | None) -> FoundWeights:
    """Return where weights or an adapter lie; a path that exists goes before a name on the Hub.

    Args:
        named: A path, or `org/name` on the Hub, or `org/name@v1` for its branch, tag or commit v1.
        folder: Where relative paths start.
        fetch: Asks the Hub; None: only folders on this machine are found.

    Raises:
        WeightsError: A folder has a revision, or there is neither a folder nor such a name. A path
            that can be no name on the Hub is returned even if nothing is there.
    """
    path = (folder / named).resolve()
    on_hub = _NAME.fullmatch(named.as_posix())
    if path.exists() or fetch is None or on_hub is None:
        return FoundWeights(path, path.name)
    name, revision = on_hub["name"], on_hub["revision"]
    if revision is not None and (folder / name).exists():
        why = f"@{revision} is for names on the Hub, and {name} is a folder here"
        raise WeightsError(path, why, f"leave @{revision} out, or move the folder away")
    missing = "there is no such folder of weights"
    try:
        snapshot = fetch(name, revision)
    except NotFetched as error:
        raise WeightsError(path, f"{missing}, and {error.why}", error.remedy) from error
    except MissingExtra as error:
        remedy = f"correct the path; {name} is not looked up on the Hub: {error}"
        raise WeightsError(path, missing, remedy) from error
    label = name.rpartition("/")[2]
    return FoundWeights(snapshot.folder.resolve(), label, snapshot.commit)


def name_of_weights(named: Path, folder: Path) -> str:
    """Return the name of a folder of weights, or of those on the Hub without their revision."""
    on_hub = None if (folder / named).exists() else _NAME.fullmatch(named.as_posix())
    return named.name if on_hub is None else on_hub["name"].rpartition("/")[2]
