"""Intervals of shares and of quotients of sums, and how many resamples one takes."""

import os
import platform
import subprocess
import sys
from math import exp, sqrt
from statistics import mean, stdev

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.identity import Digest
from projections.intervals import (
    Estimate,
    RatioTerms,
    Scale,
    estimate_difference,
    estimate_ratio,
    fewest_resamples,
    jackknife_interval,
    too_few_resamples,
    wilson,
)
from projections.ratings.bradley_terry.component import percentiles
from tests.support.builders.events import key
from tests.support.published_bits import published

SCALES: tuple[Scale, ...] = ("plain", "share", "exponential")
SHARES = st.lists(st.floats(min_value=0, max_value=1), min_size=2, max_size=12)


def quotient(numerators: list[float], denominators: list[float] | None = None) -> RatioTerms:
    """Return a quotient; a mean if nothing is said of denominators."""
    given_ = [1.0] * len(numerators) if denominators is None else denominators
    return RatioTerms(np.array(numerators), np.array(given_))


def apart(n: int) -> list[Digest]:
    """Return as many clusters as samples."""
    return [key(f"cluster {each}") for each in range(n)]


def test_the_error_of_a_mean_is_the_standard_deviation_over_root_n() -> None:
    """Where each sample is its own cluster it is what everybody knows; of six, t is 2.571."""
    values = [0.25, 1.5, -2.0, 4.0, 1.0, 0.5]

    found = estimate_ratio(quotient(values), apart(6), "plain")

    error = stdev(values) / sqrt(6)
    assert found.value == mean(values)
    assert found.standard_error == pytest.approx(error)
    assert found.low == pytest.approx(mean(values) - 2.570582 * error)
    assert found.high == pytest.approx(mean(values) + 2.570582 * error)


@pytest.mark.parametrize("scale", SCALES)
def test_five_clusters_have_an_error_and_no_interval(scale: Scale) -> None:
    """How much so few differ is as good as unknown."""
    found = estimate_ratio(quotient([0.2, 0.9, 0.4, 0.3, 0.7]), apart(5), scale)

    assert found.standard_error is not None
    assert (found.low, found.high) == (None, None)


def test_trials_that_succeed_or_fail_have_wilsons_interval_however_few() -> None:
    """Their variance follows from the share, and is not estimated; that of half points is."""
    trials = estimate_ratio(quotient([1.0, 0.0, 1.0]), apart(3), "share")
    halves = estimate_ratio(quotient([1.0, 0.0, 1.0, 0.5, 0.5, 1.0]), apart(6), "share")

    assert (trials.low, trials.high) == pytest.approx(wilson(2 / 3, 3))
    variance = (3 / 9 + 4 / 9 + 2 / 36) / 6  # where trials have 2 / 9
    expected = wilson(2 / 3, 6 * 2 / 9 / variance, 2.570582)
    assert (halves.low, halves.high) == pytest.approx(expected)


@given(values=SHARES)
def test_asking_each_prompt_twice_alike_makes_nothing_surer(values: list[float]) -> None:
    """Greedy answers to one prompt are the same: they are evidence once."""
    once = estimate_ratio(quotient(values), apart(len(values)), "plain")
    twice = estimate_ratio(quotient(values * 2), apart(len(values)) * 2, "plain")

    assert twice.n == 2 * once.n
    assert twice.value == pytest.approx(once.value)
    assert twice.standard_error == pytest.approx(once.standard_error)


def test_the_error_of_a_ratio_is_that_of_its_linear_part() -> None:
    """Long documents weigh more; worked by hand for two clusters of two documents each."""
    found = estimate_ratio(
        quotient([1.0, 2.0, 6.0, 3.0], [1.0, 3.0, 3.0, 1.0]),
        [key("a"), key("a"), key("b"), key("b")],
        "plain",
    )

    ratio = 12 / 8
    deviation = (3 - ratio * 4) / 8  # of cluster a; that of b is as large the other way
    assert found.value == ratio
    assert found.standard_error == pytest.approx(sqrt(2 / 1 * 2 * deviation**2))


@pytest.mark.parametrize("share", [1 / 3, 2 / 3, 0.1])
def test_a_share_that_is_the_same_everywhere_is_no_certainty(share: float) -> None:
    """A mean of thirds is off by its rounding; what is left of the error is none."""
    found = estimate_ratio(quotient([share] * 10), apart(10), "share")

    assert (found.low, found.high) == pytest.approx(wilson(share, 10))


@given(right=st.lists(st.booleans(), min_size=2, max_size=12))
def test_the_interval_of_independent_answers_is_wilson_s(right: list[bool]) -> None:
    """Clusters of one must not change what is known of counts."""
    found = estimate_ratio(quotient([*map(float, right)]), apart(len(right)), "share")

    assert (found.low, found.high) == pytest.approx(wilson(sum(right) / len(right), len(right)))


def test_the_interval_of_a_share_is_that_of_as_sure_a_count() -> None:
    """Samples that go together are worth fewer trials."""
    values = [1.0, 1.0, 1.0, 1.0, 0.0, 0.0]
    pairs = [each for each in apart(3) for _ in range(2)]

    found = estimate_ratio(quotient(values), pairs, "share")

    assert found.value == pytest.approx(2 / 3)
    assert (found.low, found.high) == pytest.approx(wilson(2 / 3, 3))  # not 6


@pytest.mark.parametrize(("values", "interval"), [(6, (0.0, 1.0)), (4, (None, None))])
def test_a_share_of_nothing_by_samples_beyond_it_may_be_anything(
    values: int, interval: tuple[float | None, float | None]
) -> None:
    """What a slot effect takes off may cancel out to 0 exactly, and no trial has its error."""
    found = estimate_ratio(quotient([0.5, -0.5] * (values // 2)), apart(values), "share")

    assert (found.value, (found.low, found.high)) == (0.0, interval)


def test_an_exponential_has_the_interval_of_its_logarithm() -> None:
    """A perplexity is never below nothing, and its error is that of the mean times itself."""
    drawn = quotient([4.0, 9.0, 12.0, 6.0, 5.0, 3.0], [2.0, 3.0, 5.0, 3.0, 2.0, 2.0])
    log = estimate_ratio(drawn, apart(6), "plain")
    assert log.value is not None
    assert log.standard_error is not None
    assert log.low is not None
    assert log.high is not None

    found = estimate_ratio(drawn, apart(6), "exponential")

    value = exp(log.value)
    assert found == pytest.approx(
        (value, 6, value * log.standard_error, exp(log.low), exp(log.high))
    )


@pytest.mark.parametrize("scale", SCALES)
def test_one_cluster_says_nothing_of_how_sure_it_is(scale: Scale) -> None:
    """A spread between clusters cannot be seen in one."""
    found = estimate_ratio(quotient([0.5, 0.75]), [key("a")] * 2, scale)

    assert found.value is not None
    assert found[1:] == (2, None, None, None)
    expected = (0.0, 1, None)
    assert estimate_difference(quotient([0.5]), quotient([0.5]), apart(1), scale)[:3] == expected


@pytest.mark.parametrize("scale", SCALES)
def test_no_sample_has_no_value(scale: Scale) -> None:
    """Nothing was observed: that is neither 0 nor an error."""
    nothing = Estimate(None, 0, None, None, None)

    assert estimate_ratio(quotient([]), [], scale) == nothing
    assert estimate_difference(quotient([]), quotient([]), [], scale) == nothing


def test_samples_with_nothing_to_divide_by_do_not_count() -> None:
    """A gold answer without words can be neither matched nor missed."""
    drawn = quotient([1.0, 0.0, 0.0], [1.0, 1.0, 0.0])

    assert estimate_ratio(drawn, apart(3), "share") == estimate_ratio(
        quotient([1.0, 0.0]), apart(2), "share"
    )


def test_what_floats_cannot_hold_is_not_said() -> None:
    """A text without spaces is one word of many nats: exp(400) is a float, its square is none."""
    huge, usual = quotient([350.0, 450.0]), quotient([1.0, 2.0])

    assert estimate_ratio(huge, apart(2), "exponential") == (None, 2, None, None, None)
    assert estimate_difference(usual, huge, apart(2), "exponential") == (None, 2, None, None, None)
    assert estimate_difference(huge, usual, apart(2), "exponential") == (None, 2, None, None, None)


@given(pairs=st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=12))
def test_a_difference_of_means_is_the_mean_of_differences(pairs: list[tuple[float, float]]) -> None:
    """Paired: how hard a sample is for both cancels out."""
    a, b = (quotient([pair[place] for pair in pairs]) for place in (0, 1))
    apiece = quotient([pair[1] - pair[0] for pair in pairs])

    found = estimate_difference(a, b, apart(len(pairs)), "share")

    assert found == pytest.approx(estimate_ratio(apiece, apart(len(pairs)), "plain"), abs=1e-9)


@given(values=SHARES, scale=st.sampled_from(SCALES))
def test_an_entrant_does_not_differ_from_itself(values: list[float], scale: Scale) -> None:
    """And of that one is sure."""
    values = values * 3
    found = estimate_difference(quotient(values), quotient(values), apart(len(values)), scale)

    assert found == (0.0, len(values), 0.0, 0.0, 0.0)


def test_a_difference_of_perplexities_is_sure_where_documents_go_together() -> None:
    """One finds each token half a nat likelier; how hard the documents are matters little."""
    lengths = [20.0, 30.0, 50.0]
    nats = [2.0 * 20, 3.0 * 30, 4.0 * 50]
    better = [each - 0.5 * length for each, length in zip(nats, lengths, strict=True)]
    a, b = quotient(nats, lengths), quotient(better, lengths)
    alone = estimate_ratio(a, apart(3), "exponential")
    assert alone.value is not None
    assert alone.standard_error is not None

    found = estimate_difference(a, b, apart(3), "exponential")

    assert found.value == pytest.approx(alone.value * (exp(-0.5) - 1))
    assert found.standard_error == pytest.approx(alone.standard_error * (1 - exp(-0.5)))


def test_quotients_by_different_counts_are_not_compared() -> None:
    """Two tokenizers cut a text into different tokens: perplexities per token are two things."""
    found = estimate_difference(
        quotient([4.0], [2.0]), quotient([4.0], [3.0]), apart(1), "exponential"
    )

    assert found == (None, 1, None, None, None)


@pytest.mark.parametrize(
    ("level", "fewest"),
    [(0.001, 3), (0.5, 4), (0.9, 20), (0.95, 40), (0.99, 200), (0.999, 2000), (0.99999, 200_000)],
)
def test_bounds_leave_a_resample_out_at_each_end(level: float, fewest: int) -> None:
    """With one less they are the extremes of what was drawn, whatever level they claim."""
    enough, too_few = np.arange(float(fewest))[:, None], np.arange(fewest - 1.0)[:, None]

    assert fewest_resamples(level) == fewest
    assert [float(bound[0]) for bound in percentiles(enough, level)] == [1.0, fewest - 2.0]
    assert [float(bound[0]) for bound in percentiles(too_few, level)] == [0.0, fewest - 2.0]


def test_a_shortage_says_how_many_it_takes() -> None:
    """Who reads it asks again, and once."""
    assert too_few_resamples(40, 0.95) is None
    assert too_few_resamples(39, 0.95) == ("a 95 % interval needs at least 40 resamples")


COUNTED_SHARES = st.tuples(st.integers(1, 10_000), st.floats(min_value=0, max_value=1))


@pytest.mark.parametrize(
    ("won", "n", "interval"),
    [(0, 10, (0.0, 0.2775)), (10, 10, (0.7225, 1.0)), (81, 263, (0.2553, 0.3662))],
)
def test_intervals_are_those_of_the_literature(
    won: int, n: int, interval: tuple[float, float]
) -> None:
    """The last is Newcombe's first example (1998, table I); nothing won is no certainty."""
    assert wilson(won / n, n) == pytest.approx(interval, abs=5e-5)


@given(drawn=COUNTED_SHARES)
def test_a_bound_is_as_far_from_the_share_as_chance_goes(drawn: tuple[int, float]) -> None:
    """The definition: seen from either bound, the share is 1.96 standard errors away, or at it."""
    n, share = drawn

    for bound in wilson(share, n):
        assert 0 <= bound <= 1
        reach = 1.959963984540054 * sqrt(bound * (1 - bound) / n)
        assert abs(share - bound) == pytest.approx(reach, abs=1e-7)


OLD_PROCESSOR = {
    "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL AVX512_SPR",
    "OPENBLAS_CORETYPE": "Nehalem",
}


@pytest.mark.skipif(platform.machine() != "x86_64", reason="these names are of x86 processors")
def test_another_processor_finds_the_same_bits() -> None:
    """What one published is replayed on another; their exponentials and products differ."""
    there = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.support.published_bits"],
        env=os.environ | OLD_PROCESSOR,
        capture_output=True,
        check=True,
        text=True,
    ).stdout
    here = "\n".join([*published(), ""])

    assert here == there
    assert here.count("Estimate(") == 60
    assert here.count("\n") == 60 + 3


def test_a_jackknife_of_a_mean_is_its_usual_interval() -> None:
    """Leaving out one of n changes a mean by its deviation over n - 1: both are the same."""
    values = np.array([0.0, 1.0, 4.0, 2.0, 2.5, 7.0, 3.0])
    usual = estimate_ratio(RatioTerms(values, np.ones(7)), range(7), "plain")

    found = jackknife_interval(
        np.column_stack((values, np.ones(7))), range(7), lambda sums: sums[:, 0] / sums[:, 1]
    )

    assert found == pytest.approx((usual.low, usual.high))


@pytest.mark.parametrize("values", [[0.0, 1.0, 0.0, 1.0, 1.0], [0.0] * 8, [np.nan, *range(7)]])
def test_what_tells_nothing_of_how_prompts_differ_has_no_interval(values: list[float]) -> None:
    """Five prompts, eight that are alike, and a value that is not defined."""
    parts = np.array(values)[:, None]

    found = jackknife_interval(parts, range(len(values)), lambda sums: sums[:, 0])

    assert found == (None, None)
