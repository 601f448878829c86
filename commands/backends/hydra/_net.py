"""The network of a Hydra: one trunk, and heads that copy the last layers with LoRA of their own.

LoRA changes only the heads' MLPs, so each of the last layers has one attention, one pair of norms,
and one MLP per head. Every row of a batch is routed through its head's MLPs; everything else runs
once, on the rows of all heads together.
"""

import copy
from collections.abc import Sequence
from typing import NamedTuple, cast

import torch
from torch import nn
from transformers import DynamicCache, Olmo2ForCausalLM

from commands.backends.weights.lora import Lora, merge_lora


class Route:
    """Which head each row of a batch goes through."""

    def __init__(self, heads: Sequence[int], device: torch.device) -> None:
        """Send row r through heads[r]."""
        self.n_rows = len(heads)
        self.rows_of = {
            head: torch.tensor([r for r, each in enumerate(heads) if each == head], device=device)
            for head in sorted(set(heads))
        }


class RoutedMlp(nn.Module):
    """One layer's MLPs, one per head; each row goes through its own head's."""

    route: Route

    def __init__(self, mlps: Sequence[nn.Module]) -> None:
        """Hold head k's MLP at mlps[k]."""
        super().__init__()
        self.mlps = nn.ModuleList(mlps)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """Return (R, S, D) for (R, S, D)."""
        if len(self.route.rows_of) == 1:
            (head,) = self.route.rows_of
            return cast("torch.Tensor", self.mlps[head](states))
        out = torch.empty_like(states)
        for head, rows in self.route.rows_of.items():
            out[rows] = self.mlps[head](states[rows])  # (rows, S, D)
        return out


class BlockInputs(NamedTuple):
    """Positions, attention mask and cache of a block of tokens."""

    positions: torch.Tensor  # (R, S) long
    mask: torch.Tensor  # (R, 1, S, K) bool, true where token s may attend to column k
    cache: DynamicCache | None  # of K - S columns before the block, of K after it


class HydraNet(nn.Module):
    """The trunk, the heads' layers, and the output layer that all heads share."""

    def __init__(self, model: Olmo2ForCausalLM, heads: Sequence[Sequence[nn.Module]]) -> None:
        """Take a model apart, unusable afterwards; heads[k][j] is head k's j-th MLP."""
        super().__init__()
        depth = len(heads[0])
        layers = model.model.layers
        self.n_heads = len(heads)
        self.embeddings = model.model.embed_tokens
        self.rotary = model.model.rotary_emb
        self.trunk, self.head_layers = layers[:-depth], layers[-depth:]
        self.norm, self.lm_head = model.model.norm, model.lm_head
        for j, layer in enumerate(self.head_layers):
            layer.mlp = RoutedMlp([mlps[j] for mlps in heads])
            layer.self_attn.layer_idx = j  # the heads' caches have no layers of the trunk

    @property
    def device(self) -> torch.device:
        """Where the tensors are."""
        return cast("torch.Tensor", self.lm_head.weight).device

    def trunk_states(self, ids: torch.Tensor, place: BlockInputs) -> torch.Tensor:
        """Return the trunk's (R, S, D) states of (R, S) tokens."""
        return self._through(self.trunk, self.embeddings(ids), place)

    def head_states(self, states: torch.Tensor, route: Route, place: BlockInputs) -> torch.Tensor:
        """Return the heads' (R, S, D) states, before the final norm, of the trunk's (R, S, D)."""
        for layer in self.head_layers:
            cast("RoutedMlp", layer.mlp).route = route
        return self._through(self.head_layers, states, place)

    def logits(self, states: torch.Tensor) -> torch.Tensor:
        """Return (..., V) logits of the heads' (..., D) states."""
        return cast("torch.Tensor", self.lm_head(self.norm(states)))

    def _through(
        self, layers: nn.ModuleList, states: torch.Tensor, place: BlockInputs
    ) -> torch.Tensor:
        angles = self.rotary(states, position_ids=place.positions)
        for layer in layers:
            states = layer(
                states,
                attention_mask=place.mask,
                position_embeddings=angles,
                past_key_values=place.cache,
            )
        return states


def build_hydra(model: Olmo2ForCausalLM, depth: int, shards: Sequence[Sequence[Lora]]) -> HydraNet:
    """Build a Hydra from a model, unusable afterwards, with a head for each sequence of shards."""
    return HydraNet(model, [head_mlps(model, depth, loras) for loras in shards])


def head_mlps(model: Olmo2ForCausalLM, depth: int, loras: Sequence[Lora]) -> list[nn.Module]:
    """Return the last layers' MLPs, LoRAs merged in order; unchanged parameters are shared."""
    merged = sharing_copy(model)
    for lora in loras:
        merged = cast("Olmo2ForCausalLM", merge_lora(merged, lora))
    pairs = zip(model.model.layers[-depth:], merged.model.layers[-depth:], strict=True)
    return [_with_own(mine.mlp, theirs.mlp) for mine, theirs in pairs]


def sharing_copy(model: Olmo2ForCausalLM) -> Olmo2ForCausalLM:
    """Return a copy that shares its storage; peft replaces tensors, not their content."""
    tensors: dict[int, object] = {id(each): each for each in model.buffers()}
    for each in model.parameters():
        tensors[id(each)] = nn.Parameter(each.detach(), requires_grad=False)
    return copy.deepcopy(model, tensors)


def _with_own(original: nn.Module, merged: nn.Module) -> nn.Module:
    """Share the original's parameters where merging changed nothing."""
    for path, parameter in list(original.named_parameters()):
        owner, _, name = path.rpartition(".")
        module = merged.get_submodule(owner)
        if getattr(module, name).data_ptr() == parameter.data_ptr():
            setattr(module, name, parameter)
    return merged
