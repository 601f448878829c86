"""Resolve what options name: tournament, position (--as-of), judge, dimension, policy, parser."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from difflib import get_close_matches

import msgspec

from commands.errors import ConfigurationError, NothingRecorded, Spelling, as_option, shortened
from ledger.errors import TourneyError
from ledger.events.imports import set_of
from ledger.events.registration import JudgeSettings
from ledger.identity import StreamId
from ledger.store import Ledger
from projections.fold import fold
from projections.tournament.folding import tournament_of
from projections.tournament.state import Tournament
from projections.verdicts.parsers import PARSERS, newest_parser
from projections.verdicts.policies import MAJORITY, POLICY_NAMES, Rule


def stream_named(ledger: Ledger, name: str | None, spelling: Spelling = as_option) -> StreamId:
    """Return the tournament with a name, or the only one of the ledger.

    Raises:
        ConfigurationError: There are several, and no name.
        NothingRecorded: There is no such tournament, or none at all.
        CannotRead: The file is damaged, and may hide it or some of its events.
    """
    ledger.require_whole()
    streams = [stream for stream in ledger.streams() if set_of(stream) is None]
    if name is None and len(streams) > 1:
        several = ", ".join(streams)
        raise ConfigurationError(
            [f"{ledger.path} holds {several}; choose one with {spelling('tournament')}"]
        )
    if name is None and streams:
        return streams[0]
    if name not in streams:
        ledger.require_sound_pages()
        sets = map(set_of, ledger.streams(types={"BattlesImported"}))
        raise NothingRecorded(name, ledger.path, streams, [*filter(None, sets)])
    return StreamId(name)


def position_at(ledger: Ledger, when: str, *, option: str) -> int:
    """Resolve a position or a time to a position.

    Raises:
        ConfigurationError: It is neither, or a position after the ledger's end.
    """
    if when.isdecimal():
        last = ledger.head.position
        if int(when) > last:
            day = _day_of(when)
            remedy = f"for the day write {day}" if day else "name an earlier position, or a time"
            raise ConfigurationError([f"{option} {when}: the ledger ends at {last}; {remedy}"])
        return int(when)
    try:
        moment = datetime.fromisoformat(when)
    except ValueError as error:
        example = "2026-04-27T12:00:00+00:00"
        raise ConfigurationError(
            [f"{option} {when!r} is neither a position nor a time such as {example}"]
        ) from error
    return ledger.position_at(moment if moment.tzinfo else moment.replace(tzinfo=UTC))


def tournament_at(
    ledger: Ledger, stream: StreamId, until: int | None, as_written: str | None = None
) -> Tournament:
    """Fold a tournament from an open ledger.

    `until` is the last position to read, and `as_written` how the user wrote it; None: to the end.

    Raises:
        ConfigurationError: It was opened after that position.
        NothingRecorded: It was never opened.
    """
    state = fold(tournament_of(stream), ledger.read(until=until))
    if state.opening is None:
        raise _not_there(ledger, stream, until, as_written)
    return state


def judge_of(state: Tournament, judge: str | None, spelling: Spelling = as_option) -> JudgeSettings:
    """Return the judge with a name, or the first of the panel with outcomes on record.

    Raises:
        ConfigurationError: There is no judge yet, no such judge, or several with that name.
    """
    if not state.panel:
        fault = f"no judge of {state.stream!r} was registered at that position: name a later one"
        raise ConfigurationError([fault])
    if judge is None:
        return _first_with_outcomes(state)
    judges = [*state.judges.values()]  # those that are no longer on the panel, too
    with_name = _with_id(state.panel, judge) or _with_id(judges, judge)
    if len(with_name) == 1:
        return with_name[0]
    if with_name:
        why = f"names {len(with_name)} earlier judges, none of them on the panel"
    else:
        ids = ", ".join(sorted({settings.judge_id for settings in judges}))
        why = f"is not a judge; known: {ids}"
    raise ConfigurationError([f"{spelling('judge')} {judge!r} {why}"])


def _first_with_outcomes(state: Tournament) -> JudgeSettings:
    """Return the first of the panel with outcomes on record, or else the first."""
    with_outcomes = {outcome.judge for outcome in state.outcomes}
    return next((judge for judge in state.panel if judge.judge_id in with_outcomes), state.panel[0])


def _with_id(judges: Sequence[JudgeSettings], name: str) -> list[JudgeSettings]:
    return [judge for judge in judges if judge.judge_id == name]


def on_dimension(
    state: Tournament, dimension: str | None, spelling: Spelling = as_option
) -> Tournament:
    """Return the tournament reduced to one dimension; None: all dimensions.

    Raises:
        ConfigurationError: It has no such dimension.
    """
    if dimension is None or state.opening is None:
        return state
    rubrics = tuple(rubric for rubric in state.opening.rubrics if rubric.label == dimension)
    if not rubrics:
        known = ", ".join(rubric.label for rubric in state.opening.rubrics)
        raise ConfigurationError(
            [f"{spelling('dimension')} {dimension!r} is not a dimension; known: {known}"]
        )
    return replace(state, opening=msgspec.structs.replace(state.opening, rubrics=rubrics))


def rule_of(policy: str, parser: str | None, spelling: Spelling = as_option) -> Rule:
    """Return the rule of a policy and a parser; a parser without a version is its newest.

    Raises:
        ConfigurationError: There is no such policy or parser.
    """
    if policy not in POLICY_NAMES:
        raise unknown(spelling("policy"), policy, POLICY_NAMES)
    full_name = None if parser is None else newest_parser(parser)
    if parser is not None and full_name is None:
        known = [*PARSERS, *(name.partition("@")[0] for name in PARSERS)]
        raise unknown(spelling("parser"), parser, known)
    return Rule(policy, full_name)


def require_jury(state: Tournament, judge: str | None, spelling: Spelling = as_option) -> None:
    """Require several judges for the majority policy.

    Raises:
        ConfigurationError: A judge is named, or the panel has only one.
    """
    policy = f"{spelling('policy')} {MAJORITY}"
    if judge is not None:
        raise ConfigurationError(
            [f"{policy} counts the whole panel; leave out {spelling('judge')}"]
        )
    if len(state.panel) == 1:
        fault = f"{policy} needs two judges, and the panel has one; see [[jury]]"
        raise ConfigurationError([fault])


def _not_there(
    ledger: Ledger, stream: StreamId, until: int | None, as_written: str | None
) -> TourneyError:
    """Return the error: too early a position, or no such tournament."""
    begun = next(iter(ledger.read(stream=stream, types={"TournamentOpened"})), None)
    if begun is None:
        ledger.require_sound_pages()
        return NothingRecorded(stream, ledger.path)
    when = "" if as_written in {None, str(until)} else f" ({as_written})"
    nothing = f"nothing of tournament {stream!r} was recorded up to position {until}{when}"
    begins = f"it begins at position {begun.position}, {begun.recorded_at.isoformat()}"
    return ConfigurationError([f"{ledger.path}: {nothing}; {begins}: name a later one"])


def _day_of(digits: str) -> date | None:
    try:
        return date.fromisoformat(digits)
    except ValueError:
        return None


def require_known(named: str, values: Iterable[str], known: Sequence[str]) -> None:
    """Require names that are known.

    Raises:
        ConfigurationError: One of them is not.
    """
    for value in values:
        if value not in known:
            raise unknown(named, value, known)


def unknown(named: str, value: str, known: Sequence[str]) -> ConfigurationError:
    """Return the error of an unknown name, with the nearest ones that are known."""
    close = get_close_matches(value, known, n=2, cutoff=0.5)
    hint = (
        f"did you mean {' or '.join(map(repr, close))}?" if close else f"known: {shortened(known)}"
    )
    return ConfigurationError([f"{named} {value!r} is not known; {hint}"])
