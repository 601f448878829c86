"""Use case: bring stored views up to date; those that are stale are folded again in one pass."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, Generic

from ledger.head import Head
from ledger.snapshots import Snapshot, Snapshots
from ledger.store import Ledger
from projections.view import State, View

_PAGE: Final = 10_000  # events


@dataclass
class _Standing(Generic[State]):
    """How far a view has been folded."""

    view: View[State]
    position: int
    state: State


def up_to_date(
    ledger: Ledger, views: Sequence[View[State]], snapshots: Snapshots, until: Head
) -> tuple[State, ...]:
    """Return the states of views as of a head, and store them.

    A stored state counts only if the ledger still has the history that it was folded from.
    """
    standings = [_stored(ledger, view, snapshots, until) for view in views]
    behind = [each for each in standings if each.position < until.position]
    if behind:
        _fold_on(ledger, behind, until.position)
        snapshots.save(_snapshot(each, until) for each in behind)
    return tuple(each.state for each in standings)


def _stored(
    ledger: Ledger, view: View[State], snapshots: Snapshots, until: Head
) -> _Standing[State]:
    found = snapshots.load(view.name, view.version)
    if (
        found is None
        or found.position > until.position
        or ledger.chain_at(found.position) != found.chain
    ):
        return _Standing(view, 0, view.initial)
    try:
        return _Standing(view, found.position, view.load(found.state))
    except ValueError:  # damaged: what is lost is folded again
        return _Standing(view, 0, view.initial)


def _fold_on(ledger: Ledger, behind: Sequence[_Standing[State]], until: int) -> None:
    types = frozenset().union(*(each.view.reads for each in behind))
    events = ledger.read(after=min(each.position for each in behind), until=until, types=types)
    while page := list(islice(events, _PAGE)):
        for each in behind:
            news = (recorded for recorded in page if recorded.position > each.position)
            each.state = each.view.advance(each.state, news)


def _snapshot(standing: _Standing[State], until: Head) -> Snapshot:
    view = standing.view
    return Snapshot(view.name, view.version, until.position, until.chain, view.dump(standing.state))
