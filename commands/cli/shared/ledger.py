"""Resolve options to a ledger, a tournament in it, and a position."""

import os
from functools import cache
from pathlib import Path

from commands.reading.resolve import position_at, stream_named, tournament_at
from commands.settings.toml import LEDGER, TournamentLocation, tournament_location
from ledger.chain import Head
from ledger.identity import StreamId
from ledger.store import Ledger
from projections.tournament.state import Tournament

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
    found = tournament_section(config)
    return found.ledger if found else Path(LEDGER)


def read_tournament(
    ledger: Ledger, tournament: str | None, as_of: str | None, config: Path
) -> Tournament:
    """Fold a tournament from an open ledger."""
    stream, until = stream_of(ledger, tournament, config), position_of(ledger, as_of)
    return tournament_at(ledger, stream, until, as_of)


def stream_of(ledger: Ledger, tournament: str | None, config: Path) -> StreamId:
    """Return the tournament that is named, that of the settings, or the only one."""
    found = tournament_section(config)
    return stream_named(ledger, tournament or (found.id if found else None))


def position_of(ledger: Ledger, as_of: str | None) -> int | None:
    """Resolve --as-of to a position."""
    return None if as_of is None else position_at(ledger, as_of, option="--as-of")


def head_at(ledger: Ledger, as_of: str | None) -> Head:
    """Return the ledger's head, at --as-of if it is given."""
    position = position_of(ledger, as_of)
    chain = None if position is None else ledger.chain_at(position)
    return ledger.head if position is None or chain is None else Head(position, chain)
