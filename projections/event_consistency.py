"""Consistency of events: does each follow from the events it refers to?

The hash chain proves that nothing changed since it was recorded. This checks that it was right to
record it: every answer has a query, every verdict and score is what its reply says, every outcome
follows from its two verdicts.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import product, starmap
from typing import Final, TypeAlias

from ledger.events import judging
from ledger.events.evaluations import (
    EvaluationCompleted,
    EvaluationKind,
    EvaluationPlanned,
    ItemRegistered,
    SampleObserved,
    SampleUnscorable,
)
from ledger.events.registration import Registered, ScoreScale
from ledger.events.registry import Event
from ledger.events.responses import ResponseGenerated
from ledger.identity import Digest, StreamId
from projections.evaluations.state import Labels, SampleFact, SampleKey, labels_of, mismatch_of
from projections.verdicts.parsers import PARSERS
from projections.verdicts.policies import POLICIES
from projections.verdicts.scoring import SCORE_PARSERS


class EvaluationConsistency:
    """Checks the events of evaluations in order; keeps what later ones refer to."""

    def __init__(self) -> None:
        self._kinds: dict[Digest, EvaluationKind] = {}  # by run
        self._plans: dict[tuple[StreamId, Labels, int], EvaluationPlanned] = {}
        self._n_tries: dict[Digest, dict[Digest, int]] = defaultdict(dict)  # by run, then item
        self._fates: dict[SampleKey, dict[StreamId, bool]] = defaultdict(dict)  # True: observed
        self._registered: set[Digest] = set()  # items and entrants

    def faults_of(self, event: Event, stream: StreamId, *, is_redacted: bool) -> Sequence[str]:
        """Return what is wrong with an event, in words; other events have no faults."""
        match event:
            case ItemRegistered():
                self._registered.add(event.item)
                is_sound = is_redacted or event.is_sound
                return () if is_sound else ["its digest does not match what it registers"]
            case EvaluationPlanned():
                self._take_note(event, stream)
                return [*self._faults_of_plan(event)]
            case SampleObserved() | SampleUnscorable():
                fates = self._fates[SampleKey(event.run_key, event.item, event.sample)]
                is_seen = fates.get(stream, False)
                fates[stream] = is_seen or isinstance(event, SampleObserved)
                return self._faults_of_sample(event)
            case EvaluationCompleted():
                return self._faults_of_counts(event, stream)
            case _:
                return ()

    def _take_note(self, plan: EvaluationPlanned, stream: StreamId) -> None:
        self._plans[stream, labels_of(plan), plan.number] = plan
        self._kinds[plan.run_key] = plan.kind
        n_tries = self._n_tries[plan.run_key]
        for item in plan.items:
            n_tries[item] = max(plan.n_samples, n_tries.get(item, 0))

    def register_entrant(self, digest: Digest) -> None:
        """Take note of an entrant that plans may refer to."""
        self._registered.add(digest)

    def _faults_of_plan(self, plan: EvaluationPlanned) -> Iterator[str]:
        if plan.entrant.digest not in self._registered:
            yield f"its entrant {plan.entrant.label} was not registered before it"
        if unknown := [digest for digest in plan.items if digest not in self._registered]:
            n = f"{len(unknown)} of its {len(plan.items)} items"
            yield f"{n} were not registered before it, as {unknown[0][:12]}"

    def _faults_of_sample(self, event: SampleFact) -> Sequence[str]:
        kind = self._kinds.get(event.run_key)
        if kind is None:
            return [f"its run {event.run_key[:12]} was not planned before it"]
        if event.sample >= self._n_tries[event.run_key].get(event.item, 0):
            return [f"sample {event.sample} of item {event.item[:12]} is not in its run's plan"]
        if isinstance(event, SampleObserved) and (why := mismatch_of(event.observation, kind)):
            return [why]
        return []

    def _faults_of_counts(self, event: EvaluationCompleted, stream: StreamId) -> Sequence[str]:
        labels = Labels(event.entrant, event.evaluation)
        plan = self._plans.get((stream, labels, event.number))
        if plan is None:
            return [f"no plan {event.number} of {' on '.join(labels)} was recorded before it"]
        fates = [
            self._fates.get(SampleKey(plan.run_key, item, number), {})
            for item in plan.items
            for number in range(plan.n_samples)
        ]
        return _faults_of_counts(event, stream, fates)


def _faults_of_counts(
    event: EvaluationCompleted, stream: StreamId, fates: Sequence[Mapping[StreamId, bool]]
) -> Sequence[str]:
    """Compare counts with samples' fates by tournament; a merged one may not know all of them."""
    ended = [fate for fate in fates if fate]
    fewest = sum(fate.get(stream, all(fate.values())) for fate in ended)  # observed, as it knew
    most = sum(any(fate.values()) for fate in ended)  # as anyone knew
    n_missing, n_ended = len(fates) - len(ended), event.n_observed + event.n_unscorable
    if not n_missing and n_ended == len(ended) and fewest <= event.n_observed <= most:
        return []
    observed, unscorable = (
        _between(fewest, most),
        _between(len(ended) - most, len(ended) - fewest),
    )
    counts = f"samples observed: {observed}, unscorable: {unscorable}, neither: {n_missing}"
    return [f"{counts}; the event says {event.n_observed} and {event.n_unscorable}"]


def _between(fewest: int, most: int) -> str:
    return str(most) if fewest == most else f"{fewest} to {most}"


# A tournament pays for a result once; merged ones may each have paid.
_PAID_TWICE: Final = "the same result was recorded and paid for before"
_Given: TypeAlias = tuple[judging.Verdict, ...]  # one, or those of several tournaments


class ConsistencyCheck:
    """Checks events in order of position; keeps what later ones refer to."""

    def __init__(self) -> None:
        self._asked: dict[Digest, Digest] = {}  # to themselves: a key is held in memory once
        self._planned: set[Digest] = set()  # by batch key, as those submitted
        self._submitted: set[Digest] = set()
        self._verdicts: defaultdict[StreamId, dict[Digest, judging.Verdict]] = defaultdict(dict)
        self._scales: dict[Digest, ScoreScale] = {}  # of queries that ask for a score
        self._scored: set[tuple[StreamId, Digest]] = set()  # by query
        self._evaluations = EvaluationConsistency()
        self._generated: defaultdict[StreamId, set[Digest]] = defaultdict(set)  # by response key

    def faults_of(self, event: Event, stream: StreamId, *, is_redacted: bool) -> Sequence[str]:
        """Return what is wrong with an event, in words; nothing if it is sound."""
        match event:
            case judging.VerdictReceived():
                return self._faults_of_verdict(event, stream, is_redacted=is_redacted)
            case judging.JudgeQuerySubmitted() | judging.ScoreQuerySubmitted():
                self._asked[event.query_key] = event.query_key
                if isinstance(event, judging.ScoreQuerySubmitted):
                    self._scales[event.query_key] = event.scale
                faults = _faults_of_citing(event.batch_key, self._submitted, "submitted")
                return [*faults, *self._faults_of_repeat(event), *_faults_of_part(event)]
            case judging.PairReconciled():
                return self._faults_of_outcome(event, stream)
            case ResponseGenerated():
                return self._faults_of_response(event, stream)
            case (
                judging.JudgeQueryFailed()
                | judging.JudgeQueryReopened()
                | judging.ScoreReceived()
                | judging.ScoreShared()
            ):
                faults = self._faults_of_answer(event.query_key)
                return [*faults, *self._faults_of_score(event, stream, is_redacted=is_redacted)]
            case Registered():
                self._evaluations.register_entrant(event.digest)
                is_sound = event.content.content_digest == event.digest
                return [] if is_sound else ["its digest does not match what it registers"]
            case judging.BatchFact():
                return self._faults_of_batch(event)
            case _:
                return self._evaluations.faults_of(event, stream, is_redacted=is_redacted)

    def _faults_of_response(self, event: ResponseGenerated, stream: StreamId) -> list[str]:
        generated = self._generated[stream]
        if event.response_key in generated:
            return [_PAID_TWICE]
        generated.add(event.response_key)
        return []

    def _faults_of_repeat(self, event: judging.QuerySubmitted) -> Iterator[str]:
        if not isinstance(event, judging.JudgeQuerySubmitted) or not event.repeats:
            return
        if event.repeats not in self._asked:
            yield f"it repeats query {event.repeats[:12]}, which was not submitted before it"
        if event.query_key != judging.repeat_key(event.repeats):
            yield f"its key is not that of a repeat of query {event.repeats[:12]}"

    def _faults_of_answer(self, query_key: Digest) -> list[str]:
        if query_key in self._asked:
            return []
        return [f"it answers query {query_key[:12]}, which was not submitted before it"]

    def _faults_of_verdict(
        self, event: judging.VerdictReceived, stream: StreamId, *, is_redacted: bool
    ) -> list[str]:
        key = self._asked.get(event.query_key, event.query_key)
        faults = self._faults_of_answer(key)
        parse = PARSERS.get(event.parser)
        if parse is None:
            faults.append(f"unknown parser {event.parser!r}; a newer tourney may know it")
        elif not is_redacted and (read := parse(event.reply)) != event.verdict:
            faults.append(f"its reply says {read}, the event says {event.verdict}")
        given = self._verdicts[stream]
        if key in given:
            faults.append(_PAID_TWICE)
        given[key] = event.verdict
        return faults

    def _faults_of_score(
        self, event: Event, stream: StreamId, *, is_redacted: bool
    ) -> Iterator[str]:
        if not isinstance(event, judging.ScoreReceived):
            return
        parse, scale = SCORE_PARSERS.get(event.parser), self._scales.get(event.query_key)
        if parse is None:
            yield f"unknown parser {event.parser!r}; a newer tourney may know it"
        elif not is_redacted and scale and (read := parse(event.reply, scale)) != event.score:
            yield f"its reply says {read}, the event says {event.score}"
        if (stream, event.query_key) in self._scored:
            yield _PAID_TWICE
        self._scored.add((stream, event.query_key))

    def _faults_of_batch(self, event: judging.BatchFact) -> list[str]:
        match event:
            case judging.JudgeBatchPlanned():
                self._planned.add(event.batch_key)
            case judging.JudgeBatchSubmitted():
                self._submitted.add(event.batch_key)
        return _faults_of_citing(event.batch_key, self._planned, "planned")

    def _given(self, query_key: Digest, stream: StreamId) -> _Given:
        """Return the tournament's own verdict; without one, those of the others."""
        own = self._verdicts[stream].get(query_key)
        if own is not None:
            return (own,)
        return tuple(said[query_key] for said in self._verdicts.values() if query_key in said)

    def _faults_of_outcome(self, event: judging.PairReconciled, stream: StreamId) -> Sequence[str]:
        if event.basis == "identical":
            return _faults_of_identity(event)
        forward, swapped = self._given(event.forward, stream), self._given(event.swapped, stream)
        if forward and swapped:
            return _faults_of_policy(event.policy, event.outcome, forward, swapped)
        cited = (("forward", event.forward, forward), ("swapped", event.swapped, swapped))
        return [
            f"its {order} query {key[:12]} had no verdict before it"
            for order, key, given in cited
            if not given
        ]


def _faults_of_part(event: judging.QuerySubmitted) -> Iterator[str]:
    """A query that is asked together with others is named by its request; a repeat, otherwise."""
    if not isinstance(event, judging.JudgeQuerySubmitted) or not event.request or event.repeats:
        return
    if event.query_key != judging.part_key(event.request, event.dimension):
        yield f"its key is not that of {event.dimension} in request {event.request[:12]}"


def _faults_of_citing(key: Digest | None, known: AbstractSet[Digest], what: str) -> list[str]:
    """A batch is planned, then submitted; its queries and its end refer to that."""
    if key is None or key in known:
        return []
    return [f"its batch {key[:12]} was not {what} before it"]


def _faults_of_policy(
    name: str, outcome: judging.Outcome, forward: _Given, swapped: _Given
) -> Sequence[str]:
    policy = POLICIES.get(name)
    if policy is None:
        return (f"unknown policy {name!r}; a newer tourney may know it",)
    given = [*product(forward, swapped)]
    if outcome in starmap(policy, given):
        return ()
    made = " or ".join(
        f"{policy(*verdicts)!r} for verdicts {' and '.join(verdicts)}" for verdicts in given
    )
    return (f"{name} gives {made}, the event says {outcome!r}",)


def _faults_of_identity(event: judging.PairReconciled) -> list[str]:
    """Identical responses have one query for both orders, and are a tie."""
    if event.forward != event.swapped:
        return ["it says that the responses are identical, but its two queries differ"]
    if event.outcome != "tie":
        return [f"it says {event.outcome!r} for identical responses, which always tie"]
    return []
