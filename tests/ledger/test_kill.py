"""kill -9 at any step: nothing acknowledged is lost, no batch is there in part.

`pytest -m nightly -rP tests/ledger/test_kill.py` plays all 500 rounds and shows their figures.
"""

import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from ledger.audit import audit
from ledger.identity import StreamId
from ledger.store import Ledger
from tests.builders import STREAM
from tests.ledger.appender import READY, Place, Told, appending, batch_of
from tests.ledger.kill_witness import Figures, Heard, Witness
from tests.support.patience import PATIENCE_S

ROOT = Path(__file__).parents[2]


def killed(folder: Path, *, seed: int) -> list[Figures]:
    """Play 50 rounds, 10 of them with four writers, and 5 of a ledger's beginning."""
    folder.mkdir()
    command = [sys.executable, "-m", "tests.ledger.kill_rounds", str(folder), str(seed)]
    done = subprocess.run(
        [*command, "40", "10", "5"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        check=True,
        timeout=PATIENCE_S,
    )
    return [msgspec.json.decode(line, type=Figures) for line in done.stdout.splitlines()]


def table_of(rounds: list[Figures]) -> str:
    """Return the figures of rounds with one writer and of those with more, a line each."""
    sums: dict[int, Figures] = defaultdict(Figures)
    for each in rounds:
        sums[each.n_writers // each.n_rounds] += each
    return "\n".join(f"{n_writers} at once: {sums[n_writers]}" for n_writers in sorted(sums))


@contextmanager
def appending_elsewhere(path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Let another process append until the block ends."""
    words = ("batches", str(path), "elsewhere", STREAM, "1000000")
    with subprocess.Popen(
        [sys.executable, "-m", "tests.ledger.appender", *words],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def heard_from(process: subprocess.Popen[bytes]) -> Told:
    """Wait for a process's next step."""
    assert process.stdout
    return msgspec.json.decode(process.stdout.readline(), type=Told)


def test_kill_9_loses_no_acknowledged_event_and_leaves_no_half_batch(tmp_path: Path) -> None:
    """Each verdict is paid for: what was said to be recorded is there when the run resumes."""
    figures = sum(killed(tmp_path / "rounds", seed=0), Figures())

    assert figures.n_broken_promises == 0, figures
    assert figures.n_rounds == 55
    assert figures.n_acknowledged > 0
    assert figures.n_killed_inside > figures.n_rounds // 2, "they are to be killed at their work"


@pytest.mark.nightly
def test_500_rounds_of_kill_9_lose_nothing_of_50_000_events(tmp_path: Path) -> None:
    """What happens once in a hundred kills, every long run on shared machines will meet."""
    rounds = [
        figures for seed in range(1, 11) for figures in killed(tmp_path / f"seed {seed}", seed=seed)
    ]
    sys.stdout.write(table_of(rounds))
    figures = sum(rounds, Figures())

    assert figures.n_broken_promises == 0, figures
    assert figures.n_rounds == 550
    assert figures.n_acknowledged >= 50_000


def test_another_process_reads_while_one_appends(path: Path) -> None:
    """Standings are looked at while the run goes on; each look is a whole history."""
    with appending_elsewhere(path) as process:
        steps = [heard_from(process) for _ in range(3)]

        with Ledger.read_only(path) as ledger:
            looks = [audit(ledger) for _ in range(5)]
            n_events = ledger.head.position
        still_appending = process.poll() is None

    assert steps[0] == READY
    assert looks == [()] * 5
    assert n_events >= len(steps[2].places) > 0
    assert still_appending


def test_the_witness_of_the_kills_finds_no_fault_with_a_sound_ledger(ledger: Ledger) -> None:
    """It counts what was recorded and not acknowledged, which breaks no promise."""
    witness = Witness()
    steps = list(appending(ledger, STREAM, ["one", "two"]))
    witness.hear(Heard(steps[1].places, unanswered=(steps[2],)))

    figures = witness.look(ledger) + witness.ask_again(ledger) + witness.look(ledger)

    assert figures == Figures(n_unacknowledged=len(batch_of("two")))


def test_the_witness_of_the_kills_notices_an_event_that_was_lost(ledger: Ledger) -> None:
    """Five hundred quiet rounds say something only of a check that can fail."""
    witness = Witness()
    [_, told] = appending(ledger, STREAM, ["one"])
    lost = Place(ledger.head.position + 1, b"leaf", b"chain")
    witness.hear(Heard((*told.places, lost), unanswered=()))

    assert witness.look(ledger) == Figures(n_lost=1)


def test_the_witness_of_the_kills_notices_half_a_batch(ledger: Ledger) -> None:
    """As above: a batch without its last event is one that was not written whole."""
    batch = batch_of("some")
    ledger.append(STREAM, batch[:-1])

    figures = Witness().look(ledger)

    assert len(batch) > 1
    assert figures.n_half_batches == 1


def test_the_witness_of_the_kills_notices_what_was_recorded_twice(ledger: Ledger) -> None:
    """As above: an answer that is asked for again must be the one that is there."""
    witness = Witness()
    list(appending(ledger, STREAM, ["one"]))
    witness.look(ledger)
    elsewhere = Told("one", StreamId("another stream, where its keys are new"))
    witness.hear(Heard((), unanswered=(elsewhere,)))

    assert witness.ask_again(ledger).n_doubled == 1
