"""Read from a ledger only what settles a tournament's pairings by recorded outcomes.

Most of a ledger is queries, verdicts and their replies, and other tournaments. Ratings need none of
them: an outcome names its queries, and the responses give the queries' keys. As a rule they need no
response, either: an outcome names its pair, too.
"""

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from itertools import chain
from typing import Final

from immutables import Map

from ledger.events import judging
from ledger.events.conversations import n_answers
from ledger.events.imports import LedgerMerged
from ledger.events.redaction import EventRedacted
from ledger.events.registration import Registered, TournamentOpened
from ledger.events.registry import EVENTS
from ledger.events.responses import ResponseFailed, ResponseGenerated
from ledger.events.values import Fact, type_name
from ledger.identity import Digest, StreamId, key_named
from ledger.recorded import Recorded
from ledger.store import Ledger
from projections.fold import fold
from projections.tournament.folding import advance, tournament_of, with_answers
from projections.tournament.matches import keep_matches, planned_responses, queries_on_record
from projections.tournament.settlement import settle, settle_open
from projections.tournament.state import Tournament


def _names(*kinds: type[Fact]) -> frozenset[str]:
    return frozenset(name for name, each in EVENTS.types.items() if issubclass(each, kinds))


_SETTING: Final = _names(TournamentOpened, Registered, judging.LookTaken)
_OUTCOMES: Final = _names(judging.PairReconciled)
_FAILURES: Final = _names(ResponseFailed, judging.JudgeQueryFailed)
_SETTLING: Final = _SETTING | _OUTCOMES | _FAILURES | _names(ResponseGenerated)
_UPSETTING: Final = _names(LedgerMerged, EventRedacted)
_RESULTS: Final = _names(ResponseGenerated, judging.VerdictReceived)  # of use to all tournaments
_FAILED: Final = _names(judging.JudgeQueryFailed)
_VERDICT: Final = type_name(judging.VerdictReceived)
_BATCHES: Final = _names(judging.BatchFact)
_SENT: Final = _names(judging.JudgeQuerySubmitted)
_RATING: Final = _SETTLING | _SENT | _names(judging.JudgeQueryReopened)
"""With results, what a tournament records that can change a rating."""


def tournament_with_outcomes(ledger: Ledger, stream: StreamId, until: int | None) -> Tournament:
    """Return a tournament that settles by recorded outcomes as the one of all events does.

    It has verdicts on the pairs whose orders reached no common outcome, and on queries that failed,
    too; it lacks all others, costs, publications, and its version.

    Raises:
        UnreadableEvent: An event's type, version, shape or time is unknown.
        CannotRead: The file is damaged.
    """
    last = ledger.head.position if until is None else until
    is_upset = _is_upset(ledger)
    # where a response was redacted, its outcomes are found by the queries that were sent
    types = _SETTLING | _SENT if is_upset else _SETTLING - _OUTCOMES
    own = fold(tournament_of(stream), ledger.read(stream=stream, types=types, until=last))
    if not is_upset:
        own = replace(own, outcomes=_outcomes(ledger, stream, last))
    cells = planned_responses(own, [prompt.prompt_id for prompt in own.bank])
    missing = {cell.response_key for cell in cells}.difference(own.responses)
    state = advance(own, _of_all(ledger, own, missing, last))
    state = _with_later_answers(ledger, state, missing, last)
    state = replace(state, newest=_newest(ledger, stream, last))
    if not is_upset:
        state.trust(queries_on_record(state))
    return _with_verdicts(ledger, state, last)


def _with_later_answers(
    ledger: Ledger, state: Tournament, sought: AbstractSet[Digest], last: int
) -> Tournament:
    """Add other tournaments' answers to later questions: the answers before name them."""
    several = [prompt.prompt_id for prompt in state.bank if n_answers(prompt.turns) > 1]
    while missing := {each.response_key for each in planned_responses(state, several)}.difference(
        state.responses, sought
    ):
        sought |= missing
        keys = (
            key_named(stream, "ResponseGenerated", [key])
            for stream in ledger.streams()
            for key in missing
        )
        state = with_answers(state, ledger.find(keys, until=last))
    return state


def _with_verdicts(ledger: Ledger, state: Tournament, last: int) -> Tournament:
    """Add the verdicts on pairs whose orders reached no common outcome: each counts by itself."""
    prompts = frozenset(prompt.prompt_id for prompt in state.bank)
    judging_now = {key.judge for key in state.outcomes}
    panel = [each for each in state.panel if each.judge_id in judging_now] or state.panel
    settled = chain.from_iterable(settle(state, prompts, judge) for judge in panel)
    open_matches = (each.match for each in settled if each.score is None and each.match)
    keys = {key for match in open_matches for _, key in match.keys}
    keys |= {*state.redactions.asked}
    streams = ledger.streams(types={_VERDICT})
    found = ledger.find(
        (key_named(stream, _VERDICT, [key]) for stream in streams for key in keys), until=last
    )
    after = with_answers(state, sorted(found, key=lambda each: each.position))
    keep_matches(state, after)
    after.trust(state.trusted_queries)
    for judge in panel:
        settle_open(state, after, prompts, judge)
    return after


def _outcomes(ledger: Ledger, stream: StreamId, last: int) -> Map[judging.PairKey, judging.Outcome]:
    """Return the outcomes as a fold does; they are most of what settles, and say all themselves."""
    return Map(
        {
            each.event.natural_key: each.event.outcome
            for each in ledger.read(stream=stream, types=_OUTCOMES, until=last)
            if isinstance(each.event, judging.PairReconciled)
        }
    )


def _is_upset(ledger: Ledger) -> bool:
    """Say whether a ledger was merged in, or a text redacted."""
    return any(_read(ledger, ledger.streams(), _UPSETTING, ledger.head.position))


def _of_all(
    ledger: Ledger, own: Tournament, responses: AbstractSet[Digest], last: int
) -> list[Recorded]:
    """Return what any tournament knows of some responses, and of queries in flight or failed."""
    streams = ledger.streams()
    others = [stream for stream in streams if stream != own.stream]
    found = [*_read(ledger, streams, _BATCHES, last), *_read(ledger, others, _FAILED, last)]
    failed = {*own.query_failures, *filter(None, map(_failed_for_good, found))}
    keys = chain(
        (key_named(stream, "ResponseGenerated", [key]) for stream in streams for key in responses),
        (key_named(stream, _VERDICT, [key]) for stream in streams for key in failed),
    )
    return sorted((*found, *ledger.find(keys, until=last)), key=lambda each: each.position)


def _read(
    ledger: Ledger, streams: Sequence[StreamId], types: frozenset[str], last: int
) -> Iterator[Recorded]:
    return ledger.at(ledger.positions(streams, types, 0, last))


def _failed_for_good(recorded: Recorded) -> Digest | None:
    """Return the query that failed, if it would fail for any tournament."""
    match recorded.event:
        case judging.JudgeQueryFailed(query_key=key, reason=reason) if reason in judging.FINAL:
            return key
    return None


def _newest(ledger: Ledger, stream: StreamId, last: int) -> Recorded | None:
    """Return the last event that could change a rating."""
    while found := ledger.newest(last, types=_RESULTS | _FAILED, stream=stream, own_types=_RATING):
        is_failure = type_name(found.event) in _FAILED
        if found.stream == stream or not is_failure or _failed_for_good(found):
            return found
        last = found.position - 1
    return None
