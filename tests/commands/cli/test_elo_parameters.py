"""What `project elo` rates by: the recorded settings, but for what is chosen."""

import pytest
from msgspec.structs import replace

from commands.cli.elo import elo_parameters
from commands.errors import ConfigurationError
from ledger.events.registration import TournamentOpened
from projections.tournament import Tournament
from tests.builders import opened
from tests.specification import after


def configured(elo: str) -> Tournament:
    """Return a tournament that was opened with these settings of Elo."""
    opening, *others = opened()
    assert isinstance(opening, TournamentOpened)
    return after(replace(opening, configuration=f'{{"elo": {elo}}}'), *others)


def test_a_tournament_opened_before_there_were_intervals_has_them() -> None:
    """An interval is a projection, and free: no old ledger needs to go without."""
    assert elo_parameters(configured("{}"), {}, "").bootstraps == 400


def test_what_is_chosen_goes_before_what_is_recorded() -> None:
    """As every option does; what is not chosen stays as recorded."""
    state = configured('{"bootstraps": 50, "k": 24}')

    found = elo_parameters(state, {"bootstraps": 0, "k": None}, "1,4")

    assert (found.bootstraps, found.k, found.k_sweep) == (0, 24.0, (1.0, 4.0))


def test_an_option_out_of_range_is_named() -> None:
    """The user wrote an option, not a field of an event."""
    with pytest.raises(ConfigurationError, match=r"--bootstraps: .* >= 0"):
        elo_parameters(configured("{}"), {"bootstraps": -1}, "")
