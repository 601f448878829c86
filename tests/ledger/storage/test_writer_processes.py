"""Processes that append to one ledger, killed at any moment: nothing acknowledged is lost.

`pytest -m nightly -rP tests/ledger/storage/test_writer_processes.py` plays all 500 rounds of kills
and shows their figures.
"""

import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import Final

import msgspec
import pytest

from ledger.auditing.audit import audit
from ledger.events.judging import VerdictReceived
from ledger.identity import StreamId
from ledger.store import Ledger
from tests.support.builders.events import STREAM
from tests.support.faults.appender import (
    HOLDING,
    Kind,
    Place,
    Told,
    Writer,
    appending,
    batch_of,
    name_in,
    writing,
)
from tests.support.faults.kill_witness import Figures, Heard, Witness, stored_in
from tests.support.patience import PATIENCE_S

ROOT = Path(__file__).parents[3]


BY_DAY: Final = (2, 1, 1)  # rounds with one writer, with four, and of a ledger's beginning
BY_NIGHT: Final = (40, 10, 5)


def killed(folder: Path, *, seed: int, n_rounds: tuple[int, int, int]) -> list[Figures]:
    """Play so many rounds of each kind."""
    folder.mkdir()
    command = [sys.executable, "-m", "tests.support.faults.kill_rounds", str(folder), str(seed)]
    done = subprocess.run(
        [*command, *map(str, n_rounds)],
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


def test_kill_9_loses_no_acknowledged_event_and_leaves_no_half_batch(tmp_path: Path) -> None:
    """Each verdict is paid for: what was said to be recorded is there when the run resumes."""
    figures = sum(killed(tmp_path / "rounds", seed=0, n_rounds=BY_DAY), Figures())

    assert figures.n_broken_promises == 0, figures
    assert figures.n_rounds == sum(BY_DAY)
    assert figures.n_acknowledged > 0
    assert figures.n_killed_inside > 0, "they are to be killed at their work"


@pytest.mark.nightly
def test_500_rounds_of_kill_9_lose_nothing_of_50_000_events(tmp_path: Path) -> None:
    """What happens once in a hundred kills, every long run on shared machines will meet."""
    rounds: list[Figures] = []
    figures = Figures()
    for seed in count(1):  # a busy machine writes fewer events between two kills
        rounds += killed(tmp_path / f"seed {seed}", seed=seed, n_rounds=BY_NIGHT)
        figures = sum(rounds, Figures())
        if figures.n_rounds >= 500 and figures.n_acknowledged >= 50_000:
            break
    sys.stdout.write(table_of(rounds))

    assert figures.n_broken_promises == 0, figures
    assert figures.n_rounds == seed * sum(BY_NIGHT)


def test_another_process_reads_while_one_appends(path: Path) -> None:
    """Standings are looked at while the run goes on; each look is a whole history."""
    with writing(path, STREAM, "elsewhere") as writer:
        writer.go()
        steps = [writer.next_step() for _ in range(2)]

        with Ledger.read_only(path) as ledger:
            looks = [audit(ledger) for _ in range(2)]
            n_events = ledger.head.position
        still_appending = writer.process.is_alive()

    assert looks == [()] * 2
    assert n_events >= len(steps[1].places) > 0
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


N_WRITERS = 3
N_EACH = 25
N_RACES = 10


@contextmanager
def writers(
    path: Path, *streams: StreamId, kind: Kind = "batches", n_batches: int = 1
) -> Iterator[Sequence[Writer]]:
    """Give a process per stream, ready to append; none outlives the block."""
    with ExitStack() as started:
        yield [
            started.enter_context(writing(path, stream, f"{kind}{number}", kind, n_batches))
            for number, stream in enumerate(streams)
        ]


def test_processes_append_at_once_and_every_receipt_is_true(path: Path) -> None:
    """A tournament's judges may run side by side, on one machine's ledger; two share a stream."""
    streams = [STREAM, STREAM, StreamId("another")]
    with writers(path, *streams, n_batches=N_EACH) as started:
        for writer in started:
            writer.go()
        told = [step for writer in started for step in writer.to_the_end() if step.places]

    promised = [place for step in told for place in step.places]
    with Ledger.read_only(path) as ledger:
        assert audit(ledger) == ()
        assert ledger.head.position == len(promised) == N_WRITERS * N_EACH
        assert set(promised) == stored_in(ledger)
        assert Counter(each.stream for each in ledger.read()) == {
            stream: N_EACH * streams.count(stream) for stream in streams
        }


def test_writers_who_race_for_one_stream_all_win_in_the_end(path: Path) -> None:
    """Who decided on an old state is refused, reads again, and loses or doubles nothing."""
    with writers(path, *[STREAM] * N_WRITERS, kind="races", n_batches=N_RACES) as started:
        for writer in started:
            writer.go()
        told = [step for writer in started for step in writer.to_the_end()]

    refused = [step for step in told if not step.places]
    with Ledger.read_only(path) as ledger:
        stored = [(each.version, each.event) for each in ledger.read(stream=STREAM)]
        faults = audit(ledger)
    verdicts = [(version, event) for version, event in stored if isinstance(event, VerdictReceived)]
    assert faults == ()
    assert len(refused) >= N_WRITERS - 1, "they are to get in each other's way"
    assert Counter(name_in(event) for _, event in verdicts) == {
        f"races{writer}/{number}": 1 for writer in range(N_WRITERS) for number in range(N_RACES)
    }
    assert all(event.reply.endswith(f" {version - 1}") for version, event in verdicts)


def test_a_writer_killed_with_the_lock_in_its_hand_blocks_nobody(path: Path) -> None:
    """The kernel lets go of a dead process's locks; no file has to be removed by hand."""
    with (
        writing(path, STREAM, "stalled", "stalls", 1) as stalled,
        writers(path, STREAM, STREAM) as started,
    ):
        stalled.go()
        stalled.next_step()
        held = stalled.next_step()
        for writer in started:
            writer.go()
        begun = [writer.next_step() for writer in started]

        stalled.process.kill()
        told = [[*writer.to_the_end()] for writer in started]

    with Ledger.read_only(path) as ledger:
        assert held == HOLDING
        assert not any(step.places for step in begun)
        assert {place for [step] in told for place in step.places} == stored_in(ledger)
        assert ledger.head.position == len(started)
        assert audit(ledger) == ()
