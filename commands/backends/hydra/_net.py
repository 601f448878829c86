"""The network of a Hydra: one trunk, and heads that copy the last layers with LoRA of their own.

LoRA changes only the heads' MLPs, so each of the last layers has one attention, one pair of norms,
and one MLP per head. Rows of a batch are routed through their heads' MLPs; everything else runs
once, on the rows of all heads together.
"""

import copy
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol, cast

import torch
from torch import nn
from transformers import DynamicCache, Olmo2ForCausalLM
from transformers.models.olmo2.modeling_olmo2 import Olmo2Attention, apply_rotary_pos_emb

from commands.backends.weights.lora import Lora, merge_lora


class BlockInputs(NamedTuple):
    """Positions, attention mask and cache of a block of tokens."""

    positions: torch.Tensor  # (R, S) long
    mask: torch.Tensor  # (R, 1, S, K) bool, true where token s may attend to column k
    cache: DynamicCache | None  # of K - S columns before the block, of K after it


class Routing(Protocol):
    """Which heads the rows of a batch go through."""

    def through(self, mlps: nn.ModuleList, states: torch.Tensor, *, is_first: bool) -> torch.Tensor:
        """Return what the heads' MLPs, of their first layer or a later one, make of states."""

    def behind_first(self, place: BlockInputs) -> BlockInputs:
        """Return the place of a block in the layers behind the first."""


class Route:
    """Each row goes through a head of its own."""

    def __init__(self, heads: Sequence[int], device: torch.device) -> None:
        """Send row r through heads[r]."""
        self.rows_of = {
            head: torch.tensor([r for r, each in enumerate(heads) if each == head], device=device)
            for head in sorted(set(heads))
        }

    def through(
        self,
        mlps: nn.ModuleList,
        states: torch.Tensor,
        *,
        is_first: bool,  # noqa: ARG002  # all alike
    ) -> torch.Tensor:
        """Return (R, S, D) for (R, S, D)."""
        if len(self.rows_of) == 1:
            (head,) = self.rows_of
            return cast("torch.Tensor", mlps[head](states))
        out = torch.empty_like(states)
        for head, rows in self.rows_of.items():
            out[rows] = mlps[head](states[rows])  # (rows, S, D)
        return out

    def behind_first(self, place: BlockInputs) -> BlockInputs:
        """Return the same."""
        return place


class EveryHead(NamedTuple):
    """Each row goes through the first so many heads; row r of head e becomes row e * R + r.

    All heads begin with the same attention to the trunk's states, so it is computed once: the cache
    has R rows of the first layer, and E * R of the others.
    """

    n_heads: int

    def through(self, mlps: nn.ModuleList, states: torch.Tensor, *, is_first: bool) -> torch.Tensor:
        """Return (E, R, S, D) for (R, S, D) of the first layer, else (E * R, S, D) for as many."""
        parts = [states] * self.n_heads if is_first else states.chunk(self.n_heads)
        made = [mlp(part) for mlp, part in zip(mlps, parts, strict=False)]
        return torch.stack(made) if is_first else torch.cat(made)

    def behind_first(self, place: BlockInputs) -> BlockInputs:
        """Return the place of E * R rows."""
        positions, mask = place.positions.repeat(self.n_heads, 1), place.mask
        return BlockInputs(positions, mask.repeat(self.n_heads, 1, 1, 1), place.cache)


class RoutedMlp(nn.Module):
    """One layer's MLPs, one per head."""

    route: Routing

    def __init__(self, mlps: Sequence[nn.Module], *, is_first: bool) -> None:
        """Hold head k's MLP at mlps[k], of its first layer or a later one."""
        super().__init__()
        self.mlps = nn.ModuleList(mlps)
        self._is_first = is_first

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """Return what the rows' heads make of (R, S, D)."""
        return self.route.through(self.mlps, states, is_first=self._is_first)


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
            layer.mlp = RoutedMlp([mlps[j] for mlps in heads], is_first=j == 0)
            layer.self_attn.layer_idx = j  # the heads' caches have no layers of the trunk

    @property
    def device(self) -> torch.device:
        """Where the tensors are."""
        return cast("torch.Tensor", self.lm_head.weight).device

    def trunk_states(self, ids: torch.Tensor, place: BlockInputs) -> torch.Tensor:
        """Return the trunk's (R, S, D) states of (R, S) tokens."""
        return self._through(self.trunk, self.embeddings(ids), place)

    def head_states(self, states: torch.Tensor, route: Routing, place: BlockInputs) -> torch.Tensor:
        """Return the heads' (E * R, S, D) states, before the final norm, of the trunk's (R, S, D).

        E is 1 where each row goes through one head.
        """
        return self._through_heads(self.head_layers, states, route, place)

    def read(self, states: torch.Tensor, route: Routing, place: BlockInputs) -> None:
        """Let the heads read the trunk's (R, S, D), which the cache of the place then holds.

        What the last layer makes of them is nobody's concern, so it keeps keys and values alone.
        """
        *before, last = self.head_layers
        states = self._through_heads(before, states, route, place)
        behind = route.behind_first(place) if before else place
        attention = cast("Olmo2Attention", last.self_attn)
        by_attention_head = (*states.shape[:-1], -1, attention.head_dim)
        keys = attention.k_norm(attention.k_proj(states)).view(by_attention_head).transpose(1, 2)
        values = attention.v_proj(states).view(by_attention_head).transpose(1, 2)
        angles = self.rotary(states, position_ids=behind.positions)
        _, turned = apply_rotary_pos_emb(keys, keys, *angles)
        cast("DynamicCache", place.cache).update(turned, values, len(before))

    def logits(self, states: torch.Tensor) -> torch.Tensor:
        """Return (..., V) logits of the heads' (..., D) states."""
        return cast("torch.Tensor", self.lm_head(self.norm(states)))

    def _through_heads(
        self, layers: Iterable[nn.Module], states: torch.Tensor, route: Routing, place: BlockInputs
    ) -> torch.Tensor:
        for n, layer in enumerate(layers):
            cast("RoutedMlp", layer.mlp).route = route
            where = route.behind_first(place) if n else place
            states = self._through([layer], states, where).flatten(0, -3)
        return states

    def _through(
        self, layers: Iterable[nn.Module], states: torch.Tensor, place: BlockInputs
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
