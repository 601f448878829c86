"""A small imported set is read from a ledger that holds a large one, too, beside one alone."""

from collections.abc import Iterator
from functools import partial
from hashlib import sha256
from pathlib import Path
from time import process_time
from typing import Final

from commands.importing.imported_set import imported_set
from ledger.events.imports import (
    MAX_BATTLES,
    BattlesImported,
    ImportedBattle,
    Winner,
    battles_stream,
)
from ledger.identity import Digest
from ledger.store import Ledger
from tests.benchmarks.bench import Bench, say
from tests.benchmarks.ratings.arena import by_popularity
from tests.benchmarks.rounds import interleaved
from tests.benchmarks.table import Row, at_most, compared

_N_SMALL: Final = 858  # battles
_N_LARGE: Final = 2_000_000
_N_ENTRANTS: Final = 20
_N_READINGS: Final = 10  # a round
_SMALL: Final = "small"
_WINNERS: Final[dict[float, Winner]] = {1.0: "model_a", 0.0: "model_b", 0.5: "tie"}


def measure(bench: Bench) -> Iterator[Row]:
    """Time reading the small set, in seconds of the processor."""
    n_large = bench.scaled(_N_LARGE)
    say(f"importing {_N_SMALL} battles beside {n_large:,}")
    paths = {name: bench.folder / f"{name}.ledger" for name in ("alone", "beside")}
    for name, path in paths.items():
        with Ledger.open(path) as ledger:
            if name == "beside":
                _import(ledger, "large", n_large)
            _import(ledger, _SMALL, _N_SMALL)
    rounds = interleaved(
        bench.n_rounds, {name: partial(_took_s, path) for name, path in paths.items()}
    )
    yield compared(
        f"reading a set of {_N_SMALL} battles beside one of {n_large:,} (processor)",
        f"{1000 * rounds.median('beside'):.1f} ms",
        f"alone: {1000 * rounds.median('alone'):.1f} ms",
        rounds.ratio("beside", "alone"),
        at_most(1.2),
    )


def _took_s(path: Path) -> float:
    """Return the processor's seconds for a reading, ledger opened and battles in columns."""
    began_s = process_time()
    for _ in range(_N_READINGS):
        with Ledger.read_only(path) as ledger:
            read = imported_set(ledger, _SMALL, ledger.head.position)
        assert len(read.battles.a) == _N_SMALL
    return (process_time() - began_s) / _N_READINGS


def _import(ledger: Ledger, name: str, n_battles: int) -> None:
    """Append a set of battles, each on a prompt of its own."""
    drawn = by_popularity(_N_ENTRANTS, n_battles)
    columns = (drawn.a.tolist(), drawn.b.tolist(), drawn.score.tolist())
    battles = [
        ImportedBattle(
            drawn.entrants[a], drawn.entrants[b], _WINNERS[score], None, f"q{place}", "human", None
        )
        for place, (a, b, score) in enumerate(zip(*columns, strict=True))
    ]
    for chunk, start in enumerate(range(0, n_battles, MAX_BATTLES), start=1):
        event = BattlesImported.of(
            battles[start : start + MAX_BATTLES],
            file_digest=Digest(sha256(name.encode()).hexdigest()),
            mapping=("plain", 1),
            chunk=chunk,
            n_skipped=0,
        )
        ledger.append(battles_stream(name), [event])
