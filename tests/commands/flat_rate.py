"""A price table of one line: every query costs the same."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ledger.events.values import Price, Usage
from projections.verdicts.queries import JudgeQuery
from tests.batches import DEAR


@dataclass(frozen=True)
class FlatRate:
    """Prices every query alike; None: at an unknown price."""

    usd: float | None

    def price_of(self, usage: Usage) -> Price | None:
        """Return a price for what was used."""
        return DEAR if usage.n_output else None

    def caches(self, query: JudgeQuery) -> bool:
        """Keep what has a system text."""
        return bool(query.system)

    def expected_usd(self, queries: Sequence[JudgeQuery]) -> float | None:
        """Expect the worst."""
        return self.worst_usd(queries)

    def worst_usd(self, queries: Sequence[JudgeQuery]) -> float | None:
        """Return the flat rate of each."""
        return None if self.usd is None else self.usd * len(queries)


@dataclass(frozen=True)
class MeanwhileMerged(FlatRate):
    """Prices every query alike; while that is looked up, something is merged, once."""

    merge: Callable[[], object]

    def worst_usd(self, queries: Sequence[JudgeQuery]) -> float | None:
        """Return the flat rate of each, after the merge."""
        self.merge()  # told again, the same facts are known
        return super().worst_usd(queries)
