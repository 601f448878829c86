"""Token by token, beside others: a row's heads read what they would read alone."""

import copy
from collections.abc import Iterator, Sequence

import pytest
import torch

from commands.backends.hydra._context import HeadRoles, HydraContext
from commands.backends.hydra._net import HydraNet, build_hydra
from tests.support.weights.hydra import DEPTH, N_HEADS, tiny_olmo2

PROMPTS = [[5, 6, 7], [8], [], [9, 10, 11, 12, 13, 14]]
TOKENS = [[20, 21, 22, 23], [30, 31, 32, 33], [40, 41, 42, 43], [50, 51, 52, 53]]
AGAIN = [[60, 61], [62, 63], [64, 65], [66, 67]]

PLAIN = tiny_olmo2(seed=1, initializer_range=0.3)


@pytest.fixture(autouse=True)
def _inference() -> Iterator[None]:
    """Read as decoding does, without gradients."""
    with torch.inference_mode():
        yield


@pytest.fixture(scope="module")
def net() -> HydraNet:
    """Give heads that have learnt nothing: each says what the plain weights say."""
    return build_hydra(copy.deepcopy(PLAIN), DEPTH, [[]] * N_HEADS)


def full_jury(draft: int) -> HeadRoles:
    """Let one head draft and all others verify."""
    return HeadRoles(draft, tuple(head for head in range(N_HEADS) if head != draft))


def started(net: HydraNet, prompts: Sequence[Sequence[int]] = PROMPTS) -> HydraContext:
    """Return a context that has read prompts, with another draft head for each."""
    context = HydraContext(net, [full_jury(row) for row in range(len(prompts))])
    context.read_prompts(prompts)
    return context


def read(net: HydraNet, context: HydraContext, tokens: Sequence[Sequence[int]]) -> torch.Tensor:
    """Read tokens one after the other; return the heads' (E, B, S, V) logits after each."""
    steps = [context.step(column) for column in torch.tensor(tokens).unbind(dim=1)]
    return net.logits(torch.stack(steps, dim=2))


def said_alone(texts: Sequence[Sequence[int]], n_last: int) -> torch.Tensor:
    """Return (B, n_last, V): what the plain weights say at each text's last tokens, by itself."""
    return torch.stack([PLAIN(torch.tensor([text])).logits[0, -n_last:] for text in texts])


def joined(*parts: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return each row's parts as one text."""
    return [[token for part in row for token in part] for row in zip(*parts, strict=True)]


def assert_said(found: torch.Tensor, expected: torch.Tensor) -> None:
    """Compare logits, of every head."""
    torch.testing.assert_close(found, expected.expand_as(found), rtol=0, atol=1e-5)


def test_tokens_are_read_as_a_whole_text_would_be(net: HydraNet) -> None:
    """Behind prompts of any length, an empty one too, by all heads."""
    found = read(net, started(net), TOKENS)

    assert_said(found, said_alone(joined(PROMPTS, TOKENS), 4))
    assert found.shape == (N_HEADS, 4, 4, 270)


def test_one_head_alone_reads_the_same_text(net: HydraNet) -> None:
    """No other head does any work for it."""
    context = HydraContext(net, [HeadRoles(row, ()) for row in range(4)])
    context.read_prompts(PROMPTS)

    found = read(net, context, TOKENS)

    assert_said(found, said_alone(joined(PROMPTS, TOKENS), 4))
    assert len(found) == 1


def test_the_attention_that_all_heads_share_is_kept_once(net: HydraNet) -> None:
    """It is of the trunk's states, so heads times as many keys would be the same keys."""
    context = started(net)
    n_rows: list[int] = []
    for layer in net.head_layers:
        layer.self_attn.register_forward_pre_hook(
            lambda _, __, given: n_rows.append(len(given["hidden_states"])), with_kwargs=True
        )

    read(net, context, [[token] for token, *_ in TOKENS])

    assert n_rows == [4, 4 * N_HEADS]


@pytest.mark.parametrize("heads", [(), (0,)])
def test_rows_that_are_done_leave_the_others_as_they_were(
    net: HydraNet, heads: tuple[int, ...]
) -> None:
    """Short answers make room; what stays must not read its neighbour's cache."""
    roles = [HeadRoles(row, ()) if heads else full_jury(row) for row in range(4)]
    context = HydraContext(net, roles)
    context.read_prompts(PROMPTS)
    read(net, context, TOKENS)
    context.keep_rows([3, 1])

    found = read(net, context, [AGAIN[3], AGAIN[1]])

    kept = [PROMPTS[n] + TOKENS[n] + AGAIN[n] for n in (3, 1)]
    assert_said(found, said_alone(kept, 2))


def test_prompts_may_all_be_empty(net: HydraNet) -> None:
    """The last token of a prompt is the first that is stepped on, so one of one token is empty."""
    found = read(net, started(net, [[], []]), TOKENS[:2])

    assert_said(found, said_alone(TOKENS[:2], 4))
