"""Views: folded from nothing over a million events, and caught up by the last hundred."""

import shutil
from collections.abc import Iterator
from pathlib import Path

from commands.views import up_to_date
from ledger.snapshots import Snapshots
from ledger.store import Ledger
from projections.tallies import OUTCOMES, REPLIES, RESPONSES
from tests.benchmarks.bench import Bench
from tests.benchmarks.played import EVENTS_A_PAIR, append_pairs
from tests.benchmarks.rounds import interleaved, seconds
from tests.benchmarks.row import Row, at_most, compared, stated

_N_BEHIND = 100  # events


def measure(bench: Bench) -> Iterator[Row]:
    """Time one view, three in one pass, and catching up."""
    path = _copied(bench)
    times = interleaved(
        bench.n_rounds,
        {
            "one": lambda: _rebuild(path, 1),
            "three": lambda: _rebuild(path, 3),
            "behind": lambda: _catch_up(path),
        },
    )
    n_events = bench.scaled(1_000_000)
    one_s, behind_ms = times.median("one"), times.median("behind") * 1e3
    yield stated(f"one view rebuilt over {n_events:,}", f"{one_s:.2f} s", one_s, at_most(1.5))
    yield compared(
        f"three views in one pass over {n_events:,}",
        f"{times.median('three'):.2f} s",
        f"one view {one_s:.2f} s",
        times.ratio("three", "one"),
    )
    name = f"one view caught up by {_N_BEHIND} events behind {n_events:,}"
    yield stated(name, f"{behind_ms:.1f} ms", behind_ms, at_most(5))


def _copied(bench: Bench) -> Path:
    """Return a copy to append to: others read the original."""
    path = bench.folder / "views.ledger"
    shutil.copy(bench.played_ledger(), path)
    return path


def _rebuild(path: Path, n_views: int) -> float:
    path.with_name(f"{path.name}.views").unlink(missing_ok=True)
    return _fold(path, n_views)


def _catch_up(path: Path) -> float:
    _fold(path, 1)
    with Ledger.open(path) as ledger:
        first = ledger.head.position // EVENTS_A_PAIR
        append_pairs(ledger, range(first, first + _N_BEHIND // EVENTS_A_PAIR))
    return _fold(path, 1)


def _fold(path: Path, n_views: int) -> float:
    """Return how long it takes to have views as of now, the ledger being open."""
    views = (OUTCOMES, REPLIES, RESPONSES)[:n_views]
    with Ledger.read_only(path) as ledger, Snapshots.beside(path) as snapshots:
        head = ledger.head
        return seconds(lambda: up_to_date(ledger, views, snapshots, head))
