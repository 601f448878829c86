"""What engines share: what works with entrants' weights, which of them share a load, and batches.

Nothing here imports torch: a process that spreads work over others does not need it.
"""

from collections.abc import Hashable
from typing import Protocol

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
