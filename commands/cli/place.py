"""From options to what is read: which ledger, which tournament, as of when, whose verdicts."""

import os
from datetime import UTC, datetime
from pathlib import Path

from commands.errors import ConfigurationError, NothingRecorded
from commands.settings_file import read_settings
from ledger.events.registration import JudgeSettings
from ledger.identity import StreamId
from ledger.store import Ledger
from projections.fold import fold
from projections.tournament import Tournament, tournament_of

DEFAULT_LEDGER = Path("tournament.db")


def ledger_path(ledger: Path | None, config: Path) -> Path:
    """Return the ledger's place for a command that only reads."""
    if ledger is not None:
        return ledger
    if config.is_file():
        return config.parent / read_settings(config, os.environ).tournament.ledger
    return DEFAULT_LEDGER


def read_tournament(ledger: Ledger, tournament: str | None, as_of: str | None) -> Tournament:
    """Fold a tournament out of an open ledger.

    Raises:
        ConfigurationError: Which tournament, or as of when, cannot be told.
        NothingRecorded: There is nothing of it at that position.
    """
    stream = stream_of(ledger, tournament)
    state = fold(tournament_of(stream), ledger.read(until=position_of(ledger, as_of)))
    if state.opening is None:
        raise NothingRecorded(stream)
    return state


def stream_of(ledger: Ledger, tournament: str | None) -> StreamId:
    """Return the tournament that is named, or the only one."""
    streams = ledger.streams()
    if tournament is None and len(streams) == 1:
        return streams[0]
    if tournament is None and streams:
        several = ", ".join(streams)
        raise ConfigurationError([f"{ledger.path} holds {several}; choose one by --tournament"])
    if tournament not in streams:
        raise NothingRecorded(tournament or str(ledger.path))
    return StreamId(tournament)


def position_of(ledger: Ledger, as_of: str | None) -> int | None:
    """Resolve --as-of to a position."""
    if as_of is None:
        return None
    if as_of.isdecimal():
        return int(as_of)
    try:
        moment = datetime.fromisoformat(as_of)
    except ValueError as error:
        example = "2026-04-27T12:00:00+00:00"
        raise ConfigurationError(
            [f"--as-of {as_of!r} is neither a position nor a time such as {example}"]
        ) from error
    return ledger.position_at(moment if moment.tzinfo else moment.replace(tzinfo=UTC))


def judge_of(state: Tournament, judge: str | None) -> JudgeSettings:
    """Return the judge that is named, or the tournament's first."""
    if judge is None:
        return state.panel[0]
    for each in state.panel:
        if each.judge_id == judge:
            return each
    panel = ", ".join(each.judge_id for each in state.panel)
    raise ConfigurationError([f"--judge {judge!r} is not on the panel: {panel}"])
