"""The state of one tournament, from which decisions and all other views start.

Responses and verdicts come from the whole ledger, since their keys identify them by content: a
tournament reuses those of another in the same ledger. Everything else is from its own stream.
"""

import json
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self, TypeAlias, TypeVar

import msgspec
from immutables import Map

from ledger.events import judging
from ledger.events.ratings import RatingsPublished
from ledger.events.registration import (
    Entrant,
    JudgeSettings,
    Prompt,
    Reference,
    Rubric,
    ScoreScale,
    TournamentOpened,
)
from ledger.events.requests import ParameterRefused
from ledger.events.responses import ResponseFailed, ResponseGenerated
from ledger.events.values import Value
from ledger.identity import Digest, Dimension, EntrantId, JudgeId, PromptId, StreamId
from ledger.recorded import Recorded
from projections.redactions import NONE_REDACTED, Redactions
from projections.tournament.requests import NO_REQUESTS, Batch, EntrantRequests, RequestKey
from projections.verdicts.queries import RecordedVerdict

Thing = TypeVar("Thing", bound=Value)

PairNames: TypeAlias = tuple[Dimension, PromptId, EntrantId, EntrantId]
"""A dimension, a prompt and two entrants."""


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
    together: Map[Digest, Mapping[Dimension, Digest]] = Map()  # a request's queries, in order
    verdicts: Map[Digest, RecordedVerdict] = Map()
    scores: Map[Digest, judging.ScoreReceived] = Map()  # of answers of evaluations
    scales: Map[Digest, ScoreScale] = Map()  # of the scores that this tournament asked for
    query_failures: Map[Digest, judging.JudgeQueryFailed] = Map()  # the newest by query key
    useless_replies: Map[Digest, int] = Map()  # replies without a verdict, by query key
    reopened: Map[Digest, int] = Map()  # the failed attempt after which a query is asked again
    batches: Map[Digest, Batch] = Map()  # of every tournament: what is in flight is asked
    spent_usd: float = 0.0  # by this tournament, for judges' replies whose price is known
    lost_usd: float = 0.0  # likewise, at worst: for requests of unknown fate or unknown tokens
    under_way: Map[Digest, judging.QuerySubmitted] = Map()  # sent alone, and not answered yet
    requests: EntrantRequests = NO_REQUESTS  # to its endpoint entrants
    refused_parameters: tuple[ParameterRefused, ...] = ()  # by servers, in any tournament
    outcomes: Map[judging.PairKey, judging.Outcome] = Map()
    looks: tuple[judging.LookTaken, ...] = ()
    publications: tuple[RatingsPublished, ...] = ()
    redactions: Redactions = NONE_REDACTED

    @cached_property
    def configuration(self) -> Mapping[str, Any]:
        """The settings of the newest opening, as recorded; empty before the first."""
        return json.loads(self.opening.configuration) if self.opening else {}

    def configured_as(self, section: str, settings: object) -> Self:
        """Return an opened tournament as if a section of its settings were another."""
        if self.opening is None:
            return self
        configuration = json.dumps({**self.configuration, section: settings})
        opening = msgspec.structs.replace(self.opening, configuration=configuration)
        return replace(self, opening=opening)

    @cached_property
    def own_batches(self) -> tuple[Batch, ...]:
        """The tournament's own batches, in order; the ledger may hold others'."""
        own = (batch for batch in self.batches.values() if batch.stream == self.stream)
        return tuple(sorted(own, key=lambda batch: batch.planned.number))

    @property
    def open_batches(self) -> tuple[Batch, ...]:
        """Its own batches that are or may be with a provider."""
        return tuple(batch for batch in self.own_batches if batch.is_open)

    @property
    def open_judge_batches(self) -> tuple[Batch, ...]:
        """Those of them that ask judges."""
        return tuple(batch for batch in self.open_batches if not self.is_to_entrant(batch))

    @cached_property
    def in_flight(self) -> frozenset[Digest]:
        """The queries and responses in open batches of any tournament."""
        open_batches = (batch for batch in self.batches.values() if batch.is_open)
        return frozenset(key for batch in open_batches for key in self.queries_of(batch))

    @cached_property
    def roster(self) -> tuple[Entrant, ...]:
        """The entrants of the newest opening, in its order."""
        return _resolved(self.opening.entrants if self.opening else (), self.entrants)

    @cached_property
    def bank(self) -> tuple[Prompt, ...]:
        """The prompts of the newest opening, in its order."""
        return _resolved(self.opening.prompts if self.opening else (), self.prompts)

    @cached_property
    def same_texts(self) -> Mapping[Hashable, Hashable]:
        """By a prompt's id that of the bank's first prompt of the same text: they are one."""
        first = {prompt.text: prompt.prompt_id for prompt in reversed(self.bank)}
        return {prompt.prompt_id: first[prompt.text] for prompt in self.bank}

    @cached_property
    def dimensions(self) -> tuple[Rubric, ...]:
        """The rubrics of the newest opening, in its order."""
        return _resolved(self.opening.rubrics if self.opening else (), self.rubrics)

    @cached_property
    def panel(self) -> tuple[JudgeSettings, ...]:
        """The judges of the newest opening, in its order."""
        return _resolved(self.opening.judges if self.opening else (), self.judges)

    @property
    def replies(self) -> Iterator[judging.ReplyRead | judging.JudgeQueryFailed]:
        """Everything that judges said or failed to say, of each query the newest."""
        yield from (given.event for given in self.verdicts.values())
        yield from self.scores.values()
        yield from self.query_failures.values()

    @cached_property
    def computed(self) -> dict[Hashable, object]:
        """What projections computed of it and need again, by name: a state never changes."""
        return {}

    def queries_in(self, request: Digest) -> tuple[Digest, ...]:
        """Return the queries that were sent in a request: itself, or one for each dimension."""
        together = self.together.get(request)
        return (request,) if together is None else tuple(together.values())

    def queries_of(self, batch: Batch) -> Iterator[Digest]:
        """Yield the queries in a batch; the request, where it is not known which it has."""
        return (key for request in batch.planned.queries for key in self.queries_in(request))

    def was_asked(self, query_key: Digest) -> bool:
        """Say whether a query was sent by this tournament, or is answered or in flight anywhere."""
        is_sent = query_key in self.attempts or query_key in self.together
        return is_sent or query_key in self.in_flight or self.is_answered(query_key)

    def is_answered(self, query_key: Digest) -> bool:
        """Say whether a query has a verdict or a score, whichever tournament asked."""
        return query_key in self.verdicts or query_key in self.scores

    def text_of(self, response_key: Digest) -> str | None:
        """Return the text of a response; None: it has none on record."""
        response = self.responses.get(response_key)
        return None if response is None else response.text

    def is_to_entrant(self, batch: Batch) -> bool:
        """Say whether a batch asks an entrant of this tournament; else it asks a judge."""
        return batch.planned.judge in self.entrants

    def is_awaited(self, batch: Batch, request: Digest) -> bool:
        """Say whether a request of a batch was submitted here and has not ended."""
        entrant = self.entrants.get(batch.planned.judge)
        if entrant is None:
            return any(map(self.is_unanswered, self.queries_in(request)))
        return RequestKey(entrant.entrant_id, request) in self.requests.under_way

    def is_unanswered(self, query_key: Digest) -> bool:
        """Say whether a query was submitted here and has neither an answer nor a failure."""
        failure = self.query_failures.get(query_key)
        has_failed = failure is not None and failure.attempt >= self.attempts.get(query_key, 0)
        return query_key in self.attempts and not self.is_answered(query_key) and not has_failed

    def judge(self, judge_id: JudgeId) -> JudgeSettings:
        """Return a judge of the panel.

        Raises:
            KeyError: Nobody of that name is on it.
        """
        return {judge.judge_id: judge for judge in self.panel}[judge_id]


def _resolved(references: tuple[Reference, ...], known: Map[Reference, Thing]) -> tuple[Thing, ...]:
    """Return the registered things; those not registered yet are left out."""
    return tuple(known[reference] for reference in references if reference in known)
