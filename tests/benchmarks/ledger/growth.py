"""How the cost of a command grows with its ledger: one tournament of 0.1, 0.3 and 1 million events.

Each command runs in a process of its own; `status` finds nothing of the ledger in memory.
"""

import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from statistics import linear_regression
from typing import Final, NamedTuple

from tests.benchmarks.bench import Bench, say
from tests.benchmarks.commands.alone import Ended, alone, tourney
from tests.benchmarks.ledger.tournaments import write_tournament
from tests.benchmarks.table import Demand, Row, at_most, stated

SIZES: Final = (100_000, 300_000, 1_000_000)  # events
_APPEND: Final = """\
import sys, time
from pathlib import Path
from ledger.events.registration import Prompt, PromptRegistered
from ledger.identity import StreamId
from ledger.store import Ledger
prompt = Prompt(prompt_id=f"p{time.time_ns()}", text="?", source="", subject="", gold_answer=None)
with Ledger.open(Path(sys.argv[1])) as ledger:
    event = PromptRegistered(prompt=prompt, digest=prompt.content_digest)
    ledger.append(StreamId("another"), [event])
"""


class _Asked(NamedTuple):
    """What a command may take on the largest ledger."""

    command: Callable[[str], list[str]]  # by the ledger's path
    took_s: Demand
    peak_mb: Demand | None


_COMMANDS: Final[Mapping[str, _Asked]] = {
    "`project elo`": _Asked(
        lambda path: tourney("project", "elo", "--tournament", "cup-001", "--ledger", path),
        at_most(25),
        at_most(1_500),
    ),
    "`verify`": _Asked(lambda path: tourney("verify", "--ledger", path), at_most(90), at_most(500)),
    "`status`, cold": _Asked(lambda path: tourney("status", "--ledger", path), at_most(1), None),
    "opening, and an append": _Asked(
        lambda path: [sys.executable, "-c", _APPEND, path], at_most(0.5), at_most(100)
    ),
}
_LARGEST_EXPONENT: Final = at_most(1.1)


def measure(bench: Bench) -> Iterator[Row]:
    """Run the commands on each ledger, once."""
    sizes = [bench.scaled(size, at_least=200) for size in SIZES]
    ended: dict[str, list[Ended]] = {name: [] for name in _COMMANDS}
    for size in sizes:
        path = _ledger(bench, size)
        for name, asked in _COMMANDS.items():
            _forget(path)
            ended[name].append(alone(asked.command(str(path)), bench.folder))
            yield _row(name, size, ended[name][-1], asked if size == sizes[-1] else None)
    for name, asked in _COMMANDS.items():
        peak_mb = ended[name][-1].peak_mb
        yield stated(f"memory of {name} at most", f"{peak_mb:,.0f} MB", peak_mb, asked.peak_mb)
        growth = _exponent(sizes, [each.took_s for each in ended[name]])
        yield stated(f"growth exponent of {name}", f"{growth:.2f}", growth, _LARGEST_EXPONENT)
        growth = _exponent(sizes, [each.processor_s for each in ended[name]])
        yield stated("of its processor time", f"{growth:.2f}", growth, _LARGEST_EXPONENT)


def _row(name: str, n_events: int, ended: Ended, asked: _Asked | None) -> Row:
    figure = (
        f"{ended.took_s:.2f} s, {ended.processor_s:.2f} s of processor time,"
        f" {ended.peak_mb:,.0f} MB"
    )
    return stated(f"{name}, {n_events:,} events", figure, ended.took_s, asked and asked.took_s)


def _ledger(bench: Bench, n_events: int) -> Path:
    path = bench.folder / f"{n_events}.ledger"
    if not path.exists():
        say(f"writing a tournament of {n_events:,} events")
        write_tournament(path, n_events)
    return path


def _forget(path: Path) -> None:
    """Let the system drop from memory what it holds of a file."""
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(file)


def _exponent(sizes: list[int], took_s: list[float]) -> float:
    """Return the slope of log time on log n: 1 where time grows as n does."""
    return linear_regression([*map(math.log, sizes)], [*map(math.log, took_s)]).slope
