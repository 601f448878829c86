"""Rows and times as the ledger keeps them."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.recorded import microseconds, moment


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
