"""What a ledger holds after commands, and what they print as data."""

import json
from pathlib import Path
from typing import Any, TypeVar

from ledger.auditing.audit import audit
from ledger.chain import Head
from ledger.store import Ledger
from tests.support.command_line.launching import Completed, done

AnEvent = TypeVar("AnEvent")


def head_of(path: Path) -> Head:
    """Return a ledger's head."""
    with Ledger.read_only(path) as ledger:
        return ledger.head


def events_in(folder: Path, *kinds: type[AnEvent]) -> list[AnEvent]:
    """Return the events of some kinds on a ledger, which must be sound."""
    with Ledger.read_only(folder / "tournament.db") as ledger:
        assert audit(ledger) == ()
        events = [recorded.event for recorded in ledger.read()]
    return [each for each in events if isinstance(each, kinds)]


def fields(ended: Completed) -> dict[str, Any]:
    """Return what a command printed as JSON."""
    found: dict[str, Any] = json.loads(ended.stdout)
    return found


def said(folder: Path, *words: str) -> Any:  # noqa: ANN401  # JSON
    """Return the JSON that a command prints, which succeeds."""
    return fields(done(folder, *words, "--json"))
