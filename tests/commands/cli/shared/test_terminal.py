"""Consent at a terminal: the question stands there whole until it is answered, in any way."""

import io
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from rich.console import Console

from commands.cli.app import INTERRUPTED
from commands.cli.shared.terminal import console, progress_bars, progress_on_stderr
from tests.providers.anthropic.server import FakeAnthropic
from tests.providers.openai import MODEL, PRICES, FakeOpenAI, Said
from tests.support.builders.commands import lay_out
from tests.support.command_line import paid
from tests.support.command_line.terminal import Answered, run_at_terminal

N_QUERIES: Final = 36  # 1 prompt, 3 dimensions, 6 pairs, both orders
CTRL_C: Final = b"\x03"
ESCAPE: Final = "\x1b"
_ESCAPES: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
SERVED: Final = """\
[tournament]
id = "served"

[[entrants]]
id = "greedy"
loader = "endpoint"
model = "{entrant}"
base_url = "{url}"

[[entrants]]
id = "sampled"
loader = "endpoint"
model = "{entrant}"
base_url = "{url}"
temperature = 0.7

[[rubrics]]
dimension = "factuality"
path = "rubrics/factuality.md"

[judge]
provider = "endpoint"
base_url = "{url}"
model = "{judge}"
prices = "prices.toml"
"""


@pytest.fixture
def fake() -> Iterator[FakeAnthropic]:
    """Give a provider whose batches end at the first look."""
    with paid.provider() as fake:
        yield fake


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Give a tournament of one prompt, answered by four entrants."""
    place = paid.lay_out(tmp_path / "paid", n_prompts=1)
    paid.record_responses(place)
    return place


def question_of(done: Answered) -> str:
    """Return the line that is on the terminal when the answer is typed, and all that follows."""
    return done.before[done.before.index("Submit ") :]


@pytest.mark.parametrize(
    ("answer", "code", "n_paid"),
    [
        (b"y\n", 0, N_QUERIES),
        (b"n\n", 5, 0),
        (b"\x04", 5, 0),
        (CTRL_C, 130, 0),
    ],
    ids=["yes", "no", "Ctrl-D", "Ctrl-C"],
)
def test_at_a_terminal_the_dollars_are_in_the_question(
    folder: Path, fake: FakeAnthropic, answer: bytes, code: int, n_paid: int
) -> None:
    """Whoever agrees knows to what, and every way to say no has the exit code that is promised."""
    words = ("apply", "judge", "--max-usd", "5")
    environment = paid.environment(fake.url)
    done = run_at_terminal(folder, words, environment, answer=answer, thinks=answer == CTRL_C)

    assert done.code == code, done
    question = question_of(done)
    assert question.startswith(f"Submit {N_QUERIES} requests to claude-opus-5-5 for about $")
    assert question.endswith("cap $5.00)? [y/N]: ")
    assert ESCAPE not in question
    assert "Aborted!" not in done.after
    assert len(fake.bill().paid) == n_paid
    if code == INTERRUPTED:  # nothing was sent, so no batch is spoken of
        assert done.after.splitlines()[-1].startswith("interrupted: "), done
        assert "batch" not in done.after
    if code == 0:  # glued to the end of a bar, nobody would read it
        ends = [line for line in done.after.splitlines() if " ended: " in line]
        assert len(ends) == 2, done  # the second after a bar was there
        assert all(_ESCAPES.sub("", line).startswith("batch ") for line in ends), done


def test_no_bar_is_painted_over_a_question(tmp_path: Path) -> None:
    """In a run, the judge is asked about when responses have been counted on the screen.

    Here entrants and judge are at a server, of whose models one has a price.
    """
    place = lay_out(tmp_path)
    with FakeOpenAI(lambda body: Said(f"Hot: {body['temperature']}\nVERDICT: A")) as server:
        server.traffic.models = None
        text = SERVED.format(url=server.url, entrant="free", judge=MODEL)
        (place / "tournament.toml").write_text(text, encoding="utf-8")
        (place / "prices.toml").write_text(PRICES, encoding="utf-8")
        done = run_at_terminal(place, ("run",), os.environ, answer=b"y\n", thinks=True)

    assert done.code == 0, done
    assert "responses" in done.before.partition("Submit ")[0]
    assert ESCAPE not in question_of(done)
    assert "verdicts" in done.after


def test_with_no_standard_input_nobody_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python has None in its place."""
    monkeypatch.setattr(sys, "stdin", None)

    with console() as found:
        assert found.confirm is None


def test_a_bar_tells_phase_total_rate_and_time_left_on_eighty_columns() -> None:
    """Whoever waits wants to know for how long."""
    now = [0.0]
    console = Console(width=80, force_terminal=True, color_system=None, file=io.StringIO())
    bars = progress_bars(console, lambda: now[0])
    bar = bars.add_task("verdicts, attempt 2", total=5148)
    for done in (100, 200, 300):
        now[0] += 10
        bars.update(bar, completed=done)

    console.print(bars.get_renderable())

    assert isinstance(console.file, io.StringIO)
    (line,) = console.file.getvalue().splitlines()
    assert line.startswith("verdicts, attempt 2 ")
    assert "300/5148" in line
    assert "10.0/s" in line
    assert "08:05" in line


def test_of_nothing_all_is_done(capsys: pytest.CaptureFixture[str]) -> None:
    """An audit of a ledger without events has no tenth to tell of, and ends well."""
    with progress_on_stderr() as tell:
        tell("events", 0, 0)

    assert capsys.readouterr().err == "events: 0 of 0\n"
