"""Find weights by what the settings call them: a folder on this machine, or a name on the Hub."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from commands.errors import MissingExtra, NotFetched, WeightsError

_NAME: Final = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)


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


def find_weights(
    named: Path, folder: Path, fetch: FetchSnapshot | None, *, revision: str | None = None
) -> FoundWeights:
    """Return where weights or an adapter lie; a path that exists goes before a name on the Hub.

    Args:
        named: A path, or `org/name` on the Hub.
        folder: Where relative paths start.
        fetch: Asks the Hub; None: only folders on this machine are found.
        revision: Of a name on the Hub; None: its main branch.

    Raises:
        WeightsError: A folder has a revision, or there is neither a folder nor such a name. A path
            that can be no name on the Hub is returned even if nothing is there.
    """
    path = (folder / named).resolve()
    if path.exists() and revision is not None:
        why = f"revision {revision!r} is for names on the Hub, and this is a folder here"
        raise WeightsError(path, why, "leave revision out, or move the folder away")
    name = named.as_posix()
    if path.exists() or fetch is None or not _NAME.fullmatch(name):
        return FoundWeights(path, path.name)
    missing = "there is no such folder of weights"
    try:
        snapshot = fetch(name, revision)
    except NotFetched as error:
        raise WeightsError(path, f"{missing}, and {error.why}", error.remedy) from error
    except MissingExtra as error:
        remedy = f"correct the path; {name} is not looked up on the Hub: {error}"
        raise WeightsError(path, missing, remedy) from error
    return FoundWeights(snapshot.folder.resolve(), named.name, snapshot.commit)
