"""Wins, losses, ties and gaps of each pair of entrants."""

from collections import Counter
from collections.abc import Iterable
from typing import Literal, NamedTuple

from ledger.identity import Dimension, EntrantId
from projections.settlement import FAILURES, Settlement
from projections.wilson import Interval, wilson


class WinRate(NamedTuple):
    """One pair of entrants on one dimension; a comes before b in the alphabet."""

    dimension: Dimension
    entrant_a: EntrantId
    entrant_b: EntrantId
    a_wins: int
    b_wins: int
    ties: int
    inconsistent: int
    missing: int  # failed or still pending

    @property
    def win_rate(self) -> float | None:
        """Return a's share of what was decided or tied, ties as half; None without any."""
        n = self._n_counted
        return (self.a_wins + self.ties / 2) / n if n else None

    def interval(self, counted: Literal["pairs", "orders"] = "pairs") -> Interval | None:
        """Return the 95 % interval of a's share, a tie being one trial that gave half.

        Args:
            counted: What was counted; two orders are one trial, as they are not independent.
        """
        share, n_a_trial = self.win_rate, 2 if counted == "orders" else 1
        return None if share is None else wilson(share, self._n_counted / n_a_trial)

    @property
    def _n_counted(self) -> int:
        return self.a_wins + self.b_wins + self.ties


def win_rates(settlements: Iterable[Settlement]) -> tuple[WinRate, ...]:
    """Count by pair: dimensions in their order, then pairs by name."""
    counts: dict[tuple[Dimension, EntrantId, EntrantId], Counter[str]] = {}
    for settlement in settlements:
        pairing = settlement.pairing
        a, b = sorted((pairing.a.entrant.entrant_id, pairing.b.entrant.entrant_id))
        count = counts.setdefault((pairing.rubric.dimension, a, b), Counter())
        won: dict[EntrantId | None, str] = {a: "a", b: "b", None: settlement.status}
        count[won[settlement.winner]] += 1
    ordered = list(dict.fromkeys(key[0] for key in counts))
    keys = sorted(counts, key=lambda key: (ordered.index(key[0]), *key[1:]))
    return tuple(_win_rate(key, counts[key]) for key in keys)


def _win_rate(key: tuple[Dimension, EntrantId, EntrantId], count: Counter[str]) -> WinRate:
    return WinRate(
        *key,
        a_wins=count["a"],
        b_wins=count["b"],
        ties=count["tie"],
        inconsistent=count["inconsistent"],
        missing=count["pending"] + sum(count[reason] for reason in FAILURES),
    )
