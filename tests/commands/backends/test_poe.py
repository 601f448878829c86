"""The product of experts is exact, and draws follow it."""

import math
from random import Random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from commands.backends.hydra._poe import draw, is_distribution, point_mass, product_of_experts
from commands.backends.weights.sampling import cut_to_float32
from tests.commands.backends.chi_square import chi_square_p
from tests.commands.backends.distributions import OUT, P, many_logits, many_uniforms


@given(many_logits(), st.floats(0.3, 3), st.floats(0.3, 2))
def test_it_is_the_normalised_product_of_powers(
    logits: torch.Tensor, temperature: float, beta: float
) -> None:
    """By the definition, wherever a float64 can hold the product."""
    product = (logits.double() / temperature).softmax(-1).pow(beta).prod(0)

    p = product_of_experts(logits, temperature=temperature, beta=beta).exp()

    assert torch.allclose(p.double(), product / product.sum(), atol=1e-5)


@pytest.mark.parametrize("n_experts", [8, 30])
def test_a_product_that_underflows_is_normalised_all_the_same(n_experts: int) -> None:
    """Eight experts at 0.02 have products of 3e-14: next to any fixed epsilon they vanish."""
    logits = torch.zeros(n_experts, 50)

    p = product_of_experts(logits, temperature=1.0).exp()

    assert torch.allclose(p, torch.full((50,), 0.02))


def test_experts_that_are_certain_of_different_tokens_leave_a_distribution() -> None:
    """Each makes the other's favourite all but impossible; between them they must still choose."""
    logits = torch.tensor([[900.0, 0.0, 1.0], [0.0, 900.0, 1.0]])

    p = product_of_experts(logits, temperature=1.0).exp()

    assert torch.allclose(p, torch.tensor([0.5, 0.5, 0.0]))


def test_a_token_that_one_expert_rules_out_is_ruled_out() -> None:
    """It is what the jury is for: one veto is enough, however fond the others are of the token."""
    logits = torch.tensor([[1.0, OUT, 0.0], [0.0, 80.0, 0.0], [OUT, 80.0, 0.0]])

    p = product_of_experts(logits, temperature=0.7).exp()

    assert p.tolist() == [0, 0, 1]


@given(many_logits(may_rule_out=True), st.randoms(use_true_random=False))
def test_the_order_of_the_experts_is_irrelevant(logits: torch.Tensor, random: Random) -> None:
    """Which head drafts decides the order of the others, and must decide nothing else."""
    order = random.sample(range(len(logits)), len(logits))

    p, shuffled = (
        product_of_experts(each, temperature=0.5).exp() for each in (logits, logits[order])
    )

    assert torch.allclose(p, shuffled, atol=1e-5)


def test_one_expert_alone_is_its_softmax() -> None:
    """So the drafting head's distribution is the product of one."""
    logits = torch.randn(1, 3, 9, generator=torch.Generator().manual_seed(1))

    log_p = product_of_experts(logits, temperature=0.98)

    assert torch.allclose(log_p.exp(), (logits[0] / 0.98).softmax(-1))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_raised_before_anything_is_summed(dtype: torch.dtype) -> None:
    """Nine experts' logits soon exceed the 65,504 of float16, or lose what tells tokens apart."""
    logits = torch.tensor([[30_208.0, 29_952.0, 29_952.0]] * 9).to(dtype)

    log_p = product_of_experts(logits, temperature=900.0)

    assert log_p.dtype == torch.float32
    assert torch.equal(log_p, product_of_experts(logits.float(), temperature=900.0))


def test_float64_is_kept() -> None:
    """Who computes in more digits wants them."""
    assert product_of_experts(torch.zeros(2, 3).double(), temperature=1.0).dtype == torch.float64


@pytest.mark.parametrize(
    "broken", [[math.nan, 0.0, 0.0], [math.inf, 0.0, 0.0], [OUT, OUT, OUT], [OUT, 0.0, 0.0]]
)
def test_only_the_place_without_a_distribution_is_unsound(broken: list[float]) -> None:
    """An expert that overflows, or experts that leave no token, must be seen and not sampled."""
    sound = [0.0, OUT, OUT]
    logits = torch.tensor([[sound, sound], [sound, broken]])  # (E, B, V)

    log_p = product_of_experts(logits, temperature=1.0)

    assert is_distribution(log_p).tolist() == [True, False]


@given(many_logits(may_rule_out=True))
def test_a_point_mass_is_drawn_whatever_the_uniform(logits: torch.Tensor) -> None:
    """Greedy decoding is sampling from it; the first of equally probable tokens is taken."""
    certain = point_mass(logits)

    assert torch.equal(certain.exp().sum(-1), torch.ones(len(logits)))
    for uniform in (0.0, 0.5, 1 - 2**-53):
        tokens = draw(certain, torch.full((len(logits),), uniform, dtype=torch.float64))
        assert torch.equal(tokens, logits.argmax(-1))


def test_a_point_mass_does_not_hide_broken_numbers() -> None:
    """NaN has an argmax, too: decoding greedily must not turn it into text."""
    certain = point_mass(torch.tensor([[0.0, math.nan, 1.0], [0.0, 2.0, 1.0]]))

    assert is_distribution(certain).tolist() == [False, True]


def test_draws_follow_the_distribution() -> None:
    """A few thousand draws, by Pearson's test."""
    n = 5000

    tokens = draw(P.log().expand(n, -1), many_uniforms(n))

    assert chi_square_p(torch.bincount(tokens, minlength=len(P)), n * P) > 0.001


@given(many_logits(max_experts=1, may_rule_out=True))
def test_evenly_spread_uniforms_reproduce_the_distribution(logits: torch.Tensor) -> None:
    """The share of the uniforms that give a token is its probability, without any noise."""
    n = 1000
    log_p = logits[0].log_softmax(-1)
    grid = (torch.arange(n, dtype=torch.float64) + 0.5) / n

    counts = torch.bincount(draw(log_p.expand(n, -1), grid), minlength=len(log_p))

    assert torch.allclose(counts.double(), n * log_p.exp().double(), rtol=0, atol=1.001)


@pytest.mark.parametrize("p", [P, P.flip(0), torch.tensor([0.0, 1e-30, 1.0, 1e-30, 0.0])])
def test_the_ends_of_the_uniforms_draw_no_impossible_token(p: torch.Tensor) -> None:
    """0 and the number next to 1 are where a search in a running sum goes wrong."""
    ends = torch.tensor([0.0, 5e-324, 2**-53, 1 - 2**-53], dtype=torch.float64)

    for uniform in (ends, cut_to_float32(ends)):
        tokens = draw(p.log().expand(len(ends), -1), uniform)
        assert (p[tokens] > 0).all()


def test_a_large_vocabulary_with_many_impossible_tokens_draws_none_of_them() -> None:
    """Over a real vocabulary the running sum is one of roundings, and does not end at 1."""
    n, n_tokens = 100, 30_000
    logits = torch.randn(n_tokens, generator=torch.Generator().manual_seed(2))
    logits[::2] = OUT

    tokens = draw(logits.log_softmax(-1).expand(n, -1), many_uniforms(n))

    assert (tokens % 2 == 1).all()
    assert len(set(tokens.tolist())) > n * 0.9


def test_a_token_of_a_billionth_is_drawn_by_its_share_of_the_uniforms() -> None:
    """A sum in float32 cannot tell 1 from 1 + 2e-9, and such tokens would never be said."""
    log_p = torch.tensor([0.0, -20.0])

    tokens = draw(log_p.expand(2, -1), torch.tensor([1 - 3e-9, 1 - 1e-9], dtype=torch.float64))

    assert tokens.tolist() == [0, 1]


def test_a_row_without_a_distribution_still_gives_a_token() -> None:
    """It is reported as unsound; an index off the end would take the other rows with it."""
    log_p = torch.full((1, 4), math.nan)

    assert draw(log_p, torch.tensor([0.9], dtype=torch.float64)).tolist() == [0]
