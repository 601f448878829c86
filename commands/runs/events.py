"""Use case: find the events that a short id means."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from commands.errors import NotFound, shortened
from ledger.errors import CannotRead
from ledger.events.evaluations import EvaluationPlanned, SampleObserved, SampleUnscorable
from ledger.events.registration import Registered
from ledger.identity import Digest
from ledger.reader import with_id
from ledger.recorded import Recorded, StoredEvent
from ledger.store import Ledger


def find_events(ledger: Ledger, name: str) -> Sequence[StoredEvent]:
    """Return the event at a position, of a label, or those whose key or id begins so.

    A label that was registered more than once means its newest registration, one that was not the
    newest sample or plan of an evaluation. A query's key means its submission and its verdict.

    Raises:
        NotFound: It names nothing, or several things.
    """
    found = (
        _at(ledger, name)
        or _labelled(ledger, name)
        or (*with_id(ledger, name), *_keyed(ledger, name))
    )
    if not found:
        raise NotFound(f"{name!r} is no position, label or key in {ledger.path}; see `tourney log`")
    if len({each.decode().event.natural_key[0] for each in found}) > 1:
        meant = shortened([f"{each.position} {each.type}" for each in found])
        raise NotFound(
            f"{name!r} means {len(found)} events: {meant}; give more of it, or a position"
        )
    return found


def _at(ledger: Ledger, name: str) -> Sequence[StoredEvent]:
    """Return the event at a position; an id or key, too, may begin with decimals only."""
    position = int(name) if name.isdecimal() else 0
    if position > ledger.head.position:
        return ()
    return tuple(ledger.rows(after=position - 1, until=position))


def _labelled(ledger: Ledger, name: str) -> Sequence[StoredEvent]:
    """Return the newest registration under a label; else the newest sample or plan."""

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
    """Return the events of responses or queries whose key begins so."""

    def is_meant(recorded: Recorded) -> bool:
        key = recorded.event.natural_key[0]
        return _is_digest(key) and key.startswith(name)

    return _where(ledger, is_meant)


def _is_digest(part: str) -> bool:
    return len(part) == 64  # noqa: PLR2004  # hexadecimal SHA-256


def _where(ledger: Ledger, is_meant: Callable[[Recorded], bool]) -> Sequence[StoredEvent]:
    meant = [recorded.position for recorded in ledger.read() if is_meant(recorded)]
    return [row for at in meant for row in ledger.rows(after=at - 1, until=at)]


def follow(path: Path, after: int, wait: Callable[[], None]) -> Iterator[StoredEvent]:
    """Yield events behind a position, and whatever is appended while somebody asks.

    It is opened anew for each look: a file that nobody was writing may be open as one that never
    changes, and would be for as long as one looks.

    Args:
        path: The ledger; others append to it.
        after: The last position known.
        wait: Returns when it is time to look again; raise in it to end.

    Raises:
        CannotRead: What lies there now is another ledger, or an older copy.
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
