"""A chain that is audited in stretches has the faults of one that is audited whole."""

from pathlib import Path

import pytest

from ledger.auditing.audit import audit_chain
from ledger.auditing.stretches import Deaf, Fault, _audited_apart, audited_stretches
from ledger.reader import Columns
from ledger.store import Ledger
from tests.ledger.auditing.test_audit import CONTENT, SWAP, TAMPERED
from tests.support.builders.events import N_FILED, STREAM, verdicts
from tests.support.faults.hostile import tamper

N_LONG = 2_005


class Witness:
    """Tells which positions it heard."""

    def __init__(self) -> None:
        self._heard: list[int] = []

    def hear(self, row: Columns) -> None:
        """Take note of a row."""
        self._heard.append(row[0])

    def end(self) -> list[int]:
        """Return all positions."""
        return self._heard


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
        whole = audit_chain(ledger, head).faults

    stretches = [_audited_apart(filed, *each, Deaf) for each in ((0, cut), (cut, head.position))]

    apart = [found for each in stretches for found in each.found]
    assert set(whole) <= set(apart)
    assert bool(whole) == bool(apart)
    assert len(set(apart)) == len(apart)


@pytest.mark.parametrize("is_long", [True, False])
def test_every_row_is_heard_once_and_in_order(
    path: Path, monkeypatch: pytest.MonkeyPatch, *, is_long: bool
) -> None:
    """By several processes, or by this one; whatever is wrong with it."""
    monkeypatch.setattr("ledger.auditing.stretches._SHORT", 500 if is_long else N_LONG)
    with Ledger.open(path) as ledger:
        ledger.append(STREAM, verdicts(N_LONG))
    tampered = [2, N_LONG - 1, N_LONG]
    tamper(path, "UPDATE event SET leaf = zeroblob(32) WHERE position IN (2, 2004, 2005)")

    with Ledger.read_only(path) as ledger:
        stretches = [*audited_stretches(ledger, ledger.head, Witness)]
        faults = audit_chain(ledger, ledger.head).faults

    assert [at for each in stretches for at in each.heard or ()] == [*range(1, N_LONG + 1)]
    assert (len(stretches) > 1) == is_long
    assert [(at, why) for at, why in faults if why == CONTENT] == [
        (each, CONTENT) for each in tampered
    ]


def test_a_stretch_that_cannot_be_read_to_its_end_was_not_heard(path: Path) -> None:
    """Who listened does not know what is missing."""
    with Ledger.open(path) as ledger:
        ledger.append(STREAM, verdicts(N_LONG))
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 100_000] = bytes(100_000)
    path.write_bytes(content)

    first, whole = (_audited_apart(path, 0, last, Witness) for last in (10, N_LONG))

    assert first.heard == [*range(1, 11)]
    assert whole.heard is None
    assert [each.position for each in whole.found if isinstance(each, Fault)] == [0]
