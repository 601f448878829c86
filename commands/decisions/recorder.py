"""Decide on commands and append their events, keeping the state in memory between appends.

`Recorder` is for a tournament, `EvaluationRecorder` for its evaluations. What is missing can be
counted here, and a command can be rehearsed without a ledger.
"""

from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Sequence
from typing import Annotated, Final, NamedTuple, TypeAlias

from msgspec import UNSET
from msgspec.structs import replace

from commands.decisions.commands import (
    Command,
    DropBatch,
    EndBatch,
    ReceiveAnswer,
    ReconcilePair,
    RecordFact,
    RecordResponse,
    SettleRequests,
    SubmitBatch,
    TakeLook,
)
from commands.decisions.decide import decide
from ledger.chain import GENESIS
from ledger.errors import StaleVersion
from ledger.events.evaluations import (
    EvaluationCompleted,
    EvaluationPlanned,
    SampleScore,
    TaskResults,
)
from ledger.events.registration import JudgeSettings
from ledger.events.registry import Event
from ledger.identity import Digest, Dimension, EntrantId, PromptId, StreamId
from ledger.recorded import Recorded
from ledger.store import Ledger
from projections.evaluations.samples import ASKED_EVENTS, ITEMS, Items, asked_evaluations_of
from projections.evaluations.state import Evaluations, is_same_plan, labels_of
from projections.fold import fold
from projections.results.columns import Column, Shown
from projections.tournament.folding import advance, tournament_of
from projections.tournament.remaining import (
    OpenQuery,
    is_waiting,
    responses_to_come,
)
from projections.tournament.settlement import by_dimension, settle
from projections.tournament.state import PairNames, Tournament

Registrations: TypeAlias = Callable[[Container[Digest]], Iterable[Event]]
"""Returns events that register things, but for those of known digests."""


class EvaluationRecorder:
    """Appends to the evaluations of one tournament."""

    def __init__(self, ledger: Ledger, stream: StreamId) -> None:
        self._ledger = ledger
        self._position = 0  # the last event in the state
        self.state = Evaluations(stream)
        self._items: Items = ITEMS.initial
        self._catch_up()

    def record(self, events: Sequence[Event]) -> None:
        """Append events, all or none."""
        self._ledger.append(self.state.stream, events)
        self._catch_up()

    def plan(self, plan: EvaluationPlanned, registered: Registrations) -> EvaluationPlanned:
        """Record a plan unless it equals the newest one; return it with its number.

        Args:
            plan: The plan.
            registered: Returns the registrations of what it refers to, but for what is known.
        """
        last = self.state.plans.get(labels_of(plan))
        if last is not None and is_same_plan(plan, last):
            return last
        numbered = replace(plan, number=last.number + 1 if last else 1)
        digests = {*self._items, *self.state.entrants}
        self.record([*registered(digests), numbered])
        return numbered

    def is_due(self, plan: EvaluationPlanned) -> bool:
        """Return whether a numbered plan is complete, and this is not recorded yet."""
        return not self.state.run(plan).missing and not self.state.is_completed(plan)

    def complete(
        self,
        plan: EvaluationPlanned,
        scores: Sequence[SampleScore] = (),
        results: TaskResults | None = None,
    ) -> None:
        """Record that a numbered plan is complete, with the scores that changed since.

        Args:
            plan: The plan.
            scores: Those that are not as recorded with the observation.
            results: What lm-evaluation-harness makes of a task of its own.
        """
        run = self.state.run(plan)
        completed = EvaluationCompleted(
            entrant=EntrantId(plan.entrant.label),
            evaluation=plan.evaluation,
            number=plan.number,
            n_observed=len(run.observed),
            n_unscorable=len(run.unscorable),
            scores=tuple(scores),
            results=results or UNSET,
        )
        self.record([completed])

    def _catch_up(self) -> None:
        until = self._ledger.head.position
        news = self._ledger.read(after=self._position, until=until, types=ASKED_EVENTS)
        known = self.state, self._items
        self.state, self._items = fold(asked_evaluations_of(self.state.stream), news, known)
        self._position = until


class MissingResponses(NamedTuple):
    """The responses that one entrant lacks."""

    entrant: Shown[EntrantId]
    n_responses: Shown[int]
    n_tokens_at_most: Shown[int]


class MissingVerdicts(NamedTuple):
    """The pairs of one dimension without an outcome, and the queries that are open for them."""

    dimension: Shown[Dimension]
    n_pairs: Shown[int]
    n_queries: Annotated[int, Column(meaning="that can be sent now")]
    n_waiting: Annotated[int, Column("Waiting pairs", meaning="that lack a response")]


def rehearse(state: Tournament, *commands: Command) -> Tournament:
    """Return the state after commands, without writing to a ledger.

    Each is decided without the others' events, as by `Recorder.record`.
    """
    events = [event for command in commands for event in decide(command, state)]
    first = state.version + 1
    return advance(
        state,
        (
            Recorded(n, state.stream, version=n, recorded_us=0, link=GENESIS, event=event)
            for n, event in enumerate(events, start=first)
        ),
    )


def count_missing_responses(
    state: Tournament, prompts: Collection[PromptId]
) -> tuple[MissingResponses, ...]:
    """Count the missing responses of each entrant of the roster."""
    missing = Counter(cell.entrant.entrant_id for cell in responses_to_come(state, prompts))
    return tuple(
        MissingResponses(
            entrant.entrant_id,
            missing[entrant.entrant_id],
            0
            if entrant.loader == "recorded"
            else missing[entrant.entrant_id] * entrant.max_new_tokens,
        )
        for entrant in state.roster
    )


def count_missing_verdicts(
    state: Tournament,
    prompts: Collection[PromptId],
    judge: JudgeSettings,
    queries: Sequence[OpenQuery],
) -> tuple[MissingVerdicts, ...]:
    """Count each dimension's open queries, and its pairs that wait for responses."""
    n_queries = Counter(open_query.subject for query in queries for open_query in query.every)
    return tuple(
        MissingVerdicts(
            dimension,
            n_pairs=len(group),
            n_queries=n_queries[dimension],
            n_waiting=sum(map(is_waiting, group)),
        )
        for dimension, group in by_dimension(state, settle(state, prompts, judge)).items()
    )


def count_repeats(state: Tournament, queries: Sequence[OpenQuery]) -> tuple[MissingVerdicts, ...]:
    """Count on each dimension the repeats that are open, and the pairs that they are about."""
    names: dict[Dimension, list[PairNames]] = {rubric.dimension: [] for rubric in state.dimensions}
    for open_query in (each for query in queries for each in query.every):
        names[open_query.subject].append(open_query.match.pairing.names)
    return tuple(
        MissingVerdicts(dimension, n_pairs=len({*pairs}), n_queries=len(pairs), n_waiting=0)
        for dimension, pairs in names.items()
    )


# Commands that another process's events do not invalidate.
_STILL_VALID: Final = (
    # these have happened
    *(RecordResponse, ReceiveAnswer, SettleRequests, SubmitBatch, DropBatch, EndBatch),
    *(ReconcilePair, RecordFact),  # more answers do not change it
    TakeLook,  # by what is there then
)


class Recorder:
    """Decides on commands to one tournament and appends their events."""

    def __init__(self, ledger: Ledger, stream: StreamId) -> None:
        self.ledger = ledger
        self._position = 0  # the last event in the state
        self.state: Tournament = Tournament(stream)
        self._deferred: tuple[Command, ...] = ()
        self.catch_up()

    def defer(self, *commands: Command) -> None:
        """Let commands be recorded together with the next ones, all or none."""
        self._deferred += commands

    def record(self, *commands: Command) -> int:
        """Decide on commands by the state in memory, and append their events, all or none.

        Deferred commands come first; without any other these are recorded alone.

        Returns:
            How many events were appended. No two commands may be about the same thing: each is
            decided on without the others' events.

        Raises:
            StaleVersion: Another process appended to the tournament, a merge for example, so the
                commands may no longer apply. The state is up to date now: plan again.
        """
        due = (*self._deferred, *commands)
        events = [event for command in due for event in decide(command, self.state)]
        if not events:
            return 0
        try:
            self.ledger.append(self.state.stream, events, expected_version=self.state.version)
        except StaleVersion:
            self.catch_up()
            if all(isinstance(each, _STILL_VALID) for each in due):
                return self.record(*commands)
            raise
        self._deferred = ()
        self.catch_up()
        return len(events)

    def as_of(self, position: int) -> Tournament:
        """Return the state as of an earlier position."""
        return fold(tournament_of(self.state.stream), self.ledger.read(until=position))

    def evaluations(self, position: int | None = None) -> tuple[Evaluations, Items]:
        """Return its evaluations and what they asked, as of now or of an earlier position."""
        events = self.ledger.read(until=position, types=ASKED_EVENTS)
        return fold(asked_evaluations_of(self.state.stream), events)

    def catch_up(self) -> None:
        """Read what was appended since, by this process or another, to any tournament."""
        until = self.ledger.head.position
        news = self.ledger.read(after=self._position, until=until)
        self.state, self._position = advance(self.state, news), until
