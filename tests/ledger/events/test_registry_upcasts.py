"""What older versions of an event said: read step by step, and never rewritten."""

from itertools import product
from pathlib import Path
from typing import ClassVar

import pytest

from ledger.auditing.audit import audit
from ledger.errors import BrokenUpcasts, KeyConflict
from ledger.events.registry import EVENTS, UPCASTS, Event, Registry, Upcast
from ledger.events.values import Fact
from ledger.identity import Fields
from ledger.store import Ledger
from tests.support.builders.events import STREAM
from tests.support.faults.hostile import hash_again, unguarded


class Weighed(Fact, frozen=True):
    """Something was put on the scales; its third version."""

    schema_version: ClassVar[int] = 3

    what: str
    grams: float

    @property
    def natural_key(self) -> tuple[str, ...]:
        """Each thing is weighed once."""
        return (self.what,)


def named(fields: Fields) -> Fields:
    """Say version 1 in the words of version 2, where `name` is called `what`."""
    return {"what": fields["name"], "kilograms": fields["kilograms"]}


def in_grams(fields: Fields) -> Fields:
    """Say version 2 in the words of version 3, which weighs in grams."""
    kilograms = fields["kilograms"]
    assert isinstance(kilograms, float)
    return {"what": fields["what"], "grams": kilograms * 1_000}


STEPS: dict[tuple[str, int], Upcast] = {("Weighed", 1): named, ("Weighed", 2): in_grams}


class Noted(Fact, frozen=True):
    """Something was noted; its first version."""

    what: str


TYPES: tuple[type[Fact], ...] = (Weighed, Noted)


def registry(upcasts: dict[tuple[str, int], Upcast]) -> Registry[Fact]:
    """Return the registry of the events above."""
    return Registry(TYPES, upcasts)


@pytest.mark.parametrize(
    ("version", "stored"),
    [
        (1, b'{"name":"salt","kilograms":0.5}'),
        (2, b'{"what":"salt","kilograms":0.5}'),
        (3, b'{"what":"salt","grams":500.0}'),
    ],
)
def test_an_event_of_any_version_is_read_as_it_is_now(version: int, stored: bytes) -> None:
    """Projections know one version of each event, however old the ledger is."""
    event = registry(STEPS).decode("Weighed", version, stored)

    assert event == Weighed("salt", 500.0)


def test_what_is_read_from_an_older_version_is_written_in_the_newest() -> None:
    """Stored bytes are never rewritten; a new append speaks as the program does now."""
    events = registry(STEPS)
    read = events.decode("Weighed", 1, b'{"name":"salt","kilograms":0.5}')

    stored = events.encode(read)

    assert stored == b'{"what":"salt","grams":500.0}'


@pytest.mark.parametrize("missing", [*STEPS])
def test_a_missing_step_is_found_before_any_event_is_read(missing: tuple[str, int]) -> None:
    """A program that cannot read its own old ledgers must not start."""
    steps = {place: step for place, step in STEPS.items() if place != missing}

    with pytest.raises(BrokenUpcasts, match=r"missing upcasts: \[\('Weighed', \d\)\]") as caught:
        registry(steps)

    assert (set(caught.value.missing), set(caught.value.extra)) == ({missing}, set())


@pytest.mark.parametrize("extra", [("Weighed", 0), ("Weighed", 3), ("Noted", 1), ("Lost", 1)])
def test_a_step_that_leads_nowhere_is_found(extra: tuple[str, int]) -> None:
    """A new step without the new version, or a misspelt type, would never be taken."""
    with pytest.raises(BrokenUpcasts, match=r"unknown upcasts: \[\('") as caught:
        registry({**STEPS, extra: named})

    assert (set(caught.value.missing), set(caught.value.extra)) == (set(), {extra})


@pytest.mark.parametrize(
    ("version", "stored"),
    [
        *product((1, 2, 3), (b"", b"[]", b'"salt"', b"{}", b"\xff")),
        (1, b'{"name":7,"kilograms":0.5}'),
        (2, b'{"what":null,"kilograms":0.5}'),
    ],
)
def test_damaged_bytes_of_any_version_do_not_fit(version: int, stored: bytes) -> None:
    """An audit goes on behind them, so they must not be taken for a bug or an unknown type."""
    with pytest.raises(ValueError, match=r"."):
        registry(STEPS).decode("Weighed", version, stored)


OLD = {
    "salt": (1, b'{"name":"salt","kilograms":0.5}'),
    "flour": (2, b'{"what":"flour","kilograms":1.5}'),
}


@pytest.fixture(autouse=True)
def _event_of_three_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the program know one event more."""
    known = Registry[Fact]((*EVENTS.types.values(), Weighed), {**UPCASTS, **STEPS})
    monkeypatch.setattr(EVENTS, "types", known.types)
    monkeypatch.setattr(EVENTS, "decoders", known.decoders)


@pytest.fixture
def path(path: Path) -> Path:
    """Give a ledger of events in their first and second version."""
    with Ledger.open(path) as ledger:
        ledger.append(STREAM, said())
    with unguarded(path) as connection:
        for position, (version, data) in enumerate(OLD.values(), start=1):
            change = "UPDATE event SET schema_version = ?, data = ? WHERE position = ?"
            connection.execute(change, (version, data, position))
        hash_again(connection)
    return path


def weighed(what: str, grams: float) -> Event:
    """Return the event as the program of the tests knows it."""
    return Weighed(what, grams)  # type: ignore[return-value]  # no union names it


def said() -> list[Event]:
    """Return what the events say, in today's words."""
    return [weighed("salt", 500.0), weighed("flour", 1_500.0)]


def test_an_older_ledger_is_sound_and_readable(path: Path) -> None:
    """An upcast is made while reading; the hashes are those of the bytes as they were written."""
    with Ledger.read_only(path) as ledger:
        assert audit(ledger) == ()
        assert [each.event for each in ledger.read()] == said()


def test_a_fact_recorded_in_older_words_is_not_recorded_again(path: Path) -> None:
    """A rerun under a new tourney must find what the old one paid for."""
    with Ledger.open(path) as ledger:
        receipts = ledger.append(STREAM, said())

        stored = [(row.schema_version, row.data) for row in ledger.rows()]

    assert not any(receipt.is_new for receipt in receipts)
    assert stored == [*OLD.values()]


def test_other_content_under_an_older_key_is_refused(path: Path) -> None:
    """The same thing weighs something else today: one of the two is wrong."""
    with Ledger.open(path) as ledger, pytest.raises(KeyConflict):
        ledger.append(STREAM, [weighed("salt", 501.0)])
