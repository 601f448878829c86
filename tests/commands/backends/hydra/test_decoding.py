"""Rounds of a Hydra: worked by hand, true to the product of its heads, and each row's own."""

import copy
import math
from collections.abc import Callable, Sequence
from itertools import pairwise

import pytest
import torch
from transformers import Olmo2ForCausalLM

from commands.backends.hydra.decoding import HydraRow
from commands.backends.hydra.net import HydraNet
from tests.support.statistics import chi_square_p
from tests.support.weights.hydra import (
    N_HEADS,
    HeadRoles,
    HydraDecoding,
    TableNet,
    decode,
    head_row,
    scattered_heads,
    start_row,
    tiny_olmo2,
)

GREEDY = HydraDecoding(temperature=None, max_new_tokens=8)
SAMPLED = GREEDY._replace(temperature=0.98)
PROMPTS = [[5, 6, 7], [8], [9, 10, 11, 12, 13, 14, 15], [16, 17], [18, 19, 20, 21, 22]]
OTHERS = [[100 + n] * n for n in (9, 1, 4)]

Hydra = tuple[HydraNet, list[Olmo2ForCausalLM]]


@pytest.fixture(scope="module")
def hydra() -> Hydra:
    """Give heads that mostly agree, and each of them as a whole model."""
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


@pytest.mark.parametrize("bypass_jury", [False, True])
def test_greedily_what_the_deciding_heads_find_most_probable_is_said(
    hydra: Hydra, *, bypass_jury: bool
) -> None:
    """By the verifiers' product, whatever was drafted; without a jury, by the drafting head."""
    net, copies = hydra

    rows = decoded(net, started(PROMPTS[:3], bypass_jury=bypass_jury), GREEDY)

    for row, prompt in zip(rows, PROMPTS[:3], strict=True):
        experts = [copies[head] for head in row.jury or [row.draft]]
        assert row.tokens == greedy_by_hand(experts, prompt)
    n_rejected = sum(len(row.diagnostics().resampled_at) for row in rows)
    assert n_rejected == 0 if bypass_jury else n_rejected > 0


def test_the_witness_is_what_the_deciding_head_held_at_the_prompts_end(hydra: Hydra) -> None:
    """The drafter's state, or that of the verifier with the highest logit for what was said."""
    net, copies = hydra
    prompts = [[n, n + 1, n + 2] for n in range(5, 15)]

    rows = decoded(net, started(prompts), GREEDY._replace(max_new_tokens=1))

    n_replaced = 0
    for row, prompt in zip(rows, prompts, strict=True):
        ends = [end_of_prompt(model, prompt) for model in copies]
        decider = row.draft
        if row.diagnostics().resampled_at:
            n_replaced += 1
            decider = max(row.jury, key=lambda head: ends[head][1][row.tokens[0]])
        assert row.first_state is not None
        torch.testing.assert_close(row.first_state, ends[decider][0], rtol=1e-4, atol=1e-4)
    assert 0 < n_replaced < len(rows)


@pytest.mark.parametrize(
    ("temperature", "bypass_jury"),
    [
        (0.98, False),
        *(
            pytest.param(*each, marks=pytest.mark.nightly)
            for each in ((None, False), (None, True), (0.98, True))
        ),
    ],
)
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


def test_a_broken_head_breaks_its_rows_and_no_other(hydra: Hydra) -> None:
    """Weights that overflow in one head must not cost the answers of the others."""
    net, _ = hydra
    prompts = [[n, n + 1] for n in range(5, 25)]
    sound = decoded(net, started(prompts, bypass_jury=True), SAMPLED)
    poisoned = copy.deepcopy(net)
    poisoned.head_layers[0].mlp.mlps[3].get_parameter("up_proj.weight").data[0] = math.nan

    rows = decoded(poisoned, started(prompts, bypass_jury=True), SAMPLED)

    broken = [row for row in rows if row.draft == 3]
    assert [(row.is_broken, row.tokens) for row in broken] == [(True, [])] * len(broken)
    assert 0 < len(broken) < len(rows)
    others = [n for n, row in enumerate(rows) if row.draft != 3]
    assert_same([rows[n] for n in others], [sound[n] for n in others])
    assert not any(rows[n].is_broken for n in others)


@pytest.mark.parametrize("head", [0, 2])
def test_a_row_is_kept_up_to_where_its_heads_broke(head: int) -> None:
    """Nothing is said in the place of a token for which a drafting or verifying head has none."""
    net = chain(1, 2, 3, 4, 5, 6, 7, 8, 9)
    net.table[head, 7] = math.nan
    rows = [head_row(prompt, HeadRoles(0, (1, 2)), 0) for prompt in ([1], [8])]

    broken, sound = decoded(net, rows, GREEDY._replace(max_new_tokens=8))

    assert (broken.tokens, broken.is_broken) == ([2, 3, 4, 5, 6, 7], True)
    assert (len(sound.tokens), sound.tokens[0], sound.is_broken) == (8, 9, False)


THREE = HydraDecoding(temperature=0.7, max_new_tokens=3)
ALL_AGAINST_FIRST = HeadRoles(0, (1, 2, 3))
PROMPT = [1, 2]

Say = Callable[[list[list[int]]], torch.Tensor]  # texts of equal length to (E, N, V) logits


@pytest.fixture(scope="module")
def small_hydra() -> tuple[HydraNet, list[Olmo2ForCausalLM]]:
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
def random_table() -> torch.Tensor:
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


def sampled_tokens(
    net: HydraNet,
    n_rows: int,
    *,
    roles: HeadRoles = ALL_AGAINST_FIRST,
    decoding: HydraDecoding = THREE,
) -> torch.Tensor:
    """Return (N, 3) tokens that as many seeds gave."""
    rows = [head_row(PROMPT, roles, seed) for seed in range(n_rows)]
    decode(net, rows, decoding)
    return torch.tensor([row.tokens for row in rows])


def fit(tokens: torch.Tensor, expected: torch.Tensor) -> float:
    """Return how probable counts as far off as of (N, 3) tokens are, if they follow (V, V, V)."""
    cells = tokens @ torch.tensor([expected.stride()[n] for n in range(3)])
    counts = torch.bincount(cells, minlength=expected.numel())
    return chi_square_p(counts, len(tokens) * expected.flatten())


@pytest.mark.nightly
def test_samples_follow_the_product_of_the_verifiers(
    small_hydra: tuple[HydraNet, list[Olmo2ForCausalLM]],
) -> None:
    """Nobody must be able to tell it from sampling the product itself."""
    net, models = small_hydra

    tokens = sampled_tokens(net, 6_000)

    assert fit(tokens, exact(by_whole_models(models[1:]))) > 0.001
    assert fit(tokens, exact(by_whole_models(models))) < 1e-9  # the draft head is no expert


def test_beta_is_the_exponent_of_every_verifier(random_table: torch.Tensor) -> None:
    """The draft head has none: it only proposes."""
    doubled = THREE._replace(beta=2.0)

    tokens = sampled_tokens(TableNet(random_table), 1_500, decoding=doubled)

    assert fit(tokens, exact(by_table(random_table[1:]), doubled)) > 0.001
    assert fit(tokens, exact(by_table(random_table[1:]))) < 1e-9


def test_a_nucleus_is_that_of_the_product(random_table: torch.Tensor) -> None:
    """Not of each verifier, nor of the draft head: its own only makes drafts that may pass."""
    decoding = THREE._replace(top_p=0.8)

    tokens = sampled_tokens(TableNet(random_table), 1_500, decoding=decoding)

    assert (
        fit(tokens, exact(by_table(random_table[1:]), decoding)) > 0.001
    )  # 0 if one was ruled out
    assert fit(tokens, exact(by_table(random_table[1:]))) < 1e-9


TWO_TOKENS = HydraDecoding(temperature=None, max_new_tokens=2)
DRAFTER = 0
JURY = (1, 2, 3)
FOUR_DIGITS = 1e-3


def weights(*of_tokens: float) -> torch.Tensor:
    """Return logits of probabilities in this proportion."""
    return torch.tensor(of_tokens).log()


@pytest.fixture
def worked_table() -> torch.Tensor:
    """Give what four heads say after the tokens 0 and 1.

    After 0 each verifier is for token 1, and together they give it 8 in 11.
    After 1 the second is for 2, the others for 3: together 1, 1, 2 and 6 in 10.
    The drafting head would say 1, and after it 2.
    """
    table = torch.zeros(4, 4, 4)
    table[DRAFTER, 0] = weights(2, 3, 2, 2)
    table[JURY, 0] = weights(1, 2, 1, 1)
    table[DRAFTER, 1] = weights(1, 1, 5, 1)
    table[1, 1] = weights(1, 1, 1, 3)
    table[2, 1] = weights(1, 1, 2, 1)
    table[3, 1] = weights(1, 1, 1, 2)
    return table


def said_after_zero(table: torch.Tensor, decoding: HydraDecoding = TWO_TOKENS) -> HydraRow:
    """Return what is said after token 0."""
    row = head_row([0], HeadRoles(DRAFTER, JURY), 0)
    decode(TableNet(table), [row], decoding)
    return row


def test_a_draft_that_passed_and_one_that_did_not(worked_table: torch.Tensor) -> None:
    """The second verifier is alone with the draft's 2, of probability 0.2: 3 is said instead."""
    row = said_after_zero(worked_table)

    assert row.tokens == [1, 3]
    sure = 8 / 11 * math.log(11 / 8) + 3 / 11 * math.log(11)
    torn = 0.2 * math.log(10) + 0.2 * math.log(5) + 0.6 * math.log(10 / 6)
    told = row.diagnostics()
    assert told.entropies == pytest.approx((sure, torn), rel=FOUR_DIGITS)
    assert told.stability_margins == pytest.approx((8 / 11 - 1 / 11, 0.6 - 0.2), rel=FOUR_DIGITS)
    assert told.stability_radii == (1, 0)  # 3 votes to none, and 2 to 1, halved
    assert (told.resampled_at, told.rejected_tokens) == ((1,), (2,))
    assert told.suppressions == pytest.approx((0.2,), rel=FOUR_DIGITS)
    assert told.validity_radii == (1,)  # with one vote of 3's, 2 would have two to one


@pytest.mark.parametrize(
    ("temperature", "beta", "power"), [(0.5, 1.0, 2), (1.0, 0.5, 0.5), (2.0, 2.0, 1)]
)
def test_what_is_told_is_of_the_distribution_that_was_sampled(
    worked_table: torch.Tensor, temperature: float, beta: float, power: float
) -> None:
    """The product at the temperature and with the exponent: 8 in 11 become 64 in 67, say."""
    row = said_after_zero(worked_table, TWO_TOKENS._replace(temperature=temperature, beta=beta))

    p = torch.tensor([1.0, 8, 1, 1]) ** power
    p /= p.sum()
    told = row.diagnostics()
    assert told.entropies[0] == pytest.approx(float(-(p * p.log()).sum()), rel=FOUR_DIGITS)
    assert told.stability_margins[0] == pytest.approx(float(p[1] - p[0]), rel=FOUR_DIGITS)


def test_each_head_drafts_equally_often() -> None:
    """One head alone is an average over all: each must be drawn, whatever seeds look like."""
    drawn = [start_row([5], seed=seed, n_heads=9, bypass_jury=True) for seed in range(9_000)]

    counts = torch.bincount(torch.tensor([each.draft for each in drawn]))

    assert chi_square_p(counts, torch.full((9,), 1_000.0)) > 0.001
