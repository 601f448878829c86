"""Batches under a token budget, longest rows first, so that a lack of memory shows at once.

`run_batches` halves a batch that does not fit into memory, and tries again.
"""

import logging
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import partial
from typing import Generic, Literal, TypeVar

import torch

from commands.backends.weights.loaded import free_memory

PAD_ID = 0  # always masked, so any token will do; `pad_sequence` fills in zeros

Item = TypeVar("Item")
Row = TypeVar("Row")


class BatchQueue(Generic[Row]):
    """The remaining rows, widest first, and the token budget of a batch.

    A batch is as wide as its widest row, so it holds rows * widest tokens, padding included.
    A single row always makes a batch, however wide.
    """

    def __init__(self, rows: Iterable[Row], width: Callable[[Row], int], batch_tokens: int) -> None:
        """Queue the rows; `width` counts a row's prompt and new tokens."""
        self._waiting = deque(sorted(rows, key=width, reverse=True))
        self._width = width
        self._batch_tokens = batch_tokens

    def __len__(self) -> int:
        """Count the remaining rows."""
        return len(self._waiting)

    def take(self) -> tuple[Row, ...]:
        """Remove and return the next batch; at least one row when any is waiting."""
        if not self._waiting:
            return ()
        n_most = max(1, self._batch_tokens // self._width(self._waiting[0]))
        return tuple(self._waiting.popleft() for _ in range(min(n_most, len(self._waiting))))

    def halve(self, batch: tuple[Row, ...]) -> None:
        """Put back a batch that did not fit, and halve the budget from now on.

        Later rows are at most as wide, so the old budget would be too large for them too.
        """
        self._waiting.extendleft(reversed(batch))
        self._batch_tokens = len(batch) * self._width(batch[0]) // 2


def group_by(items: Iterable[Item], key: Callable[[Item], Hashable]) -> list[list[Item]]:
    """Return the items in groups of one key, in the order in which the keys are first seen."""
    groups: dict[Hashable, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return list(groups.values())


def padded(
    rows: Sequence[Sequence[int]], device: torch.device, *, side: Literal["left", "right"] = "left"
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (B, T) tokens, padded on a side, and the (B, T) mask that is 1 on real tokens."""
    tensors = [torch.tensor(row, device=device) for row in rows]
    masks = [torch.ones_like(row) for row in tensors]
    pad = partial(torch.nn.utils.rnn.pad_sequence, batch_first=True, padding_side=side)
    return pad(tensors), pad(masks)


logger = logging.getLogger(__name__)

Result = TypeVar("Result")


def run_batches(
    queue: BatchQueue[Row], answer: Callable[[tuple[Row, ...]], Result], device: torch.device
) -> Iterator[tuple[tuple[Row, ...], Result | None]]:
    """Yield each batch with its result; None for a single row that does not fit into memory."""
    while batch := queue.take():
        result = _try_batch(batch, answer, device)
        if result is None and len(batch) > 1:
            queue.halve(batch)
        else:
            yield batch, result


def _try_batch(
    batch: tuple[Row, ...], answer: Callable[[tuple[Row, ...]], Result], device: torch.device
) -> Result | None:
    """Return a batch's result; None if the device ran out of memory."""
    try:
        return answer(batch)
    except torch.OutOfMemoryError:
        logger.info("out of memory on %s with a batch of %d rows", device, len(batch))
    free_memory(device)  # here, as the error's traceback no longer holds the tensors
    return None
