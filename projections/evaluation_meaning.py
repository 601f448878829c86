"""What the events of evaluations mean, checked: was it planned, and is it counted right?"""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from ledger.events.evaluations import (
    EvaluationCompleted,
    EvaluationKind,
    EvaluationPlanned,
    SampleObserved,
    SampleUnscorable,
)
from ledger.identity import Digest, StreamId
from ledger.recorded import Recorded
from projections.evaluations import Fate, Labels, SampleKey, labels_of
from projections.observation_shapes import misfit_of


class EvaluationMeaning:
    """Checks events in order of position; keeps what later ones may cite."""

    def __init__(self) -> None:
        self._kinds: dict[Digest, EvaluationKind] = {}  # by run
        self._plans: dict[tuple[StreamId, Labels, int], EvaluationPlanned] = {}
        self._n_tries: dict[Digest, dict[Digest, int]] = defaultdict(dict)  # by run, then item
        self._fates: dict[SampleKey, dict[StreamId, bool]] = defaultdict(dict)  # True: observed

    def faults_of(self, recorded: Recorded) -> Sequence[str]:
        """Return what does not follow, in words; a sound event, or one of others, has nothing."""
        event, stream = recorded.event, recorded.stream
        match event:
            case EvaluationPlanned():
                self._take_note(event, stream)
                return ()
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

    def _faults_of_sample(self, event: Fate) -> Sequence[str]:
        kind = self._kinds.get(event.run_key)
        if kind is None:
            return [f"its run {event.run_key[:12]} was not planned before it"]
        if event.sample >= self._n_tries[event.run_key].get(event.item, 0):
            return [f"sample {event.sample} of item {event.item[:12]} is not of its run's plan"]
        if isinstance(event, SampleObserved) and (why := misfit_of(event.observation, kind)):
            return [why]
        return []

    def _faults_of_counts(self, event: EvaluationCompleted, stream: StreamId) -> Sequence[str]:
        labels = Labels(event.entrant, event.evaluation)
        plan = self._plans.get((stream, labels, event.number))
        if plan is None:
            return [f"there is no plan {event.number} of {' on '.join(labels)} before it"]
        counts = self._counts_of(plan, stream)
        if counts.allow(event.n_observed, event.n_unscorable):
            return []
        return [f"{counts}; it claims {event.n_observed} and {event.n_unscorable}"]

    def _counts_of(self, plan: EvaluationPlanned, stream: StreamId) -> "_Counts":
        """Count what came of a plan's samples.

        A tournament that was merged knew its own fates, and perhaps not yet those of others.
        """
        fates = [
            self._fates.get(SampleKey(plan.run_key, item, number), {})
            for item in plan.items
            for number in range(plan.n_samples)
        ]
        known = [each for each in fates if each]
        return _Counts(
            n_missing=len(fates) - len(known),
            n_known=len(known),
            fewest=sum(each.get(stream, all(each.values())) for each in known),
            most=sum(any(each.values()) for each in known),
        )


class _Counts(NamedTuple):
    n_missing: int  # samples of which nothing came
    n_known: int  # observed or given up
    fewest: int  # of them observed, as its tournament knew at least
    most: int  # and as anyone knew

    def allow(self, n_observed: int, n_unscorable: int) -> bool:
        """Say whether a claim is true of what its tournament can have known."""
        is_whole = not self.n_missing and n_observed + n_unscorable == self.n_known
        return is_whole and self.fewest <= n_observed <= self.most

    def __str__(self) -> str:
        """Say what is true, in words."""
        observed = _between(self.fewest, self.most)
        unscorable = _between(self.n_known - self.most, self.n_known - self.fewest)
        return f"samples observed: {observed}, unscorable: {unscorable}, neither: {self.n_missing}"


def _between(fewest: int, most: int) -> str:
    return str(most) if fewest == most else f"{fewest} to {most}"
