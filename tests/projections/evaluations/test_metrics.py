"""What is made of what entrants did on evaluations."""

from math import exp, log

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ledger.events.evaluations import (
    EvaluationPlanned,
    Observation,
    TaskMetric,
    TaskReference,
    TaskResults,
)
from ledger.events.values import REDACTED
from projections.evaluations.metrics import HEADLINES, compare_runs, headline_of, metrics_of
from projections.evaluations.state import EvaluationRun
from projections.intervals import Estimate
from tests.support.builders.evaluations import (
    answer,
    choice,
    choices,
    completed,
    document,
    observed,
    plan,
    prediction,
    run_of,
    unscorable,
)
from tests.support.builders.events import key

COMPARISON = plan(kind="comparison")
PERPLEXITY = plan(kind="perplexity", higher_is_better=False)
ENCODING = plan(kind="encoding")


def estimates(run: EvaluationRun) -> dict[str, Estimate]:
    """Return what is estimated of a run, by name."""
    return {metric.name: metric.estimate for metric in metrics_of(run).metrics}


def values(planned: EvaluationPlanned, *seen: Observation) -> dict[str, float | None]:
    """Return the metrics of observations, by name."""
    found = estimates(run_of(planned, *observed(planned, seen)))
    return {name: estimate.value for name, estimate in found.items()}


def test_choices_are_weighed_by_each_rule() -> None:
    """A long right answer loses by its sum, and wins by what it costs per token or byte."""
    long = choice(-4.0, "yes, and no", n_tokens=4)

    found = values(COMPARISON, choices(long, choice(-2.0, "no"), correct=0))

    expected = {"acc": 0.0, "acc_tok": 1.0, "acc_norm": 1.0, "acc_bytes": 1.0, "exact_match": 0.0}
    assert found == expected


def test_a_lone_text_is_right_if_greedy_decoding_gives_it() -> None:
    """As the only choice it would always be right."""
    likeliest, other = choice(-1.0, is_greedy=True), choice(-3.0)

    found = values(COMPARISON, choices(likeliest), choices(other))

    assert found == {"acc": 0.5, "perplexity": pytest.approx(exp(2.0))}


def test_choices_that_are_likely_anyway_lose_by_mutual_information() -> None:
    """Only where it was asked how likely each is behind nothing; elsewhere it is not shown."""
    usual = choice(-1.0, unconditional=-1.0)
    telling = choice(-2.0, unconditional=-6.0, is_greedy=True)

    found = values(COMPARISON, choices(usual, telling, correct=1))

    assert found["acc"] == 0.0
    assert found["acc_pmi"] == 1.0
    assert found["exact_match"] == 1.0


def test_what_was_not_asked_of_a_sample_does_not_count_there() -> None:
    """A mixture, as of an evaluation that was changed, must not count as wrong."""
    asked = choices(choice(-1.0, unconditional=-3.0), choice(-2.0, unconditional=-3.0))
    not_asked = choices(choice(-1.0), choice(-2.0))

    run = run_of(COMPARISON, *observed(COMPARISON, [asked, not_asked]))

    assert estimates(run)["acc_pmi"][:2] == (1.0, 1)
    assert estimates(run)["acc"][:2] == (1.0, 2)


def test_perplexity_counts_each_token_the_same() -> None:
    """A mean over documents would let short ones decide."""
    found = values(PERPLEXITY, document(-2.0, 1, 4, 1), document(-9.0, 9, 44, 5))

    assert found == pytest.approx(
        {
            "bits_per_byte": 11 / 48 / log(2),
            "perplexity": exp(1.1),
            "word_perplexity": exp(11 / 6),
            "byte_perplexity": exp(11 / 48),
        }
    )


def test_answers_are_scored_matched_and_searched() -> None:
    """By words alone: case, punctuation and articles are no part of an answer."""
    found = values(
        plan(),
        answer(1.0, "The Aspirin."),
        answer(0.0, "Give aspirin", finish_reason="length"),
        answer(0.0, "heparin"),
        answer(0.0, ""),
    )

    assert found == {"score": 0.25, "exact_match": 0.25, "containment": 0.5, "length_limited": 0.25}


def test_redacted_answers_and_predictions_keep_their_score_and_are_not_compared() -> None:
    """Texts and token ids are all alike now, which makes none of them right."""
    gone = answer(0.0, REDACTED, text=REDACTED, expected=REDACTED)
    gone_too = replace(prediction([], [], score=0.0), text=REDACTED)

    answers = values(plan(), answer(1.0, "heparin"), gone)
    predictions = values(ENCODING, prediction([1, 2], [1, 3]), gone_too)

    expected = {"score": 0.5, "exact_match": 0.0, "containment": 0.0, "length_limited": 0.0}
    assert answers == expected
    assert predictions == {"score": 0.5, "last_token": 0.0, "tokens": 0.5}


def test_scores_that_are_no_shares_have_no_share_s_interval() -> None:
    """A reward may be anything, and be better where it is less."""
    planned = plan(n_items=6, higher_is_better=False)
    run = run_of(planned, *observed(planned, [answer(-3.0), answer(-3.0), answer(0.0)] * 2))

    score = metrics_of(run).metrics[0]

    assert (score.name, score.higher_is_better) == ("score", False)
    assert score.estimate.value == -2.0
    assert score.estimate.low is not None
    assert score.estimate.low < -3.5


def test_answers_to_one_prompt_are_one_cluster() -> None:
    """Four tries at one item are no four items."""
    planned = plan(n_items=2, n_samples=4)
    seen = [answer(1.0)] * 4 + [answer(0.0)] * 4
    run = run_of(planned, *observed(planned, seen))

    score = estimates(run)["score"]

    assert score[:3] == (0.5, 8, 0.5)


@pytest.mark.parametrize(
    ("right", "at_2", "at_4"),
    [((0, 0, 0, 0), 0.0, 0.0), ((0, 1, 0, 0), 0.5, 1.0), ((1, 1, 0, 1), 1.0, 1.0)],
)
def test_pass_at_k_is_the_share_of_draws_with_a_right_try(
    right: tuple[int, ...], at_2: float, at_4: float
) -> None:
    """One right of four is in half of the pairs, and in the only four."""
    planned = plan(n_items=2, n_samples=4)

    found = values(planned, *[answer(float(each)) for each in right] * 2)

    assert found["pass@2"] == pytest.approx(at_2)
    assert found["pass@4"] == pytest.approx(at_4)


def test_pass_at_k_gives_each_item_the_same_weight() -> None:
    """An item with unscorable tries has fewer, and one with fewer than k does not count."""
    planned = plan(n_items=3, n_samples=4)
    whole = observed(planned, [answer(1.0)] * 4)
    half = observed(planned, [answer(0.0)] * 2, start=4)
    single = observed(planned, [answer(1.0)], start=8)

    found = estimates(run_of(planned, *whole, *half, *single))

    assert found["pass@2"].value == pytest.approx(0.5)
    assert (found["pass@2"].n, found["pass@4"].n) == (6, 4)
    assert found["pass@4"].value == 1.0


def test_tries_that_are_not_right_or_wrong_have_no_pass_at_k() -> None:
    """Half a point is neither."""
    planned = plan(n_samples=2)

    assert "pass@2" not in values(planned, answer(0.5), answer(1.0))


def test_predictions_are_compared_token_by_token() -> None:
    """The text that ids decode to could be the same where tokens are not."""
    seen = [prediction([1, 2, 3], [1, 0, 3], score=1.0), prediction([4], [5], score=0.0)]

    assert values(ENCODING, *seen) == {"score": 0.5, "last_token": 0.5, "tokens": 0.5}


def test_what_cannot_be_scored_is_counted_and_is_no_wrong_answer() -> None:
    """A context that is too long says nothing of the model's knowledge."""
    planned = plan(n_items=4)
    seen = observed(planned, [answer(is_truncated=True), answer(finish_reason="length")])

    found = metrics_of(run_of(planned, *seen, unscorable(planned, 2)))

    assert found.counts == (4, 2, 1, 1, 1)
    assert found.metrics[0].estimate[:2] == (1.0, 2)


def test_a_run_of_which_nothing_is_known_yet_has_metrics_without_values() -> None:
    """It stands in the table, so that nobody takes it for done."""
    for kind, headline in HEADLINES.items():
        found = estimates(run_of(plan(kind=kind)))

        assert found[headline] == Estimate(None, 0, None, None, None)


@pytest.mark.parametrize("broken", [answer(), choices(choice(-1.0), choice(-2.0), correct=2)])
def test_what_does_not_fit_its_run_is_passed_over(broken: Observation) -> None:
    """On a ledger that only grows it would be in the way of all metrics; `verify` says so."""
    sound = choices(choice(-1.0))

    found = metrics_of(run_of(COMPARISON, *observed(COMPARISON, [broken, sound])))

    assert found.counts.n_observed == 1
    assert {metric.estimate.n for metric in found.metrics} == {1}


def test_only_what_both_observed_is_compared() -> None:
    """Unpaired samples would bring back how hard they are."""
    base, tuned = plan(n_items=4), plan("tuned", n_items=4)
    first = run_of(base, *observed(base, [answer(0.0), answer(0.0), answer(1.0)]))
    second = run_of(tuned, *observed(tuned, [answer(1.0), answer(1.0), answer(1.0)], start=1))

    found = compare_runs(first, second)

    assert (found.n_pairs, found.n_left_out) == (2, 2)
    score = found.metrics[0]
    assert (score.name, score.estimate.value) == ("score", 0.5)


def test_a_metric_that_one_of_them_lacks_is_not_compared() -> None:
    """Mutual information may be asked of one only."""
    base, tuned = COMPARISON, plan("tuned", kind="comparison")
    asked = choices(choice(-1.0, unconditional=-2.0))
    first = run_of(base, *observed(base, [asked]))
    second = run_of(tuned, *observed(tuned, [choices(choice(-1.0))]))

    names = [metric.name for metric in compare_runs(first, second).metrics]

    assert "acc_pmi" not in names
    assert "acc" in names


def test_token_perplexities_of_two_tokenizers_are_not_compared() -> None:
    """Bits per byte are, as bytes are the same for both."""
    base, tuned = PERPLEXITY, plan("tuned", kind="perplexity")
    first = run_of(base, *observed(base, [document(-8.0, 4), document(-8.0, 4)]))
    second = run_of(tuned, *observed(tuned, [document(-4.0, 3), document(-4.0, 4)]))

    found = {metric.name: metric.estimate for metric in compare_runs(first, second).metrics}

    assert found["perplexity"].value is None
    assert found["bits_per_byte"].value == pytest.approx(-0.5 / log(2))


@given(order=st.permutations(range(4)))
def test_the_order_of_recording_does_not_matter(order: list[int]) -> None:
    """A resumed run, and one on several devices, record the same samples in another order."""
    scores = (1.0, 0.25, 0.5, 0.125)
    events = observed(plan(), [answer(score) for score in scores])

    shuffled = run_of(plan(), *(events[place] for place in order))

    assert metrics_of(shuffled) == metrics_of(run_of(plan(), *events))


def test_a_score_that_is_not_known_yet_is_of_no_sample() -> None:
    """It needs all samples; what else is known of an answer is there at once."""
    some = values(plan(), answer(None), answer(0.5), answer(None, "heparin"))
    none = values(plan(), answer(None))

    assert some["score"] == 0.5
    assert some["exact_match"] == pytest.approx(2 / 3)
    assert (none["score"], none["exact_match"]) == (None, 1.0)


TASK = plan(kind="comparison", task=TaskReference(name="arc", version="0.4.13", digest=key("task")))


def by_harness(*values: float | None, first: int = 0) -> EvaluationRun:
    """Return the run of a task that is completed, with a mean and something else."""
    mean = TaskMetric(
        name="acc", value=0.625, standard_error=0.125, higher_is_better=True, values=values
    )
    other = TaskMetric(name="f1", value=0.25, standard_error=None, higher_is_better=True)
    numbers = tuple(range(first, first + len(values)))
    results = TaskResults(n_documents=len(values), documents=numbers, metrics=(mean, other))
    return run_of(TASK, replace(completed(TASK, 4), results=results))


def test_metrics_of_a_task_are_those_of_lm_evaluation_harness() -> None:
    """To the last digit, with its standard error; a mean has an interval of ours."""
    run = by_harness(1.0, 0.0, 1.0, 1.0, 0.0, 1.0, None)
    found = estimates(run)

    assert found["acc"][:3] == (0.625, 6, 0.125)
    assert found["acc"].low is not None
    assert found["f1"] == Estimate(0.25, 7, None, None, None)
    assert headline_of(run) == "acc"


@pytest.mark.parametrize("run", [run_of(TASK), by_harness()], ids=["incomplete", "nothing"])
def test_a_task_without_results_stands_in_the_table(run: EvaluationRun) -> None:
    """So that nobody takes it for done; its samples may say something else than its metrics."""
    if run.results:
        run = run_of(TASK, replace(completed(TASK, 4), results=replace(run.results, metrics=())))

    assert estimates(run) == {"acc": Estimate(None, 0, None, None, None)}
    assert headline_of(run) == "acc"


def test_runs_of_a_task_are_compared_by_document() -> None:
    """Of means, on the documents that both have."""
    first = by_harness(1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0)
    second = by_harness(1.0, 1.0, 0.0, 1.0, 1.0, None, 1.0, first=1)
    found = compare_runs(first, second)

    assert (found.n_pairs, found.n_left_out) == (6, 2)
    assert [(each.name, each.estimate.n) for each in found.metrics] == [("acc", 5)]
    assert found.metrics[0].estimate.value == pytest.approx(4 / 5 - 3 / 5)


def test_runs_of_a_task_that_share_no_document_have_no_difference() -> None:
    """There is nothing to pair."""
    assert compare_runs(by_harness(1.0), by_harness(1.0, first=9)).metrics == ()
