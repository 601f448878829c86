"""What reading commands look up in the settings, whatever else these say."""

from pathlib import Path

import pytest

from commands.errors import ConfigurationError
from commands.settings.api_keys import ANTHROPIC_KEYS
from commands.settings.lookup import (
    TournamentLocation,
    bank_and_rubrics,
    judging_cap,
    price_file,
    servers,
    tournament_location,
)
from commands.settings.servers import DEFAULT_MODEL, Server


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


def test_an_address_that_may_hold_a_key_is_not_shown(tmp_path: Path) -> None:
    """What asks each server shows its address."""
    text = '[judge]\nprovider = "endpoint"\nbase_url = "https://h/v1?key=SECRET"\n'

    with pytest.raises(ConfigurationError, match=r"toml:3: 'judge\.base_url': must be") as caught:
        servers(written(tmp_path, text), {})

    assert "SECRET" not in str(caught.value)


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
        ("[tournament]\nledger = 3", r"tournament\.toml:2: 'tournament\.ledger': must be a text"),
        ("", r"tournament\.toml:1: \[tournament\]: 'id' is missing"),
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


def priced(folder: Path, text: str, **environ: str) -> Path | None:
    """Return the price table that settings name."""
    return price_file(written(folder, text), environ)


def test_most_settings_name_no_prices(tmp_path: Path) -> None:
    """The shipped ones are meant then."""
    assert priced(tmp_path, '[tournament]\nid = "x"') is None
    assert priced(tmp_path, '[judge]\nprovider = "reference"') is None


def test_prices_lie_beside_the_settings(tmp_path: Path) -> None:
    """Whatever folder the command was called in, and whatever else is under repair."""
    text = '[judge]\nprices = "mine.toml"\nretries = "many"\n[elo]\nk = "much"'

    assert priced(tmp_path, text) == tmp_path / "mine.toml"


def test_prices_may_lie_in_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As every path of the settings."""
    monkeypatch.setenv("HOME", "/home/me")

    assert priced(tmp_path, '[judge]\nprices = "~/mine.toml"') == Path("/home/me/mine.toml")


def test_the_environment_overrules_the_prices(tmp_path: Path) -> None:
    """As it does for every other setting."""
    text = '[judge]\nprices = "mine.toml"'

    assert priced(tmp_path, text, TOURNEY_JUDGE_PRICES="7") == tmp_path / "7"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("[judge]\nprices = 3", r"tournament\.toml:2: 'judge\.prices': must be a text"),
        ("judge = 3", r"tournament\.toml:1: 'judge' must be a table: \[judge\]"),
    ],
)
def test_prices_that_are_no_file_are_told(tmp_path: Path, text: str, fault: str) -> None:
    """Shipped prices in their place would be a guess."""
    with pytest.raises(ConfigurationError, match=fault):
        priced(tmp_path, text)


def asked(folder: Path, text: str, **environ: str) -> tuple[Server, ...]:
    """Return the servers that settings name."""
    return servers(written(folder, text), environ)


def test_settings_that_name_no_judge_have_the_offline_one(tmp_path: Path) -> None:
    """The quickstart must not be told to find a key."""
    assert asked(tmp_path, "[tournament]") == ()


def test_every_server_is_named_by_its_table(tmp_path: Path) -> None:
    """The rest of the settings may be under repair."""
    text = """
[judge]
provider = "hf"
effort = 7
[[jury]]
id = "ann"
provider = "anthropic"
model = "claude-x"
[[jury]]
id = "bob"
provider = "openai-batch"
api_key_env = "BOBS_KEY"
[[entrants]]
id = "near"
[[entrants]]
id = "far"
loader = "endpoint"
base_url = "http://far/v1"
model = "m"
"""

    assert asked(tmp_path, text) == (
        Server("[[jury]] 'ann'", True, ("claude-x",), None, "OPENAI_API_KEY", ANTHROPIC_KEYS),
        Server("[[jury]] 'bob'", False, (), None, "BOBS_KEY", ("BOBS_KEY",)),
        Server("[[entrants]] 'far'", False, ("m",), "http://far/v1", "OPENAI_API_KEY", ()),
    )


def test_the_judge_has_its_models_at_one_server(tmp_path: Path) -> None:
    """The pilot's model is asked there, too; the default is a run's."""
    text = '[judge]\nprovider = "anthropic"\npilot_model = "claude-small"'

    (server,) = asked(tmp_path, text)

    assert server.models == (DEFAULT_MODEL, "claude-small")


def test_the_environment_overrules_the_judge(tmp_path: Path) -> None:
    """As it does for a run."""
    (server,) = asked(tmp_path, "", TOURNEY_JUDGE_PROVIDER="anthropic")

    assert (server.asked, server.keys) == ("[judge]", ANTHROPIC_KEYS)


def test_the_cap_on_judging_is_a_number_or_none(tmp_path: Path) -> None:
    """A judge without a price is an obstacle only below a cap."""
    path = written(tmp_path, "[judge]\nmax_usd = 40")

    assert judging_cap(path, {}) == 40
    assert judging_cap(path, {"TOURNEY_JUDGE_MAX_USD": "3.5"}) == 3.5
    assert judging_cap(written(tmp_path, ""), {}) is None


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (
            "[judge]\nprovider = 7",
            r"tournament\.toml:2: 'judge\.provider': must be a text, not a whole number",
        ),
        (
            '[[jury]]\nid = "ann"\n\n[[jury]]\nid = "bob"\nprovider = 7',
            r"tournament\.toml:6: \[\[jury\]\] 'bob': 'provider': must be a text, not a whole",
        ),
        ("judge = 3", r"tournament\.toml:1: 'judge' must be a table: \[judge\]"),
        ("[jury]", r"tournament\.toml:1: 'jury': must be a list, not an object"),
    ],
)
def test_a_provider_that_is_no_text_is_refused(tmp_path: Path, text: str, fault: str) -> None:
    """With its place, for who put it there."""
    with pytest.raises(ConfigurationError, match=fault):
        asked(tmp_path, text)


def test_the_bank_and_the_rubrics_are_found_beside_the_settings(tmp_path: Path) -> None:
    """The bank has a usual name; what else the settings say is not read."""
    text = '[[rubrics]]\ndimension = "truth"\npath = "r/truth.md"\nmore = 1\n'

    usual = bank_and_rubrics(written(tmp_path, text), {})
    named = bank_and_rubrics(written(tmp_path, '[prompts]\nbank = "mine.jsonl"\n'), {})

    assert usual == (tmp_path / "bank.jsonl", {"truth": tmp_path / "r/truth.md"})
    assert named == (tmp_path / "mine.jsonl", {})
