"""Evaluations in the report: metrics, and some answers that are wrong or scored low."""

from operator import itemgetter
from typing import Final, NamedTuple

from commands.runs.report.subject import Subject
from projections.evaluations.metrics import RunMetrics
from projections.evaluations.samples import AskedSample, Items, asked_samples

_OF_A_RUN: Final = 3  # answers that are shown
_IN_ALL: Final = 60  # of all runs: the page stays small
_LONGEST: Final = 400  # characters of a text
_LEFT_OUT: Final = " \N{HORIZONTAL ELLIPSIS} "


class ShownAnswer(NamedTuple):
    """An answer beside what was asked and expected, long texts without their middle."""

    label: str
    asked: str
    answered: str
    expected: str
    score: str  # by a judge; empty: none
    reply: str  # the judge's


class ShownAnswers(NamedTuple):
    """Some of an entrant's answers on an evaluation: the wrong ones, or those scored lowest."""

    evaluation: str
    entrant: str
    judge: str  # who scored them; empty: nobody, and wrong ones are shown
    n_found: int  # answers that are wrong, or scored
    n: int  # of all
    shown: tuple[ShownAnswer, ...]


class _Found(NamedTuple):
    worst: list[AskedSample]  # the worst first
    n: int  # answers among which they were found


def shown_answers(subject: Subject) -> tuple[ShownAnswers, ...]:
    """Return of each run its wrong answers or its lowest scores, if any, a few of them whole."""
    every = [(each, _found(each, subject.items)) for each in subject.evaluations]
    found = [(each, some) for each, some in every if some.worst]
    n_shown = min(_OF_A_RUN, _IN_ALL // max(1, len(found)))
    return tuple(_shown(each, some, n_shown) for each, some in found)


def _found(each: RunMetrics, items: Items) -> _Found:
    """Find what a judge scored, the lowest first; without one what is known to be wrong."""
    asked = [*asked_samples(each.run, items)]
    if each.run.plan.scored_by:
        scored = [(one.judged, one) for one in asked if one.judged is not None]
        return _Found([one for _, one in sorted(scored, key=itemgetter(0))], each.counts.n_observed)
    told = [one for one in asked if one.is_right is not None]
    return _Found([one for one in told if not one.is_right], len(told))


def _shown(each: RunMetrics, found: _Found, n_shown: int) -> ShownAnswers:
    plan = each.run.plan
    return ShownAnswers(
        plan.evaluation,
        plan.entrant.label,
        plan.scored_by.judge.label if plan.scored_by else "",
        len(found.worst),
        found.n,
        tuple(map(_shown_answer, found.worst[:n_shown])),
    )


def _shown_answer(one: AskedSample) -> ShownAnswer:
    return ShownAnswer(
        one.fate.label,
        asked=_cut(one.asked or ""),
        answered=_cut(one.answered or ""),
        expected=_cut(one.expected or ""),
        score="" if one.judged is None else f"{one.judged:g}",
        reply=_cut(one.reply or ""),
    )


def _cut(text: str) -> str:
    """Return a text without its middle, if it is too long: a question may stand at either end."""
    half = _LONGEST // 2
    return text if len(text) <= _LONGEST else text[:half] + _LEFT_OUT + text[-half:]
