"""Fixtures of the tests of commands."""

import os
import signal
from collections.abc import Callable, Iterator

import pytest

from commands.decisions.recorder import Recorder
from ledger.store import Ledger
from tests.support.builders.events import STREAM


@pytest.fixture
def recorder(ledger: Ledger) -> Recorder:
    """Give a tournament of an empty ledger, open for decisions."""
    return Recorder(ledger, STREAM)


@pytest.fixture
def ctrl_c() -> Iterator[Callable[[], None]]:
    """Give what presses Ctrl-C, which interrupts even where whoever began the tests ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield lambda: os.kill(os.getpid(), signal.SIGINT)
    signal.signal(signal.SIGINT, before)
