"""The network of a Hydra: one trunk, and heads that copy the last layers with LoRA of their own.

LoRA changes only the heads' MLPs, so each of the last layers has one attention, one pair of norms,
and one MLP per head. The rows of all heads stand beside each other in one batch: they share
attention and norms, and are routed through their heads' MLPs.
"""

import copy
from collections.abc import Iterable, Sequence
from typing import NamedTuple, cast

import torch
from torch import nn
from transformers import DynamicCache, Olmo2ForCausalLM
from transformers.cache_utils import DynamicLayer

from commands.backends.weights.lora import Lora, merge_lora


class TokenBlock(NamedTuple):
    """Positions and attention mask of a block of tokens."""

    positions: torch.Tensor  # (R, S) long
    mask: torch.Tensor  # (R, 1, S, K) bool, true where token s may attend to column k

    @classmethod
    def behind(cls, is_own: torch.Tensor, n_new: int) -> "TokenBlock":
        """Return the place of the last n_new columns of (R, K) bool, which is false on padding.

        Padding sees itself, to avoid NaN, and takes a position that is valid.
        """
        columns = torch.arange(is_own.shape[1], device=is_own.device)
        new = columns[-n_new:, None]  # (S, 1)
        mask = (columns <= new) & is_own[:, None] | (columns == new)  # (R, S, K)
        positions = (is_own.long().cumsum(1) - 1).clamp(min=0)
        return cls(positions[:, -n_new:], mask[:, None])

    def repeated(self, n_times: int) -> "TokenBlock":
        """Return the place of as many copies of the rows, one behind the other."""
        return TokenBlock(self.positions.repeat(n_times, 1), self.mask.repeat(n_times, 1, 1, 1))


class Route:
    """The head that each row goes through."""

    def __init__(self, heads: Sequence[int], device: torch.device) -> None:
        """Send row r through heads[r]."""
        self.n_rows = len(heads)
        self.rows_of = {
            head: torch.tensor([r for r, each in enumerate(heads) if each == head], device=device)
            for head in sorted(set(heads))
        }

    @classmethod
    def every_head(cls, n_heads: int, n_rows: int, device: torch.device) -> "Route":
        """Send each of the rows through so many heads: row h * n_rows + r is row r in head h."""
        return cls([head for head in range(n_heads) for _ in range(n_rows)], device)


class RoutedMlp(nn.Module):
    """One layer's MLPs, one per head."""

    route: Route

    def __init__(self, mlps: Sequence[nn.Module]) -> None:
        """Hold head k's MLP at mlps[k]."""
        super().__init__()
        self.mlps = nn.ModuleList(mlps)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """Return what the rows' heads make of (R, S, D)."""
        rows_of = self.route.rows_of
        if len(rows_of) == 1:
            (head,) = rows_of
            return cast("torch.Tensor", self.mlps[head](states))
        out = torch.empty_like(states)
        for head, rows in rows_of.items():
            out[rows] = self.mlps[head](states[rows])  # (rows, S, D)
        return out


class HydraNet(nn.Module):
    """The trunk, the heads' layers, and the output layer that all heads share."""

    def __init__(
        self,
        model: Olmo2ForCausalLM,
        heads: Sequence[Sequence[nn.Module]],
        n_answering: int | None = None,
    ) -> None:
        """Take a model apart, unusable afterwards.

        Args:
            model: The weights.
            heads: heads[k][j] is head k's j-th MLP.
            n_answering: How many heads answer, the first ones; None: all.
        """
        super().__init__()
        depth = len(heads[0])
        layers = model.model.layers
        self.n_heads = len(heads) if n_answering is None else n_answering
        self.embeddings = model.model.embed_tokens
        self.rotary = model.model.rotary_emb
        self.trunk, self.head_layers = layers[:-depth], layers[-depth:]
        self.norm, self.lm_head = model.model.norm, model.lm_head
        for j, layer in enumerate(self.head_layers):
            layer.mlp = RoutedMlp([mlps[j] for mlps in heads])

    @property
    def device(self) -> torch.device:
        """Where the tensors are."""
        return cast("torch.Tensor", self.lm_head.weight).device

    def trunk_states(
        self, ids: torch.Tensor, block: TokenBlock, cache: DynamicCache | None
    ) -> torch.Tensor:
        """Return the trunk's (R, S, D) states of (R, S) tokens, which the cache takes, too."""
        return self._through(self.trunk, self.embeddings(ids), block, cache)

    def head_states(
        self, states: torch.Tensor, route: Route, block: TokenBlock, cache: DynamicCache | None
    ) -> torch.Tensor:
        """Return the heads' (E * R, S, D) states, before the final norm, of the trunk's (R, S, D).

        The route has E heads for each row: row h * R + r is row r in its h-th.
        """
        n_times = route.n_rows // len(states)
        for layer in self.head_layers:
            cast("RoutedMlp", layer.mlp).route = route
        repeated = states.repeat(n_times, 1, 1)
        return self._through(self.head_layers, repeated, block.repeated(n_times), cache)

    def select_rows(self, cache: DynamicCache, rows: torch.Tensor) -> None:
        """Keep these rows (B,) of a cache, which may repeat, for the trunk and for all heads."""
        n_rows = len(rows_of(cache, 0))
        for n, layer in enumerate(cache.layers):
            n_times = len(rows_of(cache, n)) // n_rows
            copies = n_rows * torch.arange(n_times, device=rows.device)[:, None]
            cast("DynamicLayer", layer).batch_select_indices((copies + rows).flatten())

    def logits(self, states: torch.Tensor) -> torch.Tensor:
        """Return (..., V) logits of the heads' (..., D) states."""
        return cast("torch.Tensor", self.lm_head(self.norm(states)))

    def _through(
        self,
        layers: Iterable[nn.Module],
        states: torch.Tensor,
        block: TokenBlock,
        cache: DynamicCache | None,
    ) -> torch.Tensor:
        angles = self.rotary(states, position_ids=block.positions)
        for layer in layers:
            states = layer(
                states,
                attention_mask=block.mask,
                position_embeddings=angles,
                past_key_values=cache,
            )
        return states


def rows_of(cache: DynamicCache, layer: int) -> torch.Tensor:
    """Return the keys that a layer of a cache has, by row."""
    return cast("torch.Tensor", cast("DynamicLayer", cache.layers[layer]).keys)


def head_mlps(model: Olmo2ForCausalLM, depth: int, loras: Sequence[Lora]) -> list[nn.Module]:
    """Return the last layers' MLPs, LoRAs merged in order; unchanged parameters are shared."""
    merged = sharing_copy(model)
    for lora in loras:
        merged = cast("Olmo2ForCausalLM", merge_lora(merged, lora))
    pairs = zip(model.model.layers[-depth:], merged.model.layers[-depth:], strict=True)
    return [_with_own(mine.mlp, theirs.mlp) for mine, theirs in pairs]


def sharing_copy(model: Olmo2ForCausalLM) -> Olmo2ForCausalLM:
    """Return a copy that shares its storage; peft replaces tensors, not their content."""
    tensors: dict[int, object] = {id(tensor): tensor for tensor in model.buffers()}
    for parameter in model.parameters():
        tensors[id(parameter)] = nn.Parameter(parameter.detach(), requires_grad=False)
    return copy.deepcopy(model, tensors)


def _with_own(original: nn.Module, merged: nn.Module) -> nn.Module:
    """Share the original's parameters where merging changed nothing."""
    for path, parameter in list(original.named_parameters()):
        owner, _, name = path.rpartition(".")
        module = merged.get_submodule(owner)
        if getattr(module, name).data_ptr() == parameter.data_ptr():
            setattr(module, name, parameter)
    return merged
