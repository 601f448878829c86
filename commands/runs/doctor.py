"""Use case: check that this machine and this ledger are ready for a run that costs money."""

import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Literal, NamedTuple

from commands.errors import counted
from commands.settings.keys import ANTHROPIC_KEYS
from commands.settings.lookup import JUDGE
from commands.settings.version import VERSION
from commands.spending.price_table import price_table
from ledger.errors import LedgerError, NoLedger
from ledger.storage.files import network_kind
from ledger.storage.wal import require_writable
from ledger.store import Ledger

_MODELS: Final = ("torch", "transformers", "peft")
_N_FLUSHES: Final = 50
_LITTLE_SPACE: Final = 1_000_000_000  # bytes
WAL_RESET_FIXED: Final = (3, 51, 3)  # sqlite.org/wal.html#walresetbug; broken since 3.7.0


class Finding(NamedTuple):
    """The result of one check."""

    what: str
    grade: Literal["good", "beware", "bad"]
    says: str


def findings(
    ledger: Path,
    sqlite_version: tuple[int, ...],
    *,
    today: date,
    keys: Mapping[str, tuple[str, ...]],
) -> Iterator[Finding]:
    """Check what a run needs; nothing is changed and nothing is sent.

    Args:
        ledger: Where the ledger is or will be.
        sqlite_version: The version of Python's SQLite library.
        today: The date to compare the prices' with.
        keys: The variables of which one must hold a judge's key, by its table in the settings. A
            judge of the jury is asked only if it is named, so its missing key is no obstacle.
    """
    yield Finding("tourney", "good", VERSION)
    yield _sqlite(sqlite_version)
    yield _file_system(ledger)
    yield from _disk(ledger.absolute().parent)
    yield _ledger(ledger)
    yield _models()
    yield _prices(today)
    yield from _keys(keys)


def _keys(keys: Mapping[str, tuple[str, ...]]) -> Iterator[Finding]:
    """Check that the API keys are set that are needed; no key itself is shown."""
    anthropic = [table for table, names in keys.items() if names == ANTHROPIC_KEYS]
    yield _key("Anthropic key", ANTHROPIC_KEYS, anthropic)
    others = dict.fromkeys(names for names in keys.values() if names not in {(), ANTHROPIC_KEYS})
    for names in others:
        yield _key(names[0], names, [table for table in keys if keys[table] == names])


def _key(what: str, names: tuple[str, ...], needing: Sequence[str]) -> Finding:
    """Check one key, which several judges may need."""
    found = [name for name in names if os.environ.get(name)]
    if found:
        return Finding(what, "good", f"{found[0]} is set")
    if not needing:
        return Finding(what, "good", "none; only Anthropic's models need one")
    needs = f"{', '.join(needing)} {'need' if len(needing) > 1 else 'needs'} one"
    grade: Literal["beware", "bad"] = "bad" if JUDGE in needing else "beware"
    return Finding(what, grade, f"none, and {needs}; export {names[0]}=...")


def _sqlite(version: tuple[int, ...]) -> Finding:
    name = ".".join(map(str, version))
    if version >= WAL_RESET_FIXED:
        return Finding("SQLite", "good", name)
    return Finding(
        "SQLite",
        "beware",
        f"{name} has the WAL-reset bug, fixed in 3.51.3: two programs that write at the same"
        " moment can damage the file. tourney's own lock keeps its processes apart; let no"
        " other program write to the ledger",
    )


def _file_system(ledger: Path) -> Finding:
    kind = network_kind(ledger)
    if kind is None:
        return Finding("file system", "good", "local, as far as can be known")
    return Finding("file system", "bad", f"{kind}: keep the ledger on a local disk")


def _disk(folder: Path) -> Iterator[Finding]:
    try:
        n_free = shutil.disk_usage(folder).free
        rate = _flushes_per_s(folder)
    except OSError as error:
        yield Finding("disk", "bad", f"{folder} cannot be written: {error}")
        return
    enough: Literal["good", "beware"] = "good" if n_free > _LITTLE_SPACE else "beware"
    yield Finding("disk", enough, f"{n_free / 1e9:.1f} GB free")
    yield Finding("flushes", "good", f"{rate:,.0f} per second, the most single appends")


def _flushes_per_s(folder: Path) -> float:
    """Measure appends of 4 KiB, each flushed to disk; return the rate at the median."""
    times = []
    with tempfile.TemporaryFile(dir=folder) as file:
        for _ in range(_N_FLUSHES):
            start = time.perf_counter()
            os.write(file.fileno(), bytes(4096))
            os.fsync(file.fileno())
            times.append(time.perf_counter() - start)
    return 1 / statistics.median(times)


def _ledger(path: Path) -> Finding:
    try:
        with Ledger.read_only(path) as ledger:
            require_writable(path)
            return Finding("ledger", "good", f"{path}, head {ledger.head}")
    except NoLedger:
        return Finding("ledger", "good", f"{path}: not created yet")
    except LedgerError as error:
        return Finding("ledger", "bad", str(error))


def _models() -> Finding:
    missing = [name for name in _MODELS if find_spec(name) is None]
    if missing:
        lacking = ", ".join(missing)
        return Finding(
            "models", "beware", f"without {lacking}; pip install 'tourney-ledger[models]'"
        )
    return Finding("models", "good", ", ".join(_MODELS))


def _prices(today: date) -> Finding:
    """Check the age of the shipped prices; `tourney prices` shows that of a user's own."""
    (shipped,) = price_table().sheets
    says = f"{shipped.title}, {counted(shipped.sheet.age_days(today), 'day')} old"
    if shipped.sheet.is_stale(today):
        return Finding("prices", "beware", f"{says}: compare `tourney prices` with the provider's")
    return Finding("prices", "good", says)
