"""`tourney report` on 100,000 battles of twenty entrants: its time and its size."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import median
from typing import Final

import numpy as np
from msgspec.structs import replace

from ledger.events.registry import Event
from ledger.store import Ledger
from projections.fold import fold
from projections.tournament.folding import tournament_of
from projections.tournament.matches import Match
from tests.benchmarks.bench import Bench, say
from tests.benchmarks.commands.alone import Ended, alone, tourney
from tests.benchmarks.rounds import interleaved
from tests.benchmarks.table import Row, at_most, stated
from tests.support.builders.events import STREAM, entrant, judge, opened, prompt, responses
from tests.support.builders.money import put
from tests.support.builders.worlds import SLOT_A, TIE, matches_of, verdicts_of
from tests.support.builders.worlds import A as A_WINS
from tests.support.builders.worlds import B as B_WINS

_N_ENTRANTS: Final = 20  # and so 190 pairs a prompt
_N_PROMPTS: Final = 527
_SHARES: Final = (0.12, 0.2)  # of inconsistent pairs, and with the ties
_AT_ONCE: Final = 10_000  # events of an append
_WORDS: Final = """\
the a of drug dose daily reduces pain fever blood pressure because patients should not
take with food water aspirin ibuprofen inhibits enzyme kidney liver risk bleeding stomach
children adults tablet orally hours maximum milligrams evidence trial suggests
"""


def measure(bench: Bench) -> Iterator[Row]:
    """Time the whole command, and weigh its page."""
    n_prompts = bench.scaled(_N_PROMPTS, at_least=2)
    path, page = bench.folder / "reported.ledger", bench.folder / "report.html"
    n_battles = n_prompts * _N_ENTRANTS * (_N_ENTRANTS - 1) // 2
    say(f"playing a tournament of {n_battles:,} battles")
    play(path, n_prompts)
    command = tourney("report", "--ledger", str(path), "-o", str(page))
    ended: list[Ended] = []

    def took_s() -> float:
        ended.append(alone(command, bench.folder))
        return ended[-1].took_s

    elapsed_s = interleaved(bench.n_rounds, {"report": took_s}).median("report")
    processor_s = median(each.processor_s for each in ended[1:])  # but of the round that warms up
    size_mb = page.stat().st_size / 1e6
    name = f"`tourney report` on {n_battles:,} battles"
    yield stated(name, f"{elapsed_s:.1f} s", elapsed_s, at_most(10))
    yield stated(f"{name}: processor time", f"{processor_s:.1f} s", processor_s)
    yield stated(f"{name}: its page", f"{size_mb:.2f} MB", size_mb, at_most(2))


def play(path: Path, n_prompts: int) -> None:
    """Make a ledger of a tournament that was judged by one judge."""
    rng = np.random.default_rng(7)
    opening = opened(
        prompts=[prompt(f"p{n:04}", text=_text(rng, 20)) for n in range(n_prompts)],
        entrants=[entrant(f"entrant-{n:02}") for n in range(_N_ENTRANTS)],
    )
    with Ledger.open(path) as ledger:
        _append(ledger, opening)
        answers = responses(fold(tournament_of(STREAM), ledger.read()))
        _append(
            ledger,
            (replace(each, text=_text(rng, int(rng.integers(20, 90)))) for each in answers),
        )
        matches = [*matches_of(fold(tournament_of(STREAM), ledger.read()))]
        _append(ledger, (event for match in matches for event in _judged(match, rng)))


def _append(ledger: Ledger, events: Iterable[Event]) -> None:
    some: list[Event] = []
    for event in events:
        some.append(event)
        if len(some) == _AT_ONCE:
            ledger.append(STREAM, some)
            some = []
    ledger.append(STREAM, some)


def _text(rng: np.random.Generator, n_words: int) -> str:
    return " ".join(rng.choice(_WORDS.split(), n_words))


def _judged(match: Match, rng: np.random.Generator) -> Iterator[Event]:
    """Yield both queries, both verdicts and the outcome; the first of the roster are better."""
    a, b = (int(each.entrant.entrant_id[-2:]) for each in (match.pairing.a, match.pairing.b))
    decided = A_WINS if rng.random() < 1 / (1 + np.exp((a - b) / 10)) else B_WINS
    said = (SLOT_A, TIE, decided)[int(np.searchsorted(_SHARES, rng.random()))]
    for query in (match.forward, match.swapped):
        yield put(match, query)
    yield from verdicts_of(match, judge(), said)
