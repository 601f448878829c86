"""Use cases: find events by a position, label or short id, follow them as they come, redact one."""

from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from commands.errors import ConfigurationError, NotFound, Refused, shortened
from commands.ports import Console
from commands.settings.api_keys import redacted
from ledger.errors import CannotRead
from ledger.events.evaluations import EvaluationPlanned, SampleObserved, SampleUnscorable
from ledger.events.registration import Registered
from ledger.events.registry import EVENTS
from ledger.identity import Digest
from ledger.recorded import Recorded, StoredEvent, moment
from ledger.storage.redaction import require_redactable
from ledger.store import Ledger

_N_HEX: Final = 64  # of a SHA-256


def find_events(ledger: Ledger, name: str) -> Sequence[StoredEvent]:
    """Return the events of a name: a position, a label, or the beginning of a key or id.

    A label means its newest registration, or else the newest sample or plan of an evaluation. A
    query's key means its submission and its verdict.

    Raises:
        NotFound: The name means nothing, or several things.
    """
    is_text = name.encode(errors="replace").decode() == name  # a command line may hold any bytes
    events: Sequence[StoredEvent] = (
        is_text
        and (
            _at(ledger, name)
            or _labelled(ledger, name)
            or (*ledger.rows_with_id(name), *_keyed(ledger, name))
        )
    ) or ()
    if not events:
        near = get_close_matches(name, EVENTS.types, n=2)
        hint = f"did you mean {' or '.join(near)}?" if near else "see `tourney log`"
        raise NotFound(f"{name!r} is not a position, label or key in {ledger.path}; {hint}")
    if len({event.decode().event.natural_key[0] for event in events}) > 1:
        meant = shortened([f"{event.position} {event.type}" for event in events])
        raise NotFound(
            f"{name!r} means {len(events)} events: {meant}; give more of the id, or a position"
        )
    return events


def _at(ledger: Ledger, name: str) -> Sequence[StoredEvent]:
    """Return the event at a position; too large a number may be the beginning of an id."""
    position = int(name) if name.isdecimal() and len(name) <= _N_HEX else 0
    if position > ledger.head.position:
        return ()
    return tuple(ledger.rows(after=position - 1, until=position))


def _labelled(ledger: Ledger, name: str) -> Sequence[StoredEvent]:
    """Return the newest registration of a label, or else the newest sample or plan."""

    def is_registration(recorded: Recorded) -> bool:
        event = recorded.event
        return isinstance(event, Registered) and event.reference.label == name

    def is_evaluated(recorded: Recorded) -> bool:
        match recorded.event:
            case SampleObserved(label=label) | SampleUnscorable(label=label):
                return label == name
            case EvaluationPlanned(evaluation=evaluation):
                return evaluation == name
            case _:
                return False

    return _where(ledger, is_registration)[-1:] or _where(ledger, is_evaluated)[-1:]


def _keyed(ledger: Ledger, name: str) -> Sequence[StoredEvent]:
    """Return the events of responses and queries whose key begins with a name."""

    def is_meant(recorded: Recorded) -> bool:
        key = recorded.event.natural_key[0]
        return len(key) == _N_HEX and key.startswith(name)

    return _where(ledger, is_meant)


def _where(ledger: Ledger, is_meant: Callable[[Recorded], bool]) -> Sequence[StoredEvent]:
    meant = [recorded.position for recorded in ledger.read() if is_meant(recorded)]
    return [row for at in meant for row in ledger.rows(after=at - 1, until=at)]


def follow(path: Path, after: int, wait: Callable[[], None]) -> Iterator[StoredEvent]:
    """Yield the events after a position, and go on with those that are appended later.

    The ledger is opened anew for each look: SQLite may open a file without a writer as one that
    never changes.

    Args:
        path: The ledger; others append to it.
        after: The last position to leave out.
        wait: Returns when it is time to look again; it ends the iteration by raising.

    Raises:
        CannotRead: The file was replaced by another ledger, or by an older copy.
    """
    chain: Digest | None = None  # at the last position known
    while True:
        with Ledger.read_only(path) as ledger:
            if chain not in {None, ledger.chain_at(after)}:
                raise CannotRead(path, f"it was replaced: position {after} is no longer the same")
            for row in ledger.rows(after=after):
                after = row.position
                yield row
            chain = ledger.chain_at(after)
        wait()


def redact_with_consent(
    ledger: Ledger, position: int, why: str, *, agreed: bool, console: Console
) -> None:
    """Remove the texts of an event for good, and record why.

    Of an event that was redacted before, only the bytes are removed again: so a command that was
    killed in between can be repeated.

    Raises:
        ConfigurationError: No reason is given.
        CannotRedact: There is no such event, or its texts must stay.
        Refused: It was not confirmed.
        NotErased: It is recorded, and the old bytes may still be in the file.
    """
    if not why.strip():
        raise ConfigurationError(["--why is empty: say why the texts are removed"])
    for row in ledger.rows(after=position - 1, until=position):
        if row.decode().redacted:
            ledger.erase()
            console.tell(f"position {position} was redacted before; {ledger.path} is written anew")
            return
    row = require_redactable(ledger.connection, position)
    _require_consent(_question(row, ledger), agreed=agreed, confirm=console.confirm)
    ledger.redact(position, redacted(why))
    console.tell(
        f"position {position} is redacted, as position {ledger.head.position} tells; backups,"
        " exports, runs and reports that were made before may still hold its texts"
    )


def _question(row: StoredEvent, ledger: Ledger) -> str:
    when = f"{moment(row.recorded_us):%Y-%m-%d %H:%M} UTC"
    return (
        f"Remove the texts of position {row.position}, {row.type} of {row.stream}, recorded on"
        f" {when}, from {ledger.path} for good?"
    )


def _require_consent(question: str, *, agreed: bool, confirm: Callable[[str], bool] | None) -> None:
    if agreed:
        return
    if confirm is None:
        raise Refused(
            "texts are removed for good, and no terminal is here to confirm: run again with --yes"
        )
    if not confirm(question):
        raise Refused("not confirmed: nothing was changed")
