"""Answers that a judge is to score, and the scores that samples have."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from ledger.events.evaluations import ChoicesItem, EvaluationItem, EvaluationPlanned, PromptItem
from ledger.events.registration import Reference
from ledger.events.registry import Event
from ledger.events.values import REDACTED
from ledger.identity import Digest, StreamId
from projections.evaluations.metrics import compare_runs, headline_of, metrics_of
from projections.evaluations.samples import ITEMS, Scorers, asked_samples, score_questions, unlinked
from projections.evaluations.state import Evaluations, evaluations_of
from projections.fold import fold
from projections.verdicts.scoring import ScoreQuestion
from tests.support.builders.evaluations import answer, observed, plan, registrations
from tests.support.builders.events import STREAM, key, recorded
from tests.support.builders.scores import (
    JUDGE,
    names_of,
    put_answer,
    score,
    scored_plan,
    scoring_of,
    scoring_rubric,
    shared,
)

PLAN = scored_plan()
OTHER = scored_plan("tuned")
RUBRIC = scoring_rubric()
SCORERS = Scorers(
    {Reference(label=JUDGE.judge_id, digest=JUDGE.content_digest): JUDGE},
    {Reference(label="recall", digest=RUBRIC.content_digest): RUBRIC},
)
ANSWERS = [answer(0.0, text) for text in ("aspirin", "ibuprofen", "aspirin", "rest")]
Q, R = key("query"), key("another query")


def known(*events: Event) -> Evaluations:
    """Return what is known of evaluations after events."""
    return fold(evaluations_of(STREAM), recorded(events))


def questions(
    *events: Event,
    plans: Sequence[EvaluationPlanned] = (PLAN,),
    scorers: Scorers = SCORERS,
    changed: Mapping[Digest, EvaluationItem] | None = None,
) -> tuple[ScoreQuestion, ...]:
    """Return what the judge is asked about what was observed."""
    items = fold(ITEMS, recorded(registrations(PLAN)))
    return score_questions(known(*events), items.update(changed or {}), plans, scorers)


def test_each_answer_is_a_question_and_equal_ones_are_one() -> None:
    """Two entrants that give one answer to one prompt are asked about once."""
    found = questions(
        PLAN, OTHER, *observed(PLAN, ANSWERS), *observed(OTHER, ANSWERS[:1]), plans=(PLAN, OTHER)
    )

    assert [each.samples for each in found] == [
        (*names_of(PLAN, 0), *names_of(OTHER, 0)),
        *(names_of(PLAN, n) for n in (1, 2, 3)),  # equal answers to other prompts are others
    ]
    assert {each.judge for each in found} == {JUDGE}


def test_a_shared_run_is_asked_about_once() -> None:
    """A subject's plan has the samples of the whole."""
    part = replace(PLAN, evaluation="recall.anatomy")

    found = questions(PLAN, *observed(PLAN, ANSWERS), plans=(PLAN, part))

    assert [len(each.samples) for each in found] == [1, 1, 1, 1]


def test_a_plan_without_a_judge_or_of_an_unknown_one_asks_nothing() -> None:
    """There is nobody to ask."""
    bare, seen = plan(), observed(PLAN, ANSWERS)

    assert not questions(bare, *seen, plans=(bare,))
    assert not questions(PLAN, *seen, scorers=Scorers({}, SCORERS.rubrics))
    assert not questions(PLAN, *seen, scorers=Scorers(SCORERS.judges, {}))


def test_what_has_no_text_is_not_asked_about() -> None:
    """It was redacted, or it is no answer to a prompt."""
    gone = answer(cleaned=REDACTED, expected=REDACTED)
    seen = observed(PLAN, [gone, *ANSWERS[1:]])
    prompt = PromptItem(prompt=REDACTED, expected=REDACTED)
    choices = ChoicesItem(context="", choices=("a", "b"), correct=0)

    found = questions(PLAN, *seen, changed={PLAN.items[1]: prompt, PLAN.items[2]: choices})

    assert [each.samples for each in found] == [names_of(PLAN, 3)]


def test_a_score_is_that_of_every_sample_that_has_the_answer() -> None:
    """Of those it was asked about, and of those that were found later."""
    run = known(PLAN, *observed(PLAN, ANSWERS), put_answer(Q, PLAN, 0, 2), score(Q, 7.0)).run(PLAN)
    more = known(PLAN, put_answer(Q, PLAN, 0), shared(Q, PLAN, 1), score(Q, 7.0)).run(PLAN)

    assert [each.score for each in run.judged.values()] == [7.0, 7.0]
    assert len(more.judged) == 2


def test_another_judge_or_rubric_scores_anew() -> None:
    """The scores by the one that the plan named before are kept, and do not count."""
    other = scored_plan(with_rubric=replace(RUBRIC, text="Judge otherwise."), number=2)
    seen: list[Event] = [PLAN, other, *observed(PLAN, ANSWERS), put_answer(Q, PLAN, 0), score(Q)]

    assert not known(*seen).run(other).judged
    assert known(*seen).run(PLAN).judged
    assert not known(*seen).run(plan()).judged


def test_a_tournaments_own_score_counts_before_another_ones() -> None:
    """As of verdicts: a merge changes nothing."""
    own, foreign = (
        recorded([score(Q, points)], stream=stream)
        for points, stream in ((7.0, STREAM), (3.0, StreamId("other")))
    )
    both = [fold(evaluations_of(STREAM), [*a, *b]) for a, b in ((own, foreign), (foreign, own))]

    assert [state.scores[Q].score for state in both] == [7.0, 7.0]


def test_the_judges_mean_comes_first_and_misses_what_has_no_score() -> None:
    """With its interval; the evaluation's own score stays beside it."""
    seen: list[Event] = [
        PLAN,
        *observed(PLAN, ANSWERS),
        put_answer(Q, PLAN, 0, 1),
        put_answer(R, PLAN, 2),
    ]
    first, *others = metrics_of(known(*seen, score(Q, 7.0), score(R, 4.0)).run(PLAN)).metrics

    assert (first.name, first.estimate.value, first.estimate.n) == ("judged", 6.0, 3)
    assert [each.name for each in others][:1] == ["score"]
    assert (headline_of(known().run(PLAN)), headline_of(known().run(plan()))) == ("judged", "score")


def test_entrants_are_compared_by_their_judged_samples() -> None:
    """Paired by item, as of every metric."""
    seen: list[Event] = [PLAN, OTHER, *observed(PLAN, ANSWERS), *observed(OTHER, ANSWERS)]
    put = [put_answer(Q, PLAN, 0, 1), put_answer(R, OTHER, 0, 1)]
    state = known(*seen, *put, score(Q, 4.0), score(R, 7.0))

    found = compare_runs(state.run(PLAN), state.run(OTHER)).metrics[0]

    assert (found.name, found.estimate.value) == ("judged", 3.0)


def test_a_sample_shows_the_judges_score_and_reply() -> None:
    """Whole: it says why."""
    told: list[Event] = [
        *registrations(PLAN),
        PLAN,
        *observed(PLAN, ANSWERS),
        put_answer(Q, PLAN, 0),
        score(Q),
    ]
    run = known(*told).run(PLAN)

    first, second, *_ = asked_samples(run, fold(ITEMS, recorded(told)))

    assert (first.judged, first.reply) == (7.0, "Fine.\nSCORE: 7")
    assert (second.judged, second.reply) == (None, None)


def test_samples_of_which_no_event_says_that_a_query_is_about_them() -> None:
    """They are recorded once, whoever asked the question."""
    seen: list[Event] = [PLAN, *observed(PLAN, ANSWERS)]
    question, *_ = questions(*seen)
    sent = put_answer(question.asked.query_key, PLAN, 0)

    assert question.scoring == scoring_of(PLAN)
    assert unlinked(known(*seen), question) == names_of(PLAN, 0)
    assert unlinked(known(*seen, sent), question) == ()
