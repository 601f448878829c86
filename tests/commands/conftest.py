"""Fixtures of the tests of commands."""

import os
import signal
from collections.abc import Callable, Iterator, Sequence

import pytest

from commands.decisions.recorder import Recorder
from ledger.events.registry import Event
from ledger.events.values import type_name
from ledger.identity import StreamId
from ledger.recorded import Receipt
from ledger.store import Ledger
from tests.support.builders.events import STREAM


@pytest.fixture
def recorder(ledger: Ledger) -> Recorder:
    """Give a tournament of an empty ledger, open for decisions."""
    return Recorder(ledger, STREAM)


@pytest.fixture
def appends(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Give the names of the events of each append from now on, as they come."""
    names: list[list[str]] = []
    append = ledger.append

    def told(
        stream: StreamId, events: Sequence[Event], *, expected_version: int | None = None
    ) -> tuple[Receipt, ...]:
        names.append([type_name(event) for event in events])
        return append(stream, events, expected_version=expected_version)

    monkeypatch.setattr(ledger, "append", told)
    return names


@pytest.fixture
def ctrl_c() -> Iterator[Callable[[], None]]:
    """Give what presses Ctrl-C, which interrupts even where whoever began the tests ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield lambda: os.kill(os.getpid(), signal.SIGINT)
    signal.signal(signal.SIGINT, before)
