"""Fixtures that every package's tests may use."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from ledger.store import Ledger
from tests.builders import NOON


@pytest.fixture
def ledger() -> Iterator[Ledger]:
    """Give an empty ledger in memory, whose clock moves a second at each append."""
    ticks = iter(range(10**9))
    with Ledger.in_memory(now=lambda: NOON + timedelta(seconds=next(ticks))) as opened:
        yield opened
