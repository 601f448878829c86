"""`tourney demo` needs PyTorch for weights alone, and ends with where its report is."""

import sys
from itertools import islice
from pathlib import Path

import pytest

from commands.cli.run import demo
from commands.errors import MissingExtra
from commands.settings.inputs import shipped_data
from tests.support.command_line.launching import launch


def test_without_pytorch_no_demo_is_laid_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second try, with it, finds the way as clear as the first."""
    monkeypatch.setitem(sys.modules, "torch", None)

    with pytest.raises(MissingExtra, match=r"'torch' is not installed; pip install .*\[models\]"):
        demo(tmp_path / "demo", weights=True)

    assert not [*tmp_path.iterdir()]


def test_the_demo_ends_with_where_its_report_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody wants to look for it among the lines above the ratings; a browser is not begun."""
    with (shipped_data() / "bank.jsonl").open(encoding="utf-8") as prompts:
        (tmp_path / "bank.jsonl").write_text("".join(islice(prompts, 2)), encoding="utf-8")
    monkeypatch.setenv("TOURNEY_PROMPTS_BANK", str(tmp_path / "bank.jsonl"))

    done = launch(tmp_path, "demo", "look")

    assert done.returncode == 0, done.stderr
    said, _, report = done.stderr.splitlines()[-1].partition(": ")
    assert said == "Or open the report in a browser"
    assert (tmp_path / report).is_file()
