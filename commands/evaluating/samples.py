"""What is evaluated one by one, and what comes of it."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from commands.errors import ConfigurationError
from commands.ports import Generator, LikelihoodModel
from ledger.events.evaluations import Observation, UnscorableReason
from ledger.events.registration import Entrant
from ledger.identity import Digest, Json, digest_of


@dataclass(frozen=True)
class Inference:
    """Who answers and reads; both are made when they are first needed, for planning is free."""

    entrant: Entrant
    make_generator: Callable[[], Generator]
    make_reader: (
        Callable[[], LikelihoodModel] | None
    )  # None: it gives texts alone, as an endpoint does

    def require_likelihoods(self, evaluation: str) -> Callable[[], LikelihoodModel]:
        """Return what makes the reader.

        Raises:
            ConfigurationError: The entrant gives no log-likelihoods.
        """
        if self.make_reader is None:
            fault = (
                f"evaluation {evaluation!r} needs log-likelihoods, which loader"
                f" {self.entrant.loader!r} of entrant {self.entrant.entrant_id!r} does not give;"
                " evaluate it by rollout, or leave the entrant out by --entrant"
            )
            raise ConfigurationError([fault])
        return self.make_reader


Item = TypeVar("Item")


@dataclass(frozen=True)
class Sample:
    """One try at an item."""

    item: Digest
    number: int  # 0, 1 ... of the tries at the item
    index: int  # of the item in its evaluation
    label: str  # of the item, for people
    content: Digest  # of what the item is: its name too, but of one that is there twice


class Row(NamedTuple):
    """Tokens that an entrant read, and those that it produced or that were weighed."""

    context_ids: tuple[int, ...]
    action_ids: tuple[int, ...]


class Judged(NamedTuple):
    """What of an answer was compared, and what it is worth."""

    cleaned: str
    score: float


class Seen(NamedTuple):
    """What was observed on a sample."""

    sample: Sample
    cluster: Digest
    observation: Observation
    rows: tuple[Row, ...]


class Unseen(NamedTuple):
    """Why nothing could be observed on a sample."""

    sample: Sample
    reason: UnscorableReason
    detail: str


class Named(NamedTuple):
    """An item's name, and the digest of what it is."""

    item: Digest
    content: Digest


def named_items(contents: Iterable[Json]) -> tuple[Named, ...]:
    """Name items by what they are; one that is there twice is two items."""
    n_seen: dict[Digest, int] = {}
    named = []
    for content in contents:
        digest = digest_of(content)
        n_seen[digest] = n_seen.get(digest, 0) + 1
        item = digest if n_seen[digest] == 1 else digest_of([content, n_seen[digest]])
        named.append(Named(item, digest))
    return tuple(named)


def subset(items: Sequence[Digest], size: int | None, seed: int) -> tuple[Digest, ...]:
    """Return the items with the smallest SHA-256 of seed and item, in the order of the items.

    So a subset depends neither on their order nor on what was drawn before, it is the same for all
    entrants, and a larger one holds the smaller ones. None is all of them.
    """
    if size is None or size >= len(items):
        return tuple(items)
    chosen: Collection[Digest] = frozenset(
        sorted(items, key=lambda item: digest_of([seed, item]))[:size]
    )
    return tuple(item for item in items if item in chosen)


def seed_of(seed: int, sample: Sample) -> int:
    """Return the seed of a sample's own random stream, below 2^32."""
    return int(digest_of([seed, sample.item, sample.number])[:8], 16)


class Intermediates(NamedTuple):
    """The tokens of one sample: one row, or one for each choice of a comparison.

    ids: (rows, T) token ids, padded on the right by 0; T is the same for all samples of a call.
    action_mask: (rows, T) True on what was generated, weighed or predicted.
    padding_mask: (rows, T) True on real tokens.
    """

    ids: NDArray[np.int64]
    action_mask: NDArray[np.bool_]
    padding_mask: NDArray[np.bool_]


def intermediates(samples: Sequence[Sequence[Row]]) -> list[Intermediates]:
    """Return each sample's tokens, all as wide as the longest row; a sample may have no rows."""
    lengths = [len(row.context_ids) + len(row.action_ids) for rows in samples for row in rows]
    width = max(lengths, default=0)
    return [_padded(rows, width) for rows in samples]


def _padded(rows: Sequence[Row], width: int) -> Intermediates:
    ids = np.zeros((len(rows), width), dtype=np.int64)
    place = np.arange(width)
    start = np.array([len(row.context_ids) for row in rows], dtype=np.int64)[:, None]
    end = start + np.array([len(row.action_ids) for row in rows], dtype=np.int64)[:, None]
    for line, row in zip(ids, rows, strict=True):
        tokens = row.context_ids + row.action_ids
        line[: len(tokens)] = tokens
    return Intermediates(ids, (place >= start) & (place < end), place < end)
