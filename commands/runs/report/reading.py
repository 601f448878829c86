"""Read of a ledger what a report shows beside the outcomes: what judges said, and what was spent.

Outcomes are read as ratings read them. Of what other tournaments' judges said, only the verdicts
on this one's queries are read, which are looked up by their keys.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain
from typing import Final

from commands.runs.judged_tournament import JudgedTournament
from ledger.events.judging import (
    JudgeQueryFailed,
    JudgeQuerySubmitted,
    ScoreQuerySubmitted,
    ScoreReceived,
    VerdictReceived,
)
from ledger.events.registration import JudgeRegistered
from ledger.events.requests import RequestsSettled, RequestsSubmitted
from ledger.events.values import type_name
from ledger.identity import Digest
from ledger.recorded import Recorded
from ledger.storage.tail import key_named
from ledger.store import Ledger
from projections.fold import both, fold
from projections.tournament.folding import tournament_of
from projections.tournament.matches import known_matches
from projections.tournament.spend import Spend, spend_of
from projections.verdicts.queries import RecordedVerdict

_VERDICT: Final = type_name(VerdictReceived)
_BILLED: Final = frozenset(
    type_name(each)
    for each in (
        JudgeRegistered,
        JudgeQuerySubmitted,
        ScoreQuerySubmitted,
        VerdictReceived,
        ScoreReceived,
        JudgeQueryFailed,
        RequestsSubmitted,
        RequestsSettled,
    )
)


def with_verdicts(
    ledger: Ledger, source: JudgedTournament, until: int
) -> tuple[JudgedTournament, Spend]:
    """Add the verdicts to a tournament that was read with outcomes only, and return its spend.

    Raises:
        UnreadableEvent: An event's type, version, shape or time is unknown.
        CannotRead: The file is damaged.
    """
    stream, before = source.state.stream, source.state
    if before.redactions.responses:  # whose outcomes are found by the queries that were sent
        events = ledger.read(until=until)
        whole, spend = fold(both(tournament_of(stream), spend_of(stream)), events)
        return replace(source, state=replace(whole, opening=before.opening)), spend
    said: list[Recorded] = []
    events = ledger.read(stream=stream, types=_BILLED, until=until)
    spend = fold(spend_of(stream), _noting(events, said))
    given = _by_query(said)
    given = {**_by_query(_said_elsewhere(ledger, source, given, until)), **given}
    state = replace(before, verdicts=before.verdicts.update(given))
    return replace(source, state=state), spend


def _noting(events: Iterable[Recorded], said: list[Recorded]) -> Iterator[Recorded]:
    """Pass events on, and keep those that are verdicts."""
    for each in events:
        if type(each.event) is VerdictReceived:
            said.append(each)
        yield each


def _by_query(said: Iterable[Recorded]) -> dict[Digest, RecordedVerdict]:
    """Return the first verdict on each query."""
    found: dict[Digest, RecordedVerdict] = {}
    for recorded in said:
        if isinstance(event := recorded.event, VerdictReceived):
            found.setdefault(event.query_key, RecordedVerdict(event, recorded.recorded_us))
    return found


def _said_elsewhere(
    ledger: Ledger, source: JudgedTournament, given: dict[Digest, RecordedVerdict], until: int
) -> Iterable[Recorded]:
    """Return what other tournaments recorded of this one's queries that it has no verdict on."""
    others = [each for each in ledger.streams(types={_VERDICT}) if each != source.state.stream]
    missing = _queries(source).difference(given) if others else ()
    keys = (key_named(each, _VERDICT, [key]) for each in others for key in missing)
    return ledger.find(keys, until=until)


def _queries(source: JudgedTournament) -> frozenset[Digest]:
    """Return the keys of all queries to the panel, and to the judge that was chosen."""
    state = source.state
    prompts = frozenset(prompt.prompt_id for prompt in state.bank)
    judges = dict.fromkeys((source.judge, *state.panel))
    asked = chain.from_iterable(known_matches(state, prompts, judge) for judge in judges)
    return frozenset(key for _, match in asked if match for _, key in match.keys)
