"""A Hydra's text is its heads', and a row's is its own: whatever is decoded beside it."""

import copy
import math
from collections.abc import Sequence
from itertools import pairwise
from typing import cast

import pytest
import torch
from transformers import Olmo2ForCausalLM

from commands.backends.hydra._context import HeadRoles
from commands.backends.hydra._net import HydraNet, build_hydra
from commands.backends.hydra.decoding import HydraDecoding, decode
from commands.backends.hydra.rows import HydraRow, start_row
from commands.backends.weights.decoding import Ending
from commands.backends.weights.loaded import TextModel
from commands.backends.weights.sampling import random_stream
from tests.commands.backends.hydra_builders import N_HEADS, scattered_heads, tiny_olmo2
from tests.commands.backends.table_net import TableNet

GREEDY = HydraDecoding(
    temperature=None, max_new_tokens=12, ending=Ending(frozenset()), gamma=4, beta=1.0
)
SAMPLED = GREEDY._replace(temperature=0.98)
PROMPTS = [[5, 6, 7], [8], [9, 10, 11, 12, 13, 14, 15], [16, 17], [18, 19, 20, 21, 22]]
OTHERS = [[100 + n] * n for n in (9, 1, 4)]

Hydra = tuple[HydraNet, list[Olmo2ForCausalLM]]


@pytest.fixture(scope="module")
def hydra() -> Hydra:
    """Give nine heads that mostly agree, and each of them as a whole model."""
    return scattered_heads(tiny_olmo2(seed=1), N_HEADS, depth=2, noise=0.05)


def started(
    prompts: Sequence[Sequence[int]] = PROMPTS, first_seed: int = 0, *, bypass_jury: bool = False
) -> list[HydraRow]:
    """Return a row for each prompt, the seeds counting up."""
    return [
        start_row(prompt, seed=seed, n_heads=N_HEADS, bypass_jury=bypass_jury)
        for seed, prompt in enumerate(prompts, first_seed)
    ]


def decoded(net: HydraNet, rows: list[HydraRow], decoding: HydraDecoding) -> list[HydraRow]:
    """Decode rows together."""
    decode(net, rows, decoding)
    return rows


@torch.inference_mode()
def greedy_by_hand(experts: list[Olmo2ForCausalLM], prompt: list[int]) -> list[int]:
    """Take the most probable token of a product of whole models, reading all anew each time."""
    text = list(prompt)
    for _ in range(GREEDY.max_new_tokens):
        each = torch.stack([expert(torch.tensor([text])).logits[0, -1] for expert in experts])
        text.append(int(each.double().log_softmax(-1).sum(0).argmax()))
    return text[len(prompt) :]


@torch.inference_mode()
def end_of_prompt(model: Olmo2ForCausalLM, prompt: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return what a whole model holds at a prompt's end, before its norm, and the logits there."""
    held: list[torch.Tensor] = []
    with model.model.norm.register_forward_pre_hook(lambda _, args: held.append(args[0])):
        logits = model(torch.tensor([prompt])).logits
    return held[0][0, -1], logits[0, -1]


def chain(*tokens: int, n_heads: int = 3) -> TableNet:
    """Return heads that agree on which token follows which, from the first of a chain on."""
    table = torch.zeros(n_heads, 10, 10)
    for token, after in pairwise(tokens):
        table[:, token, after] = 40.0
    return TableNet(table)


def assert_same(rows: list[HydraRow], others: list[HydraRow]) -> None:
    """Compare tokens and diagnostics; sums in another order may differ in the last digits."""
    for row, other in zip(rows, others, strict=True):
        assert row.tokens == other.tokens
        mine, theirs = row.diagnostics().fields, other.diagnostics().fields
        assert mine.keys() == theirs.keys()
        for name, value in mine.items():
            assert value == pytest.approx(theirs[name], rel=1e-3, abs=1e-5), name


def test_heads_that_agree_say_greedily_what_the_weights_say() -> None:
    """Drafts, blocks and roll-back are there for speed: the text is transformers' own."""
    plain = tiny_olmo2(seed=1)
    net = build_hydra(copy.deepcopy(plain), 2, [[]] * N_HEADS)

    rows = decoded(net, started(), GREEDY)

    for row, prompt in zip(rows, PROMPTS, strict=True):
        ids = torch.tensor([prompt])
        mask = torch.ones_like(ids)
        whole = cast("TextModel", plain).generate(
            ids, attention_mask=mask, do_sample=False, max_new_tokens=12, eos_token_id=None
        )
        assert row.tokens == whole[0, len(prompt) :].tolist()
        assert row.diagnostics().resampled_at == ()


@pytest.mark.parametrize("bypass_jury", [False, True])
def test_greedily_what_the_deciding_heads_find_most_probable_is_said(
    hydra: Hydra, *, bypass_jury: bool
) -> None:
    """By the verifiers' product, whatever was drafted; without a jury, by the drafting head."""
    net, copies = hydra

    rows = decoded(net, started(bypass_jury=bypass_jury), GREEDY)

    for row, prompt in zip(rows, PROMPTS, strict=True):
        experts = [copies[head] for head in row.roles.jury or [row.roles.draft]]
        assert row.tokens == greedy_by_hand(experts, prompt)
    n_rejected = sum(len(row.diagnostics().resampled_at) for row in rows)
    assert n_rejected == 0 if bypass_jury else n_rejected > 5


def test_the_witness_is_what_the_deciding_head_held_at_the_prompts_end(hydra: Hydra) -> None:
    """The drafter's state, or that of the verifier with the highest logit for what was said."""
    net, copies = hydra
    prompts = [[n, n + 1, n + 2] for n in range(5, 25)]

    rows = decoded(net, started(prompts), GREEDY._replace(max_new_tokens=1))

    n_replaced = 0
    for row, prompt in zip(rows, prompts, strict=True):
        ends = [end_of_prompt(model, prompt) for model in copies]
        decider = row.roles.draft
        if row.diagnostics().resampled_at:
            n_replaced += 1
            decider = max(row.roles.jury, key=lambda head: ends[head][1][row.tokens[0]])
        assert row.first_state is not None
        torch.testing.assert_close(row.first_state, ends[decider][0], rtol=1e-4, atol=1e-4)
    assert 0 < n_replaced < len(rows)


@pytest.mark.parametrize("bypass_jury", [False, True])
@pytest.mark.parametrize("temperature", [None, 0.98])
def test_a_row_says_the_same_in_any_company(
    hydra: Hydra, temperature: float | None, *, bypass_jury: bool
) -> None:
    """Alone, in another order, without those that are answered already, with others beside it."""
    net, _ = hydra
    decoding = SAMPLED._replace(temperature=temperature)
    together = decoded(net, started(bypass_jury=bypass_jury), decoding)

    alone = [decoded(net, [row], decoding)[0] for row in started(bypass_jury=bypass_jury)]
    backwards = decoded(net, started(bypass_jury=bypass_jury)[::-1], decoding)
    resumed = decoded(net, started(PROMPTS[3:], 3, bypass_jury=bypass_jury), decoding)
    strangers = started(OTHERS, 70, bypass_jury=bypass_jury)
    mixed = decoded(net, strangers + started(bypass_jury=bypass_jury), decoding)

    assert_same(alone, together)
    assert_same(backwards[::-1], together)
    assert_same(resumed, together[3:])
    assert_same(mixed[len(strangers) :], together)
    assert len({tuple(row.tokens) for row in together}) == len(PROMPTS)


@pytest.mark.parametrize("bypass_jury", [False, True])
def test_no_more_is_said_than_was_asked_for(hydra: Hydra, *, bypass_jury: bool) -> None:
    """A block of drafts ends where the limit does, and the limit changes nothing before it."""
    net, _ = hydra
    whole = decoded(net, started(bypass_jury=bypass_jury), SAMPLED)

    for limit in (1, 2, 3, 5, 8):
        decoding = SAMPLED._replace(max_new_tokens=limit)
        rows = decoded(net, started(bypass_jury=bypass_jury), decoding)
        assert [row.tokens for row in rows] == [row.tokens[:limit] for row in whole]


@pytest.mark.parametrize("jury", [(), (1, 2)])
def test_an_end_token_ends_a_row_within_a_block(jury: tuple[int, ...]) -> None:
    """Of the four drafts that passed, two follow the end token: they were never said."""
    rows = [HydraRow([0, 1], HeadRoles(0, jury), random_stream(0))]
    decoding = GREEDY._replace(ending=Ending(frozenset({7})))

    (row,) = decoded(chain(1, 2, 3, 4, 5, 6, 7, 8, 9), rows, decoding)

    assert row.tokens == [2, 3, 4, 5, 6, 7]
    assert row.is_complete
    assert len(row.diagnostics().entropies) == (6 if jury else 0)


@pytest.mark.parametrize("jury", [(), (1, 2)])
def test_a_row_goes_on_when_its_neighbours_have_ended(jury: tuple[int, ...]) -> None:
    """What is left of a batch is decoded on, each row with its own roles and cache."""
    prompts = [[6], [1], [5], [2]]
    rows = [HydraRow(prompt, HeadRoles(0, jury), random_stream(0)) for prompt in prompts]
    decoding = GREEDY._replace(ending=Ending(frozenset({9})))

    decoded(chain(1, 2, 3, 4, 5, 6, 7, 8, 9), rows, decoding)

    assert [row.tokens for row in rows] == [list(range(n + 1, 10)) for n in (6, 1, 5, 2)]


def test_a_broken_head_breaks_its_rows_and_no_other(hydra: Hydra) -> None:
    """Weights that overflow in one head must not cost the answers of the other eight."""
    net, _ = hydra
    prompts = [[n, n + 1] for n in range(5, 25)]
    sound = decoded(net, started(prompts, bypass_jury=True), SAMPLED)
    poisoned = copy.deepcopy(net)
    poisoned.head_layers[0].mlp.mlps[3].get_parameter("up_proj.weight").data[0] = math.nan

    rows = decoded(poisoned, started(prompts, bypass_jury=True), SAMPLED)

    broken = [row for row in rows if row.roles.draft == 3]
    assert [(row.is_broken, row.tokens) for row in broken] == [(True, [])] * len(broken)
    assert 0 < len(broken) < len(rows)
    others = [n for n, row in enumerate(rows) if row.roles.draft != 3]
    assert_same([rows[n] for n in others], [sound[n] for n in others])
    assert not any(rows[n].is_broken for n in others)


@pytest.mark.parametrize("head", [0, 2])
def test_a_row_is_kept_up_to_where_its_heads_broke(head: int) -> None:
    """Nothing is said in the place of a token for which a drafting or verifying head has none."""
    net = chain(1, 2, 3, 4, 5, 6, 7, 8, 9)
    net.table[head, 7] = math.nan
    rows = [HydraRow(prompt, HeadRoles(0, (1, 2)), random_stream(0)) for prompt in ([1], [8])]

    broken, sound = decoded(net, rows, GREEDY._replace(max_new_tokens=8))

    assert (broken.tokens, broken.is_broken) == ([2, 3, 4, 5, 6, 7], True)
    assert (len(sound.tokens), sound.tokens[0], sound.is_broken) == (8, 9, False)
