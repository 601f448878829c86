"""Recording evaluations: holds the state between appends, so that it is never read again."""

from collections.abc import Sequence

from msgspec.structs import replace

from ledger.events.evaluations import EvaluationCompleted, EvaluationPlanned
from ledger.events.registry import Event
from ledger.identity import EntrantId, StreamId
from ledger.store import Ledger
from projections.evaluations.state import (
    EVALUATION_EVENTS,
    Evaluations,
    advance_evaluations,
    labels_of,
)


class EvaluationRecorder:
    """The evaluations of one tournament of a ledger, open for more."""

    def __init__(self, ledger: Ledger, stream: StreamId) -> None:
        self._ledger = ledger
        self._position = 0  # the last that the state knows of
        self.state = Evaluations(stream)
        self._catch_up()

    def record(self, events: Sequence[Event]) -> None:
        """Append events, all or none."""
        self._ledger.append(self.state.stream, events)
        self._catch_up()

    def plan(self, plan: EvaluationPlanned) -> EvaluationPlanned:
        """Take note of a plan, and return it as numbered; the newest is not repeated."""
        last = self.state.plans.get(labels_of(plan))
        if last is not None and replace(plan, number=last.number) == last:
            return last
        numbered = replace(plan, number=last.number + 1 if last else 1)
        self.record([numbered])
        return numbered

    def complete(self, plan: EvaluationPlanned) -> None:
        """Take note that nothing of a numbered plan is owed any more, if that is so and new."""
        run = self.state.run(plan)
        if run.owed or self.state.is_completed(plan):
            return
        completed = EvaluationCompleted(
            entrant=EntrantId(plan.entrant.label),
            evaluation=plan.evaluation,
            number=plan.number,
            n_observed=len(run.observed),
            n_unscorable=len(run.unscorable),
        )
        self.record([completed])

    def _catch_up(self) -> None:
        until = self._ledger.head.position
        news = self._ledger.read(after=self._position, until=until, types=EVALUATION_EVENTS)
        self.state, self._position = advance_evaluations(self.state, news), until
