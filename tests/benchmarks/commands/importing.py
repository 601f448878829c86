"""Battles of others, taken in by the command line: in how long, how much memory, how large a file.

The file is CSV, each battle on a prompt of its own, whose id is 32 digits, as LMArena's are.
"""

import csv
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Final, NamedTuple

from tests.benchmarks.bench import Bench, say
from tests.benchmarks.commands.alone import Ended, alone, tourney
from tests.benchmarks.ratings.arena import by_popularity
from tests.benchmarks.table import Demand, Row, at_most, stated

_N_ENTRANTS: Final = 130
_N_DIGITS: Final = 32
_BYTES_A_BATTLE: Final = 2 + 2 + 1 + _N_DIGITS + 1  # both sides, who won, a line for the prompt
_WINNERS: Final[Mapping[float, str]] = MappingProxyType(
    {1.0: "model_a", 0.0: "model_b", 0.5: "tie"}
)


class _Imported(NamedTuple):
    ended: Ended
    n_bytes: int  # of the ledger's file


def measure(bench: Bench) -> Iterator[Row]:
    """Import a file of an arena's size, time and again, and a large one."""
    yield from _imported(bench, bench.scaled(100_000), at_most(3), n_rounds=bench.n_rounds)
    yield from _imported(bench, bench.scaled(2_000_000), at_most(60), n_rounds=1)


def _imported(bench: Bench, n_battles: int, most_s: Demand, *, n_rounds: int) -> Iterator[Row]:
    file = bench.folder / "battles.csv"
    say(f"writing {n_battles:,} battles")
    _write(file, n_battles)
    rounds = [_import(file) for _ in range(n_rounds)]
    took_s = median(ended.took_s for ended, _ in rounds)
    peak_mb = max(ended.peak_mb for ended, _ in rounds)
    growth = rounds[0].n_bytes / (n_battles * _BYTES_A_BATTLE)
    yield stated(f"import of {n_battles:,} battles", f"{took_s:.1f} s", took_s, most_s)
    yield stated("its memory at most", f"{peak_mb:,.0f} MB", peak_mb, at_most(1_000))
    yield stated("its file, to the columns in it", f"{growth:.2f}", growth, at_most(1.2))
    file.unlink()


def _import(file: Path) -> _Imported:
    """Import into a new ledger, which is removed."""
    with TemporaryDirectory(dir=file.parent) as folder:
        ledger = Path(folder) / "tournament.db"
        command = tourney("import", "battles", str(file), "--ledger", str(ledger))
        return _Imported(alone(command, file.parent), ledger.stat().st_size)


def _write(path: Path, n_battles: int) -> None:
    battles = by_popularity(_N_ENTRANTS, n_battles)
    columns = (battles.a.tolist(), battles.b.tolist(), battles.score.tolist())
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("model_a", "model_b", "winner", "question_id"))
        rows.writerows(
            (battles.entrants[a], battles.entrants[b], _WINNERS[score], _prompt(number))
            for number, (a, b, score) in enumerate(zip(*columns, strict=True))
        )


def _prompt(number: int) -> str:
    return sha256(str(number).encode()).hexdigest()[:_N_DIGITS]
