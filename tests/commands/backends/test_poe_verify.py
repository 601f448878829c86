"""What drafts become follows the target exactly, whatever they were drawn from."""

import math
from collections.abc import Callable
from typing import TypeAlias

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from commands.backends.hydra._poe import (
    VerifiedDrafts,
    acceptance,
    draw,
    point_mass,
    residual,
    verify,
)
from tests.commands.backends.chi_square import chi_square_p
from tests.commands.backends.distributions import OUT, P, many_logits, many_uniforms

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


@given(pairs())
def test_the_residual_is_a_distribution_over_what_q_has_too_little_of(both: torch.Tensor) -> None:
    """So a rejected draft, which q has too much of, is never its own replacement."""
    log_p, log_q = both

    left_over = residual(log_p, log_q).exp()

    assert math.isclose(left_over.sum(), 1, rel_tol=1e-5)
    assert (left_over[log_p == OUT] == 0).all()
    if (log_p.exp() > log_q.exp()).any():
        assert (left_over[log_p <= log_q] == 0).all()


def test_the_residual_of_equal_distributions_is_the_target() -> None:
    """Rounding can refuse a draft of P = q; what replaces it must come from somewhere."""
    assert torch.allclose(residual(P.log(), P.log()).exp(), P)


@st.composite
def blocks(draw: DrawFn) -> dict[str, torch.Tensor]:
    """Draw a block of drafts and all that they are verified by."""
    n_rows, n_drafts, n_tokens = (draw(st.integers(1, most)) for most in (3, 4, 4))

    def rows(element: SearchStrategy[float], *shape: int) -> torch.Tensor:
        n = math.prod(shape)
        values = draw(st.lists(element, min_size=n, max_size=n))
        return torch.tensor(values, dtype=torch.float64).reshape(shape)

    p = rows(st.floats(-5, 5) | st.just(OUT), n_rows, n_drafts, n_tokens)
    p[..., 0] = p[..., 0].clamp(min=-5)  # a token is possible
    q = rows(st.floats(-5, 5), n_rows, n_drafts, n_tokens)
    return {
        "log_p": p.log_softmax(-1),
        "log_q": q.log_softmax(-1),
        "drafts": rows(st.integers(0, n_tokens - 1), n_rows, n_drafts).long(),
        "uniforms": rows(a_uniform(), n_rows, n_drafts),
        "replacement_uniforms": rows(a_uniform(), n_rows),
    }


def slowly_drawn(p: list[float], uniform: float) -> int:
    """Draw as one would by hand."""
    passed = 0.0
    for token, each in enumerate(p):
        passed += each
        if passed > uniform * sum(p):
            return token
    raise AssertionError


def slowly_verified(
    p: list[list[float]], q: list[list[float]], drafts: list[int], rolls: list[float], last: float
) -> tuple[int, int | None]:
    """Go through one row's drafts by the text of the method."""
    for n, (p_n, q_n, draft, roll) in enumerate(zip(p, q, drafts, rolls, strict=True)):
        if roll >= p_n[draft] / q_n[draft]:
            excess = [max(a - b, 0.0) for a, b in zip(p_n, q_n, strict=True)]
            return n, slowly_drawn(excess if sum(excess) else p_n, last)
    return len(drafts), None


def outcomes(verified: VerifiedDrafts, n_drafts: int) -> list[tuple[int, int | None]]:
    """Say how many drafts each row accepted, and what replaces the next, if there is one."""
    both = zip(verified.n_accepted.tolist(), verified.replacement.tolist(), strict=True)
    return [(n, token if n < n_drafts else None) for n, token in both]


@given(blocks())
def test_a_block_is_verified_as_each_row_would_be_by_hand(block: dict[str, torch.Tensor]) -> None:
    """Rows are judged apart, up to the first draft that is refused, and not beyond."""
    by_hand = [
        slowly_verified(p.exp().tolist(), q.exp().tolist(), drafts.tolist(), rolls.tolist(), last)
        for p, q, drafts, rolls, last in zip(*block.values(), strict=True)
    ]

    verified = verify(**block)

    assert outcomes(verified, block["drafts"].shape[1]) == by_hand
    assert verified.is_finite.all()


@given(blocks())
def test_point_masses_are_verified_greedily(block: dict[str, torch.Tensor]) -> None:
    """A draft stands if it is P's first choice, and that takes its place if not: no chance."""
    choices, drafts = block["log_p"].argmax(-1), block["log_q"].argmax(-1)
    greedy = {name: point_mass(block[name]) for name in ("log_p", "log_q")}
    by_hand = []
    for row_choices, row_drafts in zip(choices.tolist(), drafts.tolist(), strict=True):
        is_right = [a == b for a, b in zip(row_choices, row_drafts, strict=True)]
        n = [*is_right, False].index(False)
        by_hand.append((n, row_choices[n] if n < len(is_right) else None))

    verified = verify(**(block | greedy | {"drafts": drafts}))

    assert outcomes(verified, drafts.shape[1]) == by_hand


def test_what_drafts_become_follows_the_target_and_not_their_own_distribution() -> None:
    """The whole method, over 20,000 rows of two drafts whose q is far from P."""
    n = 20_000
    targets = torch.stack([P, P.flip(0)])  # (G, V)
    log_p, log_q = (each.log().expand(n, -1, -1) for each in (targets, Q.expand(2, -1)))
    draws = many_uniforms(n * 5).view(n, 5)
    drafts = draw(log_q, draws[:, :2])

    n_accepted, replacement, _ = verify(
        log_p, log_q, drafts, uniforms=draws[:, 2:4], replacement_uniforms=draws[:, 4]
    )

    for place, target in enumerate(targets):
        has_token = n_accepted >= place
        emitted = torch.where(n_accepted > place, drafts[:, place], replacement)[has_token]
        counts = torch.bincount(emitted, minlength=len(P))
        assert chi_square_p(counts, target * len(emitted)) > 0.001


@pytest.mark.parametrize("decide", [torch.Tensor.clone, point_mass])
@pytest.mark.parametrize("broken", ["log_p", "log_q"])
def test_broken_numbers_are_reported_where_they_decide(broken: str, decide: Decide) -> None:
    """A row that overflows must fail; one that refused a draft before it is as good as any."""
    sure_of_1 = torch.tensor([0.0, 1.0, 0.0]).log()
    block = {
        name: torch.stack([sure_of_1, sure_of_1]).repeat(3, 1, 1) for name in ("log_p", "log_q")
    }  # (B, G, V)
    block[broken][:2, 1] = math.nan
    drafts = torch.tensor([[1, 1], [0, 1], [1, 1]])
    half = torch.full((3, 2), 0.5, dtype=torch.float64)

    verified = verify(
        decide(block["log_p"]),
        decide(block["log_q"]),
        drafts,
        uniforms=half,
        replacement_uniforms=half[:, 0],
    )

    assert verified.n_accepted.tolist() == [1, 0, 2]
    assert verified.is_finite.tolist() == [False, True, True]
