"""Weights that say by heart what they are told to."""

from collections.abc import Sequence
from typing import cast

import torch
from transformers import GenerationConfig, GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

from commands.backends.weights.loaded import LoadedWeights, TextModel

N_POSITIONS = 96


def reciting(
    tokenizer: PreTrainedTokenizerFast,
    said: Sequence[int],
    *,
    behind: int,
    end_ids: frozenset[int] = frozenset({0}),
) -> LoadedWeights:
    """Return weights that say these tokens, whatever they read, behind so many tokens.

    Every position has a dimension of its own, and nothing else counts.
    """
    config = GPT2Config(
        vocab_size=len(tokenizer),
        n_embd=N_POSITIONS,
        n_positions=N_POSITIONS,
        n_layer=1,
        n_head=1,
        tie_word_embeddings=False,
    )
    with torch.random.fork_rng(devices=[]):
        model = GPT2LMHeadModel(config).train(mode=False)
    for tensor in model.parameters():
        tensor.data.zero_()
    model.transformer.wpe.weight.data = torch.eye(N_POSITIONS)
    model.transformer.ln_f.weight.data.fill_(1)
    for position, token in enumerate(said, behind - 1):
        model.lm_head.weight.data[token, position] = 10
    model.generation_config = GenerationConfig.from_dict({})
    return LoadedWeights(
        cast("TextModel", model), tokenizer, torch.device("cpu"), end_ids, N_POSITIONS
    )
