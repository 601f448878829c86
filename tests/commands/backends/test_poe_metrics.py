"""The figures of how a jury decided mean what they say."""

import math
from collections import Counter
from collections.abc import Sequence
from itertools import product

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from commands.backends.hydra._poe import (
    entropy,
    stability_margin,
    stability_radius,
    suppression,
    validity_radius,
)

P = torch.tensor([[0.5, 0.25, 0.25, 0.0], [0.0, 0.0, 1.0, 0.0]])
SMALL_JURIES = st.lists(st.integers(0, 3), min_size=1, max_size=5)


def test_the_entropy_is_in_nats_and_impossible_tokens_add_none() -> None:
    """0 ln 0 as floats compute it is NaN, and one token that is ruled out would spoil the sum."""
    assert torch.allclose(entropy(P.log()), torch.tensor([1.5 * math.log(2), 0.0]))


def test_the_entropy_of_an_even_choice_is_the_logarithm_of_their_number() -> None:
    """Over a whole vocabulary, too."""
    even = torch.zeros(100_352).log_softmax(-1)

    assert math.isclose(entropy(even), math.log(100_352), rel_tol=1e-4)


def test_the_margin_is_between_the_two_most_probable_tokens() -> None:
    """Wherever they stand in the vocabulary."""
    assert torch.allclose(stability_margin(P.log()), torch.tensor([0.25, 1.0]))


def test_a_single_token_has_no_margin() -> None:
    """There is no second to be ahead of."""
    assert stability_margin(torch.zeros(2, 1)).tolist() == [0, 0]


@pytest.mark.parametrize(
    ("votes", "radius"),
    [
        ([7, 7, 7, 7, 7, 7, 7, 7], 4),  # four may turn: 4 to 4
        ([7, 7, 7, 7, 7, 2, 2, 3], 1),  # 5 to 2: after one 4 to 3
        ([7, 7, 7, 7, 2, 2, 2, 2], 0),  # a tie already
        ([7, 2, 2, 2, 3, 3, 3, 3], 0),  # behind
        ([2, 2, 2, 3, 3, 3, 4, 4], 0),  # no vote at all
    ],
)
def test_the_stability_radius_is_half_the_lead(votes: list[int], radius: int) -> None:
    """Each vote that turns to the rival costs the token two of its lead."""
    assert stability_radius(torch.tensor(votes), torch.tensor(7)).item() == radius


def test_stability_radii_are_of_each_place_alone() -> None:
    """Rows and places of a batch have juries of their own."""
    votes = torch.tensor([[[1, 1], [4, 1]], [[1, 2], [4, 2]], [[1, 2], [4, 3]]])  # (E, B, G)
    token = torch.tensor([[1, 2], [4, 1]])  # (B, G)

    assert stability_radius(votes, token).tolist() == [[1, 0], [1, 0]]


@given(SMALL_JURIES)
def test_as_many_votes_may_turn_as_the_stability_radius_says_and_no_more(votes: list[int]) -> None:
    """Against all juries that differ in so many votes: small ones can be tried one and all."""
    token = Counter(votes).most_common(1)[0][0]

    radius = int(stability_radius(torch.tensor(votes), torch.tensor(token)))

    losing = [n for n, jury in turned(votes) if lead(jury, token) < 0]
    assert radius == min(losing) - 1


def test_suppression_is_what_the_product_leaves_to_the_draft() -> None:
    """In each row, of its own draft."""
    assert torch.allclose(suppression(P.log(), torch.tensor([2, 0])), torch.tensor([0.25, 0.0]))


@pytest.mark.parametrize(
    ("votes", "draft", "radius"),
    [
        ([0] * 8, 1, 5),
        ([0, 0, 0, 0, 1, 1, 1, 1], 2, 4),
        ([0, 0, 0, 0, 1, 1, 2, 2], 2, 2),
        ([2, 2, 2, 2, 2, 1, 1, 1], 2, 0),
        ([2, 2, 2, 2, 1, 1, 1, 1], 2, 1),
        ([2], 2, 0),
        ([1], 2, 1),
    ],
)
def test_the_validity_radius_of_worked_cases(votes: list[int], draft: int, radius: int) -> None:
    """The cases that the measure was published with, a draft that leads already, and a tie."""
    assert validity_radius(votes, draft) == radius


@given(SMALL_JURIES, st.integers(0, 3))
def test_no_fewer_votes_than_the_validity_radius_put_the_draft_ahead(
    votes: list[int], draft: int
) -> None:
    """Taking from the largest rival is the best strategy: by trial of every jury, if it is small.

    Every jury of the same size is tried, not only those that the strategy passes through, and the
    one nearest to the votes among those that the draft wins outright is as far as the radius.
    """
    winning = [n for n, jury in turned(votes) if lead(jury, draft) > 0]

    assert validity_radius(votes, draft) == min(winning)


def turned(votes: Sequence[int]) -> list[tuple[int, tuple[int, ...]]]:
    """Return every jury over tokens 0 to 3, and how many votes differ in it."""
    juries = product(range(4), repeat=len(votes))
    return [(sum(a != b for a, b in zip(votes, jury, strict=True)), jury) for jury in juries]


def lead(votes: Sequence[int], token: int) -> int:
    """Return by how many votes a token is ahead of its largest rival, below 0: behind."""
    counts = Counter(votes)
    own = counts.pop(token, 0)
    return own - max(counts.values(), default=0)
