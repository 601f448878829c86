"""Run batches of rows, padded to one length; one that does not fit into memory is halved."""

import logging
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Literal, TypeVar

import torch

from commands.backends.loads import BatchQueue
from commands.backends.weights.loaded import free_memory

PAD_ID = 0  # always masked, so any token will do; `pad_sequence` fills in zeros

Row = TypeVar("Row")


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
