"""A model that is being trained is lent, and handed back as it was."""

from contextlib import nullcontext
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from peft import PeftModel
from transformers import GenerationConfig, PreTrainedModel

from commands.backends.jobs.subject import in_evaluation_mode, weights_digest
from commands.backends.weights.folder import load_model

TOKENS = torch.tensor([[5, 6, 7]])


@pytest.fixture
def model(weights: Path) -> PreTrainedModel:
    """Give a model in training."""
    model = load_model(weights, torch.float32)
    model.train(True)
    return model


def modes(model: torch.nn.Module) -> list[bool]:
    """Return of each part whether it is in training."""
    return [module.training for module in model.modules()]


@pytest.mark.parametrize("error", [None, KeyboardInterrupt])
def test_each_part_of_a_model_gets_its_own_mode_back(
    model: PreTrainedModel, error: type[BaseException] | None
) -> None:
    """A frozen part that a trainer keeps without dropout would be trained with it from then on.

    Who stops an evaluation goes on training, too.
    """
    model.get_submodule("model.layers.0").eval()
    settings, before, at_work = model.generation_config, modes(model), list[bool]()

    with pytest.raises(error) if error else nullcontext(), in_evaluation_mode(model):
        at_work += modes(model)
        if error:
            raise error

    assert not any(at_work)
    assert len({*before}) == 2
    assert modes(model) == before
    assert model.generation_config is settings


@pytest.mark.parametrize("has_own", [False, True])
def test_a_model_within_another_keeps_its_settings(lora_model: PeftModel, *, has_own: bool) -> None:
    """Peft's generate() writes the outer settings into the inner model, where they would stay."""
    whole = cast("PreTrainedModel", lora_model)
    if has_own:
        whole.generation_config = GenerationConfig.from_dict({})
    inner, outer = lora_model.get_base_model().generation_config, whole.generation_config

    with in_evaluation_mode(whole):
        cast("Any", whole).generate(TOKENS, max_new_tokens=1, pad_token_id=0)

    assert lora_model.get_base_model().generation_config is inner
    assert whole.generation_config is outer
    assert ("generation_config" in vars(lora_model)) == has_own


def test_a_lone_number_is_part_of_the_content(model: PreTrainedModel) -> None:
    """A learned scale has no dimension, and no less a say than any other tensor."""
    digests = set()
    for scale in (1.0, 2.0):
        model.register_buffer("scale", torch.tensor(scale))
        digests.add(weights_digest(model))

    assert len(digests) == 2
