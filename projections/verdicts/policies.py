"""Verdicts become outcomes: by the policy on record, or by others over the same verdicts.

Only outcomes by `POLICIES` are recorded. The others are projections of the same verdicts:
`concatenate` gives a pair two outcomes, one an order; `abstain-on-flip` may give it none;
`majority` gives several judges one.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from ledger.events.judging import Order, Outcome, Verdict

# What the verdict on the slots shown says of the pair (a, b).
_SAID: Final[Mapping[Order, Mapping[Verdict, Outcome]]] = MappingProxyType(
    {
        "forward": MappingProxyType({"A": "a", "B": "b", "TIE": "tie"}),
        "swapped": MappingProxyType({"A": "b", "B": "a", "TIE": "tie"}),
    }
)
_QUORUM: Final = 2  # judges: the vote of one is no majority


def swap_consistent(forward: Verdict, swapped: Verdict) -> Outcome:
    """Return what both orders agree on; a judge who changes with the order said nothing.

    Args:
        forward: Verdict with a's response in slot A.
        swapped: Verdict with a's response in slot B.
    """
    first, second = outcome_of_order(forward, "forward"), outcome_of_order(swapped, "swapped")
    return first if first == second else "inconsistent"


def outcome_of_order(verdict: Verdict, order: Order) -> Outcome:
    """Return what a verdict in one order says of the pair: an order's share of `concatenate`.

    No order waits for the other or is checked against it, so a pair counts as two games, and a
    judge that always prefers one slot gives each entrant a win.
    """
    return _SAID[order][verdict]


def abstain_on_flip(forward: Verdict, swapped: Verdict) -> Outcome | None:
    """Return a judge's vote: what both orders agree on, else None, for it abstains.

    A tie in one order and a winner in the other is a contradiction, too. It differs from
    `swap_consistent` in what is counted: an abstention is a vote that is missing, as one that
    was refused is, and no outcome of the pair.
    """
    outcome = swap_consistent(forward, swapped)
    return None if outcome == "inconsistent" else outcome


def majority(outcomes: Iterable[Outcome]) -> Outcome:
    """Return what more judges voted for than for anything else, if at least two voted.

    Args:
        outcomes: One a judge; a tie is a vote, an inconsistent judge abstains.
    """
    votes = Counter(outcome for outcome in outcomes if outcome != "inconsistent")
    if votes.total() < _QUORUM:
        return "inconsistent"
    (winner, most), *others = votes.most_common(2)
    return "inconsistent" if others and others[0][1] == most else winner


POLICIES: Final[Mapping[str, Callable[[Verdict, Verdict], Outcome]]] = MappingProxyType(
    {"swap-consistent": swap_consistent}
)
"""Policies that outcomes are recorded by: one judge's two verdicts, one outcome."""

DEFAULT_POLICY: Final = "swap-consistent"
CONCATENATE: Final = "concatenate"
ABSTAIN_ON_FLIP: Final = "abstain-on-flip"
MAJORITY: Final = "majority"
PROJECTED: Final = frozenset({CONCATENATE, ABSTAIN_ON_FLIP, MAJORITY})
"""Policies that nothing is recorded by."""

POLICY_NAMES: Final = (*POLICIES, CONCATENATE, ABSTAIN_ON_FLIP, MAJORITY)


class Rule(NamedTuple):
    """How stored replies become outcomes; any but the usual rule is a projection, and free."""

    policy: str = DEFAULT_POLICY
    parser: str | None = None  # full name; None: as each reply was read when it was recorded

    @property
    def is_recorded(self) -> bool:
        """Say whether outcomes by this rule stand on the ledger."""
        return self.parser is None and self.policy not in PROJECTED


RECORDED: Final = Rule()
"""The rule that outcomes are recorded by."""
