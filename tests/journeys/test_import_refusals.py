"""What cannot be imported leaves no ledger behind, and what comes through a pipe is imported."""

from functools import partial
from os import mkfifo
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from commands.cli.shared.options import or_standard_input, or_standard_output
from tests.support.command_line.launching import Tourney, launch
from tests.support.command_line.settled import fields

BATTLES = b"model_a;model_b;winner\nx;y;model_a\ny;z;tie\n"


@pytest.fixture
def tourney(tmp_path: Path) -> Tourney:
    """Give a function that runs the command line in an empty folder."""
    return partial(launch, tmp_path)


def piped(tourney: Tourney, pipe: Path, content: bytes, *words: str) -> dict[str, Any]:
    """Import what is written to a pipe, and return what is said of it."""
    mkfifo(pipe)
    writer = Thread(target=pipe.write_bytes, args=(content,))
    writer.start()
    done = tourney(*words, str(pipe), "--json")
    writer.join()
    assert done.returncode == 0, done.stderr
    return fields(done)


@pytest.mark.parametrize(
    "words",
    [
        ("import", "battles"),
        ("import", "battles", "--layout", "tap", "--name", "set"),
        ("import", "elo-ratings"),
        ("merge",),
    ],
)
@pytest.mark.parametrize("content", [b'{"a": 1}\n', None])
def test_a_wrong_or_missing_file_leaves_no_ledger(
    tmp_path: Path, tourney: Tourney, words: tuple[str, ...], content: bytes | None
) -> None:
    """Later commands would find it empty, and not say that there is none."""
    file = tmp_path / "wrong.json"
    if content is not None:
        file.write_bytes(content)
    before = [*tmp_path.iterdir()]

    done = tourney(*words, file.name)

    assert done.returncode in {1, 2}
    assert file.name in done.stderr
    assert "Traceback" not in done.stderr
    assert [*tmp_path.iterdir()] == before


def test_battles_come_through_a_pipe(tmp_path: Path, tourney: Tourney) -> None:
    """As of `<(...)`; a semicolon is a separator here, too."""
    (row,) = piped(tourney, tmp_path / "pipe", BATTLES, "import", "battles")["rows"]

    assert (row["battles"], row["entrants"], row["ties"]) == (2, 3, 1)
    assert tourney("verify").returncode == 0


def test_ratings_come_through_a_pipe(tmp_path: Path, tourney: Tourney) -> None:
    """It is opened once only: who writes to it would hear that nobody reads."""
    rating = b'{"ratings": [{"model": "x", "rating": 1000, "source": "human"}]}'

    (row,) = piped(tourney, tmp_path / "pipe", rating, "import", "elo-ratings")["rows"]

    assert row["entrant"] == "x"


def test_a_pipe_does_not_name_a_set(tmp_path: Path, tourney: Tourney) -> None:
    """A format of which each file is a set of its own asks for the name."""
    (tmp_path / "nameless").write_bytes(b"{}\n")

    done = tourney("import", "battles", "nameless", "--layout", "tap")

    assert done.returncode == 2
    assert "use --name" in done.stderr


def test_a_dash_is_standard_input_and_output() -> None:
    """As nearly everywhere."""
    file = Path("battles.csv")

    assert (or_standard_input(Path("-")), or_standard_output(Path("-"))) == (
        Path("/dev/stdin"),
        None,
    )
    assert (or_standard_input(file), or_standard_output(file)) == (file, file)
