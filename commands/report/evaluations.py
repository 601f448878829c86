"""Evaluations in the report: some answers that are wrong or scored low."""

from operator import attrgetter
from typing import Final, NamedTuple

from commands.reading.rows import sample_rows
from commands.report.subject import Subject
from projections.evaluations.metrics import RunMetrics
from projections.evaluations.samples import Items
from projections.results.evaluations import SampleRow

_OF_A_RUN: Final = 3  # answers that are shown
_IN_ALL: Final = 60  # of all runs: the page stays small
NOT_OF_ANSWERS: Final = [
    *("entrant", "evaluation", "sample", "choices", "cleaned", "score", "is_right", "unscorable")
]
"""Fields of samples that the tables of answers leave out."""


class ShownAnswers(NamedTuple):
    """Some of an entrant's answers on an evaluation: the wrong ones, or those scored lowest."""

    judge: str  # who scored them; empty: nobody, and wrong ones are shown
    n_found: int  # answers that are wrong, or scored
    n: int  # of all
    shown: tuple[SampleRow, ...]  # the worst first
    evaluation: str
    entrant: str


def shown_answers(subject: Subject) -> tuple[ShownAnswers, ...]:
    """Return of each run its wrong answers or its lowest scores, if any, a few of them."""
    every = (_worst(measured, subject.items) for measured in subject.evaluations)
    found = [answers for answers in every if answers.shown]
    n_shown = min(_OF_A_RUN, _IN_ALL // max(1, len(found)))
    return tuple(answers._replace(shown=answers.shown[:n_shown]) for answers in found)


def _worst(measured: RunMetrics, items: Items) -> ShownAnswers:
    """Return what a judge scored, the lowest first; without one what is known to be wrong."""
    plan, rows = measured.run.plan, [*sample_rows(measured.run, items)]
    if plan.scored_by:
        judge, n = plan.scored_by.judge.label, measured.counts.n_observed
        scored = [row for row in rows if row.judged is not None]
        worst = sorted(scored, key=attrgetter("judged"))
    else:
        judge, n = "", sum(row.is_right is not None for row in rows)
        worst = [row for row in rows if row.is_right is False]
    return ShownAnswers(judge, len(worst), n, tuple(worst), plan.evaluation, plan.entrant.label)
