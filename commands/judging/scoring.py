"""Use case: let judges score the answers of evaluations, with consent and within the cap.

What is asked follows from the ledger and the plans: these name the judge and the rubric, and the
samples on record have the answers. Equal answers to one prompt are asked about once.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from commands.decisions.commands import RecordFact
from commands.decisions.recorder import Recorder
from commands.errors import WorkInFlight
from commands.judging.judge import JudgeTask
from commands.judging.panel import keys_needed
from commands.judging.plan import (
    JudgingOptions,
    JudgingPlan,
    plan_task,
    require_cap_can_be_kept,
)
from commands.judging.session import (
    judge_with_consent,
    needs_consent,
    offer_of_queries,
    require_none_in_flight,
)
from commands.judging.unreadable import tell_unscored
from commands.ports import Backends, Console
from commands.settings.api_keys import require_keys
from commands.settings.schema import Settings
from commands.spending.consent import require_allowed
from commands.spending.pricing import PlannedCost, TokenPricing, plan_cost, price_book
from ledger.errors import TourneyError
from ledger.events.evaluations import EvaluationPlanned
from ledger.events.judging import ScoreShared
from ledger.identity import JudgeId
from projections.evaluations.samples import Items, Scorers, score_questions, unlinked
from projections.evaluations.state import Evaluations
from projections.tournament.state import Tournament


@dataclass(frozen=True)
class Scoring:
    """The plans whose answers are scored, and how their judges are asked."""

    plans: Collection[EvaluationPlanned]
    settings: Settings
    folder: Path
    options: JudgingOptions
    console: Console

    def tasks(self, recorder: Recorder) -> tuple[JudgeTask, ...]:
        """Return what each judge is asked about the answers on record."""
        retries = self.settings.judge.retries
        return scoring_tasks(recorder.state, *recorder.evaluations(), self.plans, retries)

    def priced(self, recorder: Recorder, task: JudgeTask) -> JudgingPlan:
        """Plan at what price, under which cap and how a judge is asked."""
        return plan_task(recorder, self.settings, self.folder, task, self.options, self.console)


class ScoringSummary(NamedTuple):
    """How many queries were open before, and what became of them."""

    n_open: int
    n_scored: int
    n_unscored: int  # of all queries, those that failed and are not open


def scoring_tasks(
    state: Tournament,
    evaluations: Evaluations,
    items: Items,
    plans: Iterable[EvaluationPlanned],
    retries: int,
) -> tuple[JudgeTask, ...]:
    """Return a task for each judge that some plans name, with all their answers on record."""
    plans = tuple(plans)
    references = dict.fromkeys(plan.scored_by.judge for plan in plans if plan.scored_by)
    judges = [state.judges[reference] for reference in references]
    questions = score_questions(evaluations, items, plans, Scorers(state.judges, state.rubrics))
    tasks = []
    for judge in judges:
        to_judge = tuple(question for question in questions if question.judge == judge)
        tasks.append(JudgeTask(judge, (), retries, score_questions=to_judge))
    return tuple(tasks)


class MissingScores(NamedTuple):
    """The answers that a judge has not scored, and what that costs."""

    judge: JudgeId
    n_queries: int  # that can be sent now
    n_waiting: int  # samples that have no answer yet
    n_unscored: int  # queries without a score that are not open: in flight, or failed
    cost: PlannedCost | None  # None: the judge is free


def missing_scores(
    state: Tournament,
    evaluations: Evaluations,
    items: Items,
    plans: Collection[EvaluationPlanned],
    settings: Settings,
    folder: Path,
) -> tuple[MissingScores, ...]:
    """Count what each judge is still to score, and forecast the cost."""
    book, retries = price_book(settings, folder), settings.judge.retries
    missing = []
    for task in scoring_tasks(state, evaluations, items, plans, retries):
        queries = task.open_in(state)
        scored = [question.asked for question in task.score_questions]
        pricing = book.pricing(task.judge, state, scored=scored)
        cost = None
        if isinstance(pricing, TokenPricing):
            cost = plan_cost(state, queries, pricing, cap_usd=settings.judge.max_usd)
        n_waiting = _n_missing(evaluations, plans)[task.judge.judge_id]
        n_unscored = _n_unscored(state, task)
        missing.append(
            MissingScores(task.judge.judge_id, len(queries), n_waiting, n_unscored, cost)
        )
    return tuple(missing)


def require_judges(recorder: Recorder, scoring: Scoring) -> None:
    """Fail early if a judge cannot be asked, before answers are generated for it.

    Raises:
        ConfigurationError: --no-wait is given for a judge that is not asked in batches.
        NoCredentials: Providers need API keys that are not set; all are named.
        Refused: A cap cannot be kept, or no terminal is here to confirm.
    """
    evaluations, _ = recorder.evaluations()
    awaited = {
        evaluation.scored_by.judge
        for evaluation in scoring.plans
        if evaluation.scored_by and evaluations.run(evaluation).missing
    }
    state = recorder.state
    judges = {state.judges[reference] for reference in awaited}
    plans = [
        scoring.priced(recorder, task)
        for task in scoring.tasks(recorder)
        if task.judge in judges or task.open_in(state)
    ]
    require_keys(keys_needed(scoring.settings, (plan.judge for plan in plans)))
    offers = [offer_of_queries(state, plan.task, []) for plan in plans if needs_consent(plan, [])]
    require_allowed(offers, scoring.options.spending, scoring.console)
    for plan in plans:
        require_cap_can_be_kept(plan)


def _n_missing(evaluations: Evaluations, plans: Iterable[EvaluationPlanned]) -> Counter[JudgeId]:
    """Count the samples without an answer, by the judge that will score it."""
    n_missing: Counter[JudgeId] = Counter()
    for plan in plans:
        if plan.scored_by:
            n_missing[JudgeId(plan.scored_by.judge.label)] += len(evaluations.run(plan).missing)
    return n_missing


def score_with_consent(recorder: Recorder, scoring: Scoring, backends: Backends) -> ScoringSummary:
    """Let the judges score all answers that have no score.

    Raises:
        NoCredentials: A provider needs an API key, and none is set.
        Refused: The user did not confirm, or the cap is too low.
        WorkInFlight: Batches go on, and the command does not wait; every judge had its turn.
        ProviderError: A judge fails.
    """
    recorder.catch_up()
    total, in_flight = ScoringSummary(0, 0, 0), None
    for task in scoring.tasks(recorder):
        try:
            done = _score(recorder, scoring.priced(recorder, task), backends, scoring.console)
        except WorkInFlight as error:
            in_flight = error
        else:
            total = ScoringSummary(*map(sum, zip(total, done, strict=True)))
    if in_flight is not None:
        raise in_flight
    return total


def _score(
    recorder: Recorder, plan: JudgingPlan, backends: Backends, console: Console
) -> ScoringSummary:
    """Let one judge score; whatever comes of it, record which samples its queries are about."""
    task = plan.task
    try:
        done = judge_with_consent(recorder, plan, backends, console)
    except TourneyError:
        recorder.record(*_shared(recorder, task))
        raise
    recorder.record(*_shared(recorder, task))
    keys = frozenset(task.keys_in(recorder.state))
    tell_unscored(recorder.state, keys, task.judge, console.tell)
    require_none_in_flight(recorder.state, task)
    n_unscored = _n_unscored(recorder.state, task)
    return ScoringSummary(done.n_open, done.n_verdicts, n_unscored)


def _n_unscored(state: Tournament, task: JudgeTask) -> int:
    """Count the queries without a score that are not open: in flight, or failed."""
    open_keys = {query.asked.query_key for query in task.open_in(state)}
    return sum(not state.is_answered(key) for key in {*task.keys_in(state)} - open_keys)


def _shared(recorder: Recorder, task: JudgeTask) -> Iterator[RecordFact]:
    """Yield which samples have an answer that was sent on behalf of others."""
    evaluations, _ = recorder.evaluations()
    for question in task.score_questions:
        query_key = question.asked.query_key
        if recorder.state.was_asked(query_key) and (more := unlinked(evaluations, question)):
            yield RecordFact(
                ScoreShared(query_key=query_key, scoring=question.scoring, samples=more)
            )
