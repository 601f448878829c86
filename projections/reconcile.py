"""Both orders' verdicts become one outcome."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from ledger.events.judging import Outcome, Verdict

# What the verdict on the slots shown says of the pair (a, b).
_FORWARD: Final[Mapping[Verdict, Outcome]] = MappingProxyType({"A": "a", "B": "b", "TIE": "tie"})
_SWAPPED: Final[Mapping[Verdict, Outcome]] = MappingProxyType({"A": "b", "B": "a", "TIE": "tie"})


def swap_consistent(forward: Verdict, swapped: Verdict) -> Outcome:
    """Return what both orders agree on; a judge who changes with the order said nothing.

    Args:
        forward: Verdict with a's response in slot A.
        swapped: Verdict with a's response in slot B.
    """
    first, second = _FORWARD[forward], _SWAPPED[swapped]
    return first if first == second else "inconsistent"


POLICIES: Final[Mapping[str, Callable[[Verdict, Verdict], Outcome]]] = MappingProxyType(
    {"swap-consistent": swap_consistent}
)
DEFAULT_POLICY: Final = "swap-consistent"
