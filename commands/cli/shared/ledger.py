"""From options to what is read: which ledger, which tournament, as of when, whose verdicts."""

import os
from dataclasses import replace
from datetime import UTC, date, datetime
from functools import cache
from pathlib import Path

import msgspec

from commands.cli.shared.options import DEFAULT_CONFIG
from commands.errors import ConfigurationError, NothingRecorded
from commands.settings.lookup import Kept, where_kept
from commands.settings.toml import variable
from ledger.chain import Head
from ledger.errors import TourneyError
from ledger.events.imports import set_of
from ledger.events.registration import JudgeSettings
from ledger.identity import JudgeId, StreamId
from ledger.store import Ledger
from projections.fold import fold
from projections.tournament.state import Tournament, tournament_of

DEFAULT_LEDGER = Path("tournament.db")


@cache
def kept(config: Path) -> Kept | None:
    """Return where the tournament is kept; None where no settings are there or asked for."""
    if config == DEFAULT_CONFIG and not config.exists():
        return None
    return where_kept(config, os.environ)


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
    state = fold(tournament_of(stream), ledger.read(until=until))
    if state.opening is None:
        raise _not_there(ledger, stream, as_of, until)
    return state


def _not_there(
    ledger: Ledger, stream: StreamId, as_of: str | None, until: int | None
) -> TourneyError:
    """Return why there is nothing to read: too early a position, or none at all."""
    begun = next(iter(ledger.read(stream=stream, types={"TournamentOpened"})), None)
    if begun is None:
        return NothingRecorded(stream, ledger.path)
    when = "" if as_of == str(until) else f" ({as_of})"
    nothing = f"nothing of tournament {stream!r} was recorded up to position {until}{when}"
    begins = f"it begins at position {begun.position}, {begun.recorded_at.isoformat()}"
    return ConfigurationError([f"{ledger.path}: {nothing}; {begins}: name a later one"])


def stream_of(ledger: Ledger, tournament: str | None, config: Path) -> StreamId:
    """Return the tournament that is named, that the settings are of, or the only one.

    Raises:
        ConfigurationError: There are several, and none is named.
        NothingRecorded: The one that is named is not there.
    """
    streams = [stream for stream in ledger.streams() if set_of(stream) is None]
    found = kept(config)
    name = tournament or (found.id if found else None)
    if name is None and len(streams) > 1:
        several = ", ".join(streams)
        raise ConfigurationError([f"{ledger.path} holds {several}; choose one by --tournament"])
    if name is None and streams:
        return streams[0]
    if name not in streams:
        raise NothingRecorded(name or "in it", ledger.path)
    return StreamId(name)


def position_of(ledger: Ledger, as_of: str | None) -> int | None:
    """Resolve --as-of to a position."""
    return None if as_of is None else position_at(ledger, as_of, option="--as-of")


def position_at(ledger: Ledger, when: str, *, option: str) -> int:
    """Resolve what an option says, a position or a time, to a position.

    Raises:
        ConfigurationError: It is neither, or a day whose dashes were left out.
    """
    if when.isdecimal():
        last = ledger.head.position
        if int(when) > last and (day := _day_of(when)):
            raise ConfigurationError(
                [f"{option} {when} is read as a position, and the last is {last}; write {day}"]
            )
        return min(int(when), last)
    try:
        moment = datetime.fromisoformat(when)
    except ValueError as error:
        example = "2026-04-27T12:00:00+00:00"
        raise ConfigurationError(
            [f"{option} {when!r} is neither a position nor a time such as {example}"]
        ) from error
    return ledger.position_at(moment if moment.tzinfo else moment.replace(tzinfo=UTC))


def _day_of(digits: str) -> date | None:
    try:
        return date.fromisoformat(digits)
    except ValueError:
        return None


def head_at(ledger: Ledger, as_of: str | None) -> Head:
    """Return the head as it was at --as-of, or as it is."""
    position = position_of(ledger, as_of)
    chain = None if position is None else ledger.chain_at(position)
    return ledger.head if position is None or chain is None else Head(position, chain)


def judge_of(state: Tournament, judge: str | None) -> JudgeSettings:
    """Return the judge that is named, or the first of the panel that has outcomes on record."""
    if not state.panel:
        raise ConfigurationError(
            [f"no judge of {state.stream!r} was registered yet at that position"]
        )
    if judge is None:
        heard = {outcome.judge for outcome in state.outcomes}
        return next((each for each in state.panel if each.judge_id in heard), state.panel[0])
    named = {each.judge_id: each for each in state.panel}.get(JudgeId(judge))
    earlier = [each for each in state.judges.values() if each.judge_id == judge]
    if named is None and len(earlier) == 1:  # not on the panel any more, and yet on record
        return earlier[0]
    if named is None:
        known = ", ".join(sorted({each.judge_id for each in state.judges.values()}))
        raise ConfigurationError([f"--judge {judge!r} is none of {known}, or stands for several"])
    return named


def on_dimension(state: Tournament, dimension: str | None) -> Tournament:
    """Return the tournament as if it were on one dimension only."""
    if dimension is None or state.opening is None:
        return state
    rubrics = tuple(each for each in state.opening.rubrics if each.label == dimension)
    if not rubrics:
        known = ", ".join(each.label for each in state.opening.rubrics)
        raise ConfigurationError([f"--dimension {dimension!r} is none of: {known}"])
    return replace(state, opening=msgspec.structs.replace(state.opening, rubrics=rubrics))
