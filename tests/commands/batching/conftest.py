"""The same ledger, clock and provider as where a judge is asked."""

from tests.commands.judging.conftest import clock, ledger, port, recorder

__all__ = ["clock", "ledger", "port", "recorder"]
