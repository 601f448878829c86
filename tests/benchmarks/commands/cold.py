"""`tourney project elo` from a cold start, on a tournament of ten thousand events.

Four entrants, three dimensions; every match was decided, tied, or answered inconsistently.
"""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Final, get_args

from msgspec.structs import replace

from ledger.events.judging import Outcome
from ledger.identity import StreamId
from ledger.store import Ledger
from tests.benchmarks.bench import Bench
from tests.benchmarks.commands.alone import alone, tourney
from tests.benchmarks.rounds import interleaved
from tests.benchmarks.table import Row, at_most, stated
from tests.support.builders.events import entrant, known, opened, prompt, rubric
from tests.support.builders.worlds import answered, become, matches_of

_N_EVENTS: Final = 10_000
_EVENTS_A_PROMPT: Final = 1 + 4 + 3 * 6 * 3  # itself, answers; verdicts and outcome of each match


def measure(bench: Bench) -> Iterator[Row]:
    """Time the whole command."""
    path = bench.folder / "cold.ledger"
    n_events = _play(path, bench.scaled(_N_EVENTS, at_least=_EVENTS_A_PROMPT) // _EVENTS_A_PROMPT)
    command = tourney("project", "elo", "--ledger", str(path))
    times = interleaved(bench.n_rounds, {"elo": lambda: alone(command, bench.folder).took_s})
    took_s = times.median("elo")
    name = f"`tourney project elo` on {n_events:,} events, from a cold start"
    yield stated(name, f"{took_s:.2f} s", took_s, at_most(0.5))


def _play(path: Path, n_prompts: int) -> int:
    """Record a tournament, and return how many events it has."""
    opening, *registered = opened(
        prompts=[prompt(f"p{n:03}") for n in range(n_prompts)],
        entrants=[entrant(name) for name in ("base", "secure", "robust", "jury")],
        rubrics=[rubric(name) for name in ("factuality", "calibration", "clinical_utility")],
    )
    configured = replace(opening, configuration='{"elo": {}}')
    events = answered([configured, *registered])
    rng = random.Random(7)  # noqa: S311  # outcomes, not secrets
    fates = get_args(Outcome)
    ended = (become(match, rng.choice(fates)) for match in matches_of(known(*events)))
    with Ledger.open(path) as ledger:
        ledger.append(StreamId("main"), [*events, *(event for each in ended for event in each)])
        return ledger.head.position
