"""A day without dashes is a number, and a number is a position."""

import pytest

from commands.cli.place import position_at
from commands.errors import ConfigurationError
from ledger.store import Ledger
from tests.builders import STREAM
from tests.ledger.facts import verdicts


def test_a_day_without_dashes_is_not_taken_for_the_end(ledger: Ledger) -> None:
    """Everything would be shown as of a day on which half of it was not known."""
    ledger.append(STREAM, verdicts(3))

    with pytest.raises(ConfigurationError, match="the last is 3; write 2026-04-27"):
        position_at(ledger, "20260427", option="--as-of")


def test_a_number_behind_the_end_that_is_no_day_is_the_end(ledger: Ledger) -> None:
    """A script that counts on may ask for more than there is."""
    ledger.append(STREAM, verdicts(3))

    assert position_at(ledger, "99999999", option="--as-of") == 3
