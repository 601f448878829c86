"""A hundred thousand queries through the faked provider: planned, sent, received, in how much.

The command line runs in a process of its own, whose memory and time are taken at its end; the
provider is another. Responses are as long as a language model's usually are.
"""

from collections.abc import Iterator
from math import ceil
from typing import Final

from projections.tournament.matches import PlannedResponse
from tests.benchmarks.bench import Bench, say
from tests.benchmarks.commands.alone import alone, tourney
from tests.benchmarks.table import Row, at_most, stated
from tests.providers.anthropic.process import FakeProcess
from tests.support.command_line import paid

_N_QUERIES: Final = 100_000
_N_ENTRANTS: Final = 24  # 276 pairs, in both orders on three dimensions: 1,656 queries a prompt
_A_PROMPT: Final = 1_656
_SENTENCE: Final = "Start with the least invasive measure and look again within two days. "


def measure(bench: Bench) -> Iterator[Row]:
    """Time `apply judge`, and weigh it."""
    n_prompts = ceil(bench.scaled(_N_QUERIES, at_least=_A_PROMPT) / _A_PROMPT)
    n_queries = n_prompts * _A_PROMPT
    folder = paid.lay_out(bench.folder / "paid", n_prompts=n_prompts)
    entrants = tuple((f"entrant_{n:02}", paid.ENTRANTS[n % 4]) for n in range(_N_ENTRANTS))
    (folder / "tournament.toml").write_text(
        paid.settings(entrants=entrants, temperatures=True), encoding="utf-8"
    )
    say(f"recording {n_prompts * _N_ENTRANTS:,} responses")
    paid.record_responses(folder, _long_text)
    with FakeProcess() as fake:
        took_s, peak_mb, _ = alone(
            tourney("apply", "judge", "--yes"), folder, paid.environment(fake.url)
        )
    yield stated(f"{n_queries:,} judge queries in batches, all in all", f"{took_s:.0f} s", took_s)
    yield stated("its memory at most", f"{peak_mb:,.0f} MB", peak_mb, at_most(1_000))


def _long_text(cell: PlannedResponse) -> str:
    return f"{cell.entrant.entrant_id} on {cell.prompt.prompt_id}. {_SENTENCE * 16}"
