"""Values that a shell offers while one types: the names that are on record in a ledger.

The ledger is the one that the line names so far, or the default one. Only events of the types that
hold the names are decoded.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

import typer

from commands.cli.shared.ledger import DEFAULT_CONFIG, ledger_path
from ledger.events.evaluations import EvaluationPlanned
from ledger.events.imports import set_of
from ledger.events.ratings import RatingsPublished
from ledger.events.registration import TournamentOpened
from ledger.identity import StreamId
from ledger.store import Ledger
from projections.tournament.requests import BATCH_EVENTS, open_batches

_Kind = TypeVar("_Kind", EvaluationPlanned, RatingsPublished, TournamentOpened)
Completion: TypeAlias = Callable[[typer.Context], list[str]]


class _TypedLine(NamedTuple):
    """What the line that is typed says so far, and its ledger."""

    ledger: Ledger
    config: Path
    tournament: StreamId | None

    def events(self, kind: type[_Kind], stream: StreamId | None = None) -> list[_Kind]:
        """Return the events of one type, of one stream or of all."""
        events = (row.event for row in self.ledger.read(stream=stream, types={kind.__name__}))
        return [event for event in events if isinstance(event, kind)]

    def openings(self) -> Iterable[TournamentOpened]:
        """Return the openings of the tournament that the line names, or of all, newest first."""
        return reversed(self.events(TournamentOpened, self.tournament))


def _on_record(names: Callable[[_TypedLine], Iterable[object]]) -> Completion:
    """Return a completion that reads names from the ledger, and offers none where it cannot."""

    def offered(context: typer.Context) -> list[str]:
        with suppress(Exception):  # a traceback would land in the line that is being typed
            said: dict[str, Any] = context.params
            config = Path(said.get("config") or DEFAULT_CONFIG)
            given = said.get("ledger")
            with Ledger.read_only(ledger_path(Path(given) if given else None, config)) as opened:
                line = _TypedLine(opened, config, said.get("tournament"))
                return list(dict.fromkeys(map(str, names(line))))
        return []

    return offered


tournaments: Final = _on_record(
    lambda line: (stream for stream in line.ledger.streams() if set_of(stream) is None)
)
imported_sets: Final = _on_record(lambda line: filter(None, map(set_of, line.ledger.streams())))


def _registered(kind: str) -> Completion:
    """Return a completion of the labels that tournaments were opened with."""
    return _on_record(
        lambda line: (each.label for opening in line.openings() for each in getattr(opening, kind))
    )


dimensions: Final = _registered("rubrics")
prompts: Final = _registered("prompts")
entrants: Final = _registered("entrants")
judges: Final = _registered("judges")
evaluations: Final = _on_record(
    lambda line: (plan.evaluation for plan in line.events(EvaluationPlanned))
)
batches: Final = _on_record(
    lambda line: (
        batch.submitted.provider_batch_id
        for batch in open_batches(line.ledger.read(types=BATCH_EVENTS))
        if batch.submitted is not None
    )
)
runs: Final = _on_record(
    lambda line: (
        line.config.parent / "runs" / rated.publication.run
        for rated in line.events(RatingsPublished)
    )
)
