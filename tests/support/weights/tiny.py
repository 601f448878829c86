"""Tiny random weights of any family, and where they are written."""

import copy
from pathlib import Path
from typing import Final, TypeVar

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

SIZES: Final = {
    "vocab_size": 270,  # that of the tokenizer
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 160,
    "bos_token_id": 0,
    "eos_token_id": 0,
    "initializer_range": 0.5,  # so wide that answers vary
}

Model = TypeVar("Model", bound=PreTrainedModel)


def tiny(family: type[Model], *, seed: int, **changes: object) -> Model:
    """Return random weights of a family; changes are settings of its config."""
    assert family.config_class is not None
    config = family.config_class.from_dict(SIZES | changes)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = family(config)
    model.train(mode=False)
    return model


def with_template(
    tokenizer: PreTrainedTokenizerFast, template: str | None
) -> PreTrainedTokenizerFast:
    """Return the tokenizer with another chat template, or with none."""
    other = copy.deepcopy(tokenizer)
    other.chat_template = template
    return other


def save_weights(model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, folder: Path) -> Path:
    """Write a folder of weights with their tokenizer."""
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
