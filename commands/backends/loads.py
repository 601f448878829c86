"""What engines share: what works with entrants' weights, which of them share a load, and batches.

Nothing here imports torch: a process that spreads work over others does not need it.
"""

from collections import deque
from collections.abc import Callable, Hashable, Iterable
from typing import Generic, Protocol, TypeVar

from commands.ports import Generator, LikelihoodModel
from ledger.events.registration import Entrant


class LocalBackend(Generator, LikelihoodModel, Protocol):
    """Answers and reads with entrants' weights."""


def load_key(entrant: Entrant) -> Hashable:
    """Return a key that is equal for entrants that load the same files."""
    adapters = tuple(adapter.digest for adapter in entrant.adapters)
    heads = entrant.hydra and (
        entrant.hydra.heads_depth,
        tuple(shard.digest for shard in entrant.hydra.security),
        tuple(shard.digest for shard in entrant.hydra.robustness),
        entrant.hydra.uncertainty and entrant.hydra.uncertainty.digest,
    )
    return entrant.weights_digest, adapters, heads, entrant.dtype


def most_tokens(*, on_gpu: bool) -> int:
    """Return the most tokens of a batch where the user names no number.

    More rows are hardly faster on a CPU, and more is lost with a process.
    """
    return 1 << 16 if on_gpu else 1 << 13


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
