"""Who judges: the tables that doctor looks at for keys."""

from pathlib import Path

import pytest

from commands.errors import ConfigurationError
from commands.where_judged import providers


def said(folder: Path, text: str, **environ: str) -> dict[str, str]:
    """Write settings and return who judges by them."""
    path = folder / "tournament.toml"
    path.write_text(text, encoding="utf-8")
    return providers(path, environ)


def test_settings_that_name_no_judge_have_the_offline_one(tmp_path: Path) -> None:
    """The quickstart must not be told to find a key."""
    assert said(tmp_path, "[tournament]") == {"[judge]": "reference"}


def test_every_judge_is_named_by_its_table(tmp_path: Path) -> None:
    """The rest of the settings may be under repair."""
    text = '[judge]\nprovider = "hf"\neffort = 7\n[[jury]]\nid = "ann"\nprovider = "anthropic"'

    assert said(tmp_path, text) == {"[judge]": "hf", "[[jury]] 'ann'": "anthropic"}


def test_the_environment_overrules_the_judge(tmp_path: Path) -> None:
    """As it does for a run."""
    assert said(tmp_path, "", TOURNEY_JUDGE_PROVIDER="anthropic") == {"[judge]": "anthropic"}


def test_a_provider_that_is_no_text_is_refused(tmp_path: Path) -> None:
    """With its place, for who put it there."""
    with pytest.raises(ConfigurationError, match=r"tournament\.toml: judge\.provider: "):
        said(tmp_path, "[judge]\nprovider = 7")
