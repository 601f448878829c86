"""Samples of a Hydra follow the product of its verifiers exactly, whatever its draft head says."""

import math
from collections.abc import Callable, Sequence

import pytest
import torch
from transformers import Olmo2ForCausalLM

from commands.backends.hydra._context import HeadRoles
from commands.backends.hydra._net import HydraNet
from commands.backends.hydra.decoding import HydraDecoding, decode
from commands.backends.hydra.rows import HydraRow
from commands.backends.weights.decoding import Ending
from commands.backends.weights.sampling import random_stream
from tests.commands.backends.chi_square import chi_square_p
from tests.commands.backends.hydra_builders import scattered_heads, tiny_olmo2
from tests.commands.backends.table_net import TableNet

THREE = HydraDecoding(
    temperature=0.7, max_new_tokens=3, ending=Ending(frozenset()), gamma=4, beta=1.0
)
ALL_AGAINST_FIRST = HeadRoles(0, (1, 2, 3))
PROMPT = [1, 2]

Say = Callable[[list[list[int]]], torch.Tensor]  # texts of equal length to (E, N, V) logits


@pytest.fixture(scope="module")
def hydra() -> tuple[HydraNet, list[Olmo2ForCausalLM]]:
    """Give four heads over 12 tokens that disagree, and each of them as a whole model."""
    plain = tiny_olmo2(
        seed=3,
        vocab_size=12,
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        initializer_range=0.3,
    )
    return scattered_heads(plain, 4, depth=1, noise=0.2)


@pytest.fixture
def table() -> torch.Tensor:
    """Give (4, 5, 5) logits of four heads that disagree."""
    return torch.randn(4, 5, 5, generator=torch.Generator().manual_seed(1))


def by_whole_models(models: Sequence[Olmo2ForCausalLM]) -> Say:
    """Let whole models read each text anew."""

    @torch.inference_mode()
    def say(texts: list[list[int]]) -> torch.Tensor:
        ids = torch.tensor(texts)
        return torch.stack([model(ids).logits[:, -1] for model in models])

    return say


def by_table(table: torch.Tensor) -> Say:
    """Look the last token up."""
    return lambda texts: table[:, [text[-1] for text in texts]]


def exact(say: Say, decoding: HydraDecoding = THREE) -> torch.Tensor:
    """Return (V, V, V): how probable three tokens are, by the definition of the product."""

    def p(texts: list[list[int]]) -> torch.Tensor:
        experts = (say(texts).double() / decoding.product_temperature).softmax(-1)
        joint = experts.pow(decoding.beta).prod(0)  # (N, V)
        joint /= joint.sum(-1, keepdim=True)
        is_likelier = joint[:, None, :] > joint[:, :, None]  # (N, V, V): the last than the other
        likelier = (joint[:, None, :] * is_likelier).sum(-1)
        kept = joint * (likelier < decoding.top_p)
        return kept / kept.sum(-1, keepdim=True)

    first = p([PROMPT])  # (1, V)
    tokens = range(first.shape[-1])
    second = p([[*PROMPT, one] for one in tokens])  # (V, V)
    third = p([[*PROMPT, one, two] for one in tokens for two in tokens])  # (V * V, V)
    return first.T[:, :, None] * second[:, :, None] * third.view(-1, *second.shape)


def said(
    net: HydraNet,
    n_rows: int,
    *,
    roles: HeadRoles = ALL_AGAINST_FIRST,
    decoding: HydraDecoding = THREE,
) -> torch.Tensor:
    """Return (N, 3) tokens that as many seeds gave."""
    rows = [HydraRow(PROMPT, roles, random_stream(seed)) for seed in range(n_rows)]
    decode(net, rows, decoding)
    return torch.tensor([row.tokens for row in rows])


def fit(tokens: torch.Tensor, expected: torch.Tensor) -> float:
    """Return how probable counts as far off as of (N, 3) tokens are, if they follow (V, V, V)."""
    cells = tokens @ torch.tensor([expected.stride()[n] for n in range(3)])
    counts = torch.bincount(cells, minlength=expected.numel())
    return chi_square_p(counts, len(tokens) * expected.flatten())


def test_samples_follow_the_product_of_the_verifiers(
    hydra: tuple[HydraNet, list[Olmo2ForCausalLM]],
) -> None:
    """The speculation is worth having only if nobody can tell it from plain sampling."""
    net, models = hydra

    tokens = said(net, 20_000)

    assert fit(tokens, exact(by_whole_models(models[1:]))) > 0.001
    assert fit(tokens, exact(by_whole_models(models))) < 1e-9  # the draft head is no expert


def test_samples_of_one_head_follow_it_alone(
    hydra: tuple[HydraNet, list[Olmo2ForCausalLM]],
) -> None:
    """What it is to leave the jury out is to be seen in the tournament, so it must be just that."""
    net, models = hydra

    tokens = said(net, 20_000, roles=HeadRoles(2, ()))

    assert fit(tokens, exact(by_whole_models([models[2]]))) > 0.001
    assert fit(tokens, exact(by_whole_models([models[1]]))) < 1e-9


@pytest.mark.parametrize("gamma", [1, 3, 4, 7])
def test_how_many_tokens_are_drafted_is_of_no_consequence(table: torch.Tensor, gamma: int) -> None:
    """It is a matter of speed; an entrant's texts must not depend on what suits a machine."""
    tokens = said(TableNet(table), 4_000, decoding=THREE._replace(gamma=gamma))

    assert fit(tokens, exact(by_table(table[1:]))) > 0.001
    assert fit(tokens, exact(by_table(table))) < 1e-9


def test_beta_is_the_exponent_of_every_verifier(table: torch.Tensor) -> None:
    """The draft head has none: it only proposes."""
    doubled = THREE._replace(beta=2.0)

    tokens = said(TableNet(table), 4_000, decoding=doubled)

    assert fit(tokens, exact(by_table(table[1:]), doubled)) > 0.001
    assert fit(tokens, exact(by_table(table[1:]))) < 1e-9


@pytest.mark.parametrize("top_p", [0.4, 0.8])
def test_a_nucleus_is_that_of_the_product(table: torch.Tensor, top_p: float) -> None:
    """Not of each verifier, nor of the draft head: its own only makes drafts that may pass."""
    decoding = THREE._replace(top_p=top_p)

    tokens = said(TableNet(table), 4_000, decoding=decoding)

    assert fit(tokens, exact(by_table(table[1:]), decoding)) > 0.001  # 0 if one was ruled out
    assert fit(tokens, exact(by_table(table[1:]))) < 1e-9


def test_a_nucleus_of_one_head_is_its_own(table: torch.Tensor) -> None:
    """Where one head alone decides, there is no product."""
    decoding = THREE._replace(top_p=0.6)

    tokens = said(TableNet(table), 4_000, roles=HeadRoles(2, ()), decoding=decoding)

    assert fit(tokens, exact(by_table(table[2:3]), decoding)) > 0.001
    assert fit(tokens, exact(by_table(table[2:3]))) < 1e-9


@pytest.mark.parametrize("temperature", [None, 0.7, 5.0])
def test_a_token_that_one_verifier_rules_out_is_never_said(
    table: torch.Tensor, temperature: float | None
) -> None:
    """However fond of it all others are: that is what a jury is for."""
    table[:, :, 4] = 8.0
    table[2, :, 4] = -math.inf

    tokens = said(TableNet(table), 1_000, decoding=THREE._replace(temperature=temperature))

    assert 4 not in tokens
    assert 4 in said(TableNet(table), 10, roles=HeadRoles(0, ()))
