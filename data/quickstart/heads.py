"""Run the trunk and the heads' layers of the weights separately, to train the heads alone."""

from typing import NamedTuple

import torch
from transformers import Olmo2ForCausalLM

from chat import IGNORED
from fitting import Batch

HEADS_DEPTH = 2  # layers


class HeadOutput(NamedTuple):
    """A head's logits at the N labelled places of a batch, and the labels."""

    logits: torch.Tensor  # (N, V)
    labels: torch.Tensor  # (N,)


@torch.no_grad()
def trunk_states(weights: Olmo2ForCausalLM, ids: torch.Tensor) -> torch.Tensor:
    """Return the trunk's (T, D) states of (T,) tokens."""
    states = weights.model.embed_tokens(ids[None])  # (1, T, D)
    return run_layers(weights, slice(None, -HEADS_DEPTH), states)[0]


def head_output(weights: Olmo2ForCausalLM, batch: Batch) -> HeadOutput:
    """Run the last layers on (B, T, D) trunk states; return the output at labelled places."""
    states = run_layers(weights, slice(-HEADS_DEPTH, None), batch.inputs)  # (B, T, D)
    has_label = batch.labels != IGNORED  # (B, T)
    logits = weights.lm_head(weights.model.norm(states[has_label]))  # (N, V)
    return HeadOutput(logits, batch.labels[has_label])


def run_layers(weights: Olmo2ForCausalLM, layers: slice, states: torch.Tensor) -> torch.Tensor:
    """Return the (B, T, D) states after some layers; attention without a mask is causal."""
    positions = torch.arange(states.shape[1])[None]  # (1, T)
    angles = weights.model.rotary_emb(states, position_ids=positions)
    for layer in weights.model.layers[layers]:
        states = layer(states, position_embeddings=angles)
    return states
