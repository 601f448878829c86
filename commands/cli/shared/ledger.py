"""Where a ledger is: as an option names it, else the settings, else in this folder."""

import os
from functools import cache
from pathlib import Path

from commands.settings.toml import LEDGER, TournamentLocation, tournament_location

DEFAULT_CONFIG = Path("tournament.toml")


@cache
def tournament_section(config: Path) -> TournamentLocation | None:
    """Return [tournament] of the settings; None if there are no settings at the default place."""
    if config == DEFAULT_CONFIG and not config.exists():
        return None
    return tournament_location(config, os.environ)


def ledger_path(ledger: Path | None, config: Path) -> Path:
    """Return the path of the ledger for a command that only reads."""
    if ledger is not None:
        return ledger
    location = tournament_section(config)
    return location.ledger if location else Path(LEDGER)
