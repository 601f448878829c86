"""What `project elo` rates by: the recorded settings, but for what is chosen."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from commands.reading.parameters import elo_parameters, settings_of
from ledger.events.registration import TournamentOpened
from ledger.events.registry import Event
from ledger.store import Ledger
from projections.tournament.state import Tournament
from tests.support.builders.events import STREAM, opened
from tests.support.command_line.launching import launch
from tests.support.specification import after


def configured_opening(elo: str) -> tuple[Event, ...]:
    """Return the events that open a tournament with these settings of Elo."""
    opening, *others = opened()
    assert isinstance(opening, TournamentOpened)
    return (replace(opening, configuration=f'{{"elo": {elo}}}'), *others)


def configured(elo: str) -> Tournament:
    """Return a tournament that was opened with these settings of Elo."""
    return after(*configured_opening(elo))


def test_a_tournament_opened_before_there_were_intervals_has_them() -> None:
    """An interval is a projection, and free: no old ledger needs to go without."""
    assert elo_parameters(settings_of(configured("{}"), "elo"), {}).bootstraps == 400


def test_what_is_chosen_goes_before_what_is_recorded() -> None:
    """As every option does; what is not chosen stays as recorded."""
    state = configured('{"bootstraps": 50, "k": 24}')

    found = elo_parameters(
        settings_of(state, "elo"), {"bootstraps": 0, "k": None, "k_sweep": (1, 4)}
    )

    assert (found.bootstraps, found.k, found.k_sweep) == (0, 24.0, (1.0, 4.0))


def test_settings_that_no_run_recorded_yet_change_no_rating(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who reads a ledger alone, elsewhere or later, must get the same; the help says so."""
    with Ledger.open(tmp_path / "tournament.db") as ledger:
        ledger.append(STREAM, configured_opening('{"k": 24}'))
    (tmp_path / "tournament.toml").write_text(f'[tournament]\nid = "{STREAM}"\n[elo]\nk = 8\n')
    monkeypatch.setenv("TOURNEY_ELO_K", "32")

    shown = launch(tmp_path, "project", "elo")
    help_text = launch(tmp_path, "project", "elo", "--help").stdout

    assert "Elo, K = 24" in shown.stdout, shown.stderr
    assert "[elo] and TOURNEY_ELO_K change nothing here until the next" in " ".join(
        help_text.split()
    )
