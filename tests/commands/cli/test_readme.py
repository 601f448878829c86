"""The README's session is what a newcomer sees."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands.cli.conftest import launch

README = Path(__file__).parents[3] / "README.md"


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the folder of the whole demonstration, as `tourney demo` leaves it."""
    place = tmp_path_factory.mktemp("newcomer")
    done = launch(place, "demo", "tourney-demo")
    assert done.returncode == 0, done.stderr
    return place / "tourney-demo"


def test_the_session_of_the_readme_is_what_happens(demo: Path) -> None:
    """An example that has drifted from the program misleads everybody who starts."""
    session = session_of(README.read_text(encoding="utf-8"))

    seen = {command: output_of(command, demo) for command in session}

    assert session
    assert {command: masked(output) for command, output in seen.items()} == {
        command: masked(output) for command, output in session.items()
    }


def session_of(readme: str) -> dict[str, str]:
    """Return the commands of the marked block and what is shown below each."""
    block = re.search(r"<!-- session: .*?```console\n(.*?)```", readme, re.DOTALL)
    assert block is not None
    parts = re.split(r"^\$ (.*)\n", block[1], flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def output_of(command: str, folder: Path) -> str:
    """Run a line as a shell would, with this environment's programs on the path."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", command],  # noqa: S607  # a shell, wherever it is
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def masked(text: str) -> list[str]:
    """Return the lines without what differs from machine to machine: figures and widths."""
    lines = (re.sub(r"[0-9a-f]{64}|[\d.]+", "0", line) for line in text.splitlines())
    return [" ".join(re.sub(r"[━─]+", "─", line).split()) for line in lines if line.strip()]
