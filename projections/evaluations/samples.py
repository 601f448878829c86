"""What samples were asked, what came of each, and the answers that a judge is to score."""

from collections.abc import Iterable, Iterator, Mapping
from math import log
from typing import Final, NamedTuple, assert_never

from immutables import Map

from ledger.events.evaluations import (
    AnswerObserved,
    ChoicesItem,
    ChoicesObserved,
    DocumentObserved,
    EvaluationItem,
    EvaluationPlanned,
    ItemRegistered,
    PredictionObserved,
    PromptItem,
    SampleName,
    SampleUnscorable,
    TextItem,
)
from ledger.events.registration import JudgeSettings, Reference, Rubric
from ledger.events.values import REDACTED
from ledger.identity import Digest, StreamId
from ledger.recorded import Recorded
from projections.evaluations.scores import credit
from projections.evaluations.state import (
    EVALUATION_EVENTS,
    EvaluationRun,
    Evaluations,
    SampleFact,
    evaluations_of,
    key_of,
    mismatch_of,
)
from projections.fold import Projection, both
from projections.verdicts.scoring import ScoreQuestion, score_query

ITEM_EVENTS: Final = frozenset({"ItemRegistered"})
"""The types of events that `ITEMS` reads."""

ASKED_EVENTS: Final = EVALUATION_EVENTS | ITEM_EVENTS
"""The types of events that `asked_evaluations_of` reads."""

Items = Map[Digest, EvaluationItem]
"""What was asked, by the digests that plans and samples refer to."""


def _advance(state: Items, events: Iterable[Recorded]) -> Items:
    items = state.mutate()
    for recorded in events:
        if isinstance(recorded.event, ItemRegistered):
            items[recorded.event.item] = recorded.event.asked
    return items.finish()


ITEMS: Final[Projection[Items]] = Projection(initial=Map(), advance=_advance)
"""The items of all evaluations of a ledger: its tournaments share them."""


def asked_evaluations_of(stream: StreamId) -> Projection[tuple[Evaluations, Items]]:
    """Return the projection of a tournament's evaluations beside all items."""
    return both(evaluations_of(stream), ITEMS)


class AskedSample(NamedTuple):
    """A sample as a person reads it; None: there is none, or it is not on record."""

    fate: SampleFact
    asked: str | None  # the prompt, the context of choices, or the text
    choices: tuple[str, ...] | None
    answered: str | None  # the answer, the likeliest choice, or the predicted text
    cleaned: str | None  # what of the answer was compared
    expected: str | None
    score: float | None  # of a document its bits per byte
    is_right: bool | None  # None: nothing tells right from wrong
    unscorable: str | None  # why nothing could be observed
    judged: float | None  # a judge's score
    reply: str | None  # what the judge said


def asked_samples(run: EvaluationRun, items: Items) -> Iterator[AskedSample]:
    """Yield the samples of a run that were observed or given up, in the order of its plan."""
    for key, fate in run.fates:
        if fate is not None:
            sample = _asked_sample(run.plan, fate, items.get(key.item))
            if (received := run.judged.get(key)) is not None:
                sample = sample._replace(judged=received.score, reply=received.reply)
            yield sample


def _asked_sample(
    plan: EvaluationPlanned, fate: SampleFact, item: EvaluationItem | None
) -> AskedSample:
    bare = AskedSample(fate, _asked(item), *[None] * 9)
    if isinstance(item, ChoicesItem):
        bare = bare._replace(choices=item.choices)
    if isinstance(fate, SampleUnscorable):
        return bare._replace(unscorable=fate.reason)
    if mismatch_of(fate.observation, plan.kind):
        return bare
    match fate.observation:
        case AnswerObserved() as seen:
            answer = bare._replace(answered=seen.text, expected=seen.expected)
            return _scored(answer, plan, seen)
        case PredictionObserved() as seen:
            answer = bare._replace(asked=seen.text, answered=seen.prediction, expected=seen.text)
            return _scored(answer, plan, seen)
        case ChoicesObserved() as seen:
            return _chosen(bare, seen)
        case DocumentObserved() as seen:
            return bare._replace(score=-seen.log_likelihood / log(2) / seen.n_bytes)
        case _:
            assert_never(fate.observation)


def _asked(item: EvaluationItem | None) -> str | None:
    match item:
        case None:
            return None
        case PromptItem():
            return item.prompt
        case ChoicesItem():
            return item.context
        case TextItem():
            return item.text
        case _:
            assert_never(item)


def _scored(
    answer: AskedSample, plan: EvaluationPlanned, seen: AnswerObserved | PredictionObserved
) -> AskedSample:
    """Add the own score: that of a right answer is 1, or 0 where lower is better."""
    score, is_right = seen.score, None
    if score is not None:
        is_right = score >= 1 if plan.higher_is_better else score <= 0
    return answer._replace(cleaned=seen.cleaned, score=score, is_right=is_right)


def _chosen(bare: AskedSample, seen: ChoicesObserved) -> AskedSample:
    """Return the likeliest choice beside the right one, by `acc`; a lone text is no choice."""
    weights = [choice.log_likelihood for choice in seen.choices]
    score = credit(weights, seen.correct)
    # Of equals a wrong one is shown: the right one would look as if it had been chosen.
    best = [n for n, weight in enumerate(weights) if weight == max(weights)]
    chosen = next((n for n in best if n != seen.correct), seen.correct)
    texts = bare.choices or tuple(f"choice {n + 1}" for n in range(len(weights)))
    if REDACTED in texts:
        texts = tuple(f"choice {n + 1}, {REDACTED}" for n in range(len(weights)))
    return bare._replace(
        answered=texts[chosen],
        expected=texts[seen.correct],
        score=score,
        is_right=score == 1 if len(weights) > 1 else None,
    )


class Scorers(NamedTuple):
    """The judges and rubrics that plans refer to."""

    judges: Mapping[Reference, JudgeSettings]
    rubrics: Mapping[Reference, Rubric]


def score_questions(
    evaluations: Evaluations, items: Items, plans: Iterable[EvaluationPlanned], scorers: Scorers
) -> tuple[ScoreQuestion, ...]:
    """Return what judges are asked about the answers of some plans, scored already or not.

    Without its text no question can be built of an answer, nor of a prompt: those are left out.
    """
    questions: dict[tuple[Digest, Digest], ScoreQuestion] = {}
    samples: dict[tuple[Digest, Digest], dict[SampleName, None]] = {}
    for plan in plans:
        for question in _of_plan(evaluations, items, plan, scorers):
            name = (question.asked.query_key, question.scoring)
            questions.setdefault(name, question)
            samples.setdefault(name, {}).update(dict.fromkeys(question.samples))
    return tuple(
        question._replace(samples=tuple(samples[name])) for name, question in questions.items()
    )


def _of_plan(
    evaluations: Evaluations, items: Items, plan: EvaluationPlanned, scorers: Scorers
) -> Iterator[ScoreQuestion]:
    """Yield a question for each answered sample of a plan."""
    by = plan.scored_by
    if not by or by.judge not in scorers.judges or by.rubric not in scorers.rubrics:
        return
    judge, rubric = scorers.judges[by.judge], scorers.rubrics[by.rubric]
    for sample in evaluations.run(plan).observed:
        item, seen = items.get(sample.item), sample.observation
        if not isinstance(item, PromptItem) or not isinstance(seen, AnswerObserved):
            continue
        if item.prompt != REDACTED and not seen.is_redacted:
            asked = score_query(judge, rubric, item, seen.text)
            name = SampleName(plan.run_key, sample.item, sample.sample)
            yield ScoreQuestion(asked, judge, plan.evaluation, by.scoring, (name,))


def unlinked(evaluations: Evaluations, question: ScoreQuestion) -> tuple[SampleName, ...]:
    """Return the samples of a question of which it is not on record that it is about them."""
    return tuple(
        sample
        for sample in question.samples
        if evaluations.asked.get((question.scoring, key_of(sample))) != question.asked.query_key
    )
