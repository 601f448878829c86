"""The workbench: a folder on a disk, and the long tournament that is measured on it."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Final

from ledger.events.judging import JudgeQuerySubmitted, Order, PairReconciled, VerdictReceived
from ledger.events.registry import Event
from ledger.identity import Digest, Dimension, EntrantId, JudgeId, PromptId
from ledger.store import Ledger
from tests.benchmarks.ledger.rivals import STREAM, fill

ROOT: Final = Path(__file__).parents[2]
CORPUS: Final = ROOT / "data" / "quickstart" / "corpus.txt"
EVENTS_A_PAIR: Final = 5
_PAIRS_AT_ONCE: Final = 2_000
_ENTRANTS: Final = (EntrantId("base"), EntrantId("tuned"))
_FACTUALITY: Final = Dimension("factuality")
_JUDGE: Final = JudgeId("reference")


def play(path: Path, n_events: int) -> None:
    """Make a ledger of about so many events that is sound in every way."""
    n_pairs = max(1, n_events // EVENTS_A_PAIR)
    with Ledger.open(path) as ledger:
        append_pairs(ledger, range(n_pairs))


def append_pairs(ledger: Ledger, numbers: Sequence[int]) -> None:
    """Append the events of pairs, many at once."""
    for start in range(0, len(numbers), _PAIRS_AT_ONCE):
        pairs = map(_pair, numbers[start : start + _PAIRS_AT_ONCE])
        ledger.append(STREAM, list(chain.from_iterable(pairs)))


def _pair(number: int) -> Iterator[Event]:
    forward, swapped = _digest(f"{number} forward"), _digest(f"{number} swapped")
    prompt = PromptId(f"recall_{number:06}")
    yield _submitted(forward, prompt, "forward")
    yield _submitted(swapped, prompt, "swapped")
    yield _verdict(forward, "A")
    yield _verdict(swapped, "B")
    yield PairReconciled(
        dimension=_FACTUALITY,
        prompt_id=prompt,
        entrant_a=_ENTRANTS[0],
        entrant_b=_ENTRANTS[1],
        judge=_JUDGE,
        policy="swap-consistent",
        outcome="a",
        forward=forward,
        swapped=swapped,
    )


def _submitted(query: Digest, prompt: PromptId, order: Order) -> JudgeQuerySubmitted:
    return JudgeQuerySubmitted(
        query_key=query,
        judge=_JUDGE,
        dimension=_FACTUALITY,
        prompt_id=prompt,
        entrant_a=_ENTRANTS[0],
        entrant_b=_ENTRANTS[1],
        order=order,
        rubric_digest=_digest("rubric"),
        response_a=_digest(f"{prompt} a"),
        response_b=_digest(f"{prompt} b"),
    )


def _verdict(query: Digest, slot: str) -> VerdictReceived:
    return VerdictReceived(
        query_key=query,
        judge=_JUDGE,
        verdict="A" if slot == "A" else "B",
        reply=f"Response {slot} names the drug and the dose.\nVERDICT: {slot}",
        parser="final-line@1",
        stop_reason="end_turn",
        model="chrF2",
    )


def _digest(name: str) -> Digest:
    return Digest(sha256(name.encode()).hexdigest())


N_LONG: Final = 1_000_000  # events
N_LONG_BYTES: Final = 300  # of each stored payload


@dataclass(frozen=True)
class Bench:
    """What every benchmark is given."""

    folder: Path
    scale: float = 1.0  # 1.0: the sizes that are asked
    n_rounds: int = 5

    def scaled(self, size: int, *, at_least: int = 1) -> int:
        """Return the size to measure instead of one that is asked."""
        return max(at_least, round(size * self.scale))

    def long_ledger(self) -> Path:
        """Return a ledger of a million events; filled once, for all who read it."""
        path = self.folder / "long.ledger"
        if not path.exists():
            n_events = self.scaled(N_LONG)
            say(f"filling a ledger with {n_events:,} events of {N_LONG_BYTES} bytes")
            fill(path, n_events, N_LONG_BYTES)
        return path

    def played_ledger(self) -> Path:
        """Return a ledger of a tournament of a million events; played once, for all who read it."""
        path = self.folder / "played.ledger"
        if not path.exists():
            n_events = self.scaled(N_LONG)
            say(f"playing a tournament of {n_events:,} events")
            play(path, n_events)
        return path


def say(line: str) -> None:
    """Tell the progress."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
