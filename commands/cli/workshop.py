"""From options to a tournament that can be worked on: settings, inputs, and the ledger's place."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from commands.command import OpenTournament
from commands.errors import AuditDisagrees
from commands.recorder import Recorder
from commands.register import opening_of
from commands.settings import Settings
from commands.settings_file import read_settings
from commands.wiring import package_versions
from ledger.audit import audit
from ledger.identity import StreamId
from ledger.store import Ledger


@dataclass(frozen=True)
class Workshop:
    """Settings read, inputs checked, and the ledger's place known; nothing recorded yet."""

    settings: Settings
    folder: Path
    ledger: Path
    opening: OpenTournament

    @property
    def stream(self) -> StreamId:
        """The tournament that the settings are of."""
        return StreamId(self.settings.tournament.id)

    @contextmanager
    def recorder(self) -> Iterator[Recorder]:
        """Open the ledger for writing, and close it at the end.

        Raises:
            AuditDisagrees: It is not as it was recorded; nothing may be built on it.
        """
        with Ledger.open(self.ledger) as ledger:
            for position, why in audit(ledger.rows()):
                raise AuditDisagrees(f"{self.ledger}, position {position}: {why}; `tourney verify`")
            yield Recorder(ledger, self.stream)


def workshop(config: Path, ledger: Path | None) -> Workshop:
    """Read the settings and everything that they name.

    Raises:
        ConfigurationError: Something is missing or wrong; the ledger was not touched.
    """
    settings = read_settings(config, os.environ)
    folder = config.parent
    return Workshop(
        settings=settings,
        folder=folder,
        ledger=ledger or folder / settings.tournament.ledger,
        opening=opening_of(settings, folder, package_versions()),
    )
