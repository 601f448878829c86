"""What a judge does whatever it reads."""

from dataclasses import replace

import numpy as np
import pytest

from projections.battles.columns import CannotRate
from projections.intervals import wilson
from projections.ratings.judge_bias.pairs import JudgedPairs
from projections.ratings.judge_bias.single_judge import SLOT, flips, slot_preference, style_effects
from tests.support.builders.juries import Juror, judged


def said(forward: list[float], swapped: list[float], prompt: list[int]) -> JudgedPairs:
    """Return what a judge said of ann and bob."""
    n = len(prompt)
    zeros = np.zeros(n, dtype=np.intp)
    return JudgedPairs(
        ("ann", "bob"),
        ("owl",),
        a=zeros,
        b=zeros + 1,
        judge=zeros,
        prompt=np.array(prompt),
        pair=np.arange(len(prompt)),
        forward=np.array(forward),
        swapped=np.array(swapped),
        style={},
    )


def test_a_slot_is_preferred_by_the_verdicts_that_it_gets_more() -> None:
    """A A, A B, A A, tie B: five verdicts for A and two for B, of eight."""
    pairs = said([1, 1, 1, 0.5], [0, 1, 0, 1], [1, 2, 3, 4])

    found = slot_preference(pairs)

    assert found.value == pytest.approx((5 - 2) / 8)
    assert found.n == 8


def test_a_judge_that_never_looks_has_a_preference_of_one() -> None:
    """Of ten prompts; of more, some could have been otherwise."""
    found = slot_preference(said([1.0] * 10, [0.0] * 10, [*range(10)]))

    assert (found.value, found.high) == (1.0, 1.0)
    assert found.low == pytest.approx(1 - 2 * wilson(0.0, 10).upper)


def test_prompts_that_all_agree_do_not_make_a_figure_sure() -> None:
    """A judge that was fair on six prompts may not be on the seventh."""
    found = slot_preference(said([1.0, 0.0] * 3, [1.0, 0.0] * 3, [*range(6)]))

    assert found.value == 0.0
    assert found.high == pytest.approx(wilson(0.0, 6).upper)
    assert found.low == pytest.approx(-wilson(0.0, 6).upper)


@pytest.mark.parametrize("forward", [[1.0] * 5, [1.0, 1.0, 1.0, 1.0, 0.0]], ids=["all", "most"])
def test_on_five_prompts_there_is_no_interval(forward: list[float]) -> None:
    """Whether prompts agree or not: as for any other figure, six are needed."""
    found = slot_preference(said(forward, [0.0] * 5, [*range(5)]))

    assert found.value is not None
    assert (found.low, found.high) == (None, None)


def test_a_single_prompt_has_no_interval() -> None:
    """Nothing is known of how prompts differ; and nothing at all of no pair."""
    found = slot_preference(said([1.0, 1.0], [0.0, 1.0], [1, 1]))

    assert (found.value, found.low, found.high) == (0.5, None, None)
    assert slot_preference(said([], [], [])).value is None


def test_flips_are_counted_of_all_and_of_each_two_entrants() -> None:
    """A tie in one order and a winner in the other is a flip, too."""
    pairs = said([1, 1, 0.5, 0.5], [0, 1, 1, 0.5], [1, 2, 3, 4])

    of_all, opposite, beside, of_two = flips(pairs)

    assert (of_all.of, of_two.of) == ("all pairs", "ann and bob")
    assert of_all.share == of_two.share
    assert (opposite.of, opposite.share.value) == ("opposite winners", 0.25)
    assert (beside.of, beside.share.value) == ("a tie beside a win", 0.25)
    assert (of_all.share.value, of_all.share.n) == (0.5, 4)


def test_entrants_that_never_met_have_no_flips() -> None:
    """Who of two is called a does not matter."""
    pairs = judged(np.random.default_rng(1), [Juror()], n_prompts=3)
    met = pairs.where((pairs.a == 0) & (pairs.b == 1))
    turned = replace(met, a=met.b, b=met.a)

    assert [each.of for each in flips(met)][3:] == ["ann and bob"]
    assert [each.of for each in flips(turned)][3:] == ["ann and bob"]


@pytest.mark.parametrize("says_a", [0.0, 0.3])
def test_a_planted_preference_for_a_slot_is_found(says_a: float) -> None:
    """It is in nine in ten of twenty intervals at least, whoever is strong."""
    found = [
        slot_preference(judged(np.random.default_rng(seed), [Juror(says_a=says_a)], n_prompts=40))
        for seed in range(20)
    ]

    held = [each for each in found if (each.low or 0.0) <= says_a <= (each.high or 0.0)]
    assert len(held) >= 18


def test_a_planted_preference_for_length_is_found() -> None:
    """Beside strengths: the longest are the weakest here."""
    held = 0
    for seed in range(20):
        pairs = judged(np.random.default_rng(seed), [Juror(slope=1.0)], n_prompts=40)
        slot, length = style_effects(pairs).coefficients
        assert (slot.feature, length.feature) == (SLOT, "length")
        assert length.lower is not None
        assert length.upper is not None
        held += length.lower <= 1.0 * length.deviation <= length.upper

    assert held >= 18


def test_a_style_that_never_differs_is_left_out() -> None:
    """The others' effects are estimated all the same."""
    pairs = judged(np.random.default_rng(2), [Juror()], n_prompts=20)
    plain = replace(pairs, style={"headers": np.zeros(len(pairs)), **pairs.style})

    found = style_effects(plain)

    assert found.columns.left_out == ("headers",)
    assert [each.feature for each in found.coefficients] == [SLOT, "length"]


def test_nobody_to_compare_has_no_style() -> None:
    """Who always won did so whatever was longer."""
    with pytest.raises(CannotRate, match="no two entrants can be compared"):
        style_effects(said([1.0, 1.0], [1.0, 1.0], [1, 2]))


def test_without_a_pair_nobody_contradicts_itself() -> None:
    """There is no share of nothing."""
    found = flips(said([], [], []))

    assert [each.share.value for each in found] == [None] * 3
