"""Comparisons of two entrants from any source, and their counts by outcome.

Pairings of a tournament: planned = decided + tie + inconsistent + failed (by reason) + pending.
Imported battles: decided + tie + without a verdict.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

from ledger.events.imports import Winner
from ledger.events.judging import FailureReason
from ledger.identity import Json

NO_VERDICT: Final = "no verdict"  # of an imported battle, for whatever reason
FAILURES = (*get_args(FailureReason), "abstained", "no_response", "redacted", NO_VERDICT)
SCORES: Final[Mapping[str, float]] = {"a": 1.0, "b": 0.0, "tie": 0.5}
"""What a took, by status."""

STATUS_OF: Final[Mapping[Winner, str]] = {
    "model_a": "a",
    "model_b": "b",
    "tie": "tie",
    "tie (bothbad)": "tie",
    "no verdict": NO_VERDICT,
}
"""The status of an imported battle, by who won."""

OutcomeKind: TypeAlias = Literal["decided", "tie", "inconsistent", "failed", "pending"]
"""The parts that all comparisons fall into."""
_KINDS: Final[Mapping[str, OutcomeKind]] = {
    "a": "decided",
    "b": "decided",
    "tie": "tie",
    "inconsistent": "inconsistent",
    "pending": "pending",
}

IDENTICAL: Final = "identical"  # a tie of identical responses, which no judge has to read
OPPOSITE: Final = "opposite winners"  # one way to be inconsistent
TIE_BESIDE_WIN: Final = "a tie beside a win"  # the other; neither is told without the verdicts
_PART_OF: Final[Mapping[str, str]] = {
    IDENTICAL: "tie",
    OPPOSITE: "inconsistent",
    TIE_BESIDE_WIN: "inconsistent",
}
"""The status of what is told apart in an account."""

Counted: TypeAlias = Literal["pairs", "orders", "battles"]


class ComparedBattle(NamedTuple):
    """A battle of an imported set, as one of its comparisons."""

    dimension: str  # the set
    prompt_id: str | None
    cluster: int  # the number of the prompt, with or without an id
    entrant_a: str
    entrant_b: str
    status: str  # a, b, tie, inconsistent or no verdict
    weight: float = 1.0
    pref: float | None = None  # probability that b is better, if given
    battle_id: None = None  # a file may have the same battle twice
    order: None = None  # each battle is in the order in which its file has it
    slot: int = 0  # files seldom say which order it was, and nothing is taken off for it
    counted: Counted = "battles"

    @property
    def exact_status(self) -> str:
        """The status: a file has outcomes alone."""
        return self.status

    @property
    def score(self) -> float | None:
        """What a took: 1, 0, or 1/2 of a tie; None without a verdict."""
        return SCORES.get(self.status)

    @property
    def share(self) -> float | None:
        """What a took by preference if given, else the score; None without a verdict."""
        return self.score if self.pref is None or self.score is None else 1 - self.pref

    @property
    def winner(self) -> str | None:
        """The entrant that won, if any."""
        return {"a": self.entrant_a, "b": self.entrant_b}.get(self.status)

    def seen_from(self, entrant: str) -> "ComparedBattle":
        """Return the same battle with one of its entrants as `a`."""
        if entrant == self.entrant_a:
            return self
        status = {"a": "b", "b": "a"}.get(self.status, self.status)
        pref = None if self.pref is None else 1 - self.pref
        return self._replace(
            entrant_a=self.entrant_b, entrant_b=self.entrant_a, status=status, pref=pref
        )


@dataclass(frozen=True)
class Account:
    """Counts of a dimension's pairings, or of their orders, by status.

    Attributes:
        identical: Of the ties: those of identical responses, which no judge has to read.
        opposite: Of the inconsistent pairs, where verdicts were read: those with opposite winners.
        beside: Likewise, those with a tie beside a win.
        in_one_order: Of the judged pairs, those asked in one order, which are never inconsistent.
    """

    planned: int
    decided: int
    tie: int
    inconsistent: int
    failed: tuple[tuple[str, int], ...]  # (reason, count), only reasons that occurred
    pending: int
    counted: Counted = "pairs"
    identical: int = 0
    opposite: int = field(default=0, compare=False)
    beside: int = field(default=0, compare=False)
    in_one_order: int = 0

    @property
    def n_judged(self) -> int:
        """How many pairs of different responses have an outcome."""
        return self.decided + self.tie + self.inconsistent - self.identical

    @property
    def n_in_both_orders(self) -> int:
        """How many of the judged pairs were asked in both orders."""
        return self.n_judged - self.in_one_order

    @property
    def judged_in_both(self) -> str:
        """What those are called."""
        return "pairs judged in both orders" if self.in_one_order else "judged pairs"

    @property
    def inconsistent_share(self) -> float:
        """The share of inconsistent pairs among those judged in both orders; 0 without any."""
        return self.inconsistent / max(1, self.n_in_both_orders)

    @property
    def n_failed(self) -> int:
        """How many pairings have no verdict for a recorded reason."""
        return sum(count for _, count in self.failed)

    @property
    def tied_share(self) -> float:
        """The share of ties among what was decided or tied; 0 if that is nothing."""
        return self.tie / max(1, self.tie + self.decided)

    @property
    def so_far(self) -> str | None:
        """How many have an outcome, while some are pending and some are not; None otherwise."""
        if not self.pending or self.pending == self.planned:
            return None
        n_with_outcome = self.decided + self.tie + self.inconsistent
        return f"{n_with_outcome:,} of {self.planned:,} {self.counted} judged so far"

    def disagreement(self) -> str:
        """Say how many of the judged pairs are inconsistent, and in what way."""
        said = f"{self.inconsistent_share:.0%} of the {self.judged_in_both} are inconsistent"
        ways = ((self.opposite, OPPOSITE), (self.beside, TIE_BESIDE_WIN))
        how = ", ".join(f"{n} with {way}" for n, way in ways if n)
        return f"{said} ({self.inconsistent} of {self.n_in_both_orders}{how and ': '}{how})"

    def sentence(self) -> str:
        """Return the counts as a sum that equals the number planned."""
        planned = f"{self.planned} {self.counted if self.planned != 1 else self.counted[:-1]}"
        has_verdict = f"{planned} = {self.decided} decided + {self.tie} tied"
        if self.counted == "battles":
            return f"{has_verdict} + {self.n_failed} without a verdict"
        failed = "".join(f" + {count} {reason}" for reason, count in self.failed)
        so_far = f" ({self.so_far})" if self.so_far else ""
        return (
            f"{has_verdict} + {self.inconsistent} inconsistent{failed} + {self.pending} pending"
            f"{so_far}"
        )

    def fields(self) -> Mapping[str, Json]:
        """Return the counts as JSON."""
        counts = {**asdict(self), "failed": dict(self.failed)}
        of_no_file = ("counted", "identical", "opposite", "beside", "in_one_order")
        for name in of_no_file:  # published files lack them
            del counts[name]
        return counts


def account_from(counted: Mapping[str, int], kind: Counted, *, in_one_order: int = 0) -> Account:
    """Return the account of what has each status so often."""
    counts = Counter(counted)
    planned = counts.total()
    for part, whole in _PART_OF.items():
        counts[whole] += counts[part]
    return Account(
        planned=planned,
        decided=counts["a"] + counts["b"],
        tie=counts["tie"],
        inconsistent=counts["inconsistent"],
        failed=tuple((reason, counts[reason]) for reason in FAILURES if counts[reason]),
        pending=counts["pending"],
        counted=kind,
        identical=counts[IDENTICAL],
        opposite=counts[OPPOSITE],
        beside=counts[TIE_BESIDE_WIN],
        in_one_order=in_one_order,
    )


def kind_of(status: str) -> OutcomeKind:
    """Return the part that a status falls into: any reason for having no outcome is a failure."""
    return _KINDS.get(status, "failed")
