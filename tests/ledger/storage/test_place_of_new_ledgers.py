"""A ledger is there once it holds an event: what was begun in vain leaves no file."""

from errno import ENOSPC
from pathlib import Path

import pytest

from ledger import store
from ledger.errors import CannotWrite, NotALedger
from ledger.storage.files import beside
from ledger.store import Ledger
from tests.support.builders.events import STREAM, verdicts


def test_a_new_ledger_without_events_leaves_nothing_behind(path: Path) -> None:
    """An import of a wrong file must not make a ledger: it would be taken for a tournament's."""
    with Ledger.open(path) as ledger, ledger.alone():
        assert beside(path, ".work").exists()

    assert not any(path.parent.iterdir())


def test_a_ledger_without_events_stays_where_it_was(path: Path) -> None:
    """Who found it there did not begin it, and another may have meant it."""
    path.touch()

    Ledger.open(path).close()

    assert path.exists()


def test_a_new_ledger_stays_while_another_process_has_it_open(path: Path) -> None:
    """It may append to it next, and a file without a name would take that along."""
    first = Ledger.open(path)
    with Ledger.open(path) as second:
        first.close()
        second.append(STREAM, verdicts(1))

    with Ledger.read_only(path) as ledger:
        assert ledger.head.position == 1


def test_a_new_ledger_that_cannot_be_read_at_the_end_stays(path: Path) -> None:
    """Nobody knows whether it has events."""
    with Ledger.open(path) as ledger:
        ledger.connection.execute("DROP TABLE event")

    assert path.exists()


def test_what_cannot_become_a_ledger_leaves_no_file(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk may be full from the first page on."""

    def prepare(*_: object) -> bool:
        raise OSError(ENOSPC, "No space left on device")

    monkeypatch.setattr(store, "prepare", prepare)

    with pytest.raises(CannotWrite, match="No space left"):
        Ledger.open(path)

    assert not any(path.parent.iterdir())


def test_beside_a_file_of_another_program_nothing_is_left(path: Path) -> None:
    """It is none of ours, and is not locked."""
    path.write_text("Dear diary, " * 100)

    with pytest.raises(NotALedger):
        Ledger.open(path)

    assert [*path.parent.iterdir()] == [path]


def test_a_ledger_that_cannot_be_opened_stays_with_its_lock(
    filed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others may be at work on it."""

    def flush_log(_path: Path) -> None:
        raise OSError(ENOSPC, "No space left on device")

    monkeypatch.setattr(store, "flush_log", flush_log)

    with pytest.raises(CannotWrite, match="No space left"):
        Ledger.open(filed)

    assert filed.exists()
    assert beside(filed, ".lock").exists()
