"""Fold a ledger into the state of one tournament."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, TypeAlias, assert_never

from immutables import MapMutation

from ledger.events import judging, redaction
from ledger.events.evaluations import EvaluationFact
from ledger.events.imports import BattlesImported, LedgerMerged, RatingsImported
from ledger.events.money import cost_usd
from ledger.events.ratings import RatingsPublished
from ledger.events.registration import (
    EntrantRegistered,
    JudgeRegistered,
    PromptRegistered,
    Registration,
    RubricRegistered,
    TournamentOpened,
)
from ledger.events.requests import ParameterRefused, RequestsSettled, RequestsSubmitted
from ledger.events.responses import ResponseFailed, ResponseGenerated
from ledger.identity import Digest, StreamId
from ledger.recorded import Recorded
from projections.fold import Projection
from projections.tournament.batches import evolve_batch
from projections.tournament.requests import evolve_requests
from projections.tournament.state import Tournament
from projections.verdicts.queries import RecordedVerdict

Work: TypeAlias = (
    ResponseFailed
    | judging.JudgeQuerySubmitted
    | judging.JudgeQueryFailed
    | judging.JudgeQueryReopened
    | judging.LookTaken
    | judging.PairReconciled
)
Beside: TypeAlias = (
    RequestsSubmitted
    | RequestsSettled
    | ParameterRefused
    | RatingsPublished
    | judging.ScoreQuerySubmitted
    | judging.ScoreReceived
)


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
            case judging.VerdictReceived():
                self._add_verdict(event, recorded.recorded_us, is_own=is_own)
            case judging.JudgeQuerySubmitted() | judging.PairReconciled() if is_own:
                self._add_own(event)  # found out here, since they are most of a ledger
            case judging.JudgeQueryFailed(query_key=key) if (
                not is_own and event.reason in judging.FINAL
            ):
                self._put("query_failures", key, event, is_own=False)
            case judging.BatchFact():
                self._add_batch(event, recorded)
                return
            case (
                RequestsSubmitted()
                | RequestsSettled()
                | ParameterRefused()
                | RatingsPublished()
                | judging.ScoreQuerySubmitted()
                | judging.ScoreReceived()
            ):
                self._add_beside(event, is_own=is_own)
                return
            case LedgerMerged() | BattlesImported() | RatingsImported() | EvaluationFact():
                return
            case _ if is_own and not isinstance(event, redaction.EventRedacted):
                self._add_own(event)
            case _:
                return
        self._fields["newest"] = recorded

    def _add_verdict(
        self, event: judging.VerdictReceived, recorded_us: int, *, is_own: bool
    ) -> None:
        self._put("verdicts", event.query_key, RecordedVerdict(event, recorded_us), is_own=is_own)
        if is_own:
            self._settle(event)

    def _add_beside(self, event: Beside, *, is_own: bool) -> None:
        """Add an event that changes no rating; another tournament's only if this one can use it."""
        match event:
            case judging.ScoreReceived(query_key=key):
                self._put("scores", key, event, is_own=is_own)
                if is_own:
                    self._settle(event)
            case ParameterRefused():
                refused = self._fields.get("refused_parameters", self._state.refused_parameters)
                self._fields["refused_parameters"] = (*refused, event)
            case RatingsPublished() if is_own:
                self._publications.append(event)
            case judging.ScoreQuerySubmitted() if is_own:
                self._map("scales")[event.query_key] = event.scale
                self._add_submitted(event)
            case RequestsSubmitted() | RequestsSettled() if is_own:
                before = self._fields.get("requests", self._state.requests)
                self._fields["requests"] = evolve_requests(before, event)

    def _put(self, name: str, key: Digest, known: object, *, is_own: bool) -> None:
        """Keep the tournament's own result, else the first: merges change neither."""
        answers = self._map(name)
        if is_own or key not in answers:
            answers[key] = known

    def _add_own(self, event: TournamentOpened | Registration | Work) -> None:
        match event:
            case judging.JudgeQuerySubmitted():
                self._add_submitted(event)
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
            case judging.LookTaken():
                looks = self._fields.get("looks", self._state.looks)
                self._fields["looks"] = (*looks, event)
            case ResponseFailed(response_key=key):
                self._map("response_failures")[key] = event
            case TournamentOpened():
                self._open(event)
            case _:
                self._add_registration(event)

    def _add_submitted(self, event: judging.QuerySubmitted) -> None:
        self._map("attempts")[event.query_key] = event.attempt
        if isinstance(event, judging.JudgeQuerySubmitted) and event.request:
            together = self._map("together")
            known = together.get(event.request, {})
            together[event.request] = {**known, event.dimension: event.query_key}
        if event.batch_key is None and event.worst_usd != 0.0:
            self._map("under_way")[event.query_key] = event

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

    def _settle(self, event: judging.ReplyRead | judging.JudgeQueryFailed) -> None:
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
