"""Nothing is drawn from the tail of a distribution, and the rest keeps its proportions."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import TopPLogitsWarper

from commands.backends.weights.sampling import nucleus

LOGITS = torch.log(torch.tensor([[0.1, 0.4, 0.2, 0.3]]))
NO_TOKENS = torch.zeros(1, 0, dtype=torch.long)


@pytest.mark.parametrize(
    ("top_p", "kept"),
    [(0.05, [1]), (0.39, [1]), (0.45, [1, 3]), (0.69, [1, 3]), (0.75, [1, 2, 3])],
)
def test_the_token_that_crosses_p_is_kept(top_p: float, kept: list[int]) -> None:
    """Without it the tokens that are left would have less than p together, or there are none."""
    assert nucleus(LOGITS, top_p).isfinite()[0].nonzero().flatten().tolist() == kept


@given(st.integers(0, 2**32 - 1), st.floats(0.01, 0.999))
def test_the_rule_is_that_of_transformers(seed: int, top_p: float) -> None:
    """So that an entrant is sampled as its authors sample it."""
    scores = 3 * torch.randn(3, 50, generator=torch.Generator().manual_seed(seed))

    ours = nucleus(scores, top_p)

    theirs = TopPLogitsWarper(top_p)(NO_TOKENS, scores)
    likelier = scores.softmax(-1).sort(descending=True).values.cumsum(-1)
    if (likelier - top_p).abs().min() > 1e-6:  # by rounding, either side of it is right
        assert torch.equal(ours, theirs)


def test_at_one_nothing_changes() -> None:
    """Texts that were sampled before there was a choice stay what they are."""
    assert nucleus(LOGITS, 1.0) is LOGITS


def test_of_equal_tokens_the_first_are_kept() -> None:
    """Whatever order a sort leaves them in on another device, the text must be the same."""
    assert nucleus(torch.zeros(1, 64), 0.1).isfinite()[0].nonzero().flatten().tolist() == [
        *range(7)
    ]


def test_a_row_is_filtered_by_itself() -> None:
    """What it may say must not depend on its neighbours."""
    scores = 3 * torch.randn(16, 200, generator=torch.Generator().manual_seed(0))

    alone = torch.cat([nucleus(row[None], 0.9) for row in scores])

    assert torch.equal(alone, nucleus(scores, 0.9))


def test_what_is_no_distribution_stays_none() -> None:
    """A broken row must be seen to be broken, not be repaired by leaving the NaN out."""
    broken = LOGITS.clone()
    broken[0, 2] = math.nan

    assert not nucleus(broken, 0.5).amax(-1).isfinite()
