"""Compute log-likelihoods of windows in batches, sharing the prefixes of rows.

What the heads of a Hydra make of a text is a mixture: a response is drafted by one head d, drawn
uniformly, and sampled from P_d. So the likelihood of a text is the mean over d of the product of
P_d over its tokens, and the distribution of its next token is the mixture of the P_d, each weighted
by the likelihood that it gives to the text so far. Plain weights are one head.
"""

import copy
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import islice
from math import fsum, log
from operator import attrgetter
from typing import Final, NamedTuple, Protocol

import torch
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

from commands.backends.weights.batching import group_by, padded
from commands.backends.weights.decoding import arguments_of, read_tokens
from commands.backends.weights.folder import quiet_transformers
from commands.backends.weights.loaded import LoadedWeights
from commands.backends.weights.windows import Window, n_common

N_LOGITS: Final = 1 << 24  # at once in float32: 64 MiB, whatever the batch
N_LOGITS_ON_CPU: Final = 1 << 18  # 1 MiB: no more than a core's cache holds
MIN_SHARED: Final = 16  # tokens; computing fewer twice is as fast as caching them


class WindowLikelihood(NamedTuple):
    """The log-likelihood of a window's targets, and the likeliest token at each place."""

    log_likelihood: float  # nats; not finite if the logits are not
    predicted: tuple[int, ...]


class InputRow(NamedTuple):
    """The input tokens of one forward pass, and the windows that share them."""

    inputs: tuple[int, ...]
    windows: tuple[Window, ...]


class PrefixGroup(NamedTuple):
    """Rows that share a prefix, or one row alone."""

    rows: tuple[InputRow, ...]
    n_shared: int = 0  # length of the prefix that is computed once

    @property
    def n_tokens(self) -> int:
        """Count the tokens of the longest row."""
        return max(len(row.inputs) for row in self.rows)

    def split(self) -> list["PrefixGroup"]:
        """Return each row alone."""
        return [PrefixGroup((row,)) for row in self.rows]


def group_by_prefix(labels: Mapping[Window, Hashable], *, may_share: bool) -> list[PrefixGroup]:
    """Group windows into rows, and rows of one label into prefix groups if that saves time.

    Windows with the same inputs become one row, such as the one-token choices of a question.
    """
    rows = [
        InputRow(windows[0].inputs, (*windows,))
        for windows in group_by(labels, attrgetter("inputs"))
    ]
    groups: list[PrefixGroup] = []
    for same in group_by(rows, lambda row: labels[row.windows[0]]):
        group = PrefixGroup((*same,), _n_shared(same))
        is_shared = may_share and len(same) > 1 and group.n_shared >= MIN_SHARED
        groups += [group] if is_shared else group.split()
    return groups


def _n_shared(rows: Sequence[InputRow]) -> int:
    """Count the tokens of the prefix that all rows share, up to the first target."""
    inputs = [row.inputs for row in rows]
    n_before = min(window.n_context - 1 for row in rows for window in row.windows)
    return min(n_before, n_common(min(inputs), max(inputs)))  # the two that differ first


def group_by_length(groups: Iterable[PrefixGroup]) -> list[list[PrefixGroup]]:
    """Sort groups into those that may share a batch, the longest first.

    Lengths within a batch differ by less than a factor of two, so less than half is padding.
    """
    longest_first = sorted(groups, key=lambda group: group.n_tokens, reverse=True)
    return group_by(longest_first, lambda each: (each.n_shared > 0, each.n_tokens.bit_length()))


class Heads(Protocol):
    """A model as H heads, whose states it keeps until they are asked for as distributions."""

    @property
    def n_logits(self) -> int:
        """How many logits all heads have for one token."""

    @property
    def can_share(self) -> bool:
        """Whether rows can share the cache of a prefix, which needs attention layers only."""

    @property
    def device(self) -> torch.device:
        """Where the model is."""

    def new_cache(self) -> DynamicCache:
        """Return an empty cache."""

    def select_rows(self, cache: DynamicCache, rows: torch.Tensor) -> None:
        """Keep these rows of a cache, which may repeat."""

    def states(
        self,
        ids: torch.Tensor,
        n_last: int,
        *,
        mask: torch.Tensor | None = None,
        past: DynamicCache | None = None,
    ) -> torch.Tensor:
        """Return (H, R, n_last, D) of (R, S) tokens, as `read_tokens` takes them."""

    def log_p(self, states: torch.Tensor) -> torch.Tensor:
        """Return (H, m, V) log P_d of each head's states (H, m, D)."""


class PlainHead:
    """Plain weights, whose states are their logits."""

    def __init__(self, loaded: LoadedWeights) -> None:
        """Take loaded weights."""
        self._loaded, self.device = loaded, loaded.device
        self.n_logits = loaded.model.config.get_text_config().vocab_size

    @property
    def can_share(self) -> bool:
        """False if `forward` does not name the arguments: peft's models hide them."""
        model = self._loaded.model
        needed = {"past_key_values", "attention_mask", "position_ids", "use_cache"}
        if getattr(model, "_is_stateful", False) or not needed <= arguments_of(type(model).forward):
            return False
        layers = self.new_cache().layers
        return all(type(layer) in {DynamicLayer, DynamicSlidingWindowLayer} for layer in layers)

    def new_cache(self) -> DynamicCache:
        """Return one whose layers know the model's windows."""
        return DynamicCache(config=self._loaded.model.config)

    def select_rows(self, cache: DynamicCache, rows: torch.Tensor) -> None:
        """Select rows in every layer; layers may be on several devices."""
        cache.batch_select_indices(rows.cpu())

    def states(
        self,
        ids: torch.Tensor,
        n_last: int,
        *,
        mask: torch.Tensor | None = None,
        past: DynamicCache | None = None,
    ) -> torch.Tensor:
        """Return (1, R, n_last, V) logits."""
        with quiet_transformers():
            return read_tokens(self._loaded, ids, n_last, mask=mask, past=past)[None]

    def log_p(self, states: torch.Tensor) -> torch.Tensor:
        """Return the softmax of logits."""
        return states.float().log_softmax(dim=-1)


def compute_groups(
    heads: Heads, groups: Sequence[PrefixGroup], *, n_logits: int | None = None
) -> dict[Window, WindowLikelihood]:
    """Compute each group's prefix once, then as many rows at a time as there are groups.

    So it needs memory for twice as many rows as groups, however many rows each has. At most
    n_logits are converted to float32 at once.

    Raises:
        torch.OutOfMemoryError: The groups are too many for the device.
    """
    n_logits = n_logits or (N_LOGITS_ON_CPU if heads.device.type == "cpu" else N_LOGITS)
    n_at_once = max(1, n_logits // heads.n_logits)
    owned = iter([(owner, row) for owner, group in enumerate(groups) for row in group.rows])
    likelihoods: dict[Window, WindowLikelihood] = {}
    with torch.inference_mode():
        past = _PrefixCache.read(heads, groups) if groups[0].n_shared else None
        while part := [*islice(owned, len(groups))]:
            owners, rows = zip(*part, strict=True)
            likelihoods |= _compute(heads, rows, past and past.select(heads, owners), n_at_once)
    return likelihoods


class _PrefixCache(NamedTuple):
    """The cache of prefixes that were read, padded on the left."""

    cache: DynamicCache
    mask: torch.Tensor  # (R, P) long, 1 on real tokens

    @classmethod
    def read(cls, heads: Heads, groups: Sequence[PrefixGroup]) -> "_PrefixCache":
        prefixes = [group.rows[0].inputs[: group.n_shared] for group in groups]
        ids, mask = padded(prefixes, heads.device)
        cache = heads.new_cache()
        heads.states(ids, 1, mask=mask, past=cache)
        return cls(cache, mask)

    def select(self, heads: Heads, rows: Sequence[int]) -> "_PrefixCache":
        """Return a copy with these rows, which may repeat."""
        mine, chosen = copy.copy(self.cache), torch.tensor(rows, device=heads.device)
        mine.layers = [copy.copy(layer) for layer in mine.layers]
        heads.select_rows(mine, chosen)
        return _PrefixCache(mine, self.mask[chosen])


def _compute(
    heads: Heads, rows: Sequence[InputRow], past: _PrefixCache | None, n_at_once: int
) -> dict[Window, WindowLikelihood]:
    """Return each window's likelihood; rows begin with the prefixes in the cache, if any."""
    n_read = past.mask.sum(dim=1).tolist() if past else [0] * len(rows)
    tails = [row.inputs[n:] for row, n in zip(rows, n_read, strict=True)]
    ids, is_real = padded(tails, heads.device, side="right")  # (R, S) each
    places = [
        (window, n, window.n_context - 1 - n_before)  # the column before the first target
        for n, (row, n_before) in enumerate(zip(rows, n_read, strict=True))
        for window in row.windows
    ]
    first_column = min(column for _, _, column in places)
    n_last = ids.shape[1] - first_column
    mask = torch.cat([past.mask, is_real], dim=1) if past else None
    states = heads.states(ids, n_last, mask=mask, past=past and past.cache)  # (H, R, C, D)
    windows, in_row, before = zip(*places, strict=True)
    n_targets = torch.tensor([len(window.targets) for window in windows])
    ends = n_targets.cumsum(0)
    starts = (ends - n_targets).repeat_interleave(n_targets)  # (N,) of each target's window
    rows_of = torch.tensor(in_row).repeat_interleave(n_targets)
    columns = torch.tensor(before).repeat_interleave(n_targets) - first_column
    columns += torch.arange(len(starts)) - starts
    targets = torch.tensor([token for window in windows for token in window.targets])
    log_p, predicted = _at(
        heads, states, torch.stack([rows_of, columns, targets, starts]), n_at_once
    )
    spans = [slice(end - n, end) for n, end in zip(n_targets.tolist(), ends.tolist(), strict=True)]
    return {
        window: WindowLikelihood(_mean([fsum(each[span]) for each in log_p]), (*predicted[span],))
        for window, span in zip(windows, spans, strict=True)
    }


def _at(
    heads: Heads, states: torch.Tensor, wanted: torch.Tensor, n_at_once: int
) -> tuple[list[list[float]], list[int]]:
    """Return what each head makes of targets, (H, N), and the likeliest token at each place.

    Args:
        heads: The model.
        states: (H, R, C, D).
        wanted: (4, N) long: row, column, target, and the first place of the target's window.
        n_at_once: How many targets are looked at together.
    """
    told = torch.zeros(len(states), 0, dtype=torch.float64)  # (H, n)
    best: list[int] = []
    for row, column, target, start in torch.split(wanted, n_at_once, dim=1):
        here, place, token = (each.to(states.device) for each in (row, column, target))
        log_p = heads.log_p(states[:, here, place])  # (H, m, V)
        own = log_p.gather(2, token.expand(len(log_p), -1)[..., None])[..., 0]  # (H, m)
        n_before = told.shape[1]
        told = torch.cat([told, own.cpu().double()], dim=1)
        if len(log_p) > 1:
            so_far = torch.nn.functional.pad(told.nan_to_num(0.0, neginf=_NEVER).cumsum(1), (1, 0))
            reached = so_far[:, n_before:-1] - so_far[:, start]  # (H, m), within the window
            weights = (reached - reached.amax(dim=0)).to(log_p)
            log_p = (weights[..., None] + log_p).logsumexp(dim=0, keepdim=True)
        best += log_p[0].max(dim=1).indices.tolist()  # on a CPU quicker than argmax
    return told.tolist(), best


_NEVER: Final = -1e6  # nats, in the place of an infinity: differences of it are numbers


def _mean(of_heads: Sequence[float]) -> float:
    """Return the log of the mean of the heads' likelihoods."""
    return float(torch.tensor(of_heads, dtype=torch.float64).logsumexp(0)) - log(len(of_heads))
