"""Auditing: find events, verify a whole ledger, rebuild the runs that were published."""
