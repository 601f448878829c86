"""Fixtures that every package's tests may use."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from ledger.store import Ledger
from tests.builders import NOON


@pytest.fixture
def ledger() -> Iterator[Ledger]:
    """Give an empty ledger in memory, whose clock moves a second at each append."""
    ticks = iter(range(10**9))
    with Ledger.in_memory(now=lambda: NOON + timedelta(seconds=next(ticks))) as opened:
        yield opened


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """Give a folder that every user may enter; pytest's own is for its user only."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o777)
        yield folder
        folder.chmod(0o777)
