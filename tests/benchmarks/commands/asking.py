"""Thousands of requests to a server that takes its time: how many answers are recorded a second.

The server is a process of its own, and answers after 50 ms whatever is asked beside. The command
line is another, whose memory is taken at its end. A rate is of what the ledger holds, from the
first request on; where the cores have other work, too, the processor time tells more.
"""

import json
import os
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ledger.store import Ledger
from tests.benchmarks.bench import Bench, say
from tests.benchmarks.commands.alone import alone, tourney
from tests.benchmarks.table import Row, at_least, at_most, stated
from tests.providers.steady import SteadyServer
from tests.support.command_line import paid

_N_ANSWERS: Final = 3_000
_AT_A_TIME: Final = 64
_LATENCY_S: Final = 0.05
_QUERIES: Final = 36  # of a prompt: 6 pairs in both orders on three dimensions
_ASKED: Final = 300.0  # answers per second
_MOST_MB: Final = 250.0
_ENTRANT: Final = """
[[entrants]]
id = "{model}"
loader = "endpoint"
model = "{model}"
base_url = "{url}"
concurrency = {at_a_time}
"""


def measure(bench: Bench) -> Iterator[Row]:
    """Time an entrant and a judge behind an endpoint."""
    n_answers = bench.scaled(_N_ANSWERS, at_least=_QUERIES)
    with SteadyServer(_LATENCY_S) as server:
        folder = _lay_out(bench.folder / "entrants", n_answers // 2)
        tables = (
            _ENTRANT.format(model=model, url=server.url, at_a_time=_AT_A_TIME)
            for model in ("one", "other")
        )
        settings = paid.settings(entrants=()) + "".join(tables)
        (folder / "tournament.toml").write_text(settings, encoding="utf-8")
        yield from _rows(folder, "generate", "RequestsSubmitted", "ResponseGenerated")

        folder = _lay_out(bench.folder / "judge", max(1, n_answers // _QUERIES))
        judge = {"base_url": server.url, "model": "steady", "concurrency": _AT_A_TIME}
        head = paid.SETTINGS.replace("anthropic-batch", "endpoint")
        settings = paid.settings(judge=judge, head=head)
        (folder / "tournament.toml").write_text(settings, encoding="utf-8")
        paid.record_responses(folder)
        yield from _rows(folder, "judge", "JudgeQuerySubmitted", "VerdictReceived")


def _lay_out(folder: Path, n_prompts: int) -> Path:
    """Lay out a tournament of so many prompts."""
    paid.lay_out(folder)
    prompts = (
        {
            "prompt_id": f"p{n}",
            "source": "made",
            "subject": "any",
            "text": f"Question {n}?",
            "gold_answer": "Rest.",
        }
        for n in range(n_prompts)
    )
    lines = "".join(f"{json.dumps(each)}\n" for each in prompts)
    (folder / "bank.jsonl").write_text(lines, encoding="utf-8")
    return folder


def _rows(folder: Path, what: str, first: str, last: str) -> Iterator[Row]:
    say(f"apply {what}")
    before_s = _cpu_s()
    peak_mb = alone(tourney("apply", what, "--yes"), folder, os.environ).peak_mb
    took_s = _cpu_s() - before_s
    with Ledger.read_only(folder / "tournament.db") as ledger:
        began = next(ledger.read(types=[first])).recorded_at
        ended = [each.recorded_at for each in ledger.read(types=[last])]
    rate = len(ended) / max((ended[-1] - began).total_seconds(), 1e-6)
    name = f"{len(ended):,} answers after 50 ms each, {_AT_A_TIME} at a time, by `apply {what}`"
    yield stated(name, f"{rate:,.0f} answers/s", rate, at_least(_ASKED))
    each_ms = 1_000 * took_s / len(ended)
    yield stated("its processor time, start and end included", f"{each_ms:.2f} ms each", each_ms)
    yield stated("its memory at most", f"{peak_mb:,.0f} MB", peak_mb, at_most(_MOST_MB))


def _cpu_s() -> float:
    """Return the processor time of the processes that were begun here, and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
