"""Rows that are decoded together, and whose places others take when they have ended.

The rows stand in the first slots, and all end at the same column: what comes first in a row is
padding. So a new row, which is no longer than those that are there, takes the last columns of a
free slot, and columns that are no row's own any more are left behind at the beginning.
"""

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Generic, cast

import torch
from transformers import Cache
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


@dataclass
class StoredWindow:
    """The rows that are read, and their columns: the same in the storage of every layer."""

    n_slots: int = 0  # of the storage
    n_columns: int = 0  # likewise
    start: int = 0  # of the window: earlier columns are left behind
    end: int = 0  # of the window
    rows: slice = field(default_factory=partial(slice, 0))  # that are read
    first: int = 0  # column that these rows see
    at: int = 0  # where their next tokens go


class SlotLayer(DynamicLayer):  # type: ignore[no-untyped-call]  # transformers leaves it so
    """The keys and values of one layer: a window of columns in a roomier storage."""

    def __init__(self, place: StoredWindow) -> None:
        """Start empty."""
        super().__init__()  # type: ignore[no-untyped-call]  # likewise
        self._place = place
        self.stored: tuple[torch.Tensor, ...] = ()  # keys and values, (slots, heads, columns, D)

    def get_seq_length(self) -> int:
        """Count the columns that the rows had before."""
        return self._place.at - self._place.first

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *_: object, **__: object
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Write columns (B, heads, S, D) of the rows; return all that they see of both."""
        place, new = self._place, (key_states, value_states)
        if not self.stored:
            self.stored = tuple(
                each.new_empty(place.n_slots, each.shape[1], place.n_columns, each.shape[3])
                for each in new
            )
        end = place.at + key_states.shape[-2]
        keys, values = (each[place.rows] for each in self.stored)
        for rows, each in zip((keys, values), new, strict=True):
            if place.first > place.start:
                rows[:, :, place.start : place.first] = 0  # a row that was here had its NaN
            rows[:, :, place.at : end] = each
        return keys[:, :, place.first : end], values[:, :, place.first : end]

    def move_rows(self, moves: Sequence[tuple[int, int]]) -> None:
        """Copy rows, (to, from) each."""
        for stored in self.stored:
            window = stored[:, :, self._place.start : self._place.end]
            for to, row in moves:  # they are few, and index tensors cost more
                window[to] = window[row]

    def move(self, n_rows: int, window: slice) -> None:
        """Move columns of the first rows to the beginning of a new storage."""
        place = self._place
        moved = []
        for stored in self.stored:
            _, heads, _, size = stored.shape
            room = stored.new_empty(place.n_slots, heads, place.n_columns, size)
            room[:n_rows, :, : place.end] = stored[:n_rows, :, window]
            moved.append(room)
        self.stored = tuple(moved)


class SlotCache(Cache):
    """The layers' caches, whose rows come and go together."""

    def __init__(self) -> None:
        """Start empty."""
        super().__init__(layers=[])
        self._place = StoredWindow()

    def update(
        self,
        key_states: torch.Tensor,
        value_states: torch.Tensor,
        layer_idx: int,
        *_: object,
        **__: object,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Write columns of a layer, as `SlotLayer` does."""
        while len(self.layers) <= layer_idx:
            self.layers.append(SlotLayer(self._place))
        return self._slots[layer_idx].update(key_states, value_states)

    def add_rows(self, n_rows: int, n_new: int, n_columns: int) -> None:
        """Make room for new rows behind the first ones; if there are none, for so many columns."""
        if n_rows == 0:
            self._place.start, self._place.end = 0, n_columns
            for layer in self._slots:
                layer.stored = ()
        if n_rows + n_new > self._place.n_slots or n_rows == 0:
            self._move(n_rows, n_rows + n_new)

    def read_prompts(self, rows: slice, n_columns: int) -> None:
        """Let the next pass read the last columns of new rows."""
        place = self._place
        place.rows, place.first = rows, place.end - n_columns
        place.at = place.first

    def add_column(self, n_rows: int) -> None:
        """Let the next pass read one more column of all rows."""
        place = self._place
        if place.end == place.n_columns:
            self._move(n_rows, place.n_slots)
        place.rows, place.first, place.at = slice(n_rows), place.start, place.end
        place.end += 1

    def move_rows(self, moves: Sequence[tuple[int, int]]) -> None:
        """Copy rows, (to, from) each."""
        for layer in self._slots:
            layer.move_rows(moves)

    def leave_behind(self, n_columns: int) -> None:
        """Leave columns behind at the beginning, which are padding in all rows."""
        self._place.start += n_columns

    def _move(self, n_rows: int, n_slots: int) -> None:
        """Move the first rows' window to storages of so many slots, with room for new columns."""
        place = self._place
        window = slice(place.start, place.end)
        n_columns = place.end - place.start
        place.n_slots, place.n_columns = n_slots, n_columns + max(_ROOM, n_columns // _SHARE)
        place.start, place.end = 0, n_columns
        for layer in self._slots:
            layer.move(n_rows, window)

    @property
    def _slots(self) -> list[SlotLayer]:
        return cast("list[SlotLayer]", self.layers)


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
        self._cache.add_rows(n_before, len(prompts), ids.shape[1])
        logits = []
        for part, width in self._parts([len(prompt.prompt_ids) for prompt in prompts]):
            self._cache.read_prompts(slice(n_before + part.start, n_before + part.stop), width)
            logits.append(self._logits(padded[part, -width:], ids[part, -width:]))
        noise = RowNoise([prompt.seed for prompt in prompts], self._device)
        ids = self._chosen(torch.cat(logits), ids, noise)
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
            part = slice(start, min(start + n_most, len(lengths)))
            yield part, max(lengths[part])
            start = part.stop

    @torch.inference_mode()
    def _step(self) -> list[Decoded[Row]]:
        """Add a token to each row; return the rows that it ends."""
        self._ids = self._chosen(self._next_logits(), self._ids, self._noise)
        return self._extended(0)

    def _next_logits(self) -> torch.Tensor:
        """Read the last token of each row; return (B, V) of the next."""
        self._cache.add_column(len(self.rows))
        return self._logits(self._ids[:, -1:], self._ids)

    def _logits(self, tokens: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        """Read tokens (B, S), the last of ids (B, K); return (B, V) of the next."""
        mask = (ids != NO_TOKEN).long()
        positions = (mask.cumsum(dim=1) - 1).clamp(min=0)[:, -tokens.shape[1] :]
        known = {"position_ids": positions, "logits_to_keep": 1}
        told = {name: value for name, value in known.items() if name in self._takes}
        read = self._model(
            tokens, attention_mask=mask, past_key_values=self._cache, use_cache=True, **told
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
