"""Fixtures for tests that need a ledger's file."""

from pathlib import Path

import pytest

from ledger.store import Ledger
from tests.support.builders.events import N_FILED, STREAM, verdicts


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Name a ledger that is not there yet."""
    return tmp_path / "run.ledger"


@pytest.fixture
def filed(path: Path) -> Path:
    """Give a closed ledger's file with three events of one stream."""
    with Ledger.open(path) as ledger:
        ledger.append(STREAM, verdicts(N_FILED))
    return path
