"""By which rule verdicts are read: what reads the replies, and what makes outcomes of them."""

from typing import Final, NamedTuple

from projections.reconcile import DEFAULT_POLICY, PROJECTED


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
