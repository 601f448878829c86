"""Texts that are removed for good, from an event that stays, under hashes that do not change."""

import io
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from commands.importing.merge import merge_ledger
from ledger.auditing.audit import ChainAudit, Redaction, audit
from ledger.chain import payload_digest
from ledger.counts import counts_of
from ledger.errors import CannotRedact, InvalidEvent, KeyConflict, NotErased
from ledger.events.judging import VerdictReceived
from ledger.events.registry import EVENTS
from ledger.events.values import REDACTED, EventRedacted, type_name
from ledger.exchange import back_up, export_lines, read_export
from ledger.identity import Json, digest_of_bytes
from ledger.storage.connection import differences
from ledger.storage.redaction import require_redactable
from ledger.store import Ledger
from tests.support.auditing import audit_chain
from tests.support.builders.events import STREAM, key, opened, verdict, verdicts
from tests.support.faults.hostile import hash_again, unguarded
from tests.support.goldens.events import SAMPLES

SECRET = "sk-ant-canary-7Q2v9xLw"  # noqa: S105  # nobody's
AT = 3  # the position of the event that holds it


def holding(size: int = 0) -> VerdictReceived:
    """Return a verdict whose reply holds the secret amid other text."""
    return replace(verdict(key("secret")), reply=f"{'x' * size}{SECRET}{'y' * size}")


def fill(ledger: Ledger, size: int = 0, n_after: int = 60) -> None:
    """Append events, one with the secret, by an SQLite that overwrites nothing."""
    ledger.connection.execute("PRAGMA secure_delete = OFF")
    after = verdicts(n_after, after=AT)
    for events in (verdicts(AT - 1), [holding(size)], *zip(*[iter(after)] * 10, strict=False)):
        ledger.append(STREAM, events)


def n_copies(path: Path) -> int:
    """Count the copies of the secret in the ledger's file and in every file beside it."""
    return sum(each.read_bytes().count(SECRET.encode()) for each in path.parent.iterdir())


@pytest.fixture
def held(path: Path) -> Iterator[Ledger]:
    """Give an open ledger that holds the secret at AT, and two more events behind it."""
    with Ledger.open(path) as ledger:
        fill(ledger, n_after=0)
        ledger.append(STREAM, verdicts(2, after=AT))
        yield ledger


@pytest.mark.no_cover
@pytest.mark.parametrize("size", [0, 1_500, 40_000], ids=["a row", "a page", "several pages"])
@pytest.mark.parametrize("is_in_log", [True, False], ids=["in the log", "in the file"])
def test_no_file_of_the_ledger_holds_a_byte_of_it(path: Path, size: int, is_in_log: bool) -> None:
    """SQLite leaves copies of rows where it split a page, and in the log until it is cut."""
    with Ledger.open(path) as ledger:
        fill(ledger, size)
        if not is_in_log:
            ledger.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        assert n_copies(path) > 0

        ledger.redact(AT, "a key")

        assert n_copies(path) == 0
    assert n_copies(path) == 0


def test_overwriting_the_row_alone_leaves_copies(path: Path) -> None:
    """This is why the file is written anew; the day this fails, that can be left out."""
    with Ledger.open(path) as ledger:
        fill(ledger)
    with closing(sqlite3.connect(path, isolation_level=None)) as plain:
        plain.execute("PRAGMA secure_delete = ON")
        plain.execute("DROP TRIGGER event_is_never_updated")
        plain.execute("UPDATE event SET data = x'7b7d' WHERE position = ?", (AT,))
        plain.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    assert n_copies(path) > 0


def test_no_hash_changes(held: Ledger) -> None:
    """A checkpoint that was noted before still holds, and so does every leaf."""
    head, rows = held.head, list(held.rows())

    held.redact(AT, "a key")

    after = list(held.rows(until=head.position))
    assert held.chain_at(head.position) == head.chain
    assert [each._replace(data=b"") for each in after] == [each._replace(data=b"") for each in rows]
    assert [each.position for each in after if each.data != rows[each.position - 1].data] == [AT]
    assert audit(held) == ()


def test_the_redaction_is_on_record(held: Ledger) -> None:
    """Who reads the ledger sees that something was removed, why, and the digest of what it was."""
    [before] = held.rows(after=AT - 1, until=AT)

    held.redact(AT, "a key")

    [row] = held.rows(after=AT - 1, until=AT)
    *_, told = held.read()
    assert told.event == EventRedacted(
        event_id=row.event_id.hex(),
        digest=digest_of_bytes(before.data),
        tombstone=digest_of_bytes(row.data),
        why="a key",
    )
    assert told.stream == STREAM
    assert payload_digest(row.data).hex() == digest_of_bytes(before.data)
    assert audit_chain(held, held.head) == ChainAudit(
        (), (Redaction(AT, "VerdictReceived", told.position, "a key"),)
    )


def test_the_event_is_read_without_its_text(held: Ledger) -> None:
    """What it says besides stays, so a verdict is not asked for again."""
    before = [each.event for each in held.read()]

    held.redact(AT, "a key")

    remaining = [*held.read(until=len(before))]
    assert [each.redacted for each in remaining] == [n + 1 == AT for n in range(len(before))]
    assert remaining[AT - 1].event == replace(holding(), reply=REDACTED)
    assert [row.decode() for row in held.rows(until=len(before))] == remaining


KEPT = {
    *("PromptRegistered", "RubricRegistered", "EntrantRegistered", "JudgeRegistered"),
    *("JudgeBatchPlanned", "JudgeBatchSubmitted", "JudgeBatchEnded", "RequestsSubmitted"),
    *("JudgeQuerySubmitted", "JudgeQueryReopened", "PairReconciled", "RatingsPublished"),
    "LookTaken",
    *("LedgerMerged", "BattlesImported", "RatingsImported", "EvaluationPlanned"),
    *("EventRedacted", "ScoreQuerySubmitted", "ScoreShared"),
}
SHAPES_WITHOUT_TEXT = {
    *("SampleObserved.v1.choices.json", "SampleObserved.v1.document.json"),
    "EvaluationCompleted.v1.results.json",
}


def is_kept(name: str) -> bool:
    """Say whether the event of a golden cannot be redacted."""
    return type_name(SAMPLES[name]) in KEPT or name in SHAPES_WITHOUT_TEXT


@pytest.mark.parametrize("name", [*filter(is_kept, SAMPLES)])
def test_what_has_no_text_or_is_found_by_it_cannot_be_redacted(name: str) -> None:
    """Without it the ledger would not be readable, or would pay twice."""
    with Ledger.in_memory() as ledger:
        ledger.append(STREAM, [SAMPLES[name]])
        before = list(ledger.rows())

        with pytest.raises(CannotRedact, match="cannot redact position 1: "):
            ledger.redact(1, "a key")

        assert list(ledger.rows()) == before


def leaves_of(value: Json) -> Iterator[tuple[Json, ...]]:
    """Yield each value in a JSON value behind the names that lead to it."""
    match value:
        case dict():
            yield from ((name, *each) for name, of in value.items() for each in leaves_of(of))
        case list() | tuple():
            yield from ((n, *each) for n, of in enumerate(value) for each in leaves_of(of))
        case _:
            yield (value,)


@pytest.mark.parametrize("name", sorted(SAMPLES.keys() - {*filter(is_kept, SAMPLES)}))
def test_only_texts_are_removed(name: str) -> None:
    """Ids, digests, numbers and verdicts are what the rest of the ledger refers to."""
    event = SAMPLES[name]
    later = [opened(opening=9)[0]]
    with Ledger.in_memory() as ledger:
        ledger.append(STREAM, [event, *later])
        counts = counts_of(ledger, [STREAM], 2)

        ledger.redact(1, "a key")

        first, *_ = ledger.read()
        assert audit(ledger) == ()
        assert counts_of(ledger, [STREAM], 2) == counts
    assert first.redacted
    assert first.event.natural_key == event.natural_key
    kept, all_of = set(leaves_of(first.event.fields)), set(leaves_of(event.fields))
    gone, put = all_of - kept, kept - all_of
    assert gone
    assert {each[-1] for each in put} <= {REDACTED, '{"redacted":true}'}
    tokens = {"predicted", "target"}  # a text, too
    assert all(isinstance(each[-1], str) or tokens & {*each} for each in gone)


@pytest.mark.parametrize(
    ("name", "field"), [("ResponseGenerated", "reasoning"), ("JudgeQueryFailed", "detail")]
)
def test_what_stands_beside_a_text_is_removed_with_it(name: str, field: str) -> None:
    """A model's reasoning quotes the prompt, and a server's error what it was sent."""
    sample = next(each for each in SAMPLES.values() if type_name(each) == name)
    event = replace(sample, **{field: SECRET})

    with Ledger.in_memory() as ledger:
        ledger.append(STREAM, [event])

        ledger.redact(1, "a key")

        assert SECRET.encode() not in b"".join(row.data for row in ledger.rows())


def test_the_opening_that_holds_cannot_be_redacted(held: Ledger) -> None:
    """Without its settings nothing could go on; with corrected ones they are not needed."""
    first, *_ = opened()
    held.append(STREAM, [first])
    at = held.head.position
    with pytest.raises(CannotRedact, match="correct the settings"):
        held.redact(at, "a key")
    held.append(STREAM, [replace(first, opening=2)])

    held.redact(at, "a key")

    assert held.chain_at(at + 2) is not None


@pytest.mark.parametrize("position", [0, 99])
def test_a_position_that_is_not_there_is_refused(held: Ledger, position: int) -> None:
    """A mistyped number must not remove anything."""
    with pytest.raises(CannotRedact, match="no such position"):
        held.redact(position, "a key")


def test_an_event_is_redacted_once(held: Ledger) -> None:
    """A second redaction would have nothing to remove, and no digest to keep."""
    held.redact(AT, "a key")
    before = list(held.rows())

    with pytest.raises(CannotRedact, match="removed already"):
        held.redact(AT, "a key")

    assert list(held.rows()) == before


def test_a_refused_redaction_changes_nothing(held: Ledger) -> None:
    """The texts are removed and the event is appended in one transaction, or neither."""
    before = list(held.rows())

    with pytest.raises(InvalidEvent, match="why"):
        held.redact(AT, "")

    assert list(held.rows()) == before
    assert differences(held.connection) == []
    held.append(STREAM, verdicts(1, after=90))


def test_the_table_stays_append_only(held: Ledger) -> None:
    """The trigger is away within the transaction alone."""
    held.redact(AT, "a key")

    assert differences(held.connection) == []
    for statement in ("UPDATE event SET data = x'7b7d'", "DELETE FROM event"):
        with (
            closing(sqlite3.connect(held.path)) as plain,
            pytest.raises(sqlite3.IntegrityError, match="append-only"),
        ):
            plain.execute(statement)


def test_the_same_fact_is_not_recorded_again(held: Ledger) -> None:
    """Its key is known: what was removed must not come back, and nothing else take its place."""
    held.redact(AT, "a key")
    head = held.head

    [receipt] = held.append(STREAM, [holding()])
    with pytest.raises(KeyConflict, match=f"at position {AT} with content"):
        held.append(STREAM, [replace(holding(), reply="other")])

    assert (receipt.is_new, receipt.recorded.position, held.head) == (False, AT, head)


def test_copies_made_afterwards_are_sound_and_without_it(held: Ledger, tmp_path: Path) -> None:
    """Exports, imports and backups hold the tombstone, and the same hashes."""
    held.redact(AT, "a key")
    content = b"".join(export_lines(held.rows()))
    back_up(held, tmp_path / "copy.db")

    with Ledger.in_memory() as imported, Ledger.read_only(tmp_path / "copy.db") as copied:
        merge_ledger(imported, read_export(io.BytesIO(content)))
        for each in (imported, copied):
            assert list(each.rows()) == list(held.rows())
            assert audit(each) == ()
    assert SECRET.encode() not in content
    assert n_copies(held.path) == 0


def test_a_reader_of_an_older_state_is_told_of_and_the_bytes_removed_later(held: Ledger) -> None:
    """What somebody reads cannot be overwritten: who asked for it must know."""
    held.connection.execute("PRAGMA busy_timeout = 0")
    with closing(sqlite3.connect(held.path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM event").fetchone()
        with pytest.raises(NotErased, match="reads an older state of it"):
            held.redact(AT, "a key")

    held.erase()

    assert n_copies(held.path) == 0
    assert audit(held) == ()


def test_a_foreign_writer_is_told_of(held: Ledger) -> None:
    """Another program's lock keeps the file from being written anew."""
    held.connection.execute("PRAGMA busy_timeout = 0")
    with closing(sqlite3.connect(held.path, isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")

        with pytest.raises(NotErased, match="locked"):
            held.erase()


def test_what_can_be_redacted_is_known_beforehand(held: Ledger) -> None:
    """The question names the event before anything is removed."""
    row = require_redactable(held.connection, AT)

    assert (row.position, row.type) == (AT, "VerdictReceived")
    assert EVENTS.decode(row.type, row.schema_version, row.data) == holding()


def test_an_event_of_an_older_version_can_be_redacted(
    held: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What remains of it is said in today's words, and read as such."""

    def decode_older(data: bytes) -> VerdictReceived:
        fields = msgspec.json.decode(data)
        reply = fields.pop("said")
        return msgspec.convert({**fields, "reply": reply}, VerdictReceived)

    monkeypatch.setitem(EVENTS.decoders, ("VerdictReceived", 0), decode_older)
    stored = EVENTS.encode(holding()).replace(b'"reply"', b'"said"')
    with unguarded(held.path) as connection:
        older = "UPDATE event SET schema_version = 0, data = ? WHERE position = ?"
        connection.execute(older, (stored, AT))
        hash_again(connection)
    before = [each.event for each in held.read()]

    held.redact(AT, "a key")

    remaining = [*held.read(until=len(before))]
    assert before[AT - 1] == holding()
    assert (remaining[AT - 1].event, remaining[AT - 1].redacted) == (
        replace(holding(), reply=REDACTED),
        True,
    )
    assert [row.decode() for row in held.rows(until=len(before))] == remaining
    assert audit(held) == ()
    assert n_copies(held.path) == 0
