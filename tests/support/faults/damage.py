"""What a bad disk, a bad copy or a careless hand does to a ledger's file, from a seed."""

from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from pathlib import Path
from random import Random
from sqlite3 import DatabaseError, connect
from types import MappingProxyType
from typing import Final, TypeAlias

from ledger.storage.schema import DEFINITIONS, PAGE_BYTES
from tests.support.faults.hostile import unguarded

Damage: TypeAlias = Callable[[Path, Random], None]
_SECTOR: Final = 64  # bytes
_FIELDS: Final = ("event_id", "stream", "type", "recorded_us", "data", "leaf", "chain")


def zeros(path: Path, rng: Random) -> None:
    """Write zeros over some bytes."""
    at = rng.randrange(path.stat().st_size - _SECTOR)
    _write(path, at, bytes(_SECTOR))


def noise(path: Path, rng: Random) -> None:
    """Write random bytes over some."""
    at = rng.randrange(path.stat().st_size - _SECTOR)
    _write(path, at, rng.randbytes(_SECTOR))


def flips(path: Path, rng: Random) -> None:
    """Flip a few bits."""
    whole = bytearray(path.read_bytes())
    for _ in range(rng.choice((1, 8, 64))):
        whole[rng.randrange(len(whole))] ^= 1 << rng.randrange(8)
    path.write_bytes(whole)


def cut(path: Path, rng: Random) -> None:
    """Cut off the end, at a page or within one."""
    n_bytes = path.stat().st_size
    kept = rng.choice((rng.randrange(n_bytes), rng.randrange(n_bytes) // PAGE_BYTES * PAGE_BYTES))
    kept = kept or PAGE_BYTES  # an empty file is no damaged ledger: nobody has begun it
    path.write_bytes(path.read_bytes()[:kept])


def swapped_pages(path: Path, rng: Random) -> None:
    """Let two pages change places, the first one too."""
    first, second = sorted(rng.sample(range(path.stat().st_size // PAGE_BYTES), 2))
    pages = [_read(path, each * PAGE_BYTES) for each in (first, second)]
    _write(path, second * PAGE_BYTES, pages[0])
    _write(path, first * PAGE_BYTES, pages[1])


def stale_page(path: Path, rng: Random) -> None:
    """Let a page be a copy of another, or empty."""
    source, target = rng.sample(range(path.stat().st_size // PAGE_BYTES), 2)
    page = rng.choice((_read(path, source * PAGE_BYTES), bytes(PAGE_BYTES)))
    _write(path, target * PAGE_BYTES, page)


def swapped_rows(path: Path, rng: Random) -> None:
    """Let two events change a field, or all of them, as a hand with an SQLite tool can."""
    with unguarded(path) as connection:
        [(last,)] = connection.execute("SELECT max(position) FROM event")
        places = rng.sample(range(1, last + 1), 2)
        for field in rng.choice((_FIELDS, [rng.choice(_FIELDS)])):
            found = [
                connection.execute(f"SELECT {field} FROM event WHERE position = ?", [at]).fetchone()  # noqa: S608 (constants)
                for at in places
            ]
            for at, (value,) in zip(reversed(places), found, strict=True):
                statement = f"UPDATE event SET {field} = ? WHERE position = ?"  # noqa: S608 (constants)
                connection.execute(statement, [value, at])


def lost_row(path: Path, rng: Random) -> None:
    """Delete an event."""
    with unguarded(path) as connection, suppress(DatabaseError):
        [(last,)] = connection.execute("SELECT max(position) FROM event")
        connection.execute("DELETE FROM event WHERE position = ?", [rng.randint(1, last)])


DAMAGES: Final[Mapping[str, Damage]] = MappingProxyType(
    {
        each.__name__: each
        for each in (
            zeros,
            noise,
            flips,
            cut,
            swapped_pages,
            stale_page,
            swapped_rows,
            lost_row,
        )
    }
)


def damage(path: Path, seed: int) -> str:
    """Damage a ledger's file by a seed; return how."""
    rng = Random(seed)  # noqa: S311  # it is no secret
    name = [*DAMAGES][seed % len(DAMAGES)]
    DAMAGES[name](path, rng)
    return name


def zero_a_row(path: Path, position: int) -> None:
    """Write zeros over the beginning of an event's row, where its length and position stand."""
    with closing(connect(path)) as connection:
        query = "SELECT event_id FROM event WHERE position = ?"
        [(event_id,)] = connection.execute(query, [position])
    at = path.read_bytes().index(event_id)
    _write(path, at - _SECTOR // 2, bytes(_SECTOR))


def hide(path: Path, index: str) -> None:
    """Let an index be one of nothing, as a bad page can: what it led to is not found by it."""
    _replace(path, index, f"{DEFINITIONS[index].partition(' WHERE ')[0]} WHERE version < 0")


def mislead(path: Path, first: bytes, second: bytes) -> None:
    """Let the index lead from the keys of the first two events to each other's event."""
    keys = f"CASE position WHEN 1 THEN x'{second.hex()}' ELSE x'{first.hex()}' END"
    _replace(path, "event_of_key", f"CREATE INDEX event_of_key ON event ({keys})")


def _replace(path: Path, index: str, other: str) -> None:
    """Put another index in the place of one, under its name and definition."""
    with closing(connect(path)) as connection, connection:
        connection.execute(f"DROP INDEX {index}")
        connection.execute(other)
        connection.execute("PRAGMA writable_schema = ON")
        pretending = "UPDATE sqlite_schema SET sql = ? WHERE name = ?"
        connection.execute(pretending, [DEFINITIONS[index], index])


def _read(path: Path, at: int) -> bytes:
    with path.open("rb") as file:
        file.seek(at)
        return file.read(PAGE_BYTES)


def _write(path: Path, at: int, content: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(content)
