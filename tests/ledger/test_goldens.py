"""Stored payloads of every event type and version, kept for ever."""

from pathlib import Path

import pytest

from ledger.events.event import EVENTS
from tests.ledger.make_goldens import GOLDENS, golden_name, write_missing


@pytest.mark.parametrize("path", sorted(GOLDENS.iterdir()), ids=lambda path: str(path.name))
def test_a_stored_event_is_read_and_written_back_unchanged(path: Path) -> None:
    """A field renamed or reordered would make old ledgers unreadable, or refuse a retry."""
    type_, version, _ = path.name.split(".")
    stored = path.read_bytes()

    event = EVENTS.decode(type_, int(version.removeprefix("v")), stored)

    assert EVENTS.encode(event) == stored
    assert golden_name(event) == path.name


def test_every_event_type_has_a_golden() -> None:
    """A new type or version is pinned from its first day: see make_goldens.py."""
    registered = {f"{name}.v{event.schema_version}.json" for name, event in EVENTS.types.items()}

    stored = {path.name for path in GOLDENS.iterdir()}

    assert registered <= stored


def test_making_goldens_writes_the_missing_ones_alone(tmp_path: Path) -> None:
    """A golden made again from today's code would agree with any mistake in it."""
    old = tmp_path / "PairReconciled.v1.json"
    old.write_bytes(b"{}")

    written = write_missing(tmp_path)

    assert len(written) == len(EVENTS.types) - 1
    assert old.read_bytes() == b"{}"
