"""Audit a chain alone, without the rest that an audit looks at."""

from collections import deque

from ledger.auditing.audit import ChainAudit, ChainAuditor
from ledger.chain import Head
from ledger.store import Ledger


def audit_chain(ledger: Ledger, until: Head) -> ChainAudit:
    """Return every fault of position, version, content and link, and every redaction."""
    auditor = ChainAuditor(ledger, until)
    deque(auditor.pages(), maxlen=0)
    return auditor.result()
