"""What reading commands look up in the settings, whatever else these say."""

from pathlib import Path

import pytest

from commands.errors import ConfigurationError
from commands.settings.keys import ANTHROPIC_KEYS
from commands.settings.lookup import (
    TournamentLocation,
    judge_keys,
    tournament_location,
)


def written(folder: Path, text: str) -> Path:
    """Write settings."""
    path = folder / "tournament.toml"
    path.write_text(text, encoding="utf-8")
    return path


def kept(folder: Path, text: str, **environ: str) -> TournamentLocation:
    """Return where settings keep the tournament."""
    return tournament_location(written(folder, text), environ)


def test_a_ledger_has_its_usual_place(tmp_path: Path) -> None:
    """Most settings name the tournament only."""
    assert kept(tmp_path, '[tournament]\nid = "x"') == TournamentLocation("x", "tournament.db")


def test_other_sections_may_be_under_repair(tmp_path: Path) -> None:
    """Standings are looked at while somebody edits the entrants of the next run."""
    text = '[tournament]\nid = "x"\nledger = "y.db"\n[elo]\nk = "much"\n[[entrants]]\n'

    assert kept(tmp_path, text) == TournamentLocation("x", "y.db")


def test_the_environment_overrules_the_file(tmp_path: Path) -> None:
    """As it does for every other setting; a ledger named 7 is a name all the same."""
    environ = {
        "TOURNEY_TOURNAMENT_LEDGER": "7",
        "TOURNEY_TOURNAMENT_NETWORK_LEDGER": "true",
    }

    assert kept(tmp_path, '[tournament]\nid = "x"', **environ) == TournamentLocation("x", "7", True)


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


def judged(folder: Path, text: str, **environ: str) -> dict[str, tuple[str, ...]]:
    """Return which keys the judges of settings need."""
    return judge_keys(written(folder, text), environ)


def test_settings_that_name_no_judge_have_the_offline_one(tmp_path: Path) -> None:
    """The quickstart must not be told to find a key."""
    assert judged(tmp_path, "[tournament]") == {"[judge]": ()}


def test_every_judge_is_named_by_its_table(tmp_path: Path) -> None:
    """The rest of the settings may be under repair."""
    text = '[judge]\nprovider = "hf"\neffort = 7\n[[jury]]\nid = "ann"\nprovider = "anthropic"'
    batched = '[[jury]]\nid = "bob"\nprovider = "openai-batch"\napi_key_env = "BOBS_KEY"'

    assert judged(tmp_path, f"{text}\n{batched}") == {
        "[judge]": (),
        "[[jury]] 'ann'": ANTHROPIC_KEYS,
        "[[jury]] 'bob'": ("BOBS_KEY",),
    }


def test_the_environment_overrules_the_judge(tmp_path: Path) -> None:
    """As it does for a run."""
    assert judged(tmp_path, "", TOURNEY_JUDGE_PROVIDER="anthropic") == {"[judge]": ANTHROPIC_KEYS}


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("[judge]\nprovider = 7", r"tournament\.toml:2: 'judge\.provider': Expected str, got int"),
        (
            '[[jury]]\nid = "ann"\n\n[[jury]]\nid = "bob"\nprovider = 7',
            r"tournament\.toml:6: 'jury\.1\.provider': Expected str, got int",
        ),
        ("judge = 3", r"tournament\.toml:1: 'judge' must be a table: \[judge\]"),
        ("[jury]", r"tournament\.toml:1: 'jury': Expected array, got object"),
    ],
)
def test_a_provider_that_is_no_text_is_refused(tmp_path: Path, text: str, fault: str) -> None:
    """With its place, for who put it there."""
    with pytest.raises(ConfigurationError, match=fault):
        judged(tmp_path, text)
