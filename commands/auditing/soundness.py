"""Refuse a damaged ledger; apart, since who only exports needs no settings."""

from commands.errors import AuditDisagrees
from ledger.auditing.audit import audit
from ledger.store import Ledger


def require_sound(ledger: Ledger) -> None:
    """Require that a ledger is not damaged.

    Raises:
        AuditDisagrees: It is.
    """
    for position, why in audit(ledger):
        raise AuditDisagrees(f"{ledger.path}, position {position}: {why}; see `tourney verify`")
