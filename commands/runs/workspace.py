"""A tournament to work on: its settings, its checked inputs, and the ledger to write to."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from commands.auditing.soundness import require_sound
from commands.decisions.commands import OpenTournament
from commands.decisions.recorder import Recorder
from commands.entrants.weights import FetchSnapshot
from commands.importing.bank import OpenDataset, no_dataset
from commands.ports import Tell
from commands.runs.register import opening_of
from commands.settings.reader import read_settings
from commands.settings.schema import Settings
from commands.settings.toml import allows_network
from ledger.identity import StreamId
from ledger.storage.lock import Holder
from ledger.store import Ledger


@dataclass(frozen=True)
class Workspace:
    """The settings and the checked inputs of a tournament, before anything is recorded."""

    settings: Settings
    folder: Path  # of the settings; their relative paths start here
    ledger: Path
    opening: OpenTournament

    @property
    def stream(self) -> StreamId:
        """The tournament's stream."""
        return StreamId(self.settings.tournament.id)

    @contextmanager
    def recorder(self, tell: Tell) -> Iterator[Recorder]:
        """Open the ledger for this command alone, and close it at the end.

        A second command on the same ledger waits until the first is done, so that nothing is paid
        for twice.

        Raises:
            AuditDisagrees: The ledger is damaged.
        """
        with open_alone(self.ledger, tell) as ledger:
            require_sound(ledger)
            yield Recorder(ledger, self.stream)


@contextmanager
def open_alone(path: Path, tell: Tell) -> Iterator[Ledger]:
    """Open a ledger for one command alone: a second one waits until the first is done."""
    with open_for_writing(path, tell) as ledger, ledger.alone(_telling_whom(tell)):
        yield ledger


def open_for_writing(path: Path, tell: Tell) -> Ledger:
    """Open a ledger for writing; tell the user which process it has to wait for."""
    network = allows_network(os.environ)
    return Ledger.open(path, on_wait=_telling_whom(tell), allow_network=network)


def _telling_whom(tell: Tell) -> Callable[[Holder | None], None]:
    return lambda holder: tell(
        f"waiting for {holder or 'another process'}, which is using the same ledger"
    )


def open_workspace(
    config: Path,
    ledger: Path | None,
    versions: Sequence[tuple[str, str]],
    *,
    fetch: FetchSnapshot | None = None,
    open_dataset: OpenDataset = no_dataset,
) -> Workspace:
    """Read the settings and everything that they name.

    Args:
        config: The settings file.
        ledger: Replaces the ledger that the settings name.
        versions: Packages and their versions, recorded with the opening.
        fetch: Resolves names of weights on the Hub; None: only folders are found.
        open_dataset: Opens a bank on the Hub.

    Raises:
        ConfigurationError: Something is missing or wrong; the ledger is not touched.
    """
    settings = read_settings(config, os.environ)
    folder = config.parent
    return Workspace(
        settings=settings,
        folder=folder,
        ledger=ledger or folder / settings.tournament.ledger,
        opening=opening_of(settings, folder, versions, fetch, open_dataset),
    )
