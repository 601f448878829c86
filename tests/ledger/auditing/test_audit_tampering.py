"""The tamper matrix: each way to change history, bit by bit too, and which defences see it.

What a defence is blind to is asserted too: it is the limit that the documentation admits.
"""

import shutil
import sqlite3
from collections.abc import Callable, Collection, Iterator
from contextlib import closing
from functools import cache
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sqlite_utils import Database

from commands.auditing.verify import verify
from commands.ports import no_progress
from ledger.auditing.audit import Fault, audit
from ledger.chain import Head, tombstone
from ledger.errors import LedgerError
from ledger.events.registry import EVENTS
from ledger.identity import Digest
from ledger.recorded import StoredEvent
from ledger.store import Ledger
from tests.support.auditing import audit_chain
from tests.support.builders.events import N_FILED, STREAM, verdicts
from tests.support.faults.hostile import hash_again, interrupted_after, loosen, tamper, unguarded
from tests.support.patience import PATIENCE_S

NUMBERS = ("position", "version", "schema_version", "recorded_us")
HEADER = 24  # bytes that SQLite keeps before the first field of a row: its number, sizes, types
FLIP_SIGN = "UPDATE event SET {} = {} - 9223372036854775807 - 1 WHERE position = {}".format
CHANGE = "UPDATE event SET {} = {} WHERE position = ?".format


def faults_with(
    ledger: Ledger, position: int, field: str, stored: int | bytes
) -> tuple[Fault, ...]:
    """Audit the chain of a loosened ledger with one field changed, and change it back."""
    value = "CAST(? AS TEXT)" if field in {"stream", "type"} else "?"
    ledger.connection.execute("BEGIN")
    ledger.connection.execute(CHANGE(field, value), (stored, position))
    faults = audit_chain(ledger, ledger.head).faults
    ledger.connection.execute("ROLLBACK")
    return faults


def with_one_bit_flipped(stored: int | str | bytes) -> Iterator[int | bytes]:
    """Yield a stored value as often as it has bits, each time with another bit flipped."""
    match stored:
        case int():
            yield from (stored ^ (1 << bit) for bit in range(63))  # the sign is tested apart
        case str():
            yield from with_one_bit_flipped(stored.encode())
        case bytes():
            number = int.from_bytes(stored)
            flips = (number ^ (1 << bit) for bit in range(8 * len(stored)))
            yield from (each.to_bytes(len(stored)) for each in flips)


each_position = pytest.mark.parametrize(
    "position", [*(pytest.param(n, marks=pytest.mark.nightly) for n in range(1, N_FILED)), N_FILED]
)


@pytest.mark.no_cover
@each_position
def test_every_flipped_bit_of_every_field_is_found_by_the_chain(
    ledger: Ledger, position: int
) -> None:
    """No field of an event lies outside what the hashes cover."""
    ledger.append(STREAM, verdicts(N_FILED))
    loosen(ledger.connection)
    flips = [
        (row.position, field, flipped)
        for row in ledger.rows(after=position - 1, until=position)
        for field in StoredEvent._fields
        for flipped in with_one_bit_flipped(getattr(row, field))
    ]

    missed = [flip for flip in flips if not faults_with(ledger, *flip)]

    assert missed == []
    assert len(flips) > 2_400


@pytest.mark.no_cover
@pytest.mark.parametrize("position", range(1, N_FILED + 1))
@pytest.mark.parametrize("field", NUMBERS)
def test_every_flipped_sign_is_found(filed: Path, field: str, position: int) -> None:
    """Positions below zero come before the first, where nobody would look for an event."""
    tamper(filed, "PRAGMA ignore_check_constraints = ON", FLIP_SIGN(field, field, position))

    with Ledger.read_only(filed) as ledger:
        assert audit(ledger) != ()


@cache
def healthy() -> tuple[bytes, tuple[StoredEvent, ...]]:
    """Return a small ledger's file and the rows in it."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "run.ledger")
        with Ledger.open(path) as ledger:
            ledger.append(STREAM, verdicts(N_FILED))
            rows = tuple(ledger.rows())
        return path.read_bytes(), rows


def in_use() -> list[int]:
    """Return the places of the file's bytes, but for the empty room."""
    return [place for place, byte in enumerate(healthy()[0]) if byte]


def is_found_or_harmless(place: int, bit: int) -> bool:
    """Flip a bit of the file, and say whether the audit finds it, or every event is as it was."""
    content, rows = healthy()
    changed = bytearray(content)
    changed[place] ^= 1 << bit
    with TemporaryDirectory() as folder, interrupted_after(PATIENCE_S):
        path = Path(folder, "run.ledger")
        path.write_bytes(changed)
        try:
            with Ledger.read_only(path) as ledger:
                return audit(ledger) != () or tuple(ledger.rows()) == rows
        except LedgerError:
            return True
        except KeyboardInterrupt:  # it would have gone on for ever
            return False


@given(place=st.deferred(lambda: st.sampled_from(in_use())), bit=st.integers(0, 7))
@example(place=56, bit=1)  # the encoding of all text
@example(place=18, bit=3)  # the format of reading
@example(place=99, bit=7)  # the version of SQLite that wrote last
def test_a_flipped_bit_of_the_file_is_found_or_changes_no_event(place: int, bit: int) -> None:
    """Disks fail below SQLite, where no type, check or key holds."""
    assert is_found_or_harmless(place, bit)


@each_position
def test_every_flipped_bit_before_a_rows_fields_is_found(position: int) -> None:
    """There stand the row's number and the types of its fields, which nothing else checks."""
    content, rows = healthy()
    fields = content.index(rows[position - 1].event_id + STREAM.encode())

    flips = product(range(fields - HEADER, fields), range(8))

    missed = next((flip for flip in flips if not is_found_or_harmless(*flip)), None)

    assert missed is None


N_OLDER, N_NOTED, N_ALL = 2, 3, 5  # events in an old copy, at the checkpoint, in all


class Scene(NamedTuple):
    """A ledger, a checkpoint of it that was noted elsewhere, and copies of its file."""

    path: Path
    noted: Head
    older: Path  # a copy from before the checkpoint
    without_wal: Path  # a copy that left out what the -wal held, two events behind it


@pytest.fixture(scope="module")
def scene_once(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    """Give a closed ledger of five events, noted at the third, to be copied."""
    path = tmp_path_factory.mktemp("scene") / "run.ledger"
    older, without_wal = path.with_name("older"), path.with_name("without wal")
    with Ledger.open(path) as ledger:
        ledger.append(STREAM, verdicts(N_OLDER))
    shutil.copy(path, older)
    with Ledger.open(path) as ledger:
        ledger.append(STREAM, verdicts(N_NOTED))
        noted = ledger.head
    with Ledger.open(path) as ledger:
        ledger.append(STREAM, verdicts(N_ALL))
        shutil.copy(path, without_wal)
    return Scene(path, noted, older, without_wal)


@pytest.fixture
def scene(scene_once: Scene, tmp_path: Path) -> Scene:
    """Give the scene, to be changed."""
    shutil.copytree(scene_once.path.parent, tmp_path, dirs_exist_ok=True)
    places = (scene_once.path, scene_once.older, scene_once.without_wal)
    path, older, without_wal = (tmp_path / place.name for place in places)
    return Scene(path, scene_once.noted, older, without_wal)


STOPPED = {
    "update": "UPDATE event SET recorded_us = recorded_us + 1 WHERE position = 2",
    "delete": "DELETE FROM event WHERE position = 3",
    "gap": """
        INSERT INTO event SELECT 7, zeroblob(16), stream, 6, type, 1, 0, data, leaf, chain
        FROM event WHERE position = 5""",
    "replace a position": """
        INSERT OR REPLACE INTO event
        SELECT 2, zeroblob(16), stream, version, type, 1, 0, data, leaf, chain
        FROM event WHERE position = 2""",
    "replace an event id": """
        INSERT OR REPLACE INTO event SELECT 6, event_id, stream, 6, type, 1, 0, data, leaf, chain
        FROM event WHERE position = 2""",
}
STOPPED_TOO = {
    "update of nothing": "UPDATE event SET data = data",
    "delete all": "DELETE FROM event",
    "upsert": """
        INSERT INTO event SELECT * FROM event WHERE position = 2
        ON CONFLICT DO UPDATE SET data = x'7b7d'""",
    "insert before all": """
        INSERT INTO event SELECT 0, zeroblob(16), stream, 6, type, 1, 0, data, leaf, chain
        FROM event WHERE position = 3""",
}
to_be_stopped = pytest.mark.parametrize(
    "statement", [*STOPPED.values(), *STOPPED_TOO.values()], ids=[*STOPPED, *STOPPED_TOO]
)


@to_be_stopped
def test_a_statement_that_rewrites_history_is_stopped(scene: Scene, statement: str) -> None:
    """A stray statement in any SQLite tool must not change history: no setting is needed."""
    healthy = scene.path.read_bytes()

    with (
        closing(sqlite3.connect(scene.path)) as plain,
        pytest.raises(sqlite3.IntegrityError, match="the ledger is append-only"),
    ):
        plain.execute(statement)

    assert scene.path.read_bytes() == healthy


def test_sqlite_utils_cannot_replace_an_event(scene: Scene) -> None:
    """It offers `replace=True` and `upsert`, which delete without a DELETE trigger."""
    with closing(sqlite3.connect(scene.path)) as plain:
        events = Database(plain).table("event")
        before = list(events.rows)
        offered = {**before[1], "data": b"{}"}

        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            events.insert(offered, replace=True)
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            events.upsert(offered, pk="position")

        assert list(events.rows) == before


class Attack(NamedTuple):
    """A way to change a ledger's file, by one who can write to it and leaves no other trace."""

    change: Callable[[Scene], None]
    found_by: Collection[str]


def by_sql(*statements: str) -> Callable[[Scene], None]:
    """Return an attack that takes the triggers away, and puts them back."""
    return lambda scene: tamper(scene.path, *statements)


def rewrite(position: int) -> Callable[[Scene], None]:
    """Return an attack that changes an event and redoes every hash from it on."""

    def change(scene: Scene) -> None:
        with unguarded(scene.path) as connection:
            connection.execute(
                "UPDATE event SET recorded_us = recorded_us + 1 WHERE position = ?", (position,)
            )
            hash_again(connection)

    return change


def change_a_byte(scene: Scene) -> None:
    """Change the word of a judge in the file, without SQLite."""
    content = scene.path.read_bytes()
    assert content.count(b"VERDICT: A") == N_ALL
    scene.path.write_bytes(content.replace(b"VERDICT: A", b"VERDICT: B", 1))


def put_an_older_copy_back(scene: Scene) -> None:
    """Let the ledger be what it was before the checkpoint."""
    scene.older.replace(scene.path)


def leave_the_wal_out(scene: Scene) -> None:
    """Let the ledger be what `cp` made of it while it was open."""
    scene.without_wal.replace(scene.path)


SWAP = by_sql(
    "UPDATE event SET position = 9 WHERE position = 2",
    "UPDATE event SET position = 2 WHERE position = 3",
    "UPDATE event SET position = 3 WHERE position = 9",
)

ATTACKS = {
    **{name: Attack(by_sql(each), {"chain"}) for name, each in STOPPED.items()},
    "delete": Attack(by_sql(STOPPED["delete"]), {"chain", "checkpoint"}),
    "swap": Attack(SWAP, {"chain", "checkpoint"}),
    "one byte in the file": Attack(change_a_byte, {"chain"}),
    "cut below the checkpoint": Attack(
        by_sql("DELETE FROM event WHERE position > 2"), {"checkpoint"}
    ),
    "older copy put back": Attack(put_an_older_copy_back, {"checkpoint"}),
    "rewrite before the checkpoint": Attack(rewrite(2), {"checkpoint"}),
    "cut behind the checkpoint": Attack(by_sql("DELETE FROM event WHERE position > 3"), ()),
    "rewrite behind the checkpoint": Attack(rewrite(N_NOTED + 1), ()),
    "copied without its -wal": Attack(leave_the_wal_out, ()),
}


def found_by_integrity_check(scene: Scene) -> bool:
    """Ask SQLite: it looks at pages and indexes."""
    with closing(sqlite3.connect(scene.path)) as connection:
        return connection.execute("PRAGMA integrity_check").fetchall() != [("ok",)]


def found_by_chain(scene: Scene) -> bool:
    """Ask the hashes that lie in the file."""
    with Ledger.read_only(scene.path) as ledger:
        return audit_chain(ledger, ledger.head).faults != ()


def found_by_checkpoint(scene: Scene) -> bool:
    """Ask the head that was noted elsewhere."""
    with Ledger.read_only(scene.path) as ledger:
        faults = verify(ledger, [scene.noted], no_progress).faults
    return any(f"head {scene.noted}" in fault.why for fault in faults)


DEFENCES = {
    "integrity_check": found_by_integrity_check,
    "chain": found_by_chain,
    "checkpoint": found_by_checkpoint,
}


def defences_that_see(scene: Scene) -> set[str]:
    """Return the defences that find something."""
    return {name for name, finds in DEFENCES.items() if finds(scene)}


@pytest.mark.no_cover
@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_is_seen_by_these_defences_alone(scene: Scene, attack: str) -> None:
    """Who relies on a defence must know what it sees and what it does not."""
    change, found_by = ATTACKS[attack]
    change(scene)

    assert defences_that_see(scene) == {*found_by}


def test_no_defence_cries_wolf(scene: Scene) -> None:
    """Whatever they find, they find because of an attack; redacting changes no hash."""
    assert not defences_that_see(scene)
    with Ledger.open(scene.path) as ledger:
        ledger.redact(REDACTED_AT, "a key")
    assert not defences_that_see(scene)


@pytest.mark.parametrize("attack", [name for name, (_, by) in ATTACKS.items() if "chain" not in by])
def test_an_audit_says_nothing_of_what_the_chain_cannot_see(scene: Scene, attack: str) -> None:
    """Documented: note checkpoints elsewhere, and often; nothing in the file can stand in."""
    ATTACKS[attack].change(scene)

    with Ledger.read_only(scene.path) as ledger:
        assert audit(ledger) == ()


@pytest.mark.parametrize("attack", [name for name, (_, by) in ATTACKS.items() if not by])
def test_a_later_checkpoint_sees_what_an_earlier_one_did_not(scene: Scene, attack: str) -> None:
    """The remedy for the last row of the matrix: a checkpoint at the end of every run."""
    with Ledger.read_only(scene.path) as ledger:
        noted_at_the_end = ledger.head
    ATTACKS[attack].change(scene)

    assert found_by_checkpoint(scene._replace(noted=noted_at_the_end))


REDACTED_AT, PLAIN_AT, TOLD_AT = 2, 3, 6  # a redacted event, one that is not, and what tells of it


def redacted_data(scene: Scene, position: int) -> bytes:
    """Return the stored data at a position, of a scene in which one event was redacted."""
    with Ledger.read_only(scene.path) as ledger:
        [row] = ledger.rows(after=position - 1, until=position)
        return row.data


def put(position: int, data: Callable[[Scene], bytes]) -> Callable[[Scene], None]:
    """Return an attack that replaces what is stored of an event, and leaves all hashes."""

    def change(scene: Scene) -> None:
        found = data(scene)
        with unguarded(scene.path) as connection:
            connection.execute("UPDATE event SET data = ? WHERE position = ?", (found, position))

    return change


def other_verdict(scene: Scene) -> bytes:
    """Return the tombstone, with another verdict in it."""
    return redacted_data(scene, REDACTED_AT).replace(b'"verdict":"A"', b'"verdict":"B"')


def other_digest(scene: Scene) -> bytes:
    """Return the tombstone, with the digest of another payload."""
    stands = tombstone(b"{}", b'{"verdict":"A"}')
    return stands[:80] + redacted_data(scene, REDACTED_AT)[80:]


def unredacted(_: Scene) -> bytes:
    """Return the payload that was removed."""
    return EVENTS.encode(verdicts(N_ALL)[REDACTED_AT - 1])


def removed_untold(scene: Scene) -> bytes:
    """Return a tombstone, with the right digest, of an event that nobody redacted."""
    payload = redacted_data(scene, PLAIN_AT)
    return tombstone(payload, payload.replace(b'"verdict":"A"', b'"verdict":"B"'))


def not_quite(scene: Scene) -> bytes:
    """Return what begins as a tombstone does, and is none."""
    return b'{"redacted":"no digest",' + redacted_data(scene, PLAIN_AT)[1:]


CUT_WHAT_TELLS = by_sql("DELETE FROM event WHERE type = 'EventRedacted'")
MOVE = "UPDATE event SET position = ?2, version = ?2 WHERE position = ?1"

FORGERIES = {
    "another verdict in a tombstone": (put(REDACTED_AT, other_verdict), REDACTED_AT),
    "another digest in a tombstone": (put(REDACTED_AT, other_digest), REDACTED_AT),
    "a payload put back": (put(REDACTED_AT, unredacted), TOLD_AT),
    "a tombstone that no event tells of": (put(PLAIN_AT, removed_untold), PLAIN_AT),
    "half a tombstone": (put(PLAIN_AT, not_quite), PLAIN_AT),
    "a redaction that is cut off": (CUT_WHAT_TELLS, REDACTED_AT),
}


@pytest.fixture
def redacted_scene(scene: Scene) -> Scene:
    """Give the scene after one of its events was redacted."""
    with Ledger.open(scene.path) as ledger:
        ledger.redact(REDACTED_AT, "a key")
    return scene


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forged_redaction_is_found(redacted_scene: Scene, forgery: str) -> None:
    """A tombstone has the leaf of what it stands for, so the record must tell of it."""
    change, at = FORGERIES[forgery]
    change(redacted_scene)

    with Ledger.read_only(redacted_scene.path) as ledger:
        faults = audit_chain(ledger, ledger.head).faults

    assert {fault.position for fault in faults} == {at}


def test_a_redaction_during_an_audit_is_no_fault(redacted_scene: Scene) -> None:
    """Verifying takes a while; what tells of the redaction then stands behind what is verified."""
    with Ledger.read_only(redacted_scene.path) as ledger:
        before = Head(N_ALL, Digest(""))

        found = audit_chain(ledger, before)

    assert found.faults == ()
    assert [each.position for each in found.redactions] == [REDACTED_AT]


def test_a_redaction_of_what_comes_later_is_found(path: Path) -> None:
    """It tells of an event before it, or of nothing."""
    with Ledger.open(path) as ledger:
        [receipt] = ledger.append(STREAM, verdicts(1))
        ledger.redact(receipt.recorded.position, "a key")
    with unguarded(path) as connection:
        connection.executemany(MOVE, ((1, 3), (2, 1), (3, 2)))
        hash_again(connection)

    with Ledger.read_only(path) as ledger:
        assert [fault.position for fault in audit_chain(ledger, ledger.head).faults] == [2]


def test_a_redaction_of_what_is_not_audited_is_no_fault(redacted_scene: Scene) -> None:
    """An audit up to a position knows nothing of what stands behind it."""
    with Ledger.read_only(redacted_scene.path) as ledger:
        assert audit_chain(ledger, Head(REDACTED_AT - 1, Digest(""))) == ((), ())


def test_a_redaction_whose_event_was_changed_is_told_by_nothing(redacted_scene: Scene) -> None:
    """Both are found: what was changed, and what it no longer explains."""
    put(TOLD_AT, lambda _: b"{}")(redacted_scene)

    with Ledger.read_only(redacted_scene.path) as ledger:
        faults = audit_chain(ledger, ledger.head).faults

    assert [fault.position for fault in faults] == [REDACTED_AT, TOLD_AT]
