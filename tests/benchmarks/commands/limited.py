"""Five thousand judge queries to a server that takes forty a second, 64 asked at a time.

One command, a client that anybody has, and a server in a process of its own: how much of what the
server allows is used, and what is left unanswered.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from math import ceil
from pathlib import Path
from typing import Final
from urllib.request import urlopen

from ledger.store import Ledger
from tests.benchmarks.bench import Bench, say
from tests.benchmarks.commands.alone import alone, tourney
from tests.benchmarks.table import Row, at_least, at_most, stated
from tests.support.command_line import paid

_N_QUERIES: Final = 5_000
_RATE: Final = 40
_CONCURRENCY: Final = 64
_N_ENTRANTS: Final = 24
_A_PROMPT: Final = 1_656  # queries: 276 pairs, in both orders on three dimensions
_ROOT: Final = Path(__file__).parents[3]
_JUROR: Final = """
[[jury]]
id = "limited"
provider = "endpoint"
model = "limited-large"
base_url = "{url}/v1"
"""


def measure(bench: Bench) -> Iterator[Row]:
    """Run `apply judge` once, and ask the server and the ledger what came of it."""
    n_queries = bench.scaled(_N_QUERIES)
    folder = _answered(bench.folder / "limited", n_prompts=ceil(n_queries / _A_PROMPT))
    with _server() as url:
        with (folder / "tournament.toml").open("a", encoding="utf-8") as settings:
            settings.write(_JUROR.format(url=url))
        words = ("apply", "judge", "--judge", "limited", "--limit", str(n_queries))
        took_s, *_ = alone(tourney(*words), folder, paid.environment(url))
        with urlopen(f"{url}/told") as reply:  # noqa: S310  # loopback
            told = json.load(reply)
    share, n_failures = told["answered"] / told["allowed"], _n_failures(folder)
    name = f"{n_queries:,} queries at {_RATE}/s, {_CONCURRENCY} at a time"
    yield stated(name, f"{took_s:.0f} s", took_s)
    yield stated("of the allowed rate", f"{share:.1%}", share, at_least(0.9))
    yield stated("rejected, and sent again", f"{told['rejected']:,}", told["rejected"])
    yield stated("failures recorded", str(n_failures), n_failures, at_most(0))


def _answered(folder: Path, *, n_prompts: int) -> Path:
    """Lay out a tournament whose entrants have answered."""
    paid.lay_out(folder, n_prompts=n_prompts)
    entrants = tuple((f"entrant_{n:02}", paid.ENTRANTS[n % 4]) for n in range(_N_ENTRANTS))
    judge = {"concurrency": _CONCURRENCY}
    text = paid.settings(entrants=entrants, temperatures=True, judge=judge)
    (folder / "tournament.toml").write_text(text, encoding="utf-8")
    say(f"recording {n_prompts * _N_ENTRANTS:,} responses")
    paid.record_responses(folder)
    return folder


@contextmanager
def _server() -> Iterator[str]:
    command = [sys.executable, "-m", "tests.benchmarks.commands.limited_server", str(_RATE)]
    with subprocess.Popen(command, cwd=_ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.kill()


def _n_failures(folder: Path) -> int:
    with Ledger.read_only(folder / "tournament.db") as ledger:
        return sum(1 for _ in ledger.read(types=frozenset({"JudgeQueryFailed"})))
