"""Measure, and write what came out: `python -m tests.benchmarks [NAME ...]`."""

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests.benchmarks.bench import Bench, say
from tests.benchmarks.suite import BENCHMARKS
from tests.benchmarks.table import machine, renewed, section

_TABLE: Final = Path(__file__).parents[2] / "data" / "benchmarks.md"


def main() -> None:
    """Run the benchmarks that are named, or all; write each one's section when it is done."""
    options = _options()
    with TemporaryDirectory(dir=options.folder, prefix="tourney-bench-") as folder:
        bench = Bench(Path(folder), options.scale, options.rounds)
        facts = machine(bench.folder)  # before there is any load of ours
        for name in options.names or BENCHMARKS:
            _write(options.table, name, _measured(bench, name, facts))
    say(f"written: {options.table}")


def _measured(bench: Bench, name: str, facts: Mapping[str, str]) -> str:
    """Run a benchmark, and return its section."""
    say(name)
    rows = []
    for row in BENCHMARKS[name](bench):
        say(f"  {' | '.join(row)}")
        rows.append(row)
    conditions = {"rounds": str(bench.n_rounds), "scale": f"{bench.scale:g}"}
    return section({**facts, **conditions}, rows)


def _write(table: Path, name: str, content: str) -> None:
    before = table.read_text(encoding="utf-8") if table.exists() else ""
    table.write_text(renewed(before, name, content, order=[*BENCHMARKS]), encoding="utf-8")


def _options() -> Namespace:
    parser = ArgumentParser(prog="python -m tests.benchmarks", description="Measure tourney.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BENCHMARKS)}")
    parser.add_argument("--folder", type=Path, help="on the disk to measure; default: temporary")
    parser.add_argument("--scale", type=float, default=1.0, help="of all sizes; 1 is what is asked")
    parser.add_argument("--rounds", type=int, default=5, help="of what is compared, in turn")
    parser.add_argument("--table", type=Path, default=_TABLE, help="the file to renew")
    options = parser.parse_args()
    if unknown := set(options.names) - set(BENCHMARKS):
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}")
    return options


if __name__ == "__main__":
    main()
