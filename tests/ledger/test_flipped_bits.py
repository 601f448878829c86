"""No bit of a ledger can change unseen."""

from collections.abc import Iterator
from functools import cache
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ledger.audit import Fault, audit, audit_chain
from ledger.errors import LedgerError
from ledger.recorded import StoredEvent
from ledger.store import Ledger
from tests.builders import STREAM
from tests.ledger.facts import N_FILED, verdicts
from tests.ledger.hostile import interrupted_after, loosen, tamper
from tests.support.patience import PATIENCE_S

NUMBERS = ("position", "version", "schema_version", "recorded_us")
HEADER = 24  # bytes that SQLite keeps before the first field of a row: its number, sizes, types
FLIP_SIGN = "UPDATE event SET {} = {} - 9223372036854775807 - 1 WHERE position = {}".format
CHANGE = "UPDATE event SET {} = {} WHERE position = ?".format


def faults_with(
    ledger: Ledger, position: int, field: str, stored: int | bytes
) -> tuple[Fault, ...]:
    """Audit the chain of a loosened ledger with one field changed, and change it back."""
    value = "CAST(? AS TEXT)" if field in {"stream", "type"} else "?"
    ledger.connection.execute("BEGIN")
    ledger.connection.execute(CHANGE(field, value), (stored, position))
    faults = audit_chain(ledger, ledger.head)
    ledger.connection.execute("ROLLBACK")
    return faults


def with_one_bit_flipped(stored: int | str | bytes) -> Iterator[int | bytes]:
    """Yield a stored value as often as it has bits, each time with another bit flipped."""
    match stored:
        case int():
            yield from (stored ^ (1 << bit) for bit in range(63))  # the sign is tested apart
        case str():
            yield from with_one_bit_flipped(stored.encode())
        case bytes():
            number = int.from_bytes(stored)
            flips = (number ^ (1 << bit) for bit in range(8 * len(stored)))
            yield from (each.to_bytes(len(stored)) for each in flips)


def test_every_flipped_bit_of_every_field_is_found_by_the_chain(ledger: Ledger) -> None:
    """No field of an event lies outside what the hashes cover."""
    ledger.append(STREAM, verdicts(N_FILED))
    loosen(ledger.connection)
    flips = [
        (row.position, field, flipped)
        for row in ledger.rows()
        for field in StoredEvent._fields
        for flipped in with_one_bit_flipped(getattr(row, field))
    ]

    missed = [flip for flip in flips if not faults_with(ledger, *flip)]

    assert missed == []
    assert len(flips) > 7_000


@pytest.mark.parametrize("position", range(1, N_FILED + 1))
@pytest.mark.parametrize("field", NUMBERS)
def test_every_flipped_sign_is_found(filed: Path, field: str, position: int) -> None:
    """Positions below zero come before the first, where nobody would look for an event."""
    tamper(
        filed,
        "PRAGMA ignore_check_constraints = ON",
        FLIP_SIGN(field, field, position),
    )

    with Ledger.read_only(filed) as ledger:
        assert audit(ledger) != ()


@cache
def healthy() -> tuple[bytes, tuple[StoredEvent, ...]]:
    """Return a small ledger's file and the rows in it."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "run.ledger")
        with Ledger.open(path) as ledger:
            ledger.append(STREAM, verdicts(N_FILED))
            rows = tuple(ledger.rows())
        return path.read_bytes(), rows


def in_use() -> list[int]:
    """Return the places of the file's bytes, but for the empty room."""
    return [place for place, byte in enumerate(healthy()[0]) if byte]


def is_found_or_harmless(place: int, bit: int) -> bool:
    """Flip a bit of the file, and say whether the audit finds it, or every event is as it was."""
    content, rows = healthy()
    changed = bytearray(content)
    changed[place] ^= 1 << bit
    with TemporaryDirectory() as folder, interrupted_after(PATIENCE_S):
        path = Path(folder, "run.ledger")
        path.write_bytes(changed)
        try:
            with Ledger.read_only(path) as ledger:
                return audit(ledger) != () or tuple(ledger.rows()) == rows
        except LedgerError:
            return True
        except KeyboardInterrupt:  # it would have gone on for ever
            return False


@given(place=st.deferred(lambda: st.sampled_from(in_use())), bit=st.integers(0, 7))
@example(place=56, bit=1)  # the encoding of all text
@example(place=18, bit=3)  # the format of reading
@example(place=99, bit=7)  # the version of SQLite that wrote last
def test_a_flipped_bit_of_the_file_is_found_or_changes_no_event(place: int, bit: int) -> None:
    """Disks fail below SQLite, where no type, check or key holds."""
    assert is_found_or_harmless(place, bit)


@pytest.mark.parametrize("position", range(1, N_FILED + 1))
def test_every_flipped_bit_before_a_rows_fields_is_found(position: int) -> None:
    """There stand the row's number and the types of its fields, which nothing else checks."""
    content, rows = healthy()
    fields = content.index(rows[position - 1].event_id + STREAM.encode())

    flips = product(range(fields - HEADER, fields), range(8))

    missed = next((flip for flip in flips if not is_found_or_harmless(*flip)), None)

    assert missed is None
