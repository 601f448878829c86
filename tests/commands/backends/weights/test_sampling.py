"""Sampling is exact, each row has random numbers of its own, and broken logits are seen.

Penalty, top-k and min-p are as transformers has them, and blind to padding.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import (
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from commands.backends.weights.sampling import (
    NO_TOKEN,
    RowNoise,
    SamplingSettings,
    choose,
    n_draws,
    nucleus,
    philox,
    row_key,
    sample,
    uniforms,
    warp,
)
from commands.entrants.generate import options_of
from commands.ports import GenerationTask
from ledger.events.registration import Entrant, EntrantOptions
from tests.support.statistics import OUT, chi_square_p, many_uniforms
from tests.support.weights.generating import PROMPTS, texts

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("counter", "key", "words"),
    [
        ((0,) * 4, (0,) * 2, (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xA4093822, 0x299F31D0),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)
def test_the_numbers_are_those_of_its_authors(
    counter: tuple[int, ...], key: tuple[int, ...], words: tuple[int, ...]
) -> None:
    """The known answers that come with their own implementation, Random123."""
    made = philox([torch.tensor(word) for word in counter], [torch.tensor(word) for word in key])

    assert tuple(map(int, made)) == words


def test_a_seed_gives_the_same_numbers_for_ever() -> None:
    """Texts that ledgers hold were sampled from them; others would make these unrepeatable."""
    first = RowNoise([5], CPU).step(3)

    assert row_key(5) == 1795077847799564329
    assert first.tolist() == [pytest.approx([0.1282607019, 0.7764645815, 0.0949261785])]


EIGHT_LOGITS = torch.tensor([2.0, 1.5, 1.0, 0.5, 0.0, -0.5, -1.0, -2.0])


def sampled(seeds: list[int], temperature: float, n_steps: int) -> torch.Tensor:
    """Draw (rows, steps) tokens, all from EIGHT_LOGITS."""
    noise, logits = RowNoise(seeds, CPU), EIGHT_LOGITS.repeat(len(seeds), 1)  # (B, V)
    steps = (noise.step(n_draws(len(EIGHT_LOGITS))) for _ in range(n_steps))
    return torch.stack([sample(logits, step, temperature).tokens for step in steps], 1)  # (B, n)


def fit(tokens: torch.Tensor, logits: torch.Tensor) -> float:
    """Return how probable tokens are that lie further from the softmax."""
    counts = torch.bincount(tokens.flatten(), minlength=len(logits))
    return chi_square_p(counts, logits.softmax(-1) * tokens.numel())


@pytest.mark.parametrize("n_tokens", [2, 7, 33, 100])
def test_vocabularies_of_any_size_are_drawn_from(n_tokens: int) -> None:
    """The last block of tokens is rarely a whole one, and a block may be ruled out."""
    logits = 2 * torch.randn(n_tokens, generator=torch.Generator().manual_seed(n_tokens))
    logits[1 : n_tokens // 2] = OUT
    n_rows = 20_000

    tokens = sample(logits.expand(n_rows, -1), many_uniforms(n_rows, n_draws(n_tokens))).tokens

    assert fit(tokens, logits) > 0.001


def test_the_first_tokens_of_neighbouring_seeds_follow_the_softmax() -> None:
    """Seeds that count up must not give numbers that resemble each other."""
    tokens = sampled(list(range(4000)), 1.0, n_steps=1)

    assert fit(tokens, EIGHT_LOGITS) > 0.001


def test_a_low_temperature_is_nearly_greedy() -> None:
    """Logits are divided by the temperature, not multiplied."""
    assert torch.all(sampled([1, 2, 3], 0.01, n_steps=20) == EIGHT_LOGITS.argmax())


def test_a_row_keeps_its_numbers_whoever_comes_and_goes() -> None:
    """Batches change from run to run; what an entrant says must not."""
    alone = RowNoise([7], CPU)
    expected = torch.cat([alone.step(5) for _ in range(30)])

    noise = RowNoise([1, 7, 2], CPU)
    found = [noise.step(5)[1] for _ in range(3)]
    noise.keep(torch.tensor([2, 1]))
    found += [noise.step(5)[1] for _ in range(2)]
    found += [noise.step(5)[1] for _ in range(12)]
    noise.keep(torch.tensor([1]))
    found += [noise.step(5)[0] for _ in range(13)]

    assert torch.equal(torch.stack(found), expected)
    assert torch.equal(RowNoise([8], CPU).step(5)[0], RowNoise([1, 8], CPU).step(5)[1])
    assert len({*expected.flatten().tolist()}) == expected.numel()


def test_uniforms_lie_between_0_and_1_and_are_fine_near_0() -> None:
    """Noise is large where they are small: with 24 bits there, rare tokens would never be drawn."""
    drawn = uniforms(torch.tensor(row_key(1)), torch.arange(1000), 1001)

    assert 0 < drawn.min() < 2.0**-18
    assert drawn.max() < 1
    assert abs(float(drawn.mean()) - 0.5) < 0.002
    assert (drawn[drawn < 2.0**-10] * 2.0**24).frac().count_nonzero() > 500


NO_TOKENS_OF_ONE_ROW = torch.zeros(1, 0, dtype=torch.long)


@given(st.integers(0, 2**32 - 1), st.floats(0.01, 0.999))
def test_the_rule_is_that_of_transformers(seed: int, top_p: float) -> None:
    """So that an entrant is sampled as its authors sample it."""
    scores = 3 * torch.randn(3, 50, generator=torch.Generator().manual_seed(seed))

    ours = nucleus(scores, top_p)

    theirs = TopPLogitsWarper(top_p)(NO_TOKENS_OF_ONE_ROW, scores)
    likelier = scores.softmax(-1).sort(descending=True).values.cumsum(-1)
    if (likelier - top_p).abs().min() > 1e-6:  # by rounding, either side of it is right
        assert torch.equal(ours, theirs)


def test_of_equal_tokens_the_first_are_kept() -> None:
    """Whatever order a sort leaves them in on another device, the text must be the same."""
    assert nucleus(torch.zeros(1, 64), 0.1).isfinite()[0].nonzero().flatten().tolist() == [
        *range(7)
    ]


Build = Callable[..., Entrant]
Tasks = Callable[..., list[GenerationTask]]

HISTORY = torch.LongTensor([[1, 2, 2, 7], [0, 3, 4, 5]])


def logits() -> torch.Tensor:
    """Return logits of two rows over eight tokens."""
    return torch.randn(2, 8, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("penalty", [1.5, 0.5])
def test_earlier_tokens_are_penalised_as_by_transformers(penalty: float) -> None:
    """A penalty means what people know it to mean."""
    theirs = RepetitionPenaltyLogitsProcessor(penalty)(HISTORY, logits())

    found = warp(logits(), HISTORY, SamplingSettings(repetition_penalty=penalty))

    torch.testing.assert_close(found, theirs)


def test_the_likeliest_tokens_are_kept_as_by_transformers() -> None:
    """top_k is blind to the temperature, and min_p is not."""
    top = TopKLogitsWarper(3)(HISTORY, logits())
    heated = MinPLogitsWarper(0.2)(HISTORY, logits() / 0.5).isfinite()

    assert torch.equal(warp(logits(), HISTORY, SamplingSettings(1.0, top_k=3)), top)
    assert torch.equal(warp(logits(), HISTORY, SamplingSettings(1.0, top_k=99)), logits())
    kept = warp(logits(), HISTORY, SamplingSettings(0.5, min_p=0.2)).isfinite()
    assert torch.equal(kept, heated)


def test_padding_is_not_penalised() -> None:
    """Its token is one of the vocabulary, which the prompt alone may have."""
    padded = torch.tensor([[NO_TOKEN, NO_TOKEN, 1, 2], [3, 4, 5, 6]])

    found = warp(logits(), padded, SamplingSettings(repetition_penalty=2.0))

    assert found[0, 0] == logits()[0, 0]
    assert (found[0, 1:3] != logits()[0, 1:3]).all()


@pytest.mark.parametrize("broken", [[0.0, math.nan], [0.0, math.inf], [OUT, OUT]])
def test_broken_logits_are_seen_in_their_row_whatever_the_settings(broken: list[float]) -> None:
    """A filter that dropped a NaN would make text of it; other prompts of the batch are sound."""
    rows = logits()
    rows[0] = torch.tensor(broken * 4)
    noise = RowNoise([1, 2], rows.device)

    for how in (
        SamplingSettings(),
        SamplingSettings(1.0),
        SamplingSettings(1.0, top_p=0.5),
        SamplingSettings(1.0, top_k=2, min_p=0.1, repetition_penalty=1.5),
    ):
        assert choose(rows, HISTORY, how, noise).is_finite.tolist() == [False, True]


SETTINGS = {
    "nothing": EntrantOptions(),
    "top_k": EntrantOptions(top_k=2),
    "min_p": EntrantOptions(min_p=0.05),
    "top_p": EntrantOptions(top_p=0.5),
    "repetition_penalty": EntrantOptions(repetition_penalty=3.0),
    "stop": EntrantOptions(stop=("\x10",)),
    "template": EntrantOptions(template="none"),
    "prompt_format": EntrantOptions(prompt_format="Q: {prompt} A:"),
    "system": EntrantOptions(system="short"),
}


def test_each_setting_reaches_weights_on_this_machine(
    weights: Path, entrant: Build, tasks: Tasks
) -> None:
    """Every one changes what is said."""
    said = {}
    for name, chosen in SETTINGS.items():
        one = entrant(folder=weights, temperature=1.5, options=chosen, max_new_tokens=7)
        (task,) = tasks(one, PROMPTS[:1])
        (said[name],) = texts([replace(task, options=options_of(one))])

    assert len({*said.values()}) == len(said)
