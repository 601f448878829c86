"""Every result as it is shown, and the names by which scripts read it."""

from pathlib import Path

import pytest

from tests.support.command_line.launching import launch
from tests.support.goldens.results import FOLDER, RESULTS, lay_out, shown


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder with a tournament that has every kind of result."""
    return lay_out(tmp_path_factory.mktemp("results"))


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_is_what_was_agreed_on(
    folder: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`python -m tests.support.goldens.results` writes them."""
    monkeypatch.delenv("COLUMNS", raising=False)  # a pipe has no width
    assert shown(folder, name) == (FOLDER / f"{name}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["latex", "vega"])
def test_a_format_that_is_no_more_names_what_has_the_same_numbers(folder: Path, name: str) -> None:
    """A script of last year fails with a remedy."""
    done = launch(folder, "project", "elo", "--format", name)

    assert done.returncode == 2
    assert f"{name!r} is not one of 'table', 'json'" in done.stderr.replace("\n", " ")
    assert "--json has the same numbers" in done.stderr
