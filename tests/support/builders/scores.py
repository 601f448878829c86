"""Builders of answers that a judge scores: rubric, plan, query, score."""

from msgspec.structs import replace

from ledger.events.evaluations import (
    EvaluationPlanned,
    PromptItem,
    SampleName,
    ScoredBy,
    scoring_digest,
)
from ledger.events.judging import ScoreQuerySubmitted, ScoreReceived, ScoreShared
from ledger.events.money import Price, Usage
from ledger.events.registration import Reference, Rubric, ScoreScale
from ledger.identity import Digest, Dimension, JudgeId
from tests.support.builders.evaluations import plan
from tests.support.builders.events import judge, rubric

JUDGE = judge("ann", provider="anthropic", model="claude")
TEN = ScoreScale((1.0, 10.0))
PASSES = ScoreScale()
QUESTION = PromptItem(prompt="What helps?", expected="aspirin")


def scoring_rubric(scale: ScoreScale = TEN, *, needs_gold: bool = True) -> Rubric:
    """Return a rubric by which answers of `recall` are scored."""
    return replace(rubric("recall", needs_gold=needs_gold), scale=scale)


def scored_plan(
    entrant: str = "base", *, with_rubric: Rubric | None = None, **fields: object
) -> EvaluationPlanned:
    """Return a plan whose answers a judge scores."""
    text = with_rubric or scoring_rubric()
    scored_by = ScoredBy(
        judge=Reference(label=JUDGE.judge_id, digest=JUDGE.content_digest),
        rubric=Reference(label=Dimension("recall"), digest=text.content_digest),
        scoring=scoring_digest(JUDGE.digest, text.digest),
    )
    return replace(plan(entrant), scored_by=scored_by, **fields)


def scoring_of(planned: EvaluationPlanned) -> Digest:
    """Return the digest of a plan's judge and rubric."""
    assert planned.scored_by
    return planned.scored_by.scoring


def names_of(planned: EvaluationPlanned, *places: int) -> tuple[SampleName, ...]:
    """Return the names of a plan's first samples of some items."""
    return tuple(SampleName(planned.run_key, planned.items[place], 0) for place in places)


def put_answer(
    query: Digest, planned: EvaluationPlanned, *places: int, **fields: object
) -> ScoreQuerySubmitted:
    """Return the event that puts an answer of some samples to a judge."""
    event = ScoreQuerySubmitted(
        query_key=query,
        judge=JUDGE.judge_id,
        evaluation=planned.evaluation,
        scoring=scoring_of(planned),
        scale=TEN,
        samples=names_of(planned, *places),
    )
    return replace(event, **fields)


def score(query: Digest, points: float = 7.0, **fields: object) -> ScoreReceived:
    """Return a score that a judge gave."""
    event = ScoreReceived(
        query_key=query,
        judge=JudgeId("ann"),
        score=points,
        reply=f"Fine.\nSCORE: {points:g}",
        parser="score-line@1",
        stop_reason="end_turn",
        model="claude",
    )
    return replace(event, **fields)


def paid_score(query: Digest, usage: Usage, price: Price) -> ScoreReceived:
    """Return a score that took tokens."""
    return score(query, usage=usage, price=price)


def shared(query: Digest, planned: EvaluationPlanned, *places: int) -> ScoreShared:
    """Return that further samples have an answer that was put to a judge."""
    samples = names_of(planned, *places)
    return ScoreShared(query_key=query, scoring=scoring_of(planned), samples=samples)
