"""In blocks, rolled back, beside others: a row's heads read what they would read alone."""

import copy
from collections.abc import Iterator, Sequence

import pytest
import torch

from commands.backends.hydra._context import HeadRoles, HydraContext
from commands.backends.hydra._net import HydraNet, build_hydra
from tests.support.weights.hydra import DEPTH, N_HEADS, tiny_olmo2

PROMPTS = [[5, 6, 7], [8], [], [9, 10, 11, 12, 13, 14]]
DRAFTS = [[20, 21, 22, 23], [30, 31, 32, 33], [40, 41, 42, 43], [50, 51, 52, 53]]
AGAIN = [[60, 61], [62, 63], [64, 65], [66, 67]]

PLAIN = tiny_olmo2(seed=1, initializer_range=0.3)


@pytest.fixture(autouse=True)
def _inference() -> Iterator[None]:
    """Read as decoding does, without gradients."""
    with torch.inference_mode():
        yield


@pytest.fixture(scope="module")
def net() -> HydraNet:
    """Give nine heads that have learnt nothing: each says what the plain weights say."""
    return build_hydra(copy.deepcopy(PLAIN), DEPTH, [[]] * N_HEADS)


def full_jury(draft: int) -> HeadRoles:
    """Let one head draft and all others verify."""
    return HeadRoles(draft, tuple(head for head in range(N_HEADS) if head != draft))


def started(net: HydraNet, prompts: Sequence[Sequence[int]] = PROMPTS) -> HydraContext:
    """Return a context that has read prompts, with another draft head for each."""
    context = HydraContext(net, [full_jury(row) for row in range(len(prompts))])
    context.read_prompts(prompts)
    return context


def drafted(
    net: HydraNet, context: HydraContext, drafts: Sequence[Sequence[int]]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Draft a block and let the jury read it.

    Returns:
        (B, S, V) logits of the draft heads, and (E, B, S, V) of the juries.
    """
    columns = torch.tensor(drafts).unbind(dim=1)
    read = [context.draft(tokens, step) for step, tokens in enumerate(columns)]
    on_trunk, by_head = (torch.stack(states, dim=1) for states in zip(*read, strict=True))
    return net.logits(by_head), net.logits(context.verify(on_trunk))


def said_alone(texts: Sequence[Sequence[int]], n_last: int) -> torch.Tensor:
    """Return (B, n_last, V): what the plain weights say at each text's last tokens, by itself."""
    return torch.stack([PLAIN(torch.tensor([text])).logits[0, -n_last:] for text in texts])


def joined(*parts: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return each row's parts as one text."""
    return [[token for part in row for token in part] for row in zip(*parts, strict=True)]


def assert_said(found: torch.Tensor, expected: torch.Tensor) -> None:
    """Compare logits, of every juror where there are jurors."""
    torch.testing.assert_close(found, expected.expand_as(found), rtol=0, atol=1e-5)


def test_a_drafted_block_is_read_as_a_whole_text_would_be(net: HydraNet) -> None:
    """Behind prompts of any length, an empty one too, by draft heads and by all of a jury."""
    by_draft, by_jury = drafted(net, started(net), DRAFTS)

    expected = said_alone(joined(PROMPTS, DRAFTS), 4)
    assert_said(by_draft, expected)
    assert_said(by_jury, expected)
    assert by_jury.shape == (N_HEADS - 1, 4, 4, 270)


def test_token_by_token_it_is_the_same_text(net: HydraNet) -> None:
    """One head alone keeps each token as it comes, and no jury reads."""
    context = HydraContext(net, [HeadRoles(row, ()) for row in range(4)])
    context.read_prompts(PROMPTS)

    found = []
    for tokens in torch.tensor(DRAFTS).unbind(dim=1):
        found.append(net.logits(context.draft(tokens, 0)[1]))
        context.keep_accepted(torch.ones(4, dtype=torch.long), 1)

    assert_said(torch.stack(found, dim=1), said_alone(joined(PROMPTS, DRAFTS), 4))


@pytest.mark.parametrize("n_kept", [[2, 2, 2, 2], [4, 4, 4, 4], [1, 4, 2, 3], [3, 1, 1, 2]])
def test_what_was_rolled_back_was_never_read(net: HydraNet, n_kept: list[int]) -> None:
    """Rows keep different numbers of drafts, and go on where each of them is."""
    context = started(net)
    drafted(net, context, DRAFTS)
    context.keep_accepted(torch.tensor(n_kept), 4)
    by_draft, by_jury = drafted(net, context, AGAIN)
    context.keep_accepted(torch.tensor([2, 1, 2, 1]), 2)
    last_draft, last_jury = drafted(net, context, AGAIN)

    kept = [row[:n] for row, n in zip(DRAFTS, n_kept, strict=True)]
    again = said_alone(joined(PROMPTS, kept, AGAIN), 2)
    assert_said(by_draft, again)
    assert_said(by_jury, again)
    once_more = [row[:n] for row, n in zip(AGAIN, [2, 1, 2, 1], strict=True)]
    last = said_alone(joined(PROMPTS, kept, once_more, AGAIN), 2)
    assert_said(last_draft, last)
    assert_said(last_jury, last)


def test_rows_that_are_done_leave_the_others_as_they_were(net: HydraNet) -> None:
    """Short answers make room; what stays must not read its neighbour's cache."""
    context = started(net)
    drafted(net, context, DRAFTS)
    context.keep_accepted(torch.tensor([1, 4, 2, 3]), 4)
    context.keep_rows([3, 1])

    by_draft, by_jury = drafted(net, context, [AGAIN[3], AGAIN[1]])

    kept = [PROMPTS[3] + DRAFTS[3][:3] + AGAIN[3], PROMPTS[1] + DRAFTS[1] + AGAIN[1]]
    assert_said(by_draft, said_alone(kept, 2))
    assert_said(by_jury, said_alone(kept, 2))


def test_prompts_may_all_be_empty(net: HydraNet) -> None:
    """The last token of a prompt is the first that is drafted on, so one of one token is empty."""
    by_draft, by_jury = drafted(net, started(net, [[], []]), DRAFTS[:2])

    assert_said(by_draft, said_alone(DRAFTS[:2], 4))
    assert_said(by_jury, said_alone(DRAFTS[:2], 4))
