"""Answers that a judge is to score: one question for equal answers to equal prompts."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from ledger.events.evaluations import AnswerObserved, EvaluationPlanned, PromptItem, SampleName
from ledger.events.registration import JudgeSettings, Reference, Rubric
from ledger.events.values import REDACTED
from ledger.identity import Digest
from projections.evaluations.samples import Items
from projections.evaluations.state import Evaluations, Judged, key_of
from projections.verdicts.scoring import ScoreQuestion, score_query


class Scorers(NamedTuple):
    """The judges and rubrics that plans refer to."""

    judges: Mapping[Reference, JudgeSettings]
    rubrics: Mapping[Reference, Rubric]


def score_questions(
    known: Evaluations, items: Items, plans: Iterable[EvaluationPlanned], scorers: Scorers
) -> tuple[ScoreQuestion, ...]:
    """Return what judges are asked about the answers of some plans, scored already or not.

    Without its text no question can be built of an answer, nor of a prompt: those are left out.
    """
    questions: dict[tuple[Digest, Digest], ScoreQuestion] = {}
    samples: dict[tuple[Digest, Digest], dict[SampleName, None]] = {}
    for plan in plans:
        for question in _of_plan(known, items, plan, scorers):
            name = (question.asked.query_key, question.scoring)
            questions.setdefault(name, question)
            samples.setdefault(name, {}).update(dict.fromkeys(question.samples))
    return tuple(each._replace(samples=tuple(samples[name])) for name, each in questions.items())


def _of_plan(
    known: Evaluations, items: Items, plan: EvaluationPlanned, scorers: Scorers
) -> Iterator[ScoreQuestion]:
    """Yield a question for each answered sample of a plan."""
    by = plan.scored_by
    if not by or by.judge not in scorers.judges or by.rubric not in scorers.rubrics:
        return
    judge, rubric = scorers.judges[by.judge], scorers.rubrics[by.rubric]
    for sample in known.run(plan).observed:
        item, seen = items.get(sample.item), sample.observation
        if not isinstance(item, PromptItem) or not isinstance(seen, AnswerObserved):
            continue
        if item.prompt != REDACTED and not seen.is_redacted:
            asked = score_query(judge, rubric, item, seen.text)
            name = SampleName(plan.run_key, sample.item, sample.sample)
            yield ScoreQuestion(asked, judge, plan.evaluation, by.scoring, (name,))


def unlinked(known: Evaluations, question: ScoreQuestion) -> tuple[SampleName, ...]:
    """Return the samples of a question of which it is not on record that it is about them."""
    return tuple(
        sample
        for sample in question.samples
        if known.asked.get(Judged(question.scoring, key_of(sample))) != question.asked.query_key
    )
