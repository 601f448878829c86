"""The state of one tournament, from which decisions and all other views start.

Responses and verdicts come from the whole ledger, since their keys identify them by content: a
tournament reuses those of another in the same ledger. Everything else is from its own stream.
"""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias, TypeVar, assert_never

from immutables import Map, MapMutation

from ledger.events import judging, redaction
from ledger.events.evaluations import EvaluationFact
from ledger.events.imports import BattlesImported, LedgerMerged, RatingsImported
from ledger.events.money import cost_usd
from ledger.events.ratings import RatingsPublished
from ledger.events.registration import (
    Entrant,
    EntrantRegistered,
    JudgeRegistered,
    JudgeSettings,
    Prompt,
    PromptRegistered,
    Reference,
    Registration,
    Rubric,
    RubricRegistered,
    TournamentOpened,
)
from ledger.events.requests import RequestsSettled, RequestsSubmitted
from ledger.events.responses import ResponseFailed, ResponseGenerated
from ledger.events.values import Value
from ledger.identity import Digest, JudgeId, StreamId
from ledger.recorded import Recorded
from projections.fold import Projection
from projections.redactions import NONE_REDACTED, Redactions
from projections.tournament.batches import Batch, evolve_batch
from projections.tournament.requests import NO_REQUESTS, EntrantRequests, evolve_requests
from projections.verdicts.queries import RecordedVerdict

Thing = TypeVar("Thing", bound=Value)
Work: TypeAlias = (
    ResponseFailed
    | judging.JudgeQuerySubmitted
    | judging.JudgeQueryFailed
    | judging.JudgeQueryReopened
    | judging.PairReconciled
)


@dataclass(frozen=True)
class Tournament:
    """Everything recorded that a tournament can use; registrations by label and digest."""

    stream: StreamId
    version: int = 0
    newest: Recorded | None = None  # the last event that could change a rating
    opening: TournamentOpened | None = None
    replaced_openings: tuple[TournamentOpened, ...] = ()  # the oldest first
    prompts: Map[Reference, Prompt] = Map()
    rubrics: Map[Reference, Rubric] = Map()
    entrants: Map[Reference, Entrant] = Map()
    judges: Map[Reference, JudgeSettings] = Map()
    responses: Map[Digest, ResponseGenerated] = Map()
    response_failures: Map[Digest, ResponseFailed] = Map()
    attempts: Map[Digest, int] = Map()  # submissions by query key
    verdicts: Map[Digest, RecordedVerdict] = Map()
    query_failures: Map[Digest, judging.JudgeQueryFailed] = Map()  # the newest by query key
    useless_replies: Map[Digest, int] = Map()  # replies without a verdict, by query key
    reopened: Map[Digest, int] = Map()  # the failed attempt after which a query is asked again
    batches: Map[Digest, Batch] = Map()  # of every tournament: what is in flight is asked
    spent_usd: float = 0.0  # by this tournament, for judges' replies whose price is known
    lost_usd: float = 0.0  # likewise, at worst: for requests of unknown fate or unknown tokens
    under_way: Map[Digest, judging.JudgeQuerySubmitted] = Map()  # sent alone, and not answered yet
    requests: EntrantRequests = NO_REQUESTS  # to its endpoint entrants
    outcomes: Map[judging.PairKey, judging.Outcome] = Map()
    publications: tuple[RatingsPublished, ...] = ()
    redactions: Redactions = NONE_REDACTED

    @cached_property
    def own_batches(self) -> tuple[Batch, ...]:
        """The tournament's own batches, in order; the ledger may hold others'."""
        own = (batch for batch in self.batches.values() if batch.stream == self.stream)
        return tuple(sorted(own, key=lambda batch: batch.planned.number))

    @property
    def open_batches(self) -> tuple[Batch, ...]:
        """Its own batches that are or may be with a provider."""
        return tuple(batch for batch in self.own_batches if batch.is_open)

    @cached_property
    def in_flight(self) -> frozenset[Digest]:
        """The queries in open batches of any tournament."""
        open_batches = (batch for batch in self.batches.values() if batch.is_open)
        return frozenset(key for batch in open_batches for key in batch.planned.queries)

    @cached_property
    def roster(self) -> tuple[Entrant, ...]:
        """The entrants of the newest opening, in its order."""
        return _resolved(self.opening.entrants if self.opening else (), self.entrants)

    @cached_property
    def bank(self) -> tuple[Prompt, ...]:
        """The prompts of the newest opening, in its order."""
        return _resolved(self.opening.prompts if self.opening else (), self.prompts)

    @cached_property
    def dimensions(self) -> tuple[Rubric, ...]:
        """The rubrics of the newest opening, in its order."""
        return _resolved(self.opening.rubrics if self.opening else (), self.rubrics)

    @cached_property
    def panel(self) -> tuple[JudgeSettings, ...]:
        """The judges of the newest opening, in its order."""
        return _resolved(self.opening.judges if self.opening else (), self.judges)

    @cached_property
    def computed(self) -> dict[Hashable, object]:
        """What projections computed of it and need again, by name: a state never changes."""
        return {}

    def was_asked(self, query_key: Digest) -> bool:
        """Say whether a query was sent by this tournament, or is answered or in flight anywhere."""
        return any(query_key in keys for keys in (self.attempts, self.in_flight, self.verdicts))

    def judge(self, judge_id: JudgeId) -> JudgeSettings:
        """Return a judge of the panel.

        Raises:
            KeyError: Nobody of that name is on it.
        """
        return {judge.judge_id: judge for judge in self.panel}[judge_id]


def tournament_of(stream: StreamId) -> Projection[Tournament]:
    """Return the projection to one tournament of a ledger."""
    return Projection(initial=Tournament(stream), advance=advance)


def evolve(state: Tournament, recorded: Recorded) -> Tournament:
    """Return the state after one more event."""
    return advance(state, (recorded,))


def advance(state: Tournament, events: Iterable[Recorded]) -> Tournament:
    """Return the state after more events, in order."""
    draft = _StateBuilder(state)
    for recorded in events:
        draft.note_redaction(recorded)
        draft.add(recorded)
    return draft.finish()


class _StateBuilder:
    """A state while events are added to it; changed in place."""

    def __init__(self, state: Tournament) -> None:
        self._state = state
        self._maps: dict[str, MapMutation[Any, Any]] = {}
        self._fields: dict[str, Any] = {}
        self._publications = list(state.publications)
        self._redactions = state.redactions

    def finish(self) -> Tournament:
        """Return the frozen state."""
        maps: dict[str, Any] = {name: each.finish() for name, each in self._maps.items()}
        self._fields["redactions"] = self._redactions
        publications = tuple(self._publications)
        return replace(self._state, **self._fields, **maps, publications=publications)

    def note_redaction(self, recorded: Recorded) -> None:
        """Take note of what was redacted, and of what is on record about redacted responses."""
        if recorded.redacted or self._redactions.responses:
            self._redactions = self._redactions.after(recorded)

    def add(self, recorded: Recorded) -> None:
        """Add an event; another tournament's only if this one can use it."""
        event = recorded.event
        is_own = recorded.stream == self._state.stream
        if is_own:
            self._fields["version"] = recorded.version
        match event:
            case ResponseGenerated(response_key=key):
                self._put("responses", key, event, is_own=is_own)
            case judging.VerdictReceived(query_key=key):
                self._put(
                    "verdicts", key, RecordedVerdict(event, recorded.recorded_us), is_own=is_own
                )
                if is_own:
                    self._settle(event)
            case judging.JudgeQueryFailed(query_key=key) if (
                not is_own and event.reason in judging.FINAL
            ):
                self._put("query_failures", key, event, is_own=False)
            case judging.BatchFact():
                self._add_batch(event, recorded)
                return
            case RequestsSubmitted() | RequestsSettled() | RatingsPublished():
                self._add_beside(event, is_own=is_own)
                return
            case LedgerMerged() | BattlesImported() | RatingsImported() | EvaluationFact():
                return
            case _ if is_own and not isinstance(event, redaction.EventRedacted):
                self._add_own(event)
            case _:
                return
        self._fields["newest"] = recorded

    def _add_beside(
        self, event: RequestsSubmitted | RequestsSettled | RatingsPublished, *, is_own: bool
    ) -> None:
        """Add an event that changes no rating, if it is the tournament's own."""
        if not is_own:
            return
        if isinstance(event, RatingsPublished):
            self._publications.append(event)
        else:
            before = self._fields.get("requests", self._state.requests)
            self._fields["requests"] = evolve_requests(before, event)

    def _put(self, name: str, key: Digest, known: object, *, is_own: bool) -> None:
        """Keep the tournament's own result, else the first: merges change neither."""
        answers = self._map(name)
        if is_own or key not in answers:
            answers[key] = known

    def _add_own(self, event: TournamentOpened | Registration | Work) -> None:
        match event:
            case judging.JudgeQuerySubmitted(query_key=key, attempt=attempt):
                self._map("attempts")[key] = attempt
                if event.batch_key is None and event.worst_usd != 0.0:
                    self._map("under_way")[key] = event
            case judging.PairReconciled(natural_key=key, outcome=outcome):
                self._map("outcomes")[key] = outcome
            case judging.JudgeQueryFailed(query_key=key):
                self._map("query_failures")[key] = event
                if event.reason in judging.PAID:
                    useless = self._map("useless_replies")
                    useless[key] = useless.get(key, 0) + 1
                self._settle(event)
            case judging.JudgeQueryReopened(query_key=key, attempt=attempt):
                self._map("reopened")[key] = attempt
                self._map("useless_replies")[key] = 0
            case ResponseFailed(response_key=key):
                self._map("response_failures")[key] = event
            case TournamentOpened():
                self._open(event)
            case _:
                self._add_registration(event)

    def _open(self, event: TournamentOpened) -> None:
        last = self._fields.get("opening", self._state.opening)
        if last is not None:
            before = self._fields.get("replaced_openings", self._state.replaced_openings)
            self._fields["replaced_openings"] = (*before, last)
        self._fields["opening"] = event

    def _add_registration(self, event: Registration) -> None:
        match event:
            case PromptRegistered(reference=reference, prompt=prompt):
                self._map("prompts")[reference] = prompt
            case RubricRegistered(reference=reference, rubric=rubric):
                self._map("rubrics")[reference] = rubric
            case EntrantRegistered(reference=reference, entrant=entrant):
                self._map("entrants")[reference] = entrant
            case JudgeRegistered(reference=reference, judge=judge):
                self._map("judges")[reference] = judge
            case _:
                assert_never(event)

    def _add_batch(self, event: judging.BatchFact, recorded: Recorded) -> None:
        batches, key = self._map("batches"), event.batch_key
        batch = evolve_batch(batches.get(key), recorded)
        if batch is not None:  # its plan is on this ledger: it is known what it asks
            batches[key] = batch

    def _settle(self, event: judging.VerdictReceived | judging.JudgeQueryFailed) -> None:
        """Count what an answer cost, or else what the request cost at worst."""
        self._map("under_way").pop(event.query_key, None)
        if event.usage is not None and event.price is not None:
            self._add_usd("spent_usd", cost_usd(event.usage, event.price))
        else:
            self._add_usd("lost_usd", event.worst_usd or 0.0)

    def _add_usd(self, name: str, usd: float) -> None:
        self._fields[name] = self._fields.get(name, getattr(self._state, name)) + usd

    def _map(self, name: str) -> MapMutation[Any, Any]:
        if name not in self._maps:
            self._maps[name] = getattr(self._state, name).mutate()
        return self._maps[name]


def _resolved(references: tuple[Reference, ...], known: Map[Reference, Thing]) -> tuple[Thing, ...]:
    """Return the registered things; those not registered yet are left out."""
    return tuple(known[reference] for reference in references if reference in known)
