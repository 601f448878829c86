"""Let a reader keep a part of the log from being moved into the file, and let one flush fail.

    python -m tests.support.faults.pinned_reader FOLDER [forgets] [cut] [opens]

For each flush in turn, a process has it fail, and goes on as a command that is run again would. Its
files are looked at as a power loss would leave them if nothing were written that was not flushed.
Prints the losses of each as a line of JSON. One that forgets writes no moved page again. If the log
is to be cut, another program finishes the move and cuts it as soon as SQLite's locks let it. Where
the ledger opens beside that reader, it cuts the log if the opening fails.
"""

import sqlite3
import sys
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from itertools import count
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Any, Final

import msgspec

from ledger import store
from ledger.errors import CannotWrite, DiskFailed
from ledger.storage import wal
from ledger.store import Ledger
from tests.support.builders.events import STREAM
from tests.support.faults.appender import appending
from tests.support.faults.power_loss import Losses, after_power_loss, found_in
from tests.support.faults.recorder import Fault, Promise, Record, Recorder, records_in
from tests.support.faults.vfs import Sync

_FORK: Final = get_context("fork")
_LEDGER: Final = "run.ledger"


class _DropsAll(Random):
    """Draws that nothing stays of what was not flushed."""

    def choices(self, *_: Any, **__: Any) -> list[Any]:  # noqa: ANN401  # as Random has it
        return ["dropped"]

    def randint(self, a: int, b: int) -> int:  # noqa: ARG002  # as few names as can be
        return a


def losses_of(folder: Path, failing: int, live: Callable[[Path, int], None]) -> Losses | None:
    """Return what was lost if this flush fails; None if there are fewer."""
    place = folder / "place"
    place.mkdir(parents=True)
    process = _FORK.Process(target=live, args=(folder, failing))
    process.start()
    process.join()
    if process.exitcode != 0:
        raise ChildProcessError(f"it exited with {process.exitcode}")
    records = records_in(folder / "records")
    flushes = {at: each for at, each in enumerate(records, 1) if isinstance(each, Sync)}
    failed = next((at for at, each in flushes.items() if each.has_failed), None)
    if failed is None:
        return None
    moments = [*(at for at in flushes if at >= failed), len(records)]
    return sum((_lost(records[:at]) for at in moments), Losses())


def _lost(records: Sequence[Record]) -> Losses:
    files = after_power_loss(records, _DropsAll())
    return found_in(files, _LEDGER, [each for each in records if isinstance(each, Promise)])


def _live(folder: Path, failing: int) -> None:
    path = folder / "place" / _LEDGER
    recorder = Recorder(folder / "records", path.parent, Fault("failed flush", failing))
    for part in range(2):
        with suppress(DiskFailed, CannotWrite), Ledger.open(path) as ledger:
            _append(ledger, recorder, f"{part}/before")
            with closing(sqlite3.connect(path, isolation_level=None)) as reader:
                reader.execute("BEGIN")
                reader.execute("SELECT count(*) FROM event").fetchall()
                ledger.pages_until_moved = 1  # of which the reader lets only those before it
                _append(ledger, recorder, f"{part}/beside")
            _append(ledger, recorder, f"{part}/after")


def _open_beside(folder: Path, failing: int) -> None:
    """Open a ledger whose log was moved in part, without a flush, by who is gone by now."""
    path = folder / "place" / _LEDGER
    recorder = Recorder(folder / "records", path.parent, Fault("failed flush", failing))
    for _ in range(2):  # else there may be no ledger yet
        with suppress(DiskFailed, CannotWrite), Ledger.open(path) as ledger:
            _append(ledger, recorder, "before")
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        with suppress(DiskFailed, CannotWrite), Ledger.open(path) as ledger:
            _append(ledger, recorder, "beside")
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM event").fetchall()
            ledger.pages_until_moved = 1
            _append(ledger, recorder, "moved")
        for part in range(2):
            try:
                with Ledger.open(path) as ledger:
                    _append(ledger, recorder, f"{part}/after")
            except (DiskFailed, CannotWrite):
                if reader.in_transaction:
                    reader.execute("COMMIT")
                reader.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def _append(ledger: Ledger, recorder: Recorder, name: str) -> None:
    for told in appending(ledger, STREAM, [f"{name}/{number}" for number in range(2)]):
        for position, _leaf, chain in told.places[-1:]:
            recorder.note(Promise("acknowledged", position, chain))


class _CutMeanwhile(wal.settled_if_a_flush_fails):
    """Another program is faster than who settles the log after a failed flush."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Cut the log, if nobody holds the write lock, and settle what is left."""
        if error is not None:
            with closing(sqlite3.connect(self._path, timeout=0)) as stranger:
                stranger.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        super().__exit__(kind, error, trace)


def main(folder: Path, *, forgets: bool, is_cut: bool, opens: bool) -> None:
    """Let each flush fail."""
    if is_cut:
        store.settled_if_a_flush_fails = _CutMeanwhile  # type: ignore[attr-defined]  # as above
    if forgets:
        wal._write_moved_pages_again = lambda *_: None  # in this process
    for failing in count(1):
        losses = losses_of(folder / str(failing), failing, _open_beside if opens else _live)
        if losses is None:
            return
        sys.stdout.write(f"{msgspec.json.encode(losses).decode()}\n")


if __name__ == "__main__":
    _, place, *words = sys.argv
    main(Path(place), forgets="forgets" in words, is_cut="cut" in words, opens="opens" in words)
