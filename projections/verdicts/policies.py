"""Policies: how verdicts become outcomes, recorded or projected.

Only outcomes by `POLICIES` are recorded. The others are projections of the same verdicts:
`concatenate` gives a pair two outcomes, one per order; `abstain-on-flip` may give it none;
`majority` combines several judges.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from ledger.events.judging import Order, Outcome, Verdict

# What the verdict on the slots shown says of the pair (a, b).
_SAID: Final[Mapping[Order, Mapping[Verdict, Outcome]]] = {
    "forward": {"A": "a", "B": "b", "TIE": "tie"},
    "swapped": {"A": "b", "B": "a", "TIE": "tie"},
}
_QUORUM: Final = 2  # judges: the vote of one is no majority


def swap_consistent(forward: Verdict, swapped: Verdict) -> Outcome:
    """Return the outcome on which both orders agree; else inconsistent.

    Args:
        forward: Verdict with a's response in slot A.
        swapped: Verdict with a's response in slot B.
    """
    first, second = outcome_of_order(forward, "forward"), outcome_of_order(swapped, "swapped")
    return first if first == second else "inconsistent"


def outcome_of_order(verdict: Verdict, order: Order) -> Outcome:
    """Return the outcome of one order's verdict, as for `concatenate`.

    Orders are neither awaited nor compared, so a pair counts as two games, and a judge that always
    prefers one slot gives each entrant a win.
    """
    return _SAID[order][verdict]


def abstain_on_flip(forward: Verdict, swapped: Verdict) -> Outcome | None:
    """Return the outcome on which both orders agree; None if the judge abstains.

    A tie in one order and a winner in the other is a contradiction, too. Unlike in
    `swap_consistent`, an abstention is a missing vote, as a refusal is, and not an outcome of the
    pair.
    """
    outcome = swap_consistent(forward, swapped)
    return None if outcome == "inconsistent" else outcome


def majority(outcomes: Iterable[Outcome]) -> Outcome:
    """Return the outcome with most votes, if at least two judges voted; else inconsistent.

    Args:
        outcomes: One per judge; a tie is a vote, an inconsistent judge abstains.
    """
    votes = Counter(outcome for outcome in outcomes if outcome != "inconsistent")
    if votes.total() < _QUORUM:
        return "inconsistent"
    (winner, most), *others = votes.most_common(2)
    return "inconsistent" if others and others[0][1] == most else winner


POLICIES: Final[Mapping[str, Callable[[Verdict, Verdict], Outcome]]] = {
    "swap-consistent": swap_consistent
}
"""Policies that outcomes are recorded by: one judge's two verdicts, one outcome."""

DEFAULT_POLICY: Final = "swap-consistent"
CONCATENATE: Final = "concatenate"
ABSTAIN_ON_FLIP: Final = "abstain-on-flip"
MAJORITY: Final = "majority"
POLICY_NAMES: Final = (*POLICIES, CONCATENATE, ABSTAIN_ON_FLIP, MAJORITY)


class Rule(NamedTuple):
    """How stored replies become outcomes; only the default rule is recorded."""

    policy: str = DEFAULT_POLICY
    parser: str | None = None  # full name; None: as each reply was read when it was recorded


RECORDED: Final = Rule()
"""The rule that outcomes are recorded by."""
