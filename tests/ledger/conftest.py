"""Fixtures for tests that need a ledger's file."""

import shutil
from pathlib import Path

import pytest

from ledger.store import Ledger
from tests.support.builders.events import N_FILED, STREAM, verdicts


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Name a ledger that is not there yet."""
    return tmp_path / "run.ledger"


@pytest.fixture(scope="session")
def filed_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the folder of a closed ledger, to be copied."""
    folder = tmp_path_factory.mktemp("filed")
    with Ledger.open(folder / "run.ledger") as ledger:
        ledger.append(STREAM, verdicts(N_FILED))
    return folder


@pytest.fixture
def filed(path: Path, filed_once: Path) -> Path:
    """Give a closed ledger's file with three events of one stream."""
    shutil.copytree(filed_once, path.parent, dirs_exist_ok=True)
    return path
