"""Stored payloads of every event type and version, kept for ever."""

from operator import attrgetter
from pathlib import Path
from typing import get_args

import pytest

from ledger.events.evaluations import Observation, SampleObserved
from ledger.events.registry import EVENTS, Event
from tests.ledger.make_goldens import GOLDENS, SAMPLES, golden_name, write_missing

STORED = sorted(GOLDENS.iterdir())
NOW = {(name, event.schema_version) for name, event in EVENTS.types.items()}


def kind(path: Path) -> tuple[str, int]:
    """Return the type and version of a golden; what stands behind them tells shapes apart."""
    type_, version, *_ = path.name.split(".")
    return type_, int(version.removeprefix("v"))


def read(path: Path) -> Event:
    """Return the event that a golden says, as it is now."""
    return EVENTS.decode(*kind(path), path.read_bytes())


@pytest.mark.parametrize("path", STORED, ids=attrgetter("name"))
def test_a_stored_event_is_read_and_written_back_unchanged(path: Path) -> None:
    """A field renamed or reordered would make old ledgers unreadable, or refuse a retry."""
    event = read(path)

    assert EVENTS.encode(event) == path.read_bytes()
    assert golden_name(event) == path.name


def test_every_event_type_has_a_golden() -> None:
    """A new type or version is pinned from its first day: see make_goldens.py."""
    assert {kind(path) for path in STORED} == NOW


def test_every_shape_of_an_observation_has_a_golden() -> None:
    """One type of event holds them all, so a golden of the type pins one of them only."""
    observed = [each.observation for each in map(read, STORED) if isinstance(each, SampleObserved)]

    assert {type(each) for each in observed} == set(get_args(Observation))


def test_making_goldens_writes_the_missing_ones_alone(tmp_path: Path) -> None:
    """A golden made again from today's code would agree with any mistake in it."""
    old = tmp_path / "PairReconciled.v1.json"
    old.write_bytes(b"{}")

    written = write_missing(tmp_path)

    assert len(written) == len(SAMPLES) - 1
    assert old.read_bytes() == b"{}"
