"""Work a queue off on a device, in smaller batches where its memory is too small."""

import logging
from collections.abc import Callable, Iterator
from typing import TypeVar

import torch

from commands.backends.batching import BatchQueue, Row
from commands.backends.device import free_memory

logger = logging.getLogger(__name__)

Result = TypeVar("Result")


def drained(
    queue: BatchQueue[Row], answer: Callable[[tuple[Row, ...]], Result], device: torch.device
) -> Iterator[tuple[tuple[Row, ...], Result | None]]:
    """Yield each batch and what was answered to it; None to one row that is too much alone."""
    while batch := queue.take():
        result = _tried(batch, answer, device)
        if result is None and len(batch) > 1:
            queue.halve(batch)
        else:
            yield batch, result


def _tried(
    batch: tuple[Row, ...], answer: Callable[[tuple[Row, ...]], Result], device: torch.device
) -> Result | None:
    """Answer a batch; None says that the device's memory was too small."""
    try:
        return answer(batch)
    except torch.OutOfMemoryError:
        logger.info("out of memory on %s with a batch of %d rows", device, len(batch))
    free_memory(device)  # here, as the error's traceback no longer holds the tensors
    return None
