"""The table of benchmarks in Markdown: its rows, its sections, and the machine they are of."""

import os
import platform
import shutil
import sqlite3
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from math import inf
from pathlib import Path
from typing import Final, NamedTuple


def machine(folder: Path) -> dict[str, str]:
    """Describe what was measured, and where."""
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "commit": _commit(),
        "processor": f"{_processor()}, {os.cpu_count()} cores",
        "load before": f"{os.getloadavg()[0]:.1f} (of others, 1 minute)",
        "system": f"{platform.system()} {platform.release()}",
        "Python": platform.python_version(),
        "SQLite": sqlite3.sqlite_version,
        "PyTorch": version("torch"),
        "file system": _file_system(folder),
    }


def _commit() -> str:
    """Name the commit; `-dirty` behind it says that files differed from it."""
    command = [shutil.which("git") or "git", "describe", "--always", "--dirty"]
    done = subprocess.run(
        command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or "unknown"


def _processor() -> str:
    """Ask the kernel where it tells; Python alone knows less."""
    told = Path("/proc/cpuinfo")
    lines = told.read_text(encoding="utf-8").splitlines() if told.exists() else []
    names = (line.partition(": ")[2] for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())


def _file_system(folder: Path) -> str:
    """Return the kind of the nearest mount around a folder."""
    told = Path("/proc/self/mounts")
    lines = told.read_text(encoding="utf-8").splitlines() if told.exists() else []
    kinds = {Path(place): kind for _, place, kind, *_ in map(str.split, lines)}
    where = folder.resolve()
    return next((kinds[each] for each in (where, *where.parents) if each in kinds), "unknown")


class Demand(NamedTuple):
    """Bounds that a number is to keep."""

    lowest: float
    highest: float

    def admits(self, value: float) -> bool:
        """Say whether a number keeps them."""
        return self.lowest <= value <= self.highest

    def __str__(self) -> str:
        """Return them in words."""
        if self.highest == inf:
            return f"at least {self.lowest:,}"
        if self.lowest == -inf:
            return f"at most {self.highest:,}"
        return f"{self.lowest:,} to {self.highest:,}"


class Row(NamedTuple):
    """The table's cells, in the order of its columns."""

    benchmark: str
    figure: str
    baseline: str
    ratio: str
    asked: str
    met: str


def at_least(bound: float) -> Demand:
    """Ask that a number be no smaller."""
    return Demand(bound, inf)


def at_most(bound: float) -> Demand:
    """Ask that a number be no larger."""
    return Demand(-inf, bound)


def between(lowest: float, highest: float) -> Demand:
    """Ask that a number be neither smaller nor larger."""
    return Demand(lowest, highest)


def compared(
    benchmark: str, figure: str, baseline: str, ratio: float, asked: Demand | None = None
) -> Row:
    """Return a row whose demand is on a ratio; without a demand it is there to be known."""
    return Row(benchmark, figure, baseline, f"{ratio:.2f}", *_judged(ratio, asked))


def stated(benchmark: str, figure: str, value: float, asked: Demand | None = None) -> Row:
    """Return a row whose demand is on the number itself; it has no baseline."""
    return Row(benchmark, figure, "", "", *_judged(value, asked))


def _judged(value: float, asked: Demand | None) -> tuple[str, str]:
    if asked is None:
        return "", ""
    return str(asked), "yes" if asked.admits(value) else "no"


_HEADING: Final = "\n## "
_INTRODUCTION: Final = """\
# Benchmarks

Made by `make bench`, or one by one: what is measured again takes the place of its section alone.
What is compared was measured in turn; medians over the rounds.
"""


def section(facts: Mapping[str, str], rows: Iterable[Row]) -> str:
    """Return what stands below the heading: on what was measured, and the rows."""
    return "\n".join(
        (
            "",
            "; ".join(f"{name}: {value}" for name, value in facts.items()),
            "",
            _line(name.replace("_", " ") for name in Row._fields),
            _line("---" for _ in Row._fields),
            *map(_line, rows),
            "",
        )
    )


def renewed(file: str, name: str, content: str, *, order: Sequence[str]) -> str:
    """Return a file with one section anew and the others as they were.

    Args:
        file: As it was; empty where there was none.
        name: Of the section.
        content: Of the section, below its heading.
        order: All sections that there may be; others are left out.
    """
    _, *parts = file.split(_HEADING)
    sections = {heading: below for heading, _, below in (part.partition("\n") for part in parts)}
    sections[name] = content
    return _INTRODUCTION + "".join(
        f"{_HEADING}{each}\n{sections[each]}" for each in order if each in sections
    )


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
