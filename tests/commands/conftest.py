"""Fixtures of the tests of commands."""

import pytest

from commands.decisions.recorder import Recorder
from ledger.store import Ledger
from tests.support.builders.events import STREAM


@pytest.fixture
def recorder(ledger: Ledger) -> Recorder:
    """Give a tournament of an empty ledger, open for decisions."""
    return Recorder(ledger, STREAM)
