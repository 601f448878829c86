"""Where results go: whole, or with a word that they are not, and readable by machines."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from commands.cli.shared.output import write_lines
from ledger.events.judging import VerdictReceived
from ledger.identity import StreamId
from ledger.store import Ledger
from tests.providers.anthropic.server import FakeAnthropic
from tests.support.builders.events import opened
from tests.support.command_line import paid
from tests.support.command_line.launching import launch
from tests.support.command_line.warm import begin

FULL = Path("/dev/full")
NEEDS_FULL = pytest.mark.skipif(not FULL.exists(), reason="it is Linux's: a disk without room")
NAME = "Café"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Give a ledger of one tournament, whose name is not ASCII."""
    file = tmp_path / "tournament.db"
    with Ledger.open(file) as ledger:
        ledger.append(StreamId(NAME), opened())
    return file


def launched(
    path: Path,
    *words: str,
    to: int = subprocess.PIPE,
    told: int = subprocess.PIPE,
    script: str = 'exec "$@"',
    environ: Mapping[str, str] | None = None,
) -> "subprocess.CompletedProcess[bytes]":
    """Run the command line beside a ledger, as a process that ends as processes do.

    Its streams are buffered, as most people have them: what is left is written at its end.
    """
    ours = {"PYTHONPATH": str(Path(__file__).parents[4]), "PYTHONUNBUFFERED": ""}
    return subprocess.run(
        ["/bin/sh", "-c", script, "sh", sys.executable, "-m", "tourney", *words],
        cwd=path.parent,
        env={**os.environ, **(environ or {}), **ours},
        stdout=to,
        stderr=told,
        check=False,
    )


def pipe_without_reader() -> int:
    """Return where nobody reads what is written."""
    reading, writing = os.pipe()
    os.close(reading)
    return writing


@NEEDS_FULL
@pytest.mark.parametrize(
    "words", [("status",), pytest.param(("export", "events"), marks=pytest.mark.nightly)]
)
def test_a_full_disk_ends_in_a_sentence(path: Path, words: tuple[str, ...]) -> None:
    """Who redirected a result there must hear of it: a script would go on with half of it."""
    with FULL.open("wb") as full:
        ended = launched(path, *words, to=full.fileno())

    assert ended.returncode == 1
    (said,) = ended.stderr.decode().splitlines()
    assert said.startswith("error: cannot write to standard output: [Errno 28] ")


def test_nothing_is_pretended_where_there_is_no_output(path: Path) -> None:
    """As of a shell's `>&-`: nobody saw the result."""
    ended = launched(path, "export", "events", script='exec "$@" >&-')

    assert ended.returncode == 1
    assert ended.stderr.startswith(b"error: cannot write to standard output: it is closed; ")


def test_a_closed_pipe_ends_without_a_word(path: Path) -> None:
    """`head` has seen enough."""
    writing = pipe_without_reader()

    ended = launched(path, "export", "events", to=writing)

    os.close(writing)
    assert (ended.returncode, ended.stderr) == (1, b"")


@pytest.mark.parametrize(
    "told", ["", pytest.param(str(FULL), marks=[NEEDS_FULL, pytest.mark.nightly])]
)
def test_paid_work_goes_on_where_nobody_reads_its_progress(tmp_path: Path, told: str) -> None:
    """As under `2>&1 | head`: answers under way are paid for, and would be lost."""
    place = paid.lay_out(tmp_path / "paid", n_prompts=1)
    paid.record_responses(place)

    with FakeAnthropic() as fake:
        environ = paid.environment(fake.url, TOURNEY_JUDGE_PROVIDER="anthropic")
        ended = begin(place, ("apply", "judge", "--yes"), environ, told=told).wait()
        n_paid = len(fake.bill().paid)

    with Ledger.read_only(place / "tournament.db") as ledger:
        n_read = sum(isinstance(each.event, VerdictReceived) for each in ledger.read())
    assert (ended.code, n_paid, n_read) == (0, 36, 36)


@pytest.mark.parametrize(
    "is_full", [False, pytest.param(True, marks=[NEEDS_FULL, pytest.mark.nightly])]
)
def test_an_error_that_nobody_reads_keeps_its_exit_code(path: Path, *, is_full: bool) -> None:
    """A script goes by it."""
    told = os.open(FULL, os.O_WRONLY) if is_full else pipe_without_reader()

    ended = launched(path, "project", "elo", "--as-of", "never", told=told)

    os.close(told)
    assert ended.returncode == 2


def test_machines_get_utf_8_whatever_the_locale(path: Path) -> None:
    """JSON has no other encoding, and a name of another script is no bug."""
    ended = launched(path, "status", "--json", environ={"PYTHONIOENCODING": "ascii"})

    (row,) = json.loads(ended.stdout.decode())["rows"]
    assert row["tournament"] == NAME


@pytest.mark.parametrize(("columns", "is_hidden"), [("60", True), ("", False)])
def test_a_pipe_is_as_wide_as_it_says(
    path: Path, monkeypatch: pytest.MonkeyPatch, columns: str, *, is_hidden: bool
) -> None:
    """A pager is no terminal; a script that said nothing loses no column."""
    monkeypatch.setenv("COLUMNS", columns)

    lines = launch(path.parent, "log").stdout.splitlines()

    assert ("hidden: Recorded; widen the terminal or use --json" in lines) == is_hidden
    assert ("Recorded" in lines[1]) != is_hidden


def test_no_width_is_too_odd_for_a_table(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal that does not know its size says 0."""
    monkeypatch.delenv("COLUMNS", raising=False)
    of_no_width = launch(path.parent, "log").stdout

    for columns in ("0", "2", "9" * 5_000, "²"):
        monkeypatch.setenv("COLUMNS", columns)
        done = launch(path.parent, "log")

        assert (done.returncode, done.stderr) == (0, ""), columns
        assert (done.stdout == of_no_width) is (columns != "2")


def test_lines_on_a_terminal_steer_it_no_further(
    monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """Written to a file they stay as they are: an export names its own bytes."""
    lines = ['{"text":"\x9b2J \u202eevil"}\n'.encode()]

    write_lines(lines)
    to_a_file = capfdbinary.readouterr().out
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    write_lines(lines)

    assert to_a_file == lines[0]
    assert capfdbinary.readouterr().out == b'{"text":"\\u009b2J \\u202eevil"}\n'
