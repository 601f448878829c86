"""Measure the ledger and write the table: `python -m tests.benchmarks [NAME ...]`."""

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final

from tests.benchmarks.bench import Bench, say
from tests.benchmarks.flush import flush_rate
from tests.benchmarks.machine import machine
from tests.benchmarks.row import Row
from tests.benchmarks.suite import BENCHMARKS
from tests.benchmarks.table import table

_TABLE: Final = Path(__file__).parents[2] / "data" / "benchmarks.md"
_N_FLUSHES: Final = 500


def main() -> None:
    """Run the benchmarks that are named, or all; print rows as they come."""
    options = _options()
    with TemporaryDirectory(dir=options.folder, prefix="tourney-bench-") as folder:
        bench = Bench(Path(folder), options.scale, options.rounds)
        before = machine(bench.folder)
        rows, flush_rates = _measured(bench, options.names or list(BENCHMARKS))
        facts = {**before, **_conditions(bench, flush_rates)}
    options.table.write_text(table(rows, facts), encoding="utf-8")
    say(f"written: {options.table}")


def _measured(bench: Bench, names: Sequence[str]) -> tuple[list[Row], list[float]]:
    """Return all rows, and the flush rate before each benchmark."""
    rows, flush_rates = [], []
    for name in names:
        flush_rates.append(flush_rate(bench.folder, bench.scaled(_N_FLUSHES)))
        say(f"{name} (F = {flush_rates[-1]:,.0f}/s)")
        for row in BENCHMARKS[name](bench):
            say(f"  {' | '.join(row)}")
            rows.append(row)
    return rows, flush_rates


def _conditions(bench: Bench, flush_rates: Sequence[float]) -> dict[str, str]:
    lowest, highest = min(flush_rates), max(flush_rates)
    return {
        "F": f"{median(flush_rates):,.0f}/s, between {lowest:,.0f} and {highest:,.0f}",
        "rounds": str(bench.n_rounds),
        "scale": f"{bench.scale:g}",
    }


def _options() -> Namespace:
    parser = ArgumentParser(prog="python -m tests.benchmarks", description="Measure the ledger.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BENCHMARKS)}")
    parser.add_argument("--folder", type=Path, help="on the disk to measure; default: temporary")
    parser.add_argument("--scale", type=float, default=1.0, help="of all sizes; 1 is what is asked")
    parser.add_argument("--rounds", type=int, default=5, help="of what is compared, in turn")
    parser.add_argument("--table", type=Path, default=_TABLE, help="the file to write")
    options = parser.parse_args()
    if unknown := set(options.names) - set(BENCHMARKS):
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}")
    return options


if __name__ == "__main__":
    main()
