"""Fold a ledger into the state of one tournament."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

from immutables import MapMutation

from ledger.events import judging
from ledger.events.evaluations import EvaluationFact
from ledger.events.imports import BattlesImported, LedgerMerged, RatingsImported
from ledger.events.money import cost_usd
from ledger.events.ratings import RatingsPublished
from ledger.events.registration import (
    EntrantRegistered,
    JudgeRegistered,
    PromptRegistered,
    RubricRegistered,
    TournamentOpened,
)
from ledger.events.registry import Event
from ledger.events.requests import ParameterRefused, RequestsSettled, RequestsSubmitted
from ledger.events.responses import ResponseFailed, ResponseGenerated
from ledger.events.values import EventRedacted
from ledger.identity import Digest, StreamId
from ledger.recorded import Recorded
from projections.fold import Projection
from projections.tournament.requests import evolve_batch, evolve_requests
from projections.tournament.state import Tournament
from projections.verdicts.queries import RecordedVerdict

_CHANGES_NO_RATING: Final = (
    judging.BatchFact,
    judging.ScoreQuerySubmitted,
    judging.ScoreReceived,
    RequestsSubmitted,
    RequestsSettled,
    ParameterRefused,
    RatingsPublished,
    LedgerMerged,
    BattlesImported,
    RatingsImported,
    EvaluationFact,
    EventRedacted,
)


def tournament_of(stream: StreamId) -> Projection[Tournament]:
    """Return the projection to one tournament of a ledger."""
    return Projection(initial=Tournament(stream), advance=advance)


def advance(state: Tournament, events: Iterable[Recorded]) -> Tournament:
    """Return the state after more events, in order."""
    draft = _StateBuilder(state)
    for recorded in events:
        draft.add(recorded)
    return draft.finish()


_AS_BEFORE: Final = ("version", "newest", "spent_usd", "lost_usd", "under_way", "redactions")


def with_answers(state: Tournament, events: Iterable[Recorded]) -> Tournament:
    """Return a state that also knows some responses, verdicts, failures and outcomes.

    Everything else is as before: what they cost, how much is redacted, which event is the newest.
    """
    before = {name: getattr(state, name) for name in _AS_BEFORE}
    return replace(advance(state, events), **before)


class _StateBuilder:
    """A state while events are added to it; changed in place."""

    def __init__(self, state: Tournament) -> None:
        self._state = state
        self._maps: dict[str, MapMutation[Any, Any]] = {}
        self._fields: dict[str, Any] = {}

    def finish(self) -> Tournament:
        """Return the frozen state."""
        maps: dict[str, Any] = {name: draft.finish() for name, draft in self._maps.items()}
        return replace(self._state, **self._fields, **maps)

    def add(self, recorded: Recorded) -> None:
        """Add an event; another tournament's only if this one can use it."""
        event = recorded.event
        is_own = recorded.stream == self._state.stream
        redactions = self._field("redactions")
        if recorded.redacted or redactions.responses:
            self._fields["redactions"] = redactions.after(recorded)
        if not (self._add_for_all(recorded, is_own=is_own) or is_own):
            return
        if is_own:
            self._fields["version"] = recorded.version
            self._add_own(event)
        if not isinstance(event, _CHANGES_NO_RATING):
            self._fields["newest"] = recorded

    def _add_for_all(self, recorded: Recorded, *, is_own: bool) -> bool:
        """Add what every tournament can use, and say whether it is that."""
        match event := recorded.event:
            case ResponseGenerated(response_key=key):
                self._put("responses", key, event, is_own=is_own)
            case judging.VerdictReceived(query_key=key):
                verdict = RecordedVerdict(event, recorded.recorded_us)
                self._put("verdicts", key, verdict, is_own=is_own)
            case judging.ScoreReceived(query_key=key):
                self._put("scores", key, event, is_own=is_own)
            case judging.JudgeQueryFailed(query_key=key, reason=reason) if reason in judging.FINAL:
                self._put("query_failures", key, event, is_own=is_own)
            case judging.BatchFact(batch_key=key):
                batches = self._map("batches")
                batch = evolve_batch(batches.get(key), recorded)
                if batch is not None:  # its plan is on this ledger: it is known what it asks
                    batches[key] = batch
            case ParameterRefused():
                self._append("refused_parameters", event)
            case _:
                return False
        return True

    def _put(self, name: str, key: Digest, answer: object, *, is_own: bool) -> None:
        """Keep the tournament's own result, else the first: merges change neither."""
        answers = self._map(name)
        if is_own or key not in answers:
            answers[key] = answer

    def _add_own(self, event: Event) -> None:
        match event:
            case judging.VerdictReceived() | judging.ScoreReceived():
                self._settle(event)
            case judging.JudgeQuerySubmitted() | judging.ScoreQuerySubmitted():
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
            case ResponseFailed(response_key=key):
                self._map("response_failures")[key] = event
            case _:
                self._add_beside(event)

    def _add_beside(self, event: Event) -> None:
        """Add what is neither asked nor answered."""
        match event:
            case TournamentOpened():
                if (last := self._field("opening")) is not None:
                    self._append("replaced_openings", last)
                self._fields["opening"] = event
            case PromptRegistered(reference=reference, prompt=prompt):
                self._map("prompts")[reference] = prompt
            case RubricRegistered(reference=reference, rubric=rubric):
                self._map("rubrics")[reference] = rubric
            case EntrantRegistered(reference=reference, entrant=entrant):
                self._map("entrants")[reference] = entrant
            case JudgeRegistered(reference=reference, judge=judge):
                self._map("judges")[reference] = judge
            case RequestsSubmitted() | RequestsSettled():
                self._fields["requests"] = evolve_requests(self._field("requests"), event)
            case judging.LookTaken():
                self._append("looks", event)
            case RatingsPublished():
                self._append("publications", event)

    def _add_submitted(self, event: judging.QuerySubmitted) -> None:
        self._map("attempts")[event.query_key] = event.attempt
        if isinstance(event, judging.ScoreQuerySubmitted):
            self._map("scales")[event.query_key] = event.scale
        elif event.request:
            together = self._map("together")
            known = together.get(event.request, {})
            together[event.request] = {**known, event.dimension: event.query_key}
        if event.batch_key is None and event.worst_usd != 0.0:
            self._map("under_way")[event.query_key] = event

    def _settle(self, event: judging.ReplyRead | judging.JudgeQueryFailed) -> None:
        """Count what an answer cost, or else what the request cost at worst."""
        self._map("under_way").pop(event.query_key, None)
        if event.usage is not None and event.price is not None:
            name, usd = "spent_usd", cost_usd(event.usage, event.price)
        else:
            name, usd = "lost_usd", event.worst_usd or 0.0
        self._fields[name] = self._field(name) + usd

    def _append(self, name: str, item: object) -> None:
        self._fields[name] = (*self._field(name), item)

    def _field(self, name: str) -> Any:  # noqa: ANN401  # each field has a type of its own
        return self._fields.get(name, getattr(self._state, name))

    def _map(self, name: str) -> MapMutation[Any, Any]:
        if name not in self._maps:
            self._maps[name] = getattr(self._state, name).mutate()
        return self._maps[name]
