"""A chain that is audited in ranges has the faults of one that is audited whole."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from ledger.auditing.audit import audit_chain
from ledger.auditing.ranges import Fault, NoFurtherCheck, _audited_apart, audited_ranges
from ledger.reader import Columns
from ledger.store import Ledger
from tests.ledger.auditing.test_audit import CONTENT, SWAP, TAMPERED
from tests.support.builders.events import N_FILED, STREAM, verdicts
from tests.support.faults.hostile import tamper

N_LONG = 2_005


class PositionsOf:
    """Collects the positions of the rows that it is given."""

    def __init__(self) -> None:
        self._positions: list[int] = []

    def add(self, page: Sequence[Columns]) -> None:
        """Take note of rows."""
        self._positions.extend(row[0] for row in page)

    def result(self) -> list[int]:
        """Return all positions."""
        return self._positions


@pytest.mark.parametrize("cut", range(N_FILED + 1))
@pytest.mark.parametrize(
    "statements", [(), SWAP, *((each,) for each, _ in TAMPERED.values())], ids=lambda _: ""
)
def test_ranges_audited_apart_find_what_the_whole_audit_finds(
    filed: Path, statements: tuple[str, ...], cut: int
) -> None:
    """Processes share a long ledger; a fault at the edge must not be lost between two."""
    tamper(filed, *statements)
    with Ledger.read_only(filed) as ledger:
        head = ledger.head
        whole = audit_chain(ledger, head).faults

    ranges = [
        _audited_apart(filed, *each, NoFurtherCheck) for each in ((0, cut), (cut, head.position))
    ]

    apart = [found for each in ranges for found in each.found]
    assert set(whole) <= set(apart)
    assert bool(whole) == bool(apart)
    assert len(set(apart)) == len(apart)


@pytest.mark.parametrize("is_long", [True, False])
def test_every_row_is_checked_once_and_in_order(
    path: Path, monkeypatch: pytest.MonkeyPatch, *, is_long: bool
) -> None:
    """By several processes, or by this one; whatever is wrong with it."""
    monkeypatch.setattr("ledger.auditing.ranges._SHORT", 500 if is_long else N_LONG)
    with Ledger.open(path) as ledger:
        ledger.append(STREAM, verdicts(N_LONG))
    tampered = [2, N_LONG - 1, N_LONG]
    tamper(path, "UPDATE event SET leaf = zeroblob(32) WHERE position IN (2, 2004, 2005)")

    with Ledger.read_only(path) as ledger:
        ranges = [*audited_ranges(ledger, ledger.head, PositionsOf)]
        faults = audit_chain(ledger, ledger.head).faults

    assert [at for each in ranges for at in each.result or ()] == [*range(1, N_LONG + 1)]
    assert (len(ranges) > 1) == is_long
    assert [(at, why) for at, why in faults if why == CONTENT] == [
        (each, CONTENT) for each in tampered
    ]


def test_a_range_that_cannot_be_read_to_its_end_has_no_result(path: Path) -> None:
    """The further check does not know what is missing."""
    with Ledger.open(path) as ledger:
        ledger.append(STREAM, verdicts(N_LONG))
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 100_000] = bytes(100_000)
    path.write_bytes(content)

    first, whole = (_audited_apart(path, 0, last, PositionsOf) for last in (10, N_LONG))

    assert first.result == [*range(1, 11)]
    assert whole.result is None
    assert [each.position for each in whole.found if isinstance(each, Fault)] == [0]
