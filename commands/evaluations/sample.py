"""What is evaluated one by one, and what comes of it."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from ledger.events.evaluations import Observation, UnscorableReason
from ledger.identity import Digest, Json, digest_of

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
