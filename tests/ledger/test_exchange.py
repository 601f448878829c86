"""A ledger as lines of JSON, out and in again."""

import io
import json
from collections.abc import Iterable
from hashlib import sha256

import pytest
from hypothesis import given

from commands.importing.merge import merge_ledger
from ledger.chain import GENESIS, leaf_hash, link_hash
from ledger.errors import BrokenExport, InvalidEvent
from ledger.events.registry import Event
from ledger.exchange import export_lines, read_export
from ledger.identity import StreamId
from ledger.recorded import StoredEvent
from ledger.store import Ledger
from tests.builders import STREAM, key, verdict
from tests.ledger.facts import N_FILED, verdicts
from tests.strategies import histories

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


def refusal_of(content: bytes | Iterable[bytes]) -> BrokenExport:
    """Return why an export is refused, and see that nothing of it is taken in."""
    whole = content if isinstance(content, bytes) else b"".join(content)
    with Ledger.in_memory() as ledger:
        ledger.append(OTHER, verdicts(1))
        before = list(ledger.rows())

        with pytest.raises(BrokenExport) as caught:
            merge_ledger(ledger, read_export(io.BytesIO(whole)))

        assert list(ledger.rows()) == before
    return caught.value


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


@given(ours=histories(5), theirs=histories(5))
def test_a_merged_ledger_is_exported_and_imported_like_any_other(
    ours: list[Event], theirs: list[Event]
) -> None:
    """Its times go back, and it tells where events came from: that is its history."""
    with Ledger.in_memory() as ledger, Ledger.in_memory() as other:
        other.append(STREAM, theirs)
        ledger.append(STREAM, ours)
        ledger.append(OTHER, verdicts(1))
        merge_ledger(ledger, other.rows())
        content, head = exported(ledger), ledger.head

    with imported(content) as copy:
        assert exported(copy) == content
        assert copy.head == head


def test_rows_are_read_as_they_lay_in_the_ledger(ledger: Ledger) -> None:
    """Positions, versions and links are not in the file, and follow from it."""
    ledger.append(STREAM, verdicts(2))
    ledger.append(OTHER, verdicts(1))
    ledger.append(STREAM, verdicts(1, after=2))

    assert read(exported(ledger)) == list(ledger.rows())


def test_an_empty_ledger_has_an_export_too(ledger: Ledger) -> None:
    """A script that exports every ledger need not make an exception."""
    content = exported(ledger)

    assert read(content) == []
    assert content.count(b"\n") == 2


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


def test_a_file_that_was_cut_anywhere_is_refused(lines: list[bytes]) -> None:
    """Disks fill up and downloads break off; only the very last line break may be missing."""
    content = b"".join(lines)

    for length in range(len(content) - 1):
        cut = content[:length]
        with pytest.raises(BrokenExport) as caught:
            read(cut)
        assert caught.value.line == len(cut.splitlines())

    assert len(read(content[:-1])) == N_FILED


@pytest.mark.parametrize("n_left", range(N_LINES))
def test_a_file_without_its_last_lines_is_refused(lines: list[bytes], n_left: int) -> None:
    """A file cut between two lines is JSON from end to end."""
    refusal = refusal_of(lines[:n_left])

    assert refusal.line == n_left
    assert "or the file was truncated" in refusal.why
    assert str(refusal).endswith("; export or download the file again")


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


def test_a_changed_event_is_found_in_its_own_line(lines: list[bytes]) -> None:
    """Whoever looks for the damage is told where it is."""
    lines[2] = lines[2].replace(b"VERDICT: A", b"VERDICT: B")

    refusal = refusal_of(lines)

    assert (refusal.line, refusal.why) == (3, "its content is not what was recorded")


@pytest.mark.parametrize(("field", "value"), [("leaf", "zz"), ("event_id", "0"), ("leaf", "\xe9")])
def test_what_is_not_hexadecimal_is_found_in_its_own_line(
    lines: list[bytes], field: str, value: str
) -> None:
    """Made by a program of somebody else's, perhaps."""
    lines[2] = json.dumps({**json.loads(lines[2]), field: value}).encode() + b"\n"

    refusal = refusal_of(lines)

    assert refusal.line == 3
    assert refusal.why.startswith("an id or leaf is not hexadecimal")


def test_swapped_lines_are_found(lines: list[bytes]) -> None:
    """Each is whole; the order of events is part of the history."""
    lines[1], lines[2] = lines[2], lines[1]

    refusal = refusal_of(lines)

    assert (refusal.line, refusal.why) == (N_LINES, NOT_THOSE)


@pytest.mark.parametrize("n_times", [0, 2])
def test_a_line_left_out_or_told_twice_is_found(lines: list[bytes], n_times: int) -> None:
    """As a line-by-line merge of two files would."""
    changed = [*lines[:2], *[lines[2]] * n_times, *lines[3:]]

    refusal = refusal_of(changed)

    assert (refusal.line, refusal.why) == (len(changed), NOT_THOSE)


@pytest.mark.parametrize(
    "changed",
    [{"n_events": 1}, {"head": f"{key('head')}@0"}, {"sha256": key("other")}],
    ids=lambda changed: next(iter(changed)),
)
def test_a_last_line_that_does_not_fit_is_found(
    lines: list[bytes], changed: dict[str, object]
) -> None:
    """Each of its claims is checked, not one for all."""
    assert read(ended(lines[0])) == []

    refusal = refusal_of(ended(lines[0], **changed))

    assert (refusal.line, refusal.why) == (2, NOT_THOSE)


def test_lines_behind_the_last_are_found(lines: list[bytes]) -> None:
    """Two exports in one file are not one ledger."""
    refusal = refusal_of([*lines, *lines])

    assert refusal.line == N_LINES
    assert "not a line of an export" in refusal.why


@pytest.mark.parametrize("first", [b'{"format":"tourney/events@2"}\n', b"{}\n", b"\n", b"\xff\n"])
def test_what_does_not_begin_as_an_export_is_none(first: bytes) -> None:
    """A later format may mean something else by the same words."""
    refusal = refusal_of(ended(first))

    assert refusal.line == 1
    assert "not a line of an export" in refusal.why


def test_rows_are_given_before_the_end_is_known(lines: list[bytes]) -> None:
    """A file need not fit in memory; whoever reads takes all back where the end is wrong."""
    reading = read_export(lines[:-1])

    assert next(reading).position == 1
    with pytest.raises(BrokenExport):
        list(reading)


def test_the_payload_keeps_its_bytes(ledger: Ledger) -> None:
    """Hashes are of bytes: what JSON may spell in two ways must come back in the same."""
    ledger.append(STREAM, [verdict(key("q"), by='"\\/ é \u2028 \x7f')])

    (row,) = read(exported(ledger))

    assert [row] == list(ledger.rows())


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
