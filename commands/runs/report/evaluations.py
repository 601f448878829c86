"""What is shown of evaluations: the metrics, and some of the wrong answers."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from commands.runs.report.subject import Subject
from commands.runs.report.text import decimal, interval
from projections.evaluations.metrics import RunMetrics
from projections.evaluations.samples import AskedSample, Items, asked_samples

_OF_A_RUN: Final = 3  # wrong answers that are shown
_IN_ALL: Final = 60  # of all runs: the page stays small
_LONGEST: Final = 400  # characters of a text
_LEFT_OUT: Final = " \N{HORIZONTAL ELLIPSIS} "


class MetricLine(NamedTuple):
    """A metric of an entrant on an evaluation."""

    evaluation: str
    metric: str
    entrant: str
    value: str
    interval: str
    n: str


def metric_lines(subject: Subject) -> Iterator[MetricLine]:
    """Yield the metrics of every evaluation on record."""
    for each in subject.evaluations:
        plan = each.run.plan
        for metric in each.metrics:
            found = metric.estimate
            yield MetricLine(
                plan.evaluation,
                metric.name,
                plan.entrant.label,
                decimal(found.value, 3),
                interval(found.low, found.high, 3),
                f"{found.n:,}",
            )


class WrongAnswer(NamedTuple):
    """A wrong answer beside what was asked and expected, long texts without their middle."""

    label: str
    asked: str
    answered: str
    expected: str


class WrongAnswers(NamedTuple):
    """An entrant's wrong answers on an evaluation, and the first of them."""

    evaluation: str
    entrant: str
    n_wrong: int
    n: int  # of all answers
    shown: tuple[WrongAnswer, ...]


def wrong_answers(subject: Subject) -> tuple[WrongAnswers, ...]:
    """Return the wrong answers of each run in which there are some, a few of them whole."""
    every = [(each, _told(each, subject.items)) for each in subject.evaluations]
    wrong = [(each, told) for each, told in every if any(not one.is_right for one in told)]
    n_shown = min(_OF_A_RUN, _IN_ALL // max(1, len(wrong)))
    return tuple(_wrong(each, told, n_shown) for each, told in wrong)


def _told(each: RunMetrics, items: Items) -> list[AskedSample]:
    """Return the samples of which it is known whether they are right."""
    return [found for found in asked_samples(each.run, items) if found.is_right is not None]


def _wrong(each: RunMetrics, told: list[AskedSample], n_shown: int) -> WrongAnswers:
    plan, wrong = each.run.plan, [one for one in told if not one.is_right]
    shown = tuple(
        WrongAnswer(
            one.fate.label, *(_cut(text or "") for text in (one.asked, one.answered, one.expected))
        )
        for one in wrong[:n_shown]
    )
    return WrongAnswers(plan.evaluation, plan.entrant.label, len(wrong), len(told), shown)


def _cut(text: str) -> str:
    """Return a text without its middle, if it is too long: a question may stand at either end."""
    half = _LONGEST // 2
    return text if len(text) <= _LONGEST else text[:half] + _LEFT_OUT + text[-half:]
