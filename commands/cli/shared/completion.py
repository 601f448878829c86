"""Values that a shell offers while one types: the names that are on record in a ledger.

The ledger is the one that the line names so far, or the default one. Only events of the types that
hold the names are decoded.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import typer

from commands.cli.shared.ledger import DEFAULT_CONFIG, ledger_path
from ledger.events.evaluations import EvaluationPlanned
from ledger.events.imports import set_of
from ledger.events.ratings import RatingsPublished
from ledger.events.registration import TournamentOpened
from ledger.store import Ledger
from projections.tournament.batches import BATCH_EVENTS, open_batches
from projections.verdicts.parsers import PARSERS
from projections.verdicts.policies import POLICY_NAMES

Completion: TypeAlias = Callable[[typer.Context], list[str]]


class _TypedLine(NamedTuple):
    """What the line that is typed says so far, and its ledger."""

    ledger: Ledger
    config: Path
    tournament: str | None

    def openings(self) -> Iterator[TournamentOpened]:
        """Yield the openings of the tournament that the line names, or of all, newest first."""
        found = [*self.ledger.read(types={"TournamentOpened"})]
        for recorded in reversed(found):
            is_wanted = self.tournament in {None, recorded.stream}
            if isinstance(recorded.event, TournamentOpened) and is_wanted:
                yield recorded.event


def _on_record(names: Callable[[_TypedLine], Iterable[str]]) -> Completion:
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


def _sets(line: _TypedLine) -> Iterator[str]:
    yield from filter(None, map(set_of, line.ledger.streams()))


def _tournaments(line: _TypedLine) -> Iterator[str]:
    yield from (stream for stream in line.ledger.streams() if set_of(stream) is None)


def _batches(line: _TypedLine) -> Iterator[str]:
    for batch in open_batches(line.ledger.read(types=BATCH_EVENTS)):
        if batch.submitted is not None:
            yield batch.submitted.provider_batch_id


def _evaluations(line: _TypedLine) -> Iterator[str]:
    for recorded in line.ledger.read(types={"EvaluationPlanned"}):
        if isinstance(recorded.event, EvaluationPlanned):
            yield recorded.event.evaluation


def _runs(line: _TypedLine) -> Iterator[str]:
    for recorded in line.ledger.read(types={"RatingsPublished"}):
        if isinstance(recorded.event, RatingsPublished):
            yield str(line.config.parent / "runs" / recorded.event.publication.run)


tournaments: Final = _on_record(_tournaments)
imported_sets: Final = _on_record(_sets)
dimensions: Final = _on_record(
    lambda line: (each.label for opening in line.openings() for each in opening.rubrics)
)
entrants: Final = _on_record(
    lambda line: (each.label for opening in line.openings() for each in opening.entrants)
)
judges: Final = _on_record(
    lambda line: (each.label for opening in line.openings() for each in opening.judges)
)
evaluations: Final = _on_record(_evaluations)
batches: Final = _on_record(_batches)
runs: Final = _on_record(_runs)


def policies() -> list[str]:
    """Return the policies by name."""
    return [*POLICY_NAMES]


def parsers() -> list[str]:
    """Return the parsers by name, without their versions."""
    return [*dict.fromkeys(name.partition("@")[0] for name in PARSERS)]
