"""Rows and times as the ledger keeps them."""

from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.chain import leaf_hash, link_hash
from ledger.recorded import microseconds, moment
from ledger.store import Ledger
from tests.support.builders.events import STREAM, opened


@given(at=st.datetimes(timezones=st.just(UTC)))
def test_a_time_survives_being_stored(at: datetime) -> None:
    """As-of by time compares to the microsecond, so none may be lost to floats."""
    stored = microseconds(at)

    assert moment(stored) == at


def test_times_are_stored_in_utc() -> None:
    """Two machines in two time zones write one ledger."""
    delhi = timezone(timedelta(hours=5, minutes=30))

    stored = microseconds(datetime(1970, 1, 1, 5, 30, 1, tzinfo=delhi))

    assert stored == 1_000_000
    assert moment(stored) == datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)


def test_a_time_without_a_zone_is_refused() -> None:
    """Local time would be read as UTC elsewhere; no default could be right."""
    local = datetime(2026, 4, 27, 12)  # noqa: DTZ001  # it is what the test is about

    with pytest.raises(TypeError, match="offset-naive"):
        microseconds(local)


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
