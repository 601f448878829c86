"""Whether one number for each entrant explains how pairs came out."""

import numpy as np
import pytest

from projections.battles.columns import Battles
from projections.ratings.judge_bias.measures import transitivity
from tests.support.builders.battles import RING, beaten, in_columns
from tests.support.builders.juries import Juror, judged


def first_orders(seed: int, n_prompts: int = 40) -> Battles:
    """Return the battles of a judge that is fair, on a board of five."""
    pairs = judged(np.random.default_rng(seed), [Juror()], n_prompts=n_prompts)
    return pairs.orders().take(np.arange(len(pairs)))


def test_a_circle_is_not_explained() -> None:
    """Each beats the next, so that all have one rating, and no pair is even."""
    pairs = [("ann", "bob"), ("bob", "cat"), ("cat", "ann")]
    rows = [each._replace(prompt=n) for n in range(20) for each in beaten(*pairs)]

    found = transitivity(in_columns(rows))

    assert found is not None
    assert found.chi_square == pytest.approx(3 * 10**2 / (20 / 4))
    assert (found.degrees, found.n_pairs) == (1, 3)
    assert found.p < 0.01


@pytest.mark.no_cover
def test_strengths_explain_what_they_made() -> None:
    """At 5 % about one in twenty is rejected: of 20 at most 4, and not none of 20 at 20 %."""
    p = np.array([found.p for seed in range(20) if (found := transitivity(first_orders(seed)))])

    assert len(p) == 20
    assert (p < 0.05).sum() <= 4
    assert 1 <= (p < 0.2).sum() <= 9


def test_as_many_pairs_as_ratings_are_always_explained() -> None:
    """Nothing is left to test with; nor on one prompt, nor where nobody can be compared."""
    two = beaten(("ann", "bob"), ("bob", "ann"))

    assert transitivity(in_columns(two * 3)) is None
    assert transitivity(in_columns([each._replace(prompt=1) for each in RING])) is None
    assert transitivity(in_columns(beaten(("ann", "bob")))) is None
    assert transitivity(in_columns([])) is None


def test_a_draw_that_equals_what_was_found_counts() -> None:
    """Of 8 prompts that all say the same, 1 draw in 128 turns all signs or none."""
    circle = [("ann", "bob"), ("bob", "cat"), ("cat", "ann")]
    further = [*circle, ("ann", "cat"), ("bob", "ann")]
    rows = [
        each._replace(prompt=n)
        for n in range(8)
        for each in beaten(*(further if n % 2 else circle))
    ]

    found = transitivity(in_columns(rows))

    assert found is not None
    assert found.p == pytest.approx(1 / 128, abs=0.003)
