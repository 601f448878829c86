"""Which prices are meant: the one key that adding up what was spent looks at."""

from pathlib import Path

import pytest

from commands.errors import ConfigurationError
from commands.where_priced import own_prices


def priced(folder: Path, text: str, **environ: str) -> Path | None:
    """Write settings and return the price table that they name."""
    path = folder / "tournament.toml"
    path.write_text(text, encoding="utf-8")
    return own_prices(path, environ)


def test_most_settings_name_no_prices(tmp_path: Path) -> None:
    """The shipped ones are meant then."""
    assert priced(tmp_path, '[tournament]\nid = "x"') is None
    assert priced(tmp_path, '[judge]\nprovider = "reference"') is None


def test_prices_lie_beside_the_settings(tmp_path: Path) -> None:
    """Whatever folder the command was called in, and whatever else is under repair."""
    text = '[judge]\nprices = "mine.toml"\nretries = "many"\n[elo]\nk = "much"'

    assert priced(tmp_path, text) == tmp_path / "mine.toml"


def test_the_environment_overrules_the_file(tmp_path: Path) -> None:
    """As it does for every other setting."""
    text = '[judge]\nprices = "mine.toml"'

    assert priced(tmp_path, text, TOURNEY_JUDGE_PRICES="7") == tmp_path / "7"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("[judge]\nprices = 3", r"tournament\.toml: judge\.prices: Expected `?str"),
        ("judge = 3", r"tournament\.toml: judge: Expected `?object"),
    ],
)
def test_prices_that_are_no_file_are_told(tmp_path: Path, text: str, fault: str) -> None:
    """Shipped prices in their place would be a guess."""
    with pytest.raises(ConfigurationError, match=fault):
        priced(tmp_path, text)
