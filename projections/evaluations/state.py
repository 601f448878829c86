"""The state of evaluations: plans, and each sample's observation or failure."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from reprlib import Repr
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec
from immutables import Map, MapMutation

from ledger.events.evaluations import (
    AnswerObserved,
    ChoicesObserved,
    DocumentObserved,
    EvaluationCompleted,
    EvaluationKind,
    EvaluationPlanned,
    Observation,
    PredictionObserved,
    SampleName,
    SampleObserved,
    SampleScore,
    SampleUnscorable,
    TaskResults,
)
from ledger.events.judging import ScoreQuerySubmitted, ScoreReceived, ScoreShared
from ledger.events.registration import Entrant, EntrantRegistered
from ledger.identity import Digest, StreamId
from ledger.recorded import Recorded
from projections.fold import Projection

_brief: Final = Repr()
_brief.maxstring = 160  # a system prompt may be long
EVALUATION_EVENTS: Final = frozenset(
    {
        "EntrantRegistered",
        "EvaluationPlanned",
        "SampleObserved",
        "SampleUnscorable",
        "EvaluationCompleted",
        "ScoreQuerySubmitted",
        "ScoreReceived",
        "ScoreShared",
    }
)
"""The types of events that these projections read; for what was asked see `samples`."""


class SampleKey(NamedTuple):
    """One sample of an item in a run."""

    run_key: Digest
    item: Digest
    sample: int


def key_of(sample: SampleObserved | SampleUnscorable | SampleName) -> SampleKey:
    """Return the key of the sample that is named, or whose fate it is."""
    return SampleKey(sample.run_key, sample.item, sample.sample)


class Labels(NamedTuple):
    """The entrant and the evaluation, by label."""

    entrant: str
    evaluation: str


def labels_of(plan: EvaluationPlanned) -> Labels:
    """Return a plan's labels."""
    return Labels(plan.entrant.label, plan.evaluation)


def is_same_plan(plan: EvaluationPlanned, other: EvaluationPlanned) -> bool:
    """Return whether two plans differ in their numbers at most.

    How an entrant is asked counts if both plans say: earlier versions did not.
    """
    same = msgspec.structs.replace(plan, number=other.number)
    if not (plan.asking and other.asking):
        same = msgspec.structs.replace(same, asking=other.asking)
    return same == other


def other_settings(first: EvaluationPlanned, second: EvaluationPlanned) -> Mapping[str, str]:
    """Return the settings in which two plans differ, each with both values in words.

    How an entrant is asked counts if both plans say.
    """
    one, two = json.loads(first.settings), json.loads(second.settings)
    if first.asking and second.asking:
        one, two = {**one, **first.asking.fields}, {**two, **second.asking.fields}
    names = sorted(one.keys() | two.keys())
    values = {name: (one.get(name), two.get(name)) for name in names}
    return {
        name: f"{_brief.repr(a)} and {_brief.repr(b)}" for name, (a, b) in values.items() if a != b
    }


PlanName: TypeAlias = tuple[str, str, int]
"""A plan of a tournament: the entrant and the evaluation, by label, and its number."""


def name_of(plan: EvaluationPlanned) -> PlanName:
    """Return a plan's name."""
    return (*labels_of(plan), plan.number)


SampleFact: TypeAlias = SampleObserved | SampleUnscorable


@dataclass(frozen=True)
class Evaluations:
    """The evaluations of a tournament.

    A run is the same in every tournament of the ledger: a sample observed by one is not missing in
    another.
    """

    stream: StreamId
    plans: Map[Labels, EvaluationPlanned] = Map()  # the newest, in this tournament
    fates: Map[SampleKey, SampleFact] = Map()
    every: Map[PlanName, EvaluationPlanned] = Map()  # that was ever planned, in this tournament
    completed: Map[PlanName, EvaluationCompleted] = Map()  # in this tournament
    entrants: Map[Digest, Entrant] = Map()  # by the digest that plans refer to
    asked: Map[tuple[Digest, SampleKey], Digest] = Map()  # the newest query, by scoring
    scores: Map[Digest, ScoreReceived] = Map()  # by query

    def run(self, plan: EvaluationPlanned) -> "EvaluationRun":
        """Return a plan's run: each sample's observation or failure, if any."""
        keys = (
            SampleKey(plan.run_key, item, number)
            for item in plan.items
            for number in range(plan.n_samples)
        )
        fates = tuple((key, self.fates.get(key)) for key in keys)
        completed = self.completed.get(name_of(plan))
        results = completed.results or None if completed else None
        judged = self._judged(plan, (key for key, _ in fates))
        run = EvaluationRun(plan, fates, judged, results)
        return run.scored_as(completed.scores) if completed and completed.scores else run

    def _judged(
        self, plan: EvaluationPlanned, keys: Iterable[SampleKey]
    ) -> Mapping[SampleKey, ScoreReceived]:
        if not plan.scored_by:
            return {}
        scoring, judged = plan.scored_by.scoring, {}
        for key in keys:
            query = self.asked.get((scoring, key))
            if query is not None and query in self.scores:
                judged[key] = self.scores[query]
        return judged

    def replaced(self, plan: EvaluationPlanned) -> tuple[EvaluationPlanned, ...]:
        """Return the earlier plans under a plan's labels that had other settings."""
        names = ((*labels_of(plan), number) for number in range(1, plan.number))
        earlier = (self.every.get(name) for name in names)
        return tuple(
            evaluation for evaluation in earlier if evaluation and other_settings(evaluation, plan)
        )

    def is_completed(self, plan: EvaluationPlanned) -> bool:
        """Say whether a plan's completion is on record."""
        return name_of(plan) in self.completed

    @property
    def runs(self) -> tuple["EvaluationRun", ...]:
        """The run of the newest plan of each entrant and evaluation, by labels."""
        return tuple(self.run(self.plans[labels]) for labels in sorted(self.plans))


@dataclass(frozen=True)
class EvaluationRun:
    """A plan, and the observation or failure of each sample, in order; None: missing.

    A sample whose answer a judge is to score may have a score by it.
    """

    plan: EvaluationPlanned
    fates: tuple[tuple[SampleKey, SampleFact | None], ...]
    judged: Mapping[SampleKey, ScoreReceived] = field(default_factory=dict)  # by the plan's judge
    results: TaskResults | None = None  # of lm-evaluation-harness, once the plan is completed

    def scored_as(self, scores: Iterable[SampleScore]) -> "EvaluationRun":
        """Return the run with other scores of some samples."""
        by_sample = {(score.item, score.sample): score for score in scores}
        fates = ((key, _scored(fate, by_sample.get(key[1:]))) for key, fate in self.fates)
        return replace(self, fates=tuple(fates))

    @property
    def missing(self) -> frozenset[SampleKey]:
        """The samples that are neither observed nor unscorable."""
        return frozenset(key for key, fate in self.fates if fate is None)

    @property
    def observed(self) -> tuple[SampleObserved, ...]:
        """The observed samples, in the order of the plan."""
        return tuple(fate for _, fate in self.fates if isinstance(fate, SampleObserved))

    @property
    def unscorable(self) -> tuple[SampleUnscorable, ...]:
        """The unscorable samples, in the order of the plan."""
        return tuple(fate for _, fate in self.fates if isinstance(fate, SampleUnscorable))


def _scored(fate: SampleFact | None, score: SampleScore | None) -> SampleFact | None:
    """Return a sample with another score; one that was never scored stays as it is."""
    match fate:
        case SampleObserved(observation=AnswerObserved() | PredictionObserved() as seen) if score:
            observation = msgspec.structs.replace(seen, cleaned=score.cleaned, score=score.score)
            return msgspec.structs.replace(fate, observation=observation)
        case _:
            return fate


def evaluations_of(stream: StreamId) -> Projection[Evaluations]:
    """Return the projection to a tournament's evaluations."""
    return Projection(initial=Evaluations(stream), advance=advance_evaluations)


def advance_evaluations(state: Evaluations, events: Iterable[Recorded]) -> Evaluations:
    """Return the state after more events, in order."""
    maps: dict[str, MapMutation[Any, Any]] = {
        "plans": state.plans.mutate(),
        "fates": state.fates.mutate(),
        "every": state.every.mutate(),
        "completed": state.completed.mutate(),
        "entrants": state.entrants.mutate(),
        "asked": state.asked.mutate(),
        "scores": state.scores.mutate(),
    }
    for recorded in events:
        is_own = recorded.stream == state.stream
        match recorded.event:
            case EvaluationPlanned() as plan if is_own:
                maps["plans"][labels_of(plan)] = plan
                maps["every"][name_of(plan)] = plan
            case SampleObserved() | SampleUnscorable() as fate:
                key = key_of(fate)
                is_own_observation = is_own and isinstance(fate, SampleObserved)
                if is_own_observation or not isinstance(maps["fates"].get(key), SampleObserved):
                    maps["fates"][key] = fate
            case EvaluationCompleted() as completed if is_own:
                name = completed.entrant, completed.evaluation, completed.number
                maps["completed"][name] = completed
            case ScoreQuerySubmitted() | ScoreShared() as about:
                for sample in about.samples:
                    key = key_of(sample)
                    maps["asked"][about.scoring, key] = about.query_key
            case ScoreReceived(query_key=query) as score if is_own or query not in maps["scores"]:
                maps["scores"][query] = score
            case EntrantRegistered() as registered:
                maps["entrants"][registered.digest] = registered.entrant
            case _:
                continue
    fields: dict[str, Any] = {name: draft.finish() for name, draft in maps.items()}
    return replace(state, **fields)


_SHAPES: Final[Mapping[EvaluationKind, type[Observation]]] = {
    "comparison": ChoicesObserved,
    "perplexity": DocumentObserved,
    "rollout": AnswerObserved,
    "encoding": PredictionObserved,
}


def mismatch_of(observation: Observation, kind: EvaluationKind) -> str | None:
    """Return why an observation does not fit a kind of evaluation; None if it does.

    Metrics skip what does not fit: the ledger only grows, and one wrong event must not make all
    other numbers impossible.
    """
    if not isinstance(observation, _SHAPES[kind]):
        return f"its observation does not fit its run, a {kind}"
    if isinstance(observation, ChoicesObserved) and observation.correct >= len(observation.choices):
        n_choices = len(observation.choices)
        return f"its correct choice is number {observation.correct} of {n_choices}, counted from 0"
    return None
