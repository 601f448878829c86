"""The product of experts is exact; drafts, draws and figures follow it."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import product
from typing import NamedTuple, TypeAlias

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from commands.backends.hydra.poe import (
    VerifiedDrafts,
    acceptance,
    entropy,
    point_mass,
    product_of_experts,
    residual,
    stability_radius,
    validity_radius,
    verify,
)
from commands.backends.weights.sampling import n_draws, sample
from tests.support.statistics import OUT, P, many_logits, many_uniforms


@given(many_logits(), st.floats(0.3, 3), st.floats(0.3, 2))
def test_it_is_the_normalised_product_of_powers(
    logits: torch.Tensor, temperature: float, beta: float
) -> None:
    """By the definition, wherever a float64 can hold the product."""
    product = (logits.double() / temperature).softmax(-1).pow(beta).prod(0)

    p = product_of_experts(logits, temperature=temperature, beta=beta).exp()

    assert torch.allclose(p.double(), product / product.sum(), atol=1e-5)


def test_a_product_that_underflows_is_normalised_all_the_same() -> None:
    """Eight experts at 0.02 have products of 3e-14: next to any fixed epsilon they vanish."""
    logits = torch.zeros(30, 50)

    p = product_of_experts(logits, temperature=1.0).exp()

    assert torch.allclose(p, torch.full((50,), 0.02))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_raised_before_anything_is_summed(dtype: torch.dtype) -> None:
    """Nine experts' logits soon exceed the 65,504 of float16, or lose what tells tokens apart."""
    logits = torch.tensor([[30_208.0, 29_952.0, 29_952.0]] * 9).to(dtype)

    log_p = product_of_experts(logits, temperature=900.0)

    assert log_p.dtype == torch.float32
    assert torch.equal(log_p, product_of_experts(logits.float(), temperature=900.0))


def is_distribution(log_p: torch.Tensor) -> torch.Tensor:
    """Return (...) whether (..., V) are distributions: no NaN, and at least one possible token."""
    return log_p.amax(-1).isfinite()  # amax propagates NaN


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
    for seed in range(3):
        uniform = many_uniforms(len(logits), n_draws(logits.shape[-1]), seed)
        assert torch.equal(sample(certain, uniform).tokens, logits.argmax(-1))


TWO_ROWS = torch.tensor([[0.5, 0.25, 0.25, 0.0], [0.0, 0.0, 1.0, 0.0]])
SMALL_JURIES = st.lists(st.integers(0, 3), min_size=1, max_size=5)


def test_the_entropy_is_in_nats_and_impossible_tokens_add_none() -> None:
    """0 ln 0 as floats compute it is NaN, and one token that is ruled out would spoil the sum."""
    assert torch.allclose(entropy(TWO_ROWS.log()), torch.tensor([1.5 * math.log(2), 0.0]))


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


Decide: TypeAlias = Callable[[torch.Tensor], torch.Tensor]

Q = torch.tensor([0.2, 0.1, 0.1, 0.1, 0.3, 0.2, 0.0])


def pairs() -> SearchStrategy[torch.Tensor]:
    """Give (2, V) float32 log probabilities, of P and of q."""
    both = many_logits(may_rule_out=True).filter(lambda logits: len(logits) >= 2)
    return both.map(lambda logits: logits[:2].log_softmax(-1))


def a_uniform() -> SearchStrategy[float]:
    """Give a uniform in [0, 1) that hits no boundary between tokens but the first, 0.

    997 is a prime: no probability that is a simple fraction is a multiple of 1/997.
    """
    return st.integers(0, 996).map(lambda k: k / 997)


@given(pairs())
def test_acceptance_and_replacement_together_give_the_target(both: torch.Tensor) -> None:
    """By its closed form: q min(1, P/q) + (1 - sum q min(1, P/q)) residual = P."""
    log_p, log_q = both
    n_tokens = len(log_p)
    every_draft = torch.arange(n_tokens)
    q = log_q.exp()

    accept = acceptance(log_p.expand(n_tokens, -1), log_q.expand(n_tokens, -1), every_draft)
    accepted = torch.where(q > 0, q * accept, 0)  # what q rules out is not drafted
    emitted = accepted + (1 - accepted.sum()) * residual(log_p, log_q).exp()

    assert torch.allclose(emitted, log_p.exp(), rtol=0, atol=1e-6)


def test_the_residual_of_equal_distributions_is_the_target() -> None:
    """Rounding can refuse a draft of P = q; what replaces it must come from somewhere."""
    assert torch.allclose(residual(P.log(), P.log()).exp(), P)


class Case(NamedTuple):
    """Rows of drafts, and all that they are verified by."""

    log_p: torch.Tensor
    log_q: torch.Tensor
    draft: torch.Tensor
    uniform: torch.Tensor

    def verified(self) -> VerifiedDrafts:
        """Verify them."""
        n_rows, n_tokens = self.log_p.shape
        others = many_uniforms(n_rows, n_draws(n_tokens))
        return verify(*self[:3], uniform=self.uniform, replacement_uniforms=others)


@st.composite
def cases(draw: DrawFn) -> Case:
    """Draw rows of drafts."""
    n_rows, n_tokens = draw(st.integers(1, 3)), draw(st.integers(2, 4))

    def rows(element: SearchStrategy[float], *shape: int) -> torch.Tensor:
        n = math.prod(shape)
        values = draw(st.lists(element, min_size=n, max_size=n))
        return torch.tensor(values, dtype=torch.float64).reshape(shape)

    p = rows(st.floats(-5, 5) | st.just(OUT), n_rows, n_tokens)
    p[..., 0] = p[..., 0].clamp(min=-5)  # a token is possible
    q = rows(st.floats(-5, 5), n_rows, n_tokens)
    draft = rows(st.integers(0, n_tokens - 1), n_rows).long()
    return Case(p.log_softmax(-1), q.log_softmax(-1), draft, rows(a_uniform(), n_rows))


@given(cases())
def test_a_draft_is_verified_as_it_would_be_by_hand(case: Case) -> None:
    """Each row by itself; what replaces a draft is a token of which q has too little."""
    verified = case.verified()

    for row, (log_p, log_q, draft, uniform) in enumerate(zip(*case, strict=True)):
        p, q = log_p.exp(), log_q.exp()
        assert bool(verified.is_accepted[row]) == bool(uniform < p[draft] / q[draft])
        replacement = verified.replacement[row]
        assert p[replacement] > q[replacement] or bool((p <= q).all())
    assert verified.is_finite.all()


@given(cases())
def test_point_masses_are_verified_greedily(case: Case) -> None:
    """A draft stands if it is P's first choice, and that takes its place if not: no chance."""
    drafts, choices = case.log_q.argmax(-1), case.log_p.argmax(-1)

    verified = Case(point_mass(case.log_p), point_mass(case.log_q), drafts, case.uniform).verified()

    assert torch.equal(verified.is_accepted, drafts == choices)
    assert torch.equal(verified.replacement, choices)


@pytest.mark.parametrize("decide", [torch.Tensor.clone, point_mass])
@pytest.mark.parametrize("broken", ["log_p", "log_q"])
def test_broken_numbers_are_reported(broken: str, decide: Decide) -> None:
    """A row that overflows must fail, and no other."""
    sure_of_1 = torch.tensor([[0.0, 1.0, 0.0]] * 2).log()
    sound = Case(sure_of_1, sure_of_1.clone(), torch.tensor([1, 1]), torch.full((2,), 0.5))
    getattr(sound, broken)[0] = math.nan

    verified = sound._replace(log_p=decide(sound.log_p), log_q=decide(sound.log_q)).verified()

    assert verified.is_accepted.tolist() == [False, True]
    assert verified.is_finite.tolist() == [False, True]
