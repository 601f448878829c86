"""Rows that are decoded together, and whose places others take when they have ended.

The rows stand in the first slots, and all end at the same column: what comes first in a row is
padding. So a new row, which is no longer than those that are there, takes the last columns of a
free slot, and columns that are no row's own any more are left behind at the beginning.
"""

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Generic, cast

import torch
from transformers import Cache, DynamicCache
from transformers.cache_utils import DynamicLayer

from commands.backends.weights.answers import Decoded, DecodingRules, Row
from commands.backends.weights.batching import BatchQueue, pad_left
from commands.backends.weights.folder import quiet_transformers
from commands.backends.weights.loaded import LoadedWeights
from commands.backends.weights.sampling import RowNoise
from commands.backends.weights.warping import BROKEN, NO_TOKEN, choose

_ROOM: Final = 64  # columns, at least, that are free after the cache has moved
_SHARE: Final = 8  # or one for so many columns, if that is more
_READ_AT_ONCE: Final = 768  # tokens of prompts, by a processor: its cache holds what they become


class SlotLayer(DynamicLayer):  # type: ignore[no-untyped-call]  # transformers leaves it so
    """The keys and values of one layer: a window of columns in a roomier storage."""

    def __init__(self) -> None:
        """Start empty."""
        super().__init__()  # type: ignore[no-untyped-call]  # likewise
        self._stored: tuple[torch.Tensor, ...] = ()  # keys and values, (slots, heads, columns, D)
        self._start = self._end = 0

    def get_seq_length(self) -> int:
        """Count the columns of the window."""
        return self._end - self._start

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *_: object, **__: object
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Append columns (B, heads, S, D) to all rows; return the whole window of both."""
        n_rows, n_new = len(key_states), key_states.shape[-2]
        if self._end + n_new > self._stored[0].shape[-2]:
            self._move(n_rows, len(self._stored[0]), n_new)
        self._end += n_new
        for stored, new in zip(self._stored, (key_states, value_states), strict=True):
            stored[:n_rows, :, self._end - n_new : self._end] = new
        keys, values = (each[:n_rows, :, self._start : self._end] for each in self._stored)
        return keys, values

    def add_rows(self, n_rows: int, layer: DynamicLayer) -> None:
        """Add what another layer has read, behind the first n_rows rows of this one."""
        new = [each for each in (layer.keys, layer.values) if each is not None]
        n_new, n_columns = len(new[0]), new[0].shape[-2]
        if n_rows == 0:
            self._stored = tuple(each[:0] for each in new)
            self._start, self._end = 0, n_columns
        if n_rows + n_new > len(self._stored[0]):
            self._move(n_rows, n_rows + n_new, 0)
        for stored, each in zip(self._stored, new, strict=True):
            rows = stored[n_rows : n_rows + n_new]
            rows[:, :, self._start : self._end - n_columns] = 0  # a row that was here had its NaN
            rows[:, :, self._end - n_columns : self._end] = each

    def move_rows(self, moves: Sequence[tuple[int, int]]) -> None:
        """Copy rows, (to, from) each."""
        for stored in self._stored:
            window = stored[:, :, self._start : self._end]
            for to, row in moves:  # they are few, and index tensors cost more
                window[to] = window[row]

    def leave_behind(self, n_columns: int) -> None:
        """Leave columns behind at the beginning."""
        self._start += n_columns

    def _move(self, n_rows: int, n_slots: int, n_new: int) -> None:
        """Move the first rows' window to a storage of so many slots, with room for new columns."""
        n_columns = self._end - self._start
        n_free = n_new + max(_ROOM, n_columns // _SHARE)
        moved = []
        for stored in self._stored:
            _, heads, _, size = stored.shape
            room = stored.new_empty(n_slots, heads, n_columns + n_free, size)
            room[:n_rows, :, :n_columns] = stored[:n_rows, :, self._start : self._end]
            moved.append(room)
        self._stored = tuple(moved)
        self._start, self._end = 0, n_columns


class SlotCache(Cache):
    """The layers' caches, whose rows come and go together."""

    def __init__(self) -> None:
        """Start empty."""
        super().__init__(layers=[])

    def add_rows(self, n_rows: int, cache: DynamicCache) -> None:
        """Add what another cache has read, behind the first n_rows rows; it is empty afterwards."""
        while len(self.layers) < len(cache.layers):
            self.layers.append(SlotLayer())
        for mine, theirs in zip(self._slots, cache.layers, strict=True):
            if isinstance(theirs, DynamicLayer) and theirs.is_initialized:
                mine.add_rows(n_rows, theirs)
                theirs.reset()

    def move_rows(self, moves: Sequence[tuple[int, int]]) -> None:
        """Copy rows, (to, from) each."""
        for layer in self._slots:
            layer.move_rows(moves)

    def leave_behind(self, n_columns: int) -> None:
        """Leave columns behind at the beginning, which are padding in all rows."""
        for layer in self._slots:
            layer.leave_behind(n_columns)

    @property
    def _slots(self) -> list[SlotLayer]:
        return [layer for layer in self.layers if isinstance(layer, SlotLayer)]


class Slots(Generic[Row]):
    """Decodes rows, and reads the next prompts where rows have ended."""

    def __init__(self, loaded: LoadedWeights, rules: DecodingRules) -> None:
        """Start empty."""
        self.rows: list[Decoded[Row]] = []
        self._ended: list[Decoded[Row]] = []  # and not yielded yet
        self._model, self._device = cast("Callable[..., Any]", loaded.model), loaded.device
        self._takes = inspect.signature(cast("Any", loaded.model).forward).parameters
        self._rules = rules
        self._cache = SlotCache()
        self._ids = torch.empty(0, 0, dtype=torch.long, device=self._device)
        self._noise = RowNoise([], loaded.device)

    @property
    def unfinished(self) -> Sequence[Row]:
        """The rows that have not ended, or were not yielded yet."""
        return [each.row for each in (*self._ended, *self.rows)]

    def decode(self, first: Sequence[Row], queue: BatchQueue[Row]) -> Iterator[list[Decoded[Row]]]:
        """Decode the first rows, and then those that wait, widest first; yield what has ended.

        Raises:
            torch.OutOfMemoryError: The rows are too many for the device.
        """
        with quiet_transformers():  # what a family has to say, it says at once
            self._ended += self._read(first)
        while self.rows:
            self._ended += self._step()
            if self._ended and (new := queue.take_beside([each.row for each in self.rows])):
                yield self._handed_over()
                self._ended += self._read(new)
        yield self._handed_over()

    def _handed_over(self) -> list[Decoded[Row]]:
        ended, self._ended = self._ended, []
        return ended

    @torch.inference_mode()
    def _read(self, prompts: Sequence[Row]) -> list[Decoded[Row]]:
        """Read prompts and choose the first token of each; return the rows that it ends."""
        n_before = len(self.rows)
        self.rows += [Decoded(prompt) for prompt in prompts]
        padded, mask = (each.to(self._device) for each in pad_left([p.prompt_ids for p in prompts]))
        ids = padded.masked_fill(mask == 0, NO_TOKEN)  # (R, P)
        parts = [
            self._part_read(padded[part, -width:], ids[part, -width:], n_before + part.start)
            for part, width in self._parts([len(prompt.prompt_ids) for prompt in prompts])
        ]
        noise = RowNoise([prompt.seed for prompt in prompts], self._device)
        ids = self._chosen(torch.cat(parts), ids, noise)
        self._noise.join(noise)
        padding = self._ids.shape[1] - ids.shape[1]
        ids = torch.nn.functional.pad(ids, (padding, 0), value=NO_TOKEN) if n_before else ids
        self._ids = torch.cat([self._ids, ids]) if n_before else ids
        return self._extended(n_before)

    def _parts(self, lengths: Sequence[int]) -> Iterator[tuple[slice, int]]:
        """Yield which prompts of such lengths are read at once, and how wide they are."""
        on_cpu = self._device.type == "cpu"
        start = 0
        while start < len(lengths):
            n_most = max(1, _READ_AT_ONCE // lengths[start]) if on_cpu else len(lengths)
            part = slice(start, start + n_most)
            yield part, max(lengths[part])
            start = part.stop

    def _part_read(self, padded: torch.Tensor, ids: torch.Tensor, n_before: int) -> torch.Tensor:
        """Read prompts (R, P) behind n_before rows; return (R, V) of the next tokens."""
        cache = DynamicCache()
        logits = self._logits(padded, ids, cache)
        self._cache.add_rows(n_before, cache)
        return logits

    @torch.inference_mode()
    def _step(self) -> list[Decoded[Row]]:
        """Add a token to each row; return the rows that it ends."""
        logits = self._logits(self._ids[:, -1:], self._ids, self._cache)
        self._ids = self._chosen(logits, self._ids, self._noise)
        return self._extended(0)

    def _logits(self, tokens: torch.Tensor, ids: torch.Tensor, cache: Cache) -> torch.Tensor:
        """Read tokens (B, S), the last of ids (B, K); return (B, V) of the next."""
        mask = (ids != NO_TOKEN).long()
        positions = (mask.cumsum(dim=1) - 1).clamp(min=0)[:, -tokens.shape[1] :]
        known = {"position_ids": positions, "logits_to_keep": 1}
        told = {name: value for name, value in known.items() if name in self._takes}
        read = self._model(
            tokens, attention_mask=mask, past_key_values=cache, use_cache=True, **told
        )
        return cast("torch.Tensor", read.logits[:, -1])

    def _chosen(self, logits: torch.Tensor, ids: torch.Tensor, noise: RowNoise) -> torch.Tensor:
        """Return ids (B, K + 1) with the chosen tokens, BROKEN where the logits are not finite."""
        choice = choose(logits, ids, self._rules.how, noise)
        tokens = torch.where(choice.is_finite, choice.tokens, BROKEN)
        return torch.cat([ids, tokens[:, None]], dim=1)

    def _extended(self, n_before: int) -> list[Decoded[Row]]:
        """Tell the rows from n_before on their new tokens; return those that ended, which leave."""
        tokens = self._ids[n_before:, -1].tolist()
        rows = self.rows[n_before:]
        is_over = [row.extend(token, self._rules) for row, token in zip(rows, tokens, strict=True)]
        if not any(is_over):
            return []
        self._leave([n for n, over in enumerate(is_over, n_before) if over])
        return [row for row, over in zip(rows, is_over, strict=True) if over]

    def _leave(self, places: Sequence[int]) -> None:
        """Let rows leave, and the last rows take their places."""
        n_left = len(self.rows) - len(places)
        staying = iter(sorted(set(range(n_left, len(self.rows))) - set(places)))
        moves = [(place, next(staying)) for place in places if place < n_left]
        order = {n: n for n in range(n_left)} | dict(moves)
        self._cache.move_rows(moves)
        self.rows = [self.rows[n] for n in order.values()]
        kept = torch.tensor([*order.values()], dtype=torch.long, device=self._device)
        self._noise.keep(kept)
        self._ids = self._ids[kept]
        n_padding = self._ids.shape[1] - max((row.n_tokens for row in self.rows), default=0)
        self._cache.leave_behind(n_padding)
        self._ids = self._ids[:, n_padding:]
