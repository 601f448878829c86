"""Hydras of random weights, whose distributions are as peaked as a language model's may be."""

import copy
from math import sqrt
from typing import Final, NamedTuple, cast

import torch
from torch import nn
from transformers import AutoModelForCausalLM, Olmo2Config, Olmo2ForCausalLM

from commands.backends.hydra.net import HydraNet, sharing_copy
from tests.benchmarks.bench import Bench

N_HEADS: Final = 9
DEPTH: Final = 3  # layers of each head
RANK: Final = 8  # of LoRA
WEIGHT_STD: Final = 0.02
STRENGTH: Final = 0.3  # of LoRA, as a share of the weights

# The output layer sees states that are sqrt(hidden_size) long, so its random weights make logits of
# one normal distribution. With this spread the favourite of 12,544 tokens has 84 % of a head's
# probability on average, and 0.4 nats of entropy are left; 0.02 a weight would leave 9.3 of 9.4.
LOGIT_STD: Final = 18.0


class Shape(NamedTuple):
    """The sizes of an OLMo 2 model."""

    n_layers: int
    n_attention_heads: int
    head_size: int
    intermediate_size: int
    vocabulary_size: int

    @property
    def hidden_size(self) -> int:
        """Return how long a state is."""
        return self.n_attention_heads * self.head_size


SEVEN_B: Final = Shape(32, 32, 128, 11_008, 100_352)  # OLMo 2 7B
SMALL: Final = Shape(32, 4, 128, 1_376, 12_544)  # as deep, all else an eighth: 114 M parameters


def scaled(shape: Shape, bench: Bench) -> Shape:
    """Return the shape to measure instead of one that is asked."""
    smallest = Shape(DEPTH + 1, 1, 16, 32, 256)
    sizes = zip(shape, smallest, strict=True)
    return Shape(*(bench.scaled(size, at_least=least) for size, least in sizes))


def random_model(shape: Shape, dtype: torch.dtype = torch.float32) -> Olmo2ForCausalLM:
    """Draw a model's weights on torch's default device."""
    config = Olmo2Config(
        vocab_size=shape.vocabulary_size,
        hidden_size=shape.hidden_size,
        intermediate_size=shape.intermediate_size,
        num_hidden_layers=shape.n_layers,
        num_attention_heads=shape.n_attention_heads,
        initializer_range=WEIGHT_STD,
        pad_token_id=0,
        eos_token_id=None,
    )
    drawn = AutoModelForCausalLM.from_config(config, dtype=dtype)  # type: ignore[no-untyped-call]  # theirs
    model = cast("Olmo2ForCausalLM", drawn.requires_grad_(requires_grad=False))
    nn.init.normal_(model.lm_head.weight, std=LOGIT_STD / sqrt(shape.hidden_size))
    return model


def random_hydra(model: Olmo2ForCausalLM, *, n_heads: int = N_HEADS) -> HydraNet:
    """Give a model heads of random LoRA, 0.3 times as long as the weights it is added to.

    The model stays whole: what is not a head's own is the model's.
    """
    mlps = [layer.mlp for layer in model.model.layers[-DEPTH:]]
    heads = [[_with_lora(mlp) for mlp in mlps] for _ in range(n_heads)]
    return HydraNet(sharing_copy(model), heads).eval()


def _with_lora(mlp: nn.Module) -> nn.Module:
    """Return a copy with W + B @ A in the place of each W."""
    merged = copy.deepcopy(mlp)
    for weight in merged.parameters():
        n_out, n_in = weight.shape
        b, a = torch.randn(n_out, RANK), torch.randn(RANK, n_in)
        weight.add_(b @ a, alpha=STRENGTH * WEIGHT_STD / sqrt(RANK))
    return merged
