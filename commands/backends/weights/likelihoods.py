"""Compute token log-likelihoods with Hugging Face weights, sharing the prefixes of rows."""

import copy
from collections.abc import Iterable, Iterator, Sequence
from inspect import signature
from math import fsum
from typing import Final, NamedTuple, Protocol, cast

import torch
from torch.nn.functional import cross_entropy
from transformers import DynamicCache, PreTrainedConfig
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

from commands.backends.weights.batching import PAD_ID, pad_left
from commands.backends.weights.folder import quiet_transformers
from commands.backends.weights.loaded import LoadedWeights
from commands.backends.weights.windows import Window

N_LOGITS: Final = 1 << 24  # at once in float32: 64 MiB, whatever the batch
N_LOGITS_ON_CPU: Final = 1 << 18  # 1 MiB: no more than a core's cache holds


class InputRow(NamedTuple):
    """The input tokens of one forward pass, and the windows that share them."""

    inputs: tuple[int, ...]
    windows: tuple[Window, ...]


class WindowLikelihood(NamedTuple):
    """The log-likelihood of a window's targets, and the likeliest token at each place."""

    log_likelihood: float  # nats; not finite if the logits are not
    predicted: tuple[int, ...]


class WindowPlace(NamedTuple):
    """The place of a window in a batch."""

    window: Window
    row: int
    column: int  # of the token before the first target


def window_places(rows: Iterable[InputRow], n_read: Iterable[int]) -> list[WindowPlace]:
    """Return the places of windows in rows whose first n_read tokens were read before."""
    return [
        WindowPlace(window, row, window.n_context - 1 - n_before)
        for row, (each, n_before) in enumerate(zip(rows, n_read, strict=True))
        for window in each.windows
    ]


def pad_right(rows: Iterable[Sequence[int]], device: torch.device) -> torch.Tensor:
    """Return (R, S) tokens, padded on the right."""
    tensors = [torch.tensor(row) for row in rows]
    padded = torch.nn.utils.rnn.pad_sequence(tensors, batch_first=True, padding_value=PAD_ID)
    return padded.to(device)


def following_positions(n_read: torch.Tensor, n_new: Sequence[int]) -> torch.Tensor:
    """Return (R, S) positions of n_new[r] tokens after the n_read[r] that row r has read.

    Padding repeats the last position, which is always valid.
    """
    last = torch.tensor(n_new, device=n_read.device)[:, None] - 1  # (R, 1)
    steps = torch.arange(max(n_new), device=n_read.device)
    return n_read[:, None] + torch.minimum(steps, last)


# The arguments of `forward` with which a model continues from a cache.
_CACHE_ARGUMENTS: Final = frozenset(
    {"past_key_values", "attention_mask", "position_ids", "use_cache"}
)


class Logits(Protocol):
    """The result of a forward pass."""

    logits: torch.Tensor  # (R, S, V)


class ForwardModel(Protocol):
    """The interface of a model that is used here; transformers' own types are inconsistent."""

    config: PreTrainedConfig

    def __call__(self, input_ids: torch.Tensor, **settings: object) -> Logits:
        """Return logits for (R, S) tokens."""

    def forward(self, input_ids: torch.Tensor, **settings: object) -> Logits:
        """Do the same; the signature tells which arguments the model accepts."""


class HfBatchLikelihoods:
    """Computes the log-likelihoods of one batch with plain weights."""

    def __init__(self, loaded: LoadedWeights, *, n_logits: int | None = None) -> None:
        """Start without prefixes; convert at most n_logits logits to float32 at once."""
        on_device = N_LOGITS_ON_CPU if loaded.device.type == "cpu" else N_LOGITS
        self._n_logits = n_logits or on_device
        self._model = cast("ForwardModel", loaded.model)
        self._accepted = signature(self._model.forward).parameters
        self._device = loaded.device
        self._past: _PrefixCache | None = None

    def read_prefixes(self, prefixes: Sequence[Sequence[int]]) -> None:
        """Run the model on prefixes, none of them empty, and keep its caches."""
        ids, mask = (each.to(self._device) for each in pad_left(prefixes))  # (G, P) each
        self._past = _PrefixCache(DynamicCache(config=self._model.config), mask)
        positions = (mask.cumsum(dim=1) - 1).clamp(min=0)
        self._logits(ids, 1, past_key_values=self._past.cache, **_cache_arguments(mask, positions))

    def compute(
        self, rows: Sequence[InputRow], prefix_of: Sequence[int]
    ) -> dict[Window, WindowLikelihood]:
        """Return each window's likelihood; rows[r] begins with prefix prefix_of[r], if any."""
        past = self._past and self._past.select(prefix_of)
        n_read = past.mask.sum(dim=1).tolist() if past else [0] * len(rows)
        tails = [row.inputs[n:] for row, n in zip(rows, n_read, strict=True)]
        ids = pad_right(tails, self._device)  # (R, S)
        places = window_places(rows, n_read)
        first_column = min(place.column for place in places)
        settings = past.arguments([*map(len, tails)]) if past else {"use_cache": False}
        logits = self._logits(ids, ids.shape[1] - first_column, **settings)
        n_at_once = max(1, self._n_logits // logits.shape[-1])
        return dict(_window_likelihoods(logits, places, first_column, n_at_once))

    def _logits(self, ids: torch.Tensor, n_last: int, **settings: object) -> torch.Tensor:
        """Return (R, n_last, V) logits of the last columns of (R, S) tokens."""
        settings["logits_to_keep"] = n_last
        accepted = {key: each for key, each in settings.items() if key in self._accepted}
        with quiet_transformers():
            return self._model(ids, **accepted).logits[:, -n_last:]


class _PrefixCache(NamedTuple):
    """The cache of prefixes that were read, padded on the left."""

    cache: DynamicCache
    mask: torch.Tensor  # (R, P) long, 1 on real tokens

    def select(self, rows: Sequence[int]) -> "_PrefixCache":
        """Return the cache of some rows."""
        cache = select_cache_rows(self.cache, rows, self.mask.device)
        return _PrefixCache(cache, self.mask[[*rows]])

    def arguments(self, n_new: Sequence[int]) -> dict[str, object]:
        """Return the model's arguments for n_new[r] tokens that follow in row r."""
        positions = following_positions(self.mask.sum(dim=1), n_new)  # (R, S)
        mask = torch.cat([self.mask, torch.ones_like(positions)], dim=1)
        return {"past_key_values": self.cache, **_cache_arguments(mask, positions)}


def _cache_arguments(mask: torch.Tensor, positions: torch.Tensor) -> dict[str, object]:
    return {"attention_mask": mask, "position_ids": positions, "use_cache": True}


def can_share_prefixes(loaded: LoadedWeights) -> bool:
    """Return whether rows can share the cache of a prefix, which needs attention layers only.

    False if `forward` does not name the arguments: peft's models hide them behind **kwargs.
    """
    model = cast("ForwardModel", loaded.model)
    named = signature(model.forward).parameters.keys()
    if getattr(model, "_is_stateful", False) or not named >= _CACHE_ARGUMENTS:
        return False
    layers = DynamicCache(config=model.config).layers
    return all(type(layer) in {DynamicLayer, DynamicSlidingWindowLayer} for layer in layers)


def select_cache_rows(
    cache: DynamicCache,
    rows: Sequence[int],
    device: torch.device,
    *,
    behind_first: Sequence[int] | None = None,
) -> DynamicCache:
    """Return a copy of a cache with the given rows, which may repeat.

    Behind the first layer there may be other rows: those of all heads, in a Hydra. Layers may be on
    several devices.
    """
    mine = copy.copy(cache)
    mine.layers = [copy.copy(layer) for layer in cache.layers]
    of_first = torch.tensor(rows, device=device)
    of_others = of_first if behind_first is None else torch.tensor(behind_first, device=device)
    for n, layer in enumerate(cast("list[DynamicLayer]", mine.layers)):
        chosen = of_others if n else of_first
        layer.batch_select_indices(chosen.to(cast("torch.Tensor", layer.keys).device))
    return mine


def _window_likelihoods(
    logits: torch.Tensor, places: Sequence[WindowPlace], first_column: int, n_at_once: int
) -> Iterator[tuple[Window, WindowLikelihood]]:
    """Yield each window's likelihood from (R, C, V) logits, whose columns start at first_column."""
    n_targets = torch.tensor([len(place.window.targets) for place in places])
    rows = torch.tensor([place.row for place in places]).repeat_interleave(n_targets)
    columns = torch.cat(
        [
            torch.arange(place.column - first_column, place.column - first_column + n)
            for place, n in zip(places, n_targets.tolist(), strict=True)
        ]
    )
    targets = torch.tensor([token for place in places for token in place.window.targets])
    log_p: list[float] = []
    best: list[int] = []
    wanted = torch.stack([rows, columns, targets], dim=1).to(logits.device)
    for some in torch.split(wanted, n_at_once):
        row, column, target = some.unbind(dim=1)  # (m,) each
        said = logits[row, column].float()  # (m, V)
        log_p += (-cross_entropy(said, target, reduction="none")).tolist()
        best += said.max(dim=1).indices.tolist()  # on a CPU quicker than argmax
    done = 0
    for place in places:
        mine = slice(done, done := done + len(place.window.targets))
        yield place.window, WindowLikelihood(fsum(log_p[mine]), (*best[mine],))
