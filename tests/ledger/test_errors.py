"""Errors say what is wrong, wherever they are raised."""

import pickle
from pathlib import Path

import pytest

from ledger.errors import CannotRead, StaleVersion, TourneyError, UnreadableEvent


@pytest.mark.parametrize(
    "error",
    [
        UnreadableEvent(3, "unknown type"),
        CannotRead(Path("x.db"), "it is damaged"),
        StaleVersion("cup", expected=1, actual=2),
    ],
)
def test_an_error_crosses_from_one_process_to_another(error: TourneyError) -> None:
    """Its message is not what it is made of: else the first process would end in a traceback."""
    found = pickle.loads(pickle.dumps(error))  # noqa: S301  # ours

    assert type(found) is type(error)
    assert (str(found), vars(found)) == (str(error), vars(error))


def test_what_sqlite_quotes_is_said_in_one_line() -> None:
    """It quotes a view whole where a letter of it is damaged, and a backup says what was found."""
    error = CannotRead(Path("x.db"), "cannot decode 'CREATE VIEW a AS\nSELECT\n  1'")

    assert error.why == "cannot decode 'CREATE VIEW a AS SELECT 1'"
    assert str(error).startswith(f"cannot read x.db: {error.why}; ")
