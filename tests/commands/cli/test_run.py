"""`tourney demo` needs PyTorch for weights alone, and opens its report at a desktop."""

import os
import sys
from itertools import islice
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from commands.cli.run import demo
from commands.errors import MissingExtra
from commands.settings.inputs import shipped_data
from tests.support.command_line.terminal import run_at_terminal


def test_without_pytorch_no_demo_is_laid_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second try, with it, finds the way as clear as the first."""
    monkeypatch.setitem(sys.modules, "torch", None)

    with pytest.raises(MissingExtra, match=r"'torch' is not installed; pip install .*\[models\]"):
        demo(tmp_path / "demo", weights=True)

    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(("names", "opened"), [(("DISPLAY",), True), (("DISPLAY", "CI"), False)])
def test_the_report_is_opened_at_a_desktop_alone(
    tmp_path: Path, names: tuple[str, ...], opened: bool
) -> None:
    """A browser would take the terminal of who has no desktop, and hold up a CI for ever."""
    with (shipped_data() / "bank.jsonl").open(encoding="utf-8") as prompts:
        (tmp_path / "bank.jsonl").write_text("".join(islice(prompts, 2)), encoding="utf-8")
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/address\n', encoding="utf-8")
    browser.chmod(0o755)
    hidden = {"DISPLAY", "WAYLAND_DISPLAY", "CI"}
    kept = {name: value for name, value in os.environ.items() if name not in hidden}
    there = {"BROWSER": str(browser), "TOURNEY_PROMPTS_BANK": str(tmp_path / "bank.jsonl")}

    environment = kept | there | dict.fromkeys(names, ":0")

    done = run_at_terminal(tmp_path, ("demo", "look"), environment, answer=None)

    address = tmp_path / "address"
    assert done.code == 0, done.after
    assert "report.html" in done.after
    assert address.exists() == opened
    assert not opened or Path(unquote(urlsplit(address.read_text().strip()).path)).is_file()
