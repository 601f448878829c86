"""Everything that a report shows, and how it is read from a ledger.

Outcomes are read as ratings read them, and of judges' replies only those of the battles that are
shown. Of what other tournaments' judges said, only the verdicts on this one's queries are read,
which are looked up by their keys.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Final, NamedTuple, TypeAlias

from immutables import Map

from commands.reading.judged_tournament import JudgedTournament
from commands.reading.results import results_now
from ledger.chain import Head
from ledger.events.judging import (
    JudgeQueryFailed,
    JudgeQuerySubmitted,
    ScoreQuerySubmitted,
    ScoreReceived,
    Verdict,
    VerdictReceived,
)
from ledger.events.registration import JudgeRegistered
from ledger.events.requests import RequestsSettled, RequestsSubmitted
from ledger.events.values import type_name
from ledger.identity import Digest, Dimension, StreamId, key_named
from ledger.store import Ledger
from projections.artifacts.results import Results
from projections.battles.columns import Battles
from projections.evaluations.metrics import RunMetrics, metrics_of
from projections.evaluations.samples import ASKED_EVENTS, Items, asked_evaluations_of
from projections.fold import fold
from projections.ratings.bradley_terry.leaderboard import Leaderboard
from projections.ratings.standings import Standings
from projections.tournament.folding import tournament_of
from projections.tournament.matches import known_matches
from projections.tournament.settlement import Settlement
from projections.tournament.spend import Spend, SpendDraft, spend_of
from projections.tournament.state import Tournament
from projections.verdicts.queries import RecordedVerdict, Said

Replies: TypeAlias = Callable[[Collection[Digest]], Map[Digest, RecordedVerdict]]
"""Returns what was replied to some queries."""


class RatedDimension(NamedTuple):
    """One dimension: its pairs, and its ratings by both engines."""

    name: Dimension
    comparisons: Battles
    board: Leaderboard
    standings: Standings  # by Elo


@dataclass(frozen=True)
class Subject:
    """Everything that a report shows."""

    results: Results
    spend: Spend
    evaluations: tuple[RunMetrics, ...]
    items: Items  # of the evaluations
    is_run: bool  # of a published run; else of the tournament as it stands
    said: Said | None = None  # verdicts, if the tournament was read without; None: it has them
    replies: Replies | None = None  # likewise, those with the judge's words

    @property
    def head(self) -> Head:
        """The head of the ledger up to which it was read."""
        return Head(self.results.publication.as_of, self.results.publication.head)

    @property
    def dimensions(self) -> tuple[RatedDimension, ...]:
        """The dimensions in the tournament's order."""
        results = self.results
        boards = {board.name: board for board in results.boards}
        return tuple(
            RatedDimension(name, results.comparisons[name], boards[name], results.standings[name])
            for name in results.settlements
        )

    def with_replies(self, battles: Sequence[Settlement]) -> Tournament:
        """Return the tournament with what judges replied about some battles."""
        state = self.results.tournament
        if self.replies is None:
            return state
        queries = [key for battle in battles if battle.match for _, key in battle.match.keys]
        return replace(state, verdicts=self.replies(queries))


def subject_of(
    ledger: Ledger, results: Results, *, is_run: bool, spend: Spend | None = None
) -> Subject:
    """Read from a ledger what a report shows beside the results, up to the same position.

    What was spent may be known already.
    """
    stream, until = results.tournament.stream, results.publication.as_of
    spend = spend or fold(spend_of(stream), ledger.read(until=until))
    known, items = fold(asked_evaluations_of(stream), ledger.read(until=until, types=ASKED_EVENTS))
    return Subject(results, spend, tuple(map(metrics_of, known.runs)), items, is_run)


def subject_now(ledger: Ledger, source: JudgedTournament, head: Head) -> Subject:
    """Return what a report shows of a tournament that was read with outcomes only.

    Args:
        ledger: Which holds it.
        source: The tournament.
        head: Up to which it was read.

    Raises:
        LedgerError: The ledger cannot be read.
        ConfigurationError: A recorded setting is out of range.
        CannotRate: The ratings cannot be computed.
    """
    until, stream = head.position, source.state.stream
    if source.state.redactions.responses:  # outcomes are found by the queries that were sent
        whole = fold(tournament_of(stream), ledger.read(until=until))
        source = replace(source, state=replace(whole, opening=source.state.opening))
        return subject_of(ledger, results_now(source, head), is_run=False)
    verdicts, spend = _verdicts_and_spend(ledger, stream, until)
    subject = subject_of(ledger, results_now(source, head), is_run=False, spend=spend)
    others = [other for other in ledger.streams(types={_VERDICT}) if other != stream]
    missing = _queries(source).difference(verdicts) if others else frozenset()
    replies = partial(_replies, ledger, stream, others, until)
    elsewhere = {key: reply.event.verdict for key, reply in replies(missing).items()}
    return replace(subject, said={**elsewhere, **verdicts}.get, replies=replies)


_VERDICT: Final = type_name(VerdictReceived)
_BILLED: Final = frozenset(
    type_name(kind)
    for kind in (
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


def _verdicts_and_spend(
    ledger: Ledger, stream: StreamId, until: int
) -> tuple[Mapping[Digest, Verdict], Spend]:
    """Return a tournament's first verdict on each query, and what was spent, in one reading."""
    verdicts: dict[Digest, Verdict] = {}
    draft = SpendDraft(Spend(stream))
    for recorded in ledger.read(stream=stream, types=_BILLED, until=until):
        if isinstance(event := recorded.event, VerdictReceived):
            verdicts.setdefault(event.query_key, event.verdict)
        draft.add(recorded.recorded_us, event)
    return verdicts, draft.finish()


def _replies(
    ledger: Ledger,
    own: StreamId,
    others: Sequence[StreamId],
    until: int,
    queries: Collection[Digest],
) -> Map[Digest, RecordedVerdict]:
    """Return the verdicts on queries, with their replies: a tournament's own, else the first."""
    keys = (key_named(stream, _VERDICT, [key]) for stream in (own, *others) for key in queries)
    replies: dict[Digest, RecordedVerdict] = {}
    for recorded in sorted(ledger.find(keys, until=until), key=lambda it: it.stream != own):
        if isinstance(event := recorded.event, VerdictReceived):
            replies.setdefault(event.query_key, RecordedVerdict(event, recorded.recorded_us))
    return Map(replies)


def _queries(source: JudgedTournament) -> frozenset[Digest]:
    """Return the keys of all queries to the panel, and to the judge that was chosen."""
    state = source.state
    prompts = frozenset(prompt.prompt_id for prompt in state.bank)
    judges = dict.fromkeys((source.judge, *state.panel))
    asked = chain.from_iterable(known_matches(state, prompts, judge) for judge in judges)
    return frozenset(key for _, match in asked if match for _, key in match.keys)
