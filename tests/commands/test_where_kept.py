"""Where a tournament is kept: the one section that reading commands look at."""

from pathlib import Path

import pytest

from commands.errors import ConfigurationError
from commands.where_kept import Kept, where_kept


def kept(folder: Path, text: str, **environ: str) -> Kept:
    """Write settings and return where they keep the tournament."""
    path = folder / "tournament.toml"
    path.write_text(text, encoding="utf-8")
    return where_kept(path, environ)


def test_a_ledger_has_its_usual_place(tmp_path: Path) -> None:
    """Most settings name the tournament only."""
    assert kept(tmp_path, '[tournament]\nid = "x"') == Kept("x", "tournament.db")


def test_other_sections_may_be_under_repair(tmp_path: Path) -> None:
    """Standings are looked at while somebody edits the entrants of the next run."""
    text = '[tournament]\nid = "x"\nledger = "y.db"\n[elo]\nk = "much"\n[[entrants]]\n'

    assert kept(tmp_path, text) == Kept("x", "y.db")


def test_the_environment_overrules_the_file(tmp_path: Path) -> None:
    """As it does for every other setting; a ledger named 7 is a name all the same."""
    environ = {
        "TOURNEY_TOURNAMENT_LEDGER": "7",
        "TOURNEY_TOURNAMENT_NETWORK_LEDGER": "true",
    }

    assert kept(tmp_path, '[tournament]\nid = "x"', **environ) == Kept("x", "7", True)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("[tournament]\nledger = 3", r"tournament\.toml:2: 'tournament\.ledger': Expected str"),
        ("", r"tournament\.toml:1: \[tournament\]: Object missing required field id"),
        ("[tournament", r"tournament\.toml: not TOML"),
        ("tournament = 3", r"tournament\.toml:1: 'tournament'"),
        ('[[tournament]]\nid = "x"', r"tournament\.toml:1: 'tournament'"),
    ],
)
def test_a_section_that_is_wrong_is_told_with_its_line(
    tmp_path: Path, text: str, fault: str
) -> None:
    """The user is in the editor already."""
    text = text if "ledger" not in text else f'{text}\nid = "x"'

    with pytest.raises(ConfigurationError, match=fault):
        kept(tmp_path, text)
