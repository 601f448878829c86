"""Penalty, top-k and min-p: as transformers has them, and blind to padding."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from transformers import (
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    TopKLogitsWarper,
)

from commands.backends.weights.sampling import RowNoise
from commands.backends.weights.warping import NO_TOKEN, SamplingSettings, choose, warp
from commands.entrants.generate import options_of
from commands.ports import GenerationTask
from ledger.events.options import EntrantOptions
from ledger.events.registration import Entrant
from tests.support.weights.generating import PROMPTS, texts

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


def test_broken_logits_are_seen_whatever_the_settings() -> None:
    """A filter that dropped a NaN would make text of it."""
    broken = logits()
    broken[0, 3] = torch.nan
    noise = RowNoise([1, 2], broken.device)

    for how in (
        SamplingSettings(),
        SamplingSettings(1.0),
        SamplingSettings(1.0, top_p=0.5),
        SamplingSettings(1.0, top_k=2, min_p=0.1, repetition_penalty=1.5),
    ):
        assert choose(broken, HISTORY, how, noise).is_finite.tolist() == [False, True]


def as_chosen(owed: list[GenerationTask]) -> list[GenerationTask]:
    """Return tasks asked as a tournament asks them."""
    return [
        GenerationTask(
            task.response_key, task.entrant, task.prompt_text, task.seed, options_of(task.entrant)
        )
        for task in owed
    ]


SETTINGS = {
    "nothing": EntrantOptions(),
    "top_k": EntrantOptions(top_k=2),
    "min_p": EntrantOptions(min_p=0.05),
    "top_p": EntrantOptions(top_p=0.8),
    "repetition_penalty": EntrantOptions(repetition_penalty=3.0),
    "stop": EntrantOptions(stop=("\x10",)),
    "template": EntrantOptions(template="none"),
    "prompt_format": EntrantOptions(prompt_format="Q: {prompt} A:"),
    "system": EntrantOptions(system="short"),
}


def test_each_setting_reaches_weights_on_this_machine(
    weights: Path, entrant: Build, tasks: Tasks
) -> None:
    """Every one changes what is said, and says the same alone as in a batch."""
    said = {}
    for name, chosen in SETTINGS.items():
        one = entrant(folder=weights, temperature=1.5, options=chosen)
        owed = as_chosen(tasks(one, PROMPTS[:4]))
        said[name] = texts(owed)
        assert said[name] == [text for task in owed for text in texts([task])]

    assert len({*map(tuple, said.values())}) == len(said)


def test_the_likeliest_token_alone_is_greedy(weights: Path, entrant: Build, tasks: Tasks) -> None:
    """Whatever the noise."""
    greedy = entrant(folder=weights)
    sampled = entrant(folder=weights, temperature=1.5, options=EntrantOptions(top_k=1))

    found = texts(as_chosen(tasks(sampled, PROMPTS[:4])))

    assert found == texts(as_chosen(tasks(greedy, PROMPTS[:4])))
