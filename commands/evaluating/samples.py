"""Samples of an evaluation: who runs them, how they are named and drawn, and their results."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from commands.errors import ConfigurationError
from commands.ports import Billing, Generator, LikelihoodModel
from ledger.events.evaluations import Observation, UnscorableReason, item_digest
from ledger.events.registration import Entrant
from ledger.identity import Digest, Json, digest_of


@dataclass(frozen=True)
class Inference:
    """An entrant with its generator and log-likelihoods, made only when first needed."""

    entrant: Entrant
    make_generator: Callable[[], Generator] | None  # None: an endpoint's, until it is billed
    make_likelihood_model: (
        Callable[[], LikelihoodModel] | None
    )  # None: an endpoint gives texts only
    serve: Callable[[Billing], Generator] | None = None  # of an endpoint, for a billing
    stop: Callable[[], None] | None = None  # sends a billed endpoint nothing more

    def billed_by(self, billing: Billing) -> "Inference":
        """Return the same, with an endpoint's requests recorded and kept within the cap."""
        if self.serve is None:
            return self
        stop = partial(billing.halt, self.entrant.entrant_id)
        return replace(self, make_generator=partial(self.serve, billing), stop=stop)

    def generator(self) -> Generator:
        """Return what answers; requests to an endpoint must be billed."""
        assert self.make_generator is not None  # noqa: S101  # `billed_by` has been called
        return self.make_generator()

    def require_likelihoods(self, evaluation: str) -> Callable[[], LikelihoodModel]:
        """Return the factory of the entrant's log-likelihoods.

        Raises:
            ConfigurationError: The entrant gives no log-likelihoods.
        """
        if self.make_likelihood_model is None:
            fault = (
                f"evaluation {evaluation!r} needs log-likelihoods, which entrant"
                f" {self.entrant.entrant_id!r} (loader {self.entrant.loader!r}) does not give;"
                " evaluate it by rollout, or choose other entrants with --entrant"
            )
            raise ConfigurationError([fault])
        return self.make_likelihood_model


@dataclass(frozen=True)
class Sample:
    """One observation to make on an item."""

    item: Digest
    number: int  # 0, 1 ... among the samples of the item
    index: int  # of the item in its evaluation
    label: str  # of the item, for people
    copy: int  # 1, 2 ... among the items of the same content


class TokenRow(NamedTuple):
    """The context tokens of a sample, and the tokens that were generated or scored."""

    context_ids: tuple[int, ...]
    action_ids: tuple[int, ...]


class ObservedSample(NamedTuple):
    """A sample with its observation."""

    sample: Sample
    cluster: Digest
    observation: Observation
    rows: tuple[TokenRow, ...]


class UnscorableSample(NamedTuple):
    """A sample without an observation, and the reason."""

    sample: Sample
    reason: UnscorableReason
    detail: str


def named_items(contents: Iterable[Json]) -> tuple[tuple[Digest, int], ...]:
    """Identify items by content, each with its number, 1, 2 ..., among those of one content."""
    n_seen: Counter[Digest] = Counter()
    named = []
    for content in contents:
        digest = item_digest(content, 1)
        n_seen[digest] += 1
        named.append((item_digest(content, n_seen[digest]), n_seen[digest]))
    return tuple(named)


def subset(items: Sequence[Digest], size: int | None, seed: int) -> tuple[Digest, ...]:
    """Return the items with the smallest SHA-256 of seed and item, in the order of the items.

    So a subset does not depend on the items' order, is the same for all entrants, and contains the
    smaller subsets. Size None returns all items.
    """
    if size is None or size >= len(items):
        return tuple(items)
    chosen = frozenset(sorted(items, key=lambda item: digest_of([seed, item]))[:size])
    return tuple(item for item in items if item in chosen)


def sample_seed(seed: int, sample: Sample) -> int:
    """Return the seed of a sample's own random stream, below 2^32."""
    return int(digest_of([seed, sample.item, sample.number])[:8], 16)


class Intermediates(NamedTuple):
    """The tokens of one sample: one row, or one row per continuation of a comparison.

    ids: (rows, T) token ids, padded on the right by 0; T is the same for all samples of a call.
    action_mask: (rows, T) True on tokens that were generated, scored or predicted.
    padding_mask: (rows, T) True on real tokens.
    """

    ids: NDArray[np.int64]
    action_mask: NDArray[np.bool_]
    padding_mask: NDArray[np.bool_]


def intermediates(samples: Sequence[Sequence[TokenRow]]) -> list[Intermediates]:
    """Return each sample's tokens, padded to the longest row; a sample may have no rows."""
    lengths = [len(row.context_ids) + len(row.action_ids) for rows in samples for row in rows]
    column = np.arange(max(lengths, default=0))
    return [_padded(rows, column) for rows in samples]


def _padded(rows: Sequence[TokenRow], column: NDArray[np.int64]) -> Intermediates:
    ids = np.zeros((len(rows), len(column)), dtype=np.int64)
    n_context, n_action = np.array([[*map(len, row)] for row in rows], int).reshape(-1, 2).T
    start, end = n_context[:, None], (n_context + n_action)[:, None]
    for line, (context, action) in zip(ids, rows, strict=True):
        line[: len(context) + len(action)] = context + action
    return Intermediates(ids, (column >= start) & (column < end), column < end)
