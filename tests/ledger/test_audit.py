"""The audit finds whatever is not as it was recorded."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings

from ledger.audit import Fault, _audit_apart, audit, audit_chain, read_each
from ledger.events.event import Event
from ledger.row import Row
from ledger.store import Ledger
from tests.builders import STREAM
from tests.ledger.facts import N_FILED, verdicts
from tests.ledger.hostile import loosen, tamper
from tests.strategies import histories

CONTENT = "its content is not what was recorded"
LINK = "its link to the event before it is broken"

TAMPERED = {
    "payload": (
        """UPDATE event SET data = CAST(replace(CAST(data AS TEXT), ':"A"', ':"B"') AS BLOB)
        WHERE position = 2""",
        [(2, CONTENT)],
    ),
    "payload of a wrong shape": (
        "UPDATE event SET data = x'7b7d' WHERE position = 2",
        [(2, CONTENT), (2, "it does not have the shape of VerdictReceived")],
    ),
    "payload that is no text": (
        "UPDATE event SET data = x'ff' WHERE position = 2",
        [(2, CONTENT), (2, "it does not have the shape of VerdictReceived")],
    ),
    "type": (
        "UPDATE event SET type = 'ResponseFailed' WHERE position = 2",
        [(2, CONTENT), (2, "it does not have the shape of ResponseFailed")],
    ),
    "unknown type": (
        "UPDATE event SET type = 'PairSettled' WHERE position = 2",
        [(2, CONTENT), (2, "no event type 'PairSettled'")],
    ),
    "type that is no text": (
        "UPDATE event SET type = CAST(x'ff' AS TEXT) WHERE position = 2",
        [(2, CONTENT), (2, "its stream or type is no UTF-8 text")],
    ),
    "schema version": (
        "UPDATE event SET schema_version = 2 WHERE position = 2",
        [(2, CONTENT), (2, "VerdictReceived version 2, known here: 1")],
    ),
    "time": (
        "UPDATE event SET recorded_us = recorded_us + 1 WHERE position = 2",
        [(2, CONTENT)],
    ),
    "time that no calendar has": (
        "UPDATE event SET recorded_us = 9223372036854775807 WHERE position = 2",
        [(2, CONTENT), (2, "its time is out of range: 9223372036854775807 us")],
    ),
    "event id": (
        "UPDATE event SET event_id = zeroblob(16) WHERE position = 2",
        [(2, CONTENT)],
    ),
    "stream": (
        "UPDATE event SET stream = 'other' WHERE position = 3",
        [(3, "it is version 3 of stream 'other', expected 1"), (3, CONTENT)],
    ),
    "stream that is no text": (
        "UPDATE event SET stream = CAST(x'ff' AS TEXT) WHERE position = 3",
        [
            (3, "it is version 3 of stream '\ufffd', expected 1"),
            (3, CONTENT),
            (3, "its stream or type is no UTF-8 text"),
        ],
    ),
    "version": (
        "UPDATE event SET version = 7 WHERE position = 3",
        [(3, "it is version 7 of stream 'main', expected 3")],
    ),
    "version that was given already": (
        """INSERT INTO event SELECT 4, zeroblob(16), stream, version, type, 1, 0, data, leaf, chain
        FROM event WHERE position = 2""",
        [(4, "it is version 2 of stream 'main', expected 4"), (4, CONTENT), (4, LINK)],
    ),
    "leaf": (
        "UPDATE event SET leaf = zeroblob(32) WHERE position = 2",
        [(2, CONTENT), (2, LINK)],
    ),
    "chain": (
        "UPDATE event SET chain = zeroblob(32) WHERE position = 2",
        [(2, LINK), (3, LINK)],
    ),
    "last chain": (
        "UPDATE event SET chain = zeroblob(32) WHERE position = 3",
        [(3, LINK)],
    ),
    "deleted row": (
        "DELETE FROM event WHERE position = 2",
        [
            (3, "position 2 is missing before it"),
            (3, "it is version 3 of stream 'main', expected 2"),
            (3, LINK),
        ],
    ),
    "deleted first row": (
        "DELETE FROM event WHERE position = 1",
        [
            (2, "position 1 is missing before it"),
            (2, "it is version 2 of stream 'main', expected 1"),
            (2, LINK),
        ],
    ),
    "moved row": (
        "UPDATE event SET position = 5 WHERE position = 3",
        [(5, "position 3 is missing before it")],
    ),
}

SWAP = (
    "UPDATE event SET position = 9 WHERE position = 2",
    "UPDATE event SET position = 2 WHERE position = 3",
    "UPDATE event SET position = 3 WHERE position = 9",
)

CHANGE = "UPDATE event SET {} = {} WHERE position = ?".format
N_LONG = 20_005  # more than one process looks at


def faults_of(path: Path) -> list[tuple[int, str]]:
    """Return what an audit of a file finds; in words."""
    with Ledger.read_only(path) as ledger:
        return [(fault.position, fault.why) for fault in audit(ledger)]


def faults_with(
    ledger: Ledger, position: int, field: str, stored: int | bytes
) -> tuple[Fault, ...]:
    """Audit a loosened ledger with one field changed, and change it back."""
    value = "CAST(? AS TEXT)" if field in {"stream", "type"} else "?"
    ledger.connection.execute("BEGIN")
    ledger.connection.execute(CHANGE(field, value), (stored, position))
    faults = audit(ledger)
    ledger.connection.execute("ROLLBACK")
    return faults


def with_one_bit_flipped(stored: int | str | bytes) -> Iterator[int | bytes]:
    """Yield a stored value as often as it has bits, each time with another bit flipped."""
    match stored:
        case int():
            yield from (stored ^ (1 << bit) for bit in range(63))  # no sign: that is tested apart
        case str():
            yield from with_one_bit_flipped(stored.encode())
        case bytes():
            number = int.from_bytes(stored)
            flips = (number ^ (1 << bit) for bit in range(8 * len(stored)))
            yield from (each.to_bytes(len(stored)) for each in flips)


def test_a_ledger_nobody_touched_has_no_faults(filed: Path) -> None:
    """An audit that cries wolf is soon no longer read."""
    faults = faults_of(filed)

    assert faults == []


@settings(deadline=None, max_examples=30)
@given(history=histories())
def test_any_history_passes_its_audit(history: list[Event]) -> None:
    """No event of any content may look like tampering."""
    with Ledger.in_memory() as ledger:
        ledger.append(STREAM, history)

        faults = audit(ledger)

    assert faults == ()


@pytest.mark.parametrize(("statement", "expected"), TAMPERED.values(), ids=TAMPERED)
def test_each_kind_of_tampering_is_found_where_it_is(
    filed: Path, statement: str, expected: list[tuple[int, str]]
) -> None:
    """Whoever owns the file can drop the triggers; the chain still tells."""
    tamper(filed, statement)

    faults = faults_of(filed)

    assert [position for position, _ in faults] == [position for position, _ in expected]
    for (_, why), (_, beginning) in zip(faults, expected, strict=True):
        assert why.startswith(beginning)


def test_swapped_events_are_found_at_both_places(filed: Path) -> None:
    """The order of events decides ratings that depend on order."""
    tamper(filed, *SWAP)

    faults = faults_of(filed)

    assert faults == [
        (2, "it is version 3 of stream 'main', expected 2"),
        (2, LINK),
        (3, "it is version 2 of stream 'main', expected 4"),
        (3, LINK),
    ]


def test_an_audit_lists_every_fault_not_the_first(filed: Path) -> None:
    """Who repairs a ledger wants to know all that is wrong with it."""
    tamper(
        filed,
        "UPDATE event SET data = x'7b7d', type = 'Nonsense' WHERE position = 1",
        "UPDATE event SET recorded_us = 0 WHERE position = 2",
        "UPDATE event SET version = 9 WHERE position = 3",
    )

    faults = faults_of(filed)

    assert [position for position, _ in faults] == [1, 1, 2, 3]


def test_every_single_flipped_bit_is_found(ledger: Ledger) -> None:
    """No field of an event lies outside what the audit covers."""
    ledger.append(STREAM, verdicts(3))
    loosen(ledger.connection)
    flips = [
        (row.position, field, flipped)
        for row in ledger.rows()
        for field in Row._fields
        for flipped in with_one_bit_flipped(getattr(row, field))
    ]

    missed = [flip for flip in flips if not faults_with(ledger, *flip)]

    assert missed == []
    assert len(flips) > 7_000


def test_a_cut_tail_is_found_by_its_head_alone(filed: Path) -> None:
    """The documented limit of a chain, and the remedy: compare with a head noted elsewhere."""
    with Ledger.read_only(filed) as ledger:
        noted = ledger.head

    tamper(filed, "DELETE FROM event WHERE position = 3")

    with Ledger.read_only(filed) as ledger:
        assert audit(ledger) == ()
        assert ledger.head != noted


@pytest.mark.parametrize("cut", range(N_FILED + 1))
@pytest.mark.parametrize(
    "statements", [(), SWAP, *((each,) for each, _ in TAMPERED.values())], ids=lambda _: ""
)
def test_stretches_audited_apart_find_what_the_whole_audit_finds(
    filed: Path, statements: tuple[str, ...], cut: int
) -> None:
    """Processes share a long ledger; a fault at the edge must not be lost between two."""
    tamper(filed, *statements)
    with Ledger.read_only(filed) as ledger:
        head = ledger.head
        whole = audit_chain(ledger, head)

    apart = _audit_apart(filed, 0, cut) + _audit_apart(filed, cut, head.position)

    assert set(whole) <= set(apart)
    assert bool(whole) == bool(apart)
    assert len(set(apart)) == len(apart)


def test_a_long_ledger_is_audited_by_several_processes(path: Path) -> None:
    """A hundred thousand events are looked at before every run: nobody should wait for it."""
    with Ledger.open(path) as ledger:
        ledger.append(STREAM, verdicts(N_LONG))
    tampered = [2, N_LONG - 1, N_LONG]
    tamper(path, "UPDATE event SET leaf = zeroblob(32) WHERE position IN (2, 20004, 20005)")
    told: list[int] = []

    with Ledger.read_only(path) as ledger:
        faults = audit_chain(ledger, ledger.head, told.append)

    assert [(at, why) for at, why in faults if why == CONTENT] == [
        (each, CONTENT) for each in tampered
    ]
    assert sum(told) == N_LONG


def test_events_that_arrive_during_an_audit_are_not_looked_at(filed: Path) -> None:
    """An audit is of the history up to a head; a run that goes on must not look like tampering."""
    with Ledger.open(filed) as ledger:
        head = ledger.head
        ledger.append(STREAM, verdicts(2, after=N_FILED))
        ledger.connection.execute("DROP TRIGGER event_is_never_updated")
        ledger.connection.execute("UPDATE event SET data = x'7b7d' WHERE position > 3")

        faults = audit_chain(ledger, head)
        read = list(read_each(ledger, head))

        assert faults == ()
        assert read == list(ledger.read(until=N_FILED))


def test_every_event_that_can_be_read_is_read_beside_those_that_cannot(filed: Path) -> None:
    """Who repairs a ledger wants all that is left of it."""
    with Ledger.read_only(filed) as ledger:
        first, _, third = ledger.read()
    tamper(filed, "UPDATE event SET type = 'PairSettled' WHERE position = 2")

    with Ledger.read_only(filed) as ledger:
        each = list(read_each(ledger, ledger.head))

    why = "no event type 'PairSettled'; a later tourney may know it"
    assert each == [first, Fault(2, why), third]
