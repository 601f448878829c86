"""What ships, and laying out the demonstration."""

from pathlib import Path

import pytest

from commands.bank import read_bank
from commands.errors import ConfigurationError
from commands.settings_file import read_settings
from commands.shipped import lay_out_demo, shipped_data


def names(folder: Path) -> set[str]:
    """Return the files directly in a folder."""
    return {path.name for path in folder.iterdir() if path.is_file()}


def test_the_demonstration_is_a_tournament_that_can_be_run(tmp_path: Path) -> None:
    """Its settings name what was laid out beside them."""
    lay_out_demo(tmp_path / "demo")

    settings = read_settings(tmp_path / "demo" / "tournament.toml", {})

    assert len(read_bank(tmp_path / "demo" / settings.prompts.bank)) == 143
    assert all((tmp_path / "demo" / rubric.path).is_file() for rubric in settings.rubrics)


def test_what_the_weights_were_trained_on_is_not_laid_out(tmp_path: Path) -> None:
    """A user who runs the demonstration has no use for it."""
    lay_out_demo(tmp_path / "demo")

    assert names(tmp_path / "demo") == {"tournament.toml", "bank.jsonl"}
    assert "train.py" in names(shipped_data() / "quickstart")


def test_a_tournament_that_is_there_is_left_alone(tmp_path: Path) -> None:
    """A second `tourney demo` goes on with the first one's ledger."""
    (tmp_path / "tournament.toml").write_text("mine", encoding="utf-8")

    lay_out_demo(tmp_path)

    assert names(tmp_path) == {"tournament.toml"}


def test_an_empty_folder_may_be_filled(tmp_path: Path) -> None:
    """Users make a folder first and go into it."""
    lay_out_demo(tmp_path)

    assert "tournament.toml" in names(tmp_path)


def test_a_folder_of_other_files_is_refused(tmp_path: Path) -> None:
    """Nobody wants a tournament among their photographs."""
    (tmp_path / "photograph.jpg").touch()

    with pytest.raises(ConfigurationError, match="is there and is no demo; name a new folder"):
        lay_out_demo(tmp_path)

    assert names(tmp_path) == {"photograph.jpg"}
