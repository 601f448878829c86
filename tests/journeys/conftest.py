"""A small tournament on the quickstart's weights, and the command line as a user calls it."""

from functools import partial
from pathlib import Path

import pytest

from tests.support.command_line.launching import Tourney, launch, lay_out_small


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Give a folder with the quickstart on its first eight prompts, cut to short responses."""
    return lay_out_small(tmp_path / "quickstart")


@pytest.fixture
def tourney(place: Path) -> Tourney:
    """Give a function that runs the command line in the folder, without a terminal."""
    return partial(launch, place)
