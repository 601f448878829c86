"""A ledger as lines of JSON, out and in again, and a copy taken while it is in use."""

import errno
import io
import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from itertools import repeat
from pathlib import Path
from stat import S_IMODE

import pytest
from hypothesis import given
from typing_extensions import override

from commands.importing.merge import merge_ledger
from ledger.auditing.audit import audit
from ledger.chain import GENESIS, leaf_hash, link_hash
from ledger.errors import BrokenExport, CannotWrite, FileTaken, InvalidEvent, LedgerError
from ledger.events.registry import Event
from ledger.exchange import back_up, export_lines, read_export, unfinished_backups
from ledger.identity import StreamId
from ledger.recorded import StoredEvent
from ledger.store import Ledger
from tests.support.builders.events import N_FILED, STREAM, key, verdicts
from tests.support.strategies.events import histories

OTHER = StreamId("other")
N_LINES = 1 + N_FILED + 1  # what it is, the events, what all that was
NOT_THOSE = "the lines before it differ from those that were exported"


def exported(ledger: Ledger) -> bytes:
    """Return a ledger's whole export."""
    return b"".join(export_lines(ledger.rows()))


def read(content: bytes) -> list[StoredEvent]:
    """Return the rows of an export, read as from a file."""
    return list(read_export(io.BytesIO(content)))


def imported(content: bytes) -> Ledger:
    """Return a new ledger, in memory, that took an export in."""
    ledger = Ledger.in_memory()
    merge_ledger(ledger, read_export(io.BytesIO(content)))
    return ledger


def ended(*lines: bytes, **changed: object) -> bytes:
    """Return lines with a last one that fits them, but for what is changed."""
    content = b"".join(lines)
    last = {
        "n_events": 0,
        "head": f"{GENESIS.hex()}@0",
        "sha256": sha256(content).hexdigest(),
        **changed,
    }
    return content + json.dumps(last).encode() + b"\n"


@pytest.fixture
def lines(ledger: Ledger) -> list[bytes]:
    """Give the lines of an export of three events."""
    ledger.append(STREAM, verdicts(N_FILED))
    return list(export_lines(ledger.rows()))


@given(ours=histories(5), theirs=histories(5))
def test_what_was_exported_and_imported_is_exported_the_same(
    ours: list[Event], theirs: list[Event]
) -> None:
    """Two people compare digests of their files to know that they have one ledger."""
    with Ledger.in_memory() as ledger:
        ledger.append(STREAM, ours)
        ledger.append(OTHER, theirs)
        ledger.append(STREAM, verdicts(2))
        content, head, rows = exported(ledger), ledger.head, list(ledger.rows())

    with imported(content) as copy:
        assert exported(copy) == content
        assert copy.head == head
        assert list(copy.rows()) == rows


def test_an_export_is_plain_json_whose_last_line_names_it(
    ledger: Ledger, lines: list[bytes]
) -> None:
    """Pinned: others read these files without tourney, and check them with `sha256sum`."""
    first, *events, last = map(json.loads, lines)
    rows = list(ledger.rows())

    assert first == {"format": "tourney/events@1"}
    assert events[1] == {
        "event_id": rows[1].event_id.hex(),
        "stream": "main",
        "type": "VerdictReceived",
        "schema_version": 1,
        "recorded_us": rows[1].recorded_us,
        "data": rows[1].data.decode(),
        "leaf": rows[1].leaf.hex(),
    }
    assert last == {
        "n_events": N_FILED,
        "head": str(ledger.head),
        "sha256": sha256(b"".join(lines[:-1])).hexdigest(),
    }


@pytest.mark.no_cover
def test_a_file_that_was_cut_anywhere_is_refused(lines: list[bytes]) -> None:
    """Disks fill up and downloads break off; only the very last line break may be missing."""
    content = b"".join(lines)

    for length in range(len(content) - 1):
        cut = content[:length]
        with pytest.raises(BrokenExport) as caught:
            read(cut)
        assert caught.value.line == len(cut.splitlines())

    assert len(read(content[:-1])) == N_FILED


@pytest.mark.no_cover
@pytest.mark.parametrize("number", range(1, N_LINES + 1))
@pytest.mark.parametrize("mask", [0x01, 0x20, 0x80])
def test_a_changed_byte_in_any_line_is_found(lines: list[bytes], number: int, mask: int) -> None:
    """In the line itself, or at the latest in the last, which has the digest of all."""
    before, line, after = lines[: number - 1], lines[number - 1], lines[number:]

    for place in range(len(line) - 1):
        changed = bytearray(line)
        changed[place] ^= mask
        with pytest.raises(BrokenExport) as caught:
            read(b"".join([*before, changed, *after]))
        assert caught.value.line in {number, N_LINES}


def with_field(name: str, value: str) -> Callable[[list[bytes]], list[bytes]]:
    """Return what changes a field of the second event."""

    def change(lines: list[bytes]) -> list[bytes]:
        line = json.dumps({**json.loads(lines[2]), name: value}).encode() + b"\n"
        return [*lines[:2], line, *lines[3:]]

    return change


NOT_HEX = "an id or leaf is not hexadecimal"
NO_LINE = "not a line of an export"
BROKEN: dict[str, tuple[Callable[[list[bytes]], list[bytes]], int, str]] = {
    "an event was changed": (
        lambda lines: [each.replace(b"VERDICT: A", b"VERDICT: B") for each in lines],
        2,
        "its content is not what was recorded",
    ),
    "a leaf is not hexadecimal": (with_field("leaf", "zz"), 3, NOT_HEX),
    "a leaf is not ASCII": (with_field("leaf", "\xe9"), 3, NOT_HEX),
    "an id is not hexadecimal": (with_field("event_id", "0"), 3, NOT_HEX),
    "lines were swapped": (
        lambda lines: [lines[0], lines[2], lines[1], *lines[3:]],
        N_LINES,
        NOT_THOSE,
    ),
    "a line was left out": (lambda lines: [*lines[:2], *lines[3:]], N_LINES - 1, NOT_THOSE),
    "a line is there twice": (lambda lines: [*lines[:2], *lines[1:]], N_LINES + 1, NOT_THOSE),
    "two exports in one file": (lambda lines: [*lines, *lines], N_LINES, NO_LINE),
    "another number of events": (lambda lines: [ended(lines[0], n_events=1)], 2, NOT_THOSE),
    "another head": (lambda lines: [ended(lines[0], head=f"{key('head')}@0")], 2, NOT_THOSE),
    "another digest": (lambda lines: [ended(lines[0], sha256=key("other"))], 2, NOT_THOSE),
    "a later format": (lambda _: [ended(b'{"format":"tourney/events@2"}\n')], 1, NO_LINE),
    "no format": (lambda _: [ended(b"{}\n")], 1, NO_LINE),
    "no text": (lambda _: [ended(b"\xff\n")], 1, NO_LINE),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_file_that_was_changed_is_refused_by_its_line_and_nothing_is_taken_in(
    lines: list[bytes], what: str
) -> None:
    """Whoever looks for the damage is told where it is; half of a file would pass for the whole."""
    change, number, why = BROKEN[what]
    with Ledger.in_memory() as ledger:
        ledger.append(OTHER, verdicts(1))
        before = list(ledger.rows())

        with pytest.raises(BrokenExport) as caught:
            merge_ledger(ledger, read_export(io.BytesIO(b"".join(change(lines)))))

        assert list(ledger.rows()) == before
    assert (caught.value.line, caught.value.why[: len(why)]) == (number, why)
    assert read(ended(lines[0])) == []


def test_what_does_not_begin_as_an_export_is_read_no_further() -> None:
    """A device may have no end."""
    with pytest.raises(BrokenExport) as refusal:
        next(read_export(repeat(bytes(1_000))))

    assert refusal.value.line == 1


def test_rows_are_given_before_the_end_is_known(lines: list[bytes]) -> None:
    """A file need not fit in memory; whoever reads takes all back where the end is wrong."""
    reading = read_export(lines[:-1])

    assert next(reading).position == 1
    with pytest.raises(BrokenExport):
        list(reading)


@pytest.mark.parametrize("event_id", [bytes(16), bytes(12)], ids=["of no fact", "too short"])
def test_an_event_under_an_id_that_is_not_its_own_is_refused(
    ledger: Ledger, event_id: bytes
) -> None:
    """A fact under another's key is recorded again when it is told again, and paid for twice."""
    ledger.append(STREAM, verdicts(1))
    (row,) = ledger.rows()
    forged = row._replace(event_id=event_id)
    leaf = leaf_hash(forged.entry)
    chain = link_hash(GENESIS, leaf)

    lines = list(export_lines([forged._replace(leaf=leaf, chain=chain)]))

    with Ledger.in_memory() as ours:
        with pytest.raises(InvalidEvent, match="belongs to another event"):
            merge_ledger(ours, read_export(lines))
        assert ours.head.position == 0


@pytest.fixture
def to(tmp_path: Path) -> Path:
    """Name a backup that is not there yet, in a folder of its own."""
    folder = tmp_path / "backups"
    folder.mkdir()
    return folder / "run.ledger"


def rows_of(path: Path) -> list[StoredEvent]:
    """Return what a ledger's file holds, after an audit of it."""
    with Ledger.read_only(path) as ledger:
        assert audit(ledger) == ()
        return list(ledger.rows())


@pytest.fixture(params=[True, False], ids=["with hard links", "without"])
def _links(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the system make no hard links, as on a stick with FAT, which no test can mount."""

    def refuse(_source: Path, _to: Path) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    if not request.param:
        monkeypatch.setattr(os, "link", refuse)


@pytest.mark.usefixtures("_links")
def test_a_backup_is_one_file_that_needs_no_other(path: Path, to: Path) -> None:
    """What still lies in the WAL is in it, which `cp` leaves out; it is moved to a shelf."""
    with Ledger.open(path) as ledger:
        ledger.append(STREAM, verdicts(N_FILED))

        back_up(ledger, to)

        assert rows_of(to) == list(ledger.rows())
    assert list(to.parent.iterdir()) == [to]


@pytest.mark.usefixtures("_links")
def test_a_name_that_is_taken_meanwhile_is_not_written_over(filed: Path, to: Path) -> None:
    """A link that leads nowhere looks like no file at first; so does one that comes later."""
    to.symlink_to(to.with_name("nowhere"))

    with Ledger.read_only(filed) as ledger, pytest.raises(FileTaken):
        back_up(ledger, to)

    assert list(to.parent.iterdir()) == [to]
    assert to.is_symlink()


@pytest.mark.no_cover
def test_a_backup_is_taken_while_another_writes(path: Path, to: Path) -> None:
    """Nobody stops a run of eight hours for a backup; what it holds is a moment of the run."""
    with Ledger.open(path) as writer, ThreadPoolExecutor(1) as pool:
        writer.append(STREAM, verdicts(1))
        writing = pool.submit(
            lambda: [writer.append(STREAM, [event]) for event in verdicts(200, after=1)]
        )
        for number in range(5):
            with Ledger.read_only(path) as reader:
                back_up(reader, to.with_name(str(number)))
        writing.result()

        everything = list(writer.rows())

    for number in range(5):
        copied = rows_of(to.with_name(str(number)))
        assert copied == everything[: len(copied)]


def test_a_backup_that_is_put_back_goes_on_as_the_ledger_did(filed: Path, to: Path) -> None:
    """With a rollback journal an acknowledged event may be lost with the power."""
    with Ledger.read_only(filed) as ledger:
        back_up(ledger, to)

    with Ledger.open(to) as restored:
        (receipt,) = restored.append(STREAM, verdicts(1, after=N_FILED))
        (mode,) = restored.connection.execute("PRAGMA journal_mode").fetchone()

        assert receipt.recorded.position == N_FILED + 1
        assert mode == "wal"


def test_a_file_that_is_there_is_never_written_over(filed: Path, to: Path) -> None:
    """Yesterday's backup may be the only good one."""
    to.write_text("yesterday")

    with (
        Ledger.read_only(filed) as ledger,
        pytest.raises(FileTaken, match="choose another name, or remove this file") as caught,
    ):
        back_up(ledger, to)

    assert caught.value.path == to
    assert to.read_text() == "yesterday"
    assert list(to.parent.iterdir()) == [to]


def test_a_folder_is_no_name_for_a_backup(filed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is there already, and has no name of its own."""
    monkeypatch.chdir(filed.parent)

    with (
        Ledger.read_only(filed) as ledger,
        pytest.raises(FileTaken, match="it is a folder: name a file in it"),
    ):
        back_up(ledger, Path())


@pytest.mark.parametrize("name", ["missing/run.ledger", "file/run.ledger"])
def test_a_place_that_holds_no_file_takes_no_backup(filed: Path, to: Path, name: str) -> None:
    """A mistyped folder ends in a sentence."""
    to.with_name("file").touch()

    with Ledger.read_only(filed) as ledger, pytest.raises(CannotWrite):
        back_up(ledger, to.with_name(name.partition("/")[0]) / "run.ledger")

    assert [each.name for each in to.parent.iterdir()] == ["file"]


def test_what_a_killed_backup_left_is_told_of(filed: Path, to: Path) -> None:
    """It takes room and is no backup; whether somebody is still writing it, only a user knows."""
    half, journal, other = (
        to.with_name(f"{to.name}.0123abcd.unfinished"),
        to.with_name(f"{to.name}.0123abcd.unfinished-journal"),
        to.with_name("other.ledger.0123abcd.unfinished"),
    )
    for each in (half, journal, other):
        each.write_bytes(b"half")

    with Ledger.read_only(filed) as ledger:
        back_up(ledger, to)

    assert len(rows_of(to)) == N_FILED
    assert unfinished_backups(to) == (half, journal)
    assert half.read_bytes() == b"half"


def test_of_two_backups_to_one_name_the_first_to_end_is_kept_whole(path: Path, to: Path) -> None:
    """Two cron jobs meet; what one has not finished must never be named by the other."""

    class OvertakenLedger(Ledger):
        """A ledger of which another backup ends between the copying and the naming of one."""

        @override
        def require_unchanged(self) -> None:
            assert not to.exists()
            with Ledger.read_only(path) as quicker:
                back_up(quicker, to)

    with Ledger.open(path) as writer:
        writer.append(STREAM, verdicts(N_FILED))
        reader = OvertakenLedger.read_only(path)
        with reader, pytest.raises(FileTaken, match="choose another name"):
            back_up(reader, to)

    assert rows_of(to) == rows_of(path)
    assert list(to.parent.iterdir()) == [to]


@pytest.mark.parametrize(("umask", "mode"), [(0o002, 0o664), (0o077, 0o600)])
def test_a_backup_has_the_rights_that_the_umask_leaves(
    filed: Path, to: Path, umask: int, mode: int
) -> None:
    """A group that shares a ledger shares its copies."""
    before = os.umask(umask)
    try:
        with Ledger.read_only(filed) as ledger:
            back_up(ledger, to)
    finally:
        os.umask(before)

    assert S_IMODE(to.stat().st_mode) == mode


def test_a_ledger_that_cannot_be_copied_leaves_nothing_behind(filed: Path, to: Path) -> None:
    """A file that looks like a backup and is none is worse than no backup."""
    with Ledger.read_only(filed) as ledger:
        filed.write_bytes(b"")

        with pytest.raises(LedgerError):
            back_up(ledger, to)

    assert list(to.parent.iterdir()) == []


def failing(*_: object) -> None:
    """Fail as a disk does."""
    raise OSError(errno.EIO, "the disk is gone")


@pytest.mark.parametrize("has_links", [True, False])
@pytest.mark.parametrize("is_named", [True, False])
def test_a_backup_that_fails_at_its_end_leaves_nothing_behind(
    filed: Path, to: Path, monkeypatch: pytest.MonkeyPatch, *, has_links: bool, is_named: bool
) -> None:
    """A name without content, or one that a power loss may take back, is no backup."""
    of_copy_and_name: list[Callable[[int], None]] = [os.fsync, failing]
    flushes = iter(of_copy_and_name[not is_named :])

    def flush(handle: int) -> None:
        next(flushes)(handle)

    with Ledger.read_only(filed) as ledger:
        monkeypatch.setattr(os, "fsync", flush)
        if not has_links:
            monkeypatch.setattr(os, "link", failing)

        with pytest.raises(CannotWrite, match="the disk is gone"):
            back_up(ledger, to)

    assert list(to.parent.iterdir()) == []
