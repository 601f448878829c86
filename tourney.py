"""Read a tournament's ledger from a notebook or a script.

    import tourney

    demo = tourney.read("tourney-demo/tournament.db")
    demo.elo(k=32).to_frame()

The numbers are those of `tourney project ... --json`. Nothing is written and no file stays open.
What a method needs is imported when it is called, so that `import tourney` takes no time.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeVar, overload

from commands.runs.rows import (
    BiasRow,
    BradleyTerryRow,
    EloRow,
    EntrantSpendRow,
    FragilityRow,
    MetricRow,
    OutcomeRow,
    ResponseRow,
    SpendRow,
    WinRateRow,
)
from commands.settings.version import VERSION
from ledger.errors import TourneyError

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    from commands.importing.imported_set import SelectedSet
    from commands.runs.judged_tournament import JudgedTournament, OutcomeSource, Perspective
    from ledger.events.ratings import IntervalKind, IntervalUnit, TieModel, TieRule
    from ledger.identity import StreamId
    from ledger.store import Ledger

__all__ = [
    "BiasRow",
    "BradleyTerryRow",
    "EloRow",
    "EntrantSpendRow",
    "FragilityRow",
    "MetricRow",
    "OutcomeRow",
    "ResponseRow",
    "Rows",
    "SetView",
    "SpendRow",
    "TournamentView",
    "TourneyError",
    "WinRateRow",
    "__version__",
    "read",
    "read_set",
]
__version__ = VERSION


Row = TypeVar("Row", bound=NamedTuple)
_LIBRARIES: Final = ("pandas", "polars")  # the first that is installed makes the frame


@dataclass(frozen=True, repr=False)
class Rows(Sequence[Row]):
    """An immutable sequence of rows of one kind."""

    kind: type[Row]
    rows: tuple[Row, ...]

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.rows)

    @overload
    def __getitem__(self, index: int) -> Row: ...

    @overload
    def __getitem__(self, index: slice) -> "Rows[Row]": ...

    def __getitem__(self, index: int | slice) -> "Row | Rows[Row]":
        """Return a row, or rows of the same kind."""
        return Rows(self.kind, self.rows[index]) if isinstance(index, slice) else self.rows[index]

    def __repr__(self) -> str:
        """Show one row a line."""
        return "\n".join(map(repr, self.rows)) or f"no {self.kind.__name__}"

    @overload
    def to_frame(self, library: Literal["pandas"]) -> "pd.DataFrame": ...

    @overload
    def to_frame(self, library: Literal["polars"]) -> "pl.DataFrame": ...

    @overload
    def to_frame(self, library: None = None) -> "pd.DataFrame | pl.DataFrame": ...

    def to_frame(
        self, library: Literal["pandas", "polars"] | None = None
    ) -> "pd.DataFrame | pl.DataFrame":
        """Return the rows as a data frame with a column for each field.

        Args:
            library: The library of the frame; None: pandas if it is installed, else polars.

        Raises:
            ModuleNotFoundError: The library is not installed; None: neither is.
        """
        chosen = next(
            (each for each in _LIBRARIES if library in {each, None} and find_spec(each)), None
        )
        if chosen is None:
            wanted = library or "pandas or polars"
            lacking = f"it is not installed: pip install {library}"
            neither = "neither is installed: pip install pandas"
            raise ModuleNotFoundError(
                f"to_frame() needs {wanted}, and {lacking if library else neither}"
            )
        module, columns = import_module(chosen), list(self.kind._fields)
        if module.__name__ == "pandas":
            return module.DataFrame(list(self.rows), columns=columns)
        return module.DataFrame(self.rows, schema=columns, orient="row", infer_schema_length=None)


def read(
    ledger: str | PathLike[str] = "tournament.db",
    *,
    tournament: str | None = None,
    as_of: int | str | datetime | None = None,
    judge: str | None = None,
    dimension: str | None = None,
    policy: str | None = None,
    parser: str | None = None,
) -> "TournamentView":
    """Return a tournament as recorded now, or as of an earlier position.

    Args:
        ledger: The ledger's file.
        tournament: Its name, if the ledger holds several.
        as_of: The last position to read, or a time: a datetime, or text in ISO 8601.
        judge: Whose verdicts count; None: the first judge that has any.
        dimension: Only this dimension.
        policy: How verdicts become outcomes; None: the recorded policy.
        parser: Parse the stored replies again with this parser.

    Raises:
        TourneyError: The ledger cannot be read, or does not contain a name.
    """
    from commands.runs.choices import rule_of, stream_named
    from commands.runs.judged_tournament import Perspective
    from ledger.store import Ledger
    from projections.verdicts.policies import DEFAULT_POLICY

    path, rule = Path(ledger), rule_of(policy or DEFAULT_POLICY, parser, str)
    with Ledger.read_only(path) as opened:
        stream = stream_named(opened, tournament, str)
        until = _last_position(opened, as_of)
    return TournamentView(path, stream, until, Perspective(judge, dimension, rule))


def read_set(
    ledger: str | PathLike[str] = "tournament.db",
    *,
    name: str,
    where: Mapping[str, str | Sequence[str]] | None = None,
    as_of: int | str | datetime | None = None,
) -> "SetView":
    """Return an imported set of battles as recorded now, or as of an earlier position.

    Args:
        ledger: The ledger's file; it needs no tournament.
        name: The set's name, as `tourney import battles --name` gave it.
        where: Only battles with this value, or one of these, by column, such as
            {"category": "math"}.
        as_of: The last position to read, or a time: a datetime, or text in ISO 8601.

    Raises:
        TourneyError: The ledger cannot be read, or does not contain the set.
    """
    from commands.importing.imported_set import imported_set
    from ledger.store import Ledger

    kept = {
        column: [values] if isinstance(values, str) else values
        for column, values in (where or {}).items()
    }
    with Ledger.read_only(Path(ledger)) as opened:
        return SetView(imported_set(opened, name, _last_position(opened, as_of), kept, str))


def _last_position(opened: "Ledger", as_of: int | str | datetime | None) -> int:
    """Return the last position to read."""
    from commands.runs.choices import position_at

    if as_of is None:
        return opened.head.position
    moment = as_of.isoformat() if isinstance(as_of, datetime) else str(as_of)
    return position_at(opened, moment, option="as_of")


class OutcomesView(ABC):
    """What a tournament and an imported set of battles have in common.

    Arguments left at None take a tournament's recorded settings, or the defaults.
    """

    @property
    @abstractmethod
    def _outcomes(self) -> "OutcomeSource": ...

    def elo(
        self,
        *,
        k: float | None = None,
        permutations: int | None = None,
        seed: int | None = None,
        initial_rating: float | None = None,
        ties: "TieRule | None" = None,
        bootstraps: int | None = None,
    ) -> Rows[EloRow]:
        """Return Elo ratings, best first on each dimension; bootstraps=0 leaves out intervals."""
        from commands.runs.results import elo_rows

        chosen = {
            "k": k,
            "permutations": permutations,
            "seed": seed,
            "initial_rating": initial_rating,
            "ties": ties,
            "bootstraps": bootstraps,
        }
        return Rows(EloRow, tuple(elo_rows(self._outcomes, chosen)))

    def bradley_terry(
        self,
        *,
        ties: "TieModel | None" = None,
        anchor: str | None = None,
        anchor_rating: float | None = None,
        prior_sd: float | None = None,
        interval: "IntervalKind | None" = None,
        unit: "IntervalUnit | None" = None,
        level: float | None = None,
        bootstraps: int | None = None,
        seed: int | None = None,
    ) -> Rows[BradleyTerryRow]:
        """Return Bradley-Terry ratings, best first on each dimension."""
        from commands.runs.results import bradley_terry_rows

        chosen = {
            "ties": ties,
            "anchor": anchor,
            "anchor_rating": anchor_rating,
            "prior_sd": prior_sd,
            "interval": interval,
            "unit": unit,
            "level": level,
            "resamples": bootstraps,
            "seed": seed,
        }
        return Rows(BradleyTerryRow, tuple(bradley_terry_rows(self._outcomes, chosen)))

    def win_rates(self) -> Rows[WinRateRow]:
        """Return wins, losses and ties of each pair of entrants on each dimension."""
        from commands.runs.results import win_rate_rows

        return Rows(WinRateRow, tuple(win_rate_rows(self._outcomes)))

    def fragility(self) -> Rows[FragilityRow]:
        """Return how few prompts decide who is ahead, for each two neighbours by Bradley-Terry."""
        from commands.runs.results import fragility_rows

        return Rows(FragilityRow, tuple(fragility_rows(self._outcomes)))

    def outcomes(self) -> Rows[OutcomeRow]:
        """Return every planned comparison, or every imported battle, with its outcome or status."""
        from commands.runs.results import outcome_rows

        return Rows(OutcomeRow, tuple(outcome_rows(self._outcomes)))


@dataclass(frozen=True)
class TournamentView(OutcomesView):
    """A tournament up to a position of its ledger: later events change nothing here."""

    ledger: Path
    tournament: "StreamId"
    as_of: int  # the last position that is read
    perspective: "Perspective"  # whose verdicts count, and by which rule

    def bias(self) -> Rows[BiasRow]:
        """Return what is known of the judges' biases, by the recorded verdicts."""
        from commands.runs.results import bias_rows

        return Rows(BiasRow, tuple(bias_rows(self._reading)))

    def responses(self) -> Rows[ResponseRow]:
        """Return every planned response."""
        from commands.runs.results import response_rows

        return Rows(ResponseRow, tuple(response_rows(self._reading.state)))

    def spend(self) -> Rows[SpendRow]:
        """Return the cost of judges' replies, at the prices of their time."""
        from commands.runs.results import spend_rows

        return Rows(SpendRow, tuple(spend_rows(self._reading)))

    def entrant_spend(self) -> Rows[EntrantSpendRow]:
        """Return what endpoint entrants cost, at the prices of their time."""
        from commands.runs.results import entrant_spend_rows

        return Rows(EntrantSpendRow, tuple(entrant_spend_rows(self._reading)))

    def metrics(self) -> Rows[MetricRow]:
        """Return the metrics of each entrant on each evaluation."""
        from commands.runs.results import metric_rows

        return Rows(MetricRow, tuple(metric_rows(self.ledger, self.tournament, self.as_of)))

    @property
    def _outcomes(self) -> "JudgedTournament":
        return self._reading

    @cached_property
    def _reading(self) -> "JudgedTournament":
        from commands.runs.choices import tournament_at
        from commands.runs.judged_tournament import judged_tournament
        from ledger.store import Ledger

        with Ledger.read_only(self.ledger) as opened:
            state = tournament_at(opened, self.tournament, self.as_of)
        return judged_tournament(state, self.ledger, self.as_of, self.perspective, str)


@dataclass(frozen=True)
class SetView(OutcomesView):
    """An imported set of battles up to a position of its ledger."""

    selected: "SelectedSet"

    @property
    def _outcomes(self) -> "SelectedSet":
        return self.selected
