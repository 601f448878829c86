"""This decoder beside that of an earlier commit: tokens a second of the processor, in turn.

`git worktree add OLD 6200432`, then `python -m tests.benchmarks.heads.earlier OLD`. Each has a
process of its own, with one thread.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests.benchmarks.bench import say
from tests.benchmarks.heads.answering import per_second
from tests.benchmarks.rounds import interleaved
from tests.benchmarks.table import Row, at_least, compared

NOW: Final = Path(__file__).parents[3]
JOBS: Final = Path(__file__).with_name("jobs.py")
ASKED: Final = {
    "greedy, 32 rows": 1.0,  # on weights of 114 M parameters, as the next two
    "sampled, 32 rows": 1.3,
    "Hydra, 12 rows": 1.5,
    "demo weights, greedy": 1.0,
    "demo weights, sampled": 1.0,
    "demo weights, greedy, 32 rows": 1.0,
    "demo weights, sampled, 32 rows": 1.3,
    "demo weights, Hydra of one head": 1.0,
    "demo weights, Hydra of nine": 1.0,
}
"""How many times as fast each kind of work is to be."""


def main(earlier: str, n_rounds: str = "5") -> None:
    """Print the rows as they come."""
    for row in measure(Path(earlier).resolve(), int(n_rounds)):
        say(f"| {' | '.join(row)} |")


def measure(earlier: Path, n_rounds: int) -> Iterator[Row]:
    """Compare this checkout with another."""
    with at_work(NOW) as now, at_work(earlier) as then:
        for kind, asked in ASKED.items():
            rounds = interleaved(n_rounds, {"now": partial(now, kind), "then": partial(then, kind)})
            yield compared(
                kind,
                per_second(rounds.median("now")),
                per_second(rounds.median("then")),
                rounds.ratio("now", "then"),
                at_least(asked),
            )


@contextmanager
def at_work(checkout: Path) -> Iterator[Callable[[str], float]]:
    """Give what measures a kind of work, by the code of a checkout."""
    with (
        TemporaryDirectory() as folder,
        subprocess.Popen(
            [sys.executable, str(JOBS), folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=checkout,
            env={**os.environ, "PYTHONPATH": str(checkout), "PYTHONSAFEPATH": "1"},
        ) as process,
    ):
        yield partial(_ask, process)


def _ask(process: subprocess.Popen[str], kind: str) -> float:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{kind}\n")
    process.stdin.flush()
    return float(process.stdout.readline())


if __name__ == "__main__":
    main(*sys.argv[1:])
