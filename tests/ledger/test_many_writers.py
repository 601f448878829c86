"""Processes that append to one ledger at the same time."""

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec
import pytest

from ledger.audit import audit
from ledger.events.judging import VerdictReceived
from ledger.store import Ledger
from tests.builders import STREAM
from tests.ledger.appender import HOLDING, READY, Told, name_in
from tests.ledger.kill_witness import stored_in
from tests.support.patience import PATIENCE_S

ROOT = Path(__file__).parents[2]
N_WRITERS = 8
N_EACH = 100
N_RACES = 25

Process = subprocess.Popen[bytes]


@contextmanager
def processes(
    kind: str, path: Path, *streams: str, n_batches: int = 1
) -> Iterator[Sequence[Process]]:
    """Give a process per stream, ready to append; none outlives the block."""
    with ExitStack() as started:
        writers = [
            started.enter_context(start(kind, path, f"{kind}{number}", stream, n_batches))
            for number, stream in enumerate(streams)
        ]
        assert [next_step(writer) for writer in writers] == [READY] * len(writers)
        yield writers


@contextmanager
def start(kind: str, path: Path, writer: str, stream: str, n_batches: int) -> Iterator[Process]:
    """Start a process that waits for a line before it appends."""
    words = (kind, str(path), writer, stream, str(n_batches))
    with subprocess.Popen(
        [sys.executable, "-m", "tests.ledger.appender", *words],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def go(writer: Process) -> None:
    """Let a process begin."""
    assert writer.stdin
    writer.stdin.write(b"\n")
    writer.stdin.flush()


def next_step(writer: Process) -> Told:
    """Wait for what a process tells next."""
    assert writer.stdout
    return msgspec.json.decode(writer.stdout.readline(), type=Told)


def run_to_the_end(writers: Sequence[Process]) -> list[list[Told]]:
    """Return all that processes tell; each must end, and without a word of error."""
    told = []
    for writer in writers:
        out, err = writer.communicate(timeout=PATIENCE_S)
        assert (writer.returncode, err) == (0, b"")
        told.append([msgspec.json.decode(line, type=Told) for line in out.splitlines()])
    return told


@pytest.mark.parametrize("streams", [[STREAM] * N_WRITERS, [f"s{n}" for n in range(N_WRITERS)]])
def test_eight_processes_append_at_once_and_every_receipt_is_true(
    path: Path, streams: list[str]
) -> None:
    """A tournament's judges may run side by side, on one machine's ledger."""
    with processes("singles", path, *streams, n_batches=N_EACH) as writers:
        for writer in writers:
            go(writer)
        told = [step for steps in run_to_the_end(writers) for step in steps if step.places]

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
    with processes("races", path, *[STREAM] * N_WRITERS, n_batches=N_RACES) as writers:
        for writer in writers:
            go(writer)
        told = run_to_the_end(writers)

    refused = [step for steps in told for step in steps if not step.places]
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
        processes("stalls", path, STREAM) as [stalled],
        processes("singles", path, *[STREAM] * 3) as writers,
    ):
        go(stalled)
        next_step(stalled)
        held = next_step(stalled)
        for writer in writers:
            go(writer)
        begun = [next_step(writer) for writer in writers]

        stalled.kill()
        told = run_to_the_end(writers)

    with Ledger.read_only(path) as ledger:
        assert held == HOLDING
        assert not any(step.places for step in begun)
        assert {place for [step] in told for place in step.places} == stored_in(ledger)
        assert ledger.head.position == len(writers)
        assert audit(ledger) == ()
