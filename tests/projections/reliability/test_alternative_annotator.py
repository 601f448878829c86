"""The alternative annotator test, against examples worked by hand."""

from collections.abc import Hashable, Iterable
from math import sqrt

import pytest

from projections.reliability.alternative_annotator import (
    AlternativeAnnotatorTest,
    Votes,
    alternative_annotator_test,
)

PEOPLE = ("ann", "bob", "cy")
N = 30


def votes(said: Iterable[str]) -> Votes:
    """Return what somebody said, battle by battle; a space is no vote."""
    return {place: what for place, what in enumerate(said) if what != " "}


def of(judge: str, *people: str, by_prompt: int = 1) -> AlternativeAnnotatorTest:
    """Return the test of a judge with ann, bob and cy, of so many battles on each prompt."""
    said = dict(zip(PEOPLE, map(votes, people), strict=False))
    prompts: dict[Hashable, Hashable] = {place: place // by_prompt for place in range(len(judge))}
    return alternative_annotator_test(votes(judge), said, prompts)


def test_a_judge_that_says_what_all_say_may_replace_each() -> None:
    """Its advantage and theirs are 1, so that it is above theirs less any margin for sure."""
    found = of("a" * N, *["a" * N] * 3)

    assert found.advantage == 1.0
    assert [each.winning_rate for each in found.results] == [1.0, 1.0, 1.0]
    assert [each.n_more for each in found.results] == [0, 0, 0]
    assert found.smallest_margin == 0.1


@pytest.mark.no_cover
def test_a_judge_is_compared_with_each_annotator_by_the_others_votes() -> None:
    """The judge differs from all on 3 battles, and bob from ann and cy on 6 others.

    Left out, bob agrees with the others on 24, and the judge on 27. Ann and cy always agree with
    one of the others at least, where the judge agrees with no more.
    """
    found = of("b" * 3 + "a" * 27, "a" * N, "a" * 24 + "b" * 6, "a" * N)

    rates = {each.annotator: each for each in found.annotators}
    assert rates["ann"][3:5] == (27 / 30, 1.0)
    assert rates["bob"][3:5] == (27 / 30, 24 / 30)
    assert rates["cy"][3:5] == (27 / 30, 1.0)
    assert found.advantage == pytest.approx(0.9)


def test_the_test_is_students_paired_one() -> None:
    """Three of 30 differences are -1: t = (0.2 - 0.1) / (sd / sqrt(30)) has p = 0.0416 at 29 df.

    Benjamini-Yekutieli's bound of the third of three is 0.05 / (1 + 1/2 + 1/3) = 0.0273.
    """
    found = of("b" * 3 + "a" * 27, *["a" * N] * 3)

    deviation = sqrt((3 * 0.9**2 + 27 * 0.1**2) / 29)
    assert found.annotators[0].standard_error == pytest.approx(deviation / sqrt(30))
    assert found.annotators[0].p(0.2) == pytest.approx(0.04155, abs=5e-5)
    assert found.annotators[0].p(0.0) == pytest.approx(1 - 0.04155, abs=5e-5)
    assert [each.winning_rate for each in found.results] == [0.0, 0.0, 0.0]
    assert found.smallest_margin is None


@pytest.mark.no_cover
def test_votes_that_would_settle_it_are_counted() -> None:
    """At 0.2 a third more votes like these pass; at 0.1 the judge is at the margin for ever."""
    found = of("b" * 3 + "a" * 27, *["a" * N] * 3)

    at_tenth, _, at_fifth = (each.n_more for each in found.results)
    assert at_tenth is None
    assert at_fifth is not None
    assert 10 < at_fifth <= 40
    assert found.results[2].winning_rate == 0.0
    more = of("bbba" + "a" * 36, *["a" * 40] * 3)
    assert more.results[2].winning_rate == 1.0


def test_what_is_lacking_is_counted() -> None:
    """Cy has 12 of 30 votes, and where nobody else voted there is nothing to agree with."""
    few = of("a" * N, "a" * N, "a" * N, "a" * 12)
    two = of("a" * N, "a" * N, "a" * N)
    alone = of("a" * N, "a" * N)

    assert (few.advantage, few.results, few.n_lacking) == (None, (), 18)
    assert dict(few.n_by_annotator) == {"ann": 30, "bob": 30, "cy": 12}
    assert two.n_lacking == 30
    assert alone.n_lacking == 90


def test_few_prompts_are_too_few_for_a_test() -> None:
    """Thirty battles on three prompts: how much prompts differ cannot be told."""
    found = of("a" * N, *["a" * N] * 3, by_prompt=10)

    assert found.results == ()
    assert found.n_lacking == 0
    assert found.is_short_of_prompts
