"""A row as it is stored."""

from itertools import pairwise

from ledger.chain import leaf_hash, link_hash
from ledger.store import Ledger
from tests.builders import STREAM, opened


def test_a_rows_leaf_is_the_hash_of_its_entry(ledger: Ledger) -> None:
    """Whoever exports or merges rows checks them by what they hold, and by nothing else."""
    ledger.append(STREAM, opened())

    rows = list(ledger.rows())

    assert [row.leaf for row in rows] == [leaf_hash(row.entry) for row in rows]
    assert [link_hash(a.chain, b.leaf) for a, b in pairwise(rows)] == [
        row.chain for row in rows[1:]
    ]


def test_a_row_is_decoded_as_the_ledger_reads_it(ledger: Ledger) -> None:
    """`tourney show` and the standings speak of the same events."""
    ledger.append(STREAM, opened())

    decoded = [row.decode() for row in ledger.rows()]

    assert decoded == list(ledger.read())
