"""Soft scores of marks, and the temperature that reads marks as people would."""

from collections.abc import Sequence
from math import isnan, log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from projections.battles.columns import Battles
from projections.battles.soft_scores import (
    CannotCalibrate,
    Temperature,
    calibrate,
    log_likelihood,
    margin_of,
    soft_scores,
)
from projections.intervals import Floats
from tests.support.builders.battles import Battle, in_columns

Numbers = Sequence[float] | Floats

MARKS = st.floats(min_value=-1e6, max_value=1e6)


def human(scores: Numbers, prompts: Sequence[int] | None = None) -> Battles:
    """Return what people said of a and b, each time on another prompt unless told."""
    numbers = range(len(scores)) if prompts is None else prompts
    return in_columns(
        Battle("a", "b", float(score), prompt)
        for score, prompt in zip(scores, numbers, strict=True)
    )


def calibrated(scores: Numbers, margins: Numbers) -> Temperature:
    """Calibrate by what people said and by how much more the judge gave to a."""
    return calibrate(human(scores), np.array(margins, dtype=np.float64))


@pytest.mark.parametrize(
    ("marks", "preference"),
    [
        ((0, 1), 0.5744425168116589),
        ((10, -5), 0.010986942630593188),
        ((0, 10), 0.9525741268224333),
        ((9, 2), 0.10909682119561293),
    ],
)
def test_soft_scores_are_judgearenas_seen_from_a(
    marks: tuple[float, float], preference: float
) -> None:
    """Its preferences are what b took; these are its own, to the last digit."""
    a, b = marks

    assert 1 - soft_scores(a, b) == pytest.approx(preference, abs=1e-12)
    assert soft_scores(b, a) == pytest.approx(preference, rel=1e-12)


@given(a=MARKS, b=MARKS, temperature=st.floats(min_value=0, max_value=10))
def test_both_sides_together_take_one(a: float, b: float, temperature: float) -> None:
    """A battle has one point to give, be marks ever so far apart; the higher mark takes more."""
    first = soft_scores(a, b, temperature=temperature)
    second = soft_scores(b, a, temperature=temperature)

    assert 0 <= first <= 1
    assert first + second == pytest.approx(1)
    assert a < b or first >= second


def test_a_calibration_by_hand() -> None:
    """Of 12 pairs 2 marks apart people agreed on 8: sigma(2 T) = 2 / 3; ties are skipped."""
    margins = [2.0] * 6 + [-2.0] * 6 + [5.0]

    found = calibrated([1.0] * 4 + [0.0] * 6 + [1.0] * 2 + [0.5], margins)

    information = 12 * 2**2 * (2 / 3) * (1 / 3)
    squares = 2**2 * (8 * (1 / 3) ** 2 + 4 * (2 / 3) ** 2) * 12 / 11
    assert found.value == pytest.approx(log(2) / 2)
    assert found.error == pytest.approx(sqrt(squares) / information)
    assert (found.n_pairs, found.n_ties, found.n_prompts) == (12, 1, 12)
    assert found.interval(0.95) == pytest.approx(
        (found.value - 1.959964 * found.error, found.value + 1.959964 * found.error)
    )


def test_what_is_found_tells_votes_best() -> None:
    """8 of 12 at odds of 2 : 1 each; nothing a little aside is better, and a tie says nothing."""
    scores = human([1.0] * 4 + [0.0] * 6 + [1.0] * 2 + [0.5])
    marks = np.array([2.0] * 6 + [-2.0] * 6 + [5.0])

    best, below, above, coin = (
        log_likelihood(scores, marks, temperature=each)
        for each in (log(2) / 2, log(2) / 2 - 0.01, log(2) / 2 + 0.01, 0.0)
    )

    assert best == pytest.approx(8 * log(2 / 3) + 4 * log(1 / 3))
    assert coin == pytest.approx(12 * log(1 / 2))
    assert coin < max(below, above) < best


@given(margin=st.floats(-100, 100))
def test_marks_are_found_again_in_the_preferences_that_they_made(margin: float) -> None:
    """An import holds no marks: only what JudgeArena made of them."""
    pref = soft_scores(0.0, margin)

    found = margin_of(pref)

    assert soft_scores(found, 0.0) == pytest.approx(1 - pref, abs=1e-12)
    assert abs(margin) > 33 or found == pytest.approx(margin, abs=1e-6)


def test_preferences_without_doubt_have_marks_beyond_measure() -> None:
    """And none at all if there is no preference."""
    found = margin_of(np.array([0.0, 0.5, 1.0, np.nan]))

    assert found.tolist() == pytest.approx([np.inf, 0.0, -np.inf, np.nan], nan_ok=True)


@pytest.mark.no_cover
@pytest.mark.parametrize("n", [10, 10_000])
def test_one_pair_against_all_others_is_enough(n: int) -> None:
    """Where the likelihood is nearly flat, far out, a careless climb would leap or stop."""
    found = calibrated([1.0] * n + [0.0], [10.0] * n + [0.1])

    expected = soft_scores(10, 0, temperature=-found.value) * 10 * n
    assert expected == pytest.approx(0.1 * soft_scores(0.1, 0, temperature=found.value), rel=1e-6)


def test_preferences_that_hardly_lean_beside_one_that_does_are_calibrated() -> None:
    """Where all but one are next to even, rounding moves a steep temperature for ever."""
    margins = margin_of(np.array([0.5 + 1e-7] * 12 + [0.001]))

    found = calibrated([0.0] * 8 + [1.0] * 5, margins)

    assert found.value == pytest.approx(log(2) / -margins[0], rel=1e-9)  # the one says no more


@given(seed=st.integers(0, 10**6), stretch=st.floats(min_value=0.01, max_value=100))
def test_neither_the_sides_nor_the_unit_of_marks_matter(seed: int, stretch: float) -> None:
    """Marks out of 100 are a tenth as steep; which response was a is arbitrary."""
    rng = np.random.default_rng(seed)
    margins, turned = rng.integers(-10, 11, 40).astype(float), rng.random(40) < 0.5
    scores = (rng.random(40) < soft_scores(margins, 0.0)).astype(float)
    scores[:4], margins[:4] = (1, 0, 1, 0), (1, 1, -1, -1)

    found = calibrated(scores, margins)
    again = calibrated(
        np.where(turned, 1 - scores, scores), np.where(turned, -margins, margins) * stretch
    )

    assert again.value * stretch == pytest.approx(found.value, abs=1e-9)
    assert again.error * stretch == pytest.approx(found.error, rel=1e-6)


@pytest.mark.no_cover
def test_the_true_temperature_is_found_within_its_standard_error() -> None:
    """Two times of three within one, nineteen of twenty within two: else it misleads.

    People agree within a prompt beyond what marks say, which the error is to reflect.
    """
    rng, truth, n = np.random.default_rng(7), 0.4, 150
    prompts = np.repeat(np.arange(n), 3)
    deviations = []
    for _ in range(150):
        margins = np.repeat(rng.integers(-6, 7, n), 3).astype(float)
        preferred = np.repeat(rng.random(n) < soft_scores(margins[::3], 0, temperature=truth), 3)
        found = calibrate(human(preferred.astype(float), prompts.tolist()), margins)
        deviations.append(abs(found.value - truth) / found.error)

    within = [np.mean(np.array(deviations) < limit) for limit in (1, 2)]

    assert within == pytest.approx([0.68, 0.95], abs=0.07)


def test_a_weight_counts_as_so_many_pairs() -> None:
    """Labels A>>B of some files count three times."""
    rows = [Battle("a", "b", float(n % 3 > 0), n, 2.0) for n in range(12)]
    margins = np.tile([1.0, 2.0, -1.0], 4)

    twice = in_columns([*(row._replace(weight=1.0) for row in rows)] * 2)

    assert calibrate(in_columns(rows), margins)[:2] == pytest.approx(
        calibrate(twice, np.tile(margins, 2))[:2]
    )


def test_one_prompt_does_not_tell_its_error() -> None:
    """How much prompts differ takes two of them."""
    found = calibrate(human([1.0, 1.0, 0.0] * 4, [1] * 12), np.ones(12))

    assert isnan(found.error)
    assert found.value == pytest.approx(log(2))


@pytest.mark.parametrize(
    ("scores", "margins", "why"),
    [
        ([1.0] * 9 + [0.5] * 9, [1.0] * 18, "people decided 9 of the battles"),
        ([1.0, 0.0] * 6, [3.0, -2.0] * 6, "always preferred"),
        ([0.0, 1.0] * 6, [3.0, -2.0] * 6, "never preferred"),
        ([1.0, 0.0] * 6, [0.0] * 12, "gave both sides the same score"),
        ([1.0] * 12 + [0.0], [1.0] * 12 + [1e-300], "tiny beside others"),
    ],
)
def test_pairs_that_fix_no_temperature_are_refused(
    scores: list[float], margins: list[float], why: str
) -> None:
    """A limit reached in silence would look like an estimate."""
    with pytest.raises(CannotCalibrate, match=why):
        calibrated(scores, margins)
