"""From options to what is read: which ledger, which tournament, as of when."""

import os
from functools import cache
from pathlib import Path

from commands.cli.shared.options import DEFAULT_CONFIG
from commands.runs.choices import position_at, stream_named, tournament_at
from commands.settings.lookup import TournamentLocation, tournament_location
from commands.settings.toml import variable
from ledger.chain import Head
from ledger.identity import StreamId
from ledger.store import Ledger
from projections.tournament.state import Tournament

DEFAULT_LEDGER = Path("tournament.db")


@cache
def kept(config: Path) -> TournamentLocation | None:
    """Return where the tournament is kept; None where no settings are there or asked for."""
    if config == DEFAULT_CONFIG and not config.exists():
        return None
    return tournament_location(config, os.environ)


def ledger_path(ledger: Path | None, config: Path) -> Path:
    """Return the ledger's place for a command that only reads."""
    if ledger is not None:
        return ledger
    found = kept(config)
    return config.parent / found.ledger if found else DEFAULT_LEDGER


def allows_network(config: Path) -> bool:
    """Say whether the settings allow a ledger on a network file system."""
    found = kept(config)
    said = os.environ.get(variable(("tournament", "network_ledger")), "false")
    return found.network_ledger if found else said.lower() in {"true", "1"}


def read_tournament(
    ledger: Ledger, tournament: str | None, as_of: str | None, config: Path
) -> Tournament:
    """Fold a tournament out of an open ledger.

    Raises:
        ConfigurationError: Which tournament, or as of when, cannot be told, or it was not there
            yet.
        NothingRecorded: There is nothing of it at any position.
    """
    stream, until = stream_of(ledger, tournament, config), position_of(ledger, as_of)
    return tournament_at(ledger, stream, until, as_of)


def stream_of(ledger: Ledger, tournament: str | None, config: Path) -> StreamId:
    """Return the tournament that is named, that the settings are of, or the only one.

    Raises:
        ConfigurationError: There are several, and none is named.
        NothingRecorded: The one that is named is not there.
    """
    found = kept(config)
    return stream_named(ledger, tournament or (found.id if found else None))


def position_of(ledger: Ledger, as_of: str | None) -> int | None:
    """Resolve --as-of to a position."""
    return None if as_of is None else position_at(ledger, as_of, option="--as-of")


def head_at(ledger: Ledger, as_of: str | None) -> Head:
    """Return the head as it was at --as-of, or as it is."""
    position = position_of(ledger, as_of)
    chain = None if position is None else ledger.chain_at(position)
    return ledger.head if position is None or chain is None else Head(position, chain)
