"""What `tourney.read` and `read_set` return: views of a ledger, whose numbers are typed rows."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from importlib import import_module
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeVar, overload

from commands.errors import ConfigurationError
from commands.importing.imported_set import SelectedSet
from commands.reading.judged_tournament import (
    JudgedTournament,
    OutcomeSource,
    Perspective,
    judged_tournament,
)
from commands.reading.parameters import bradley_terry_parameters, elo_parameters, require_anchor
from commands.reading.resolve import tournament_at
from commands.reading.rows import (
    bias_rows,
    bills_of,
    curve_rows,
    fragility_rows,
    metric_rows,
    outcome_rows,
    response_rows,
    sample_rows,
)
from ledger.events.ratings import IntervalKind, IntervalUnit, TieModel, TieRule
from ledger.identity import StreamId
from ledger.store import Ledger
from projections.artifacts.escaping import escaped
from projections.evaluations.metrics import metrics_of, training_points
from projections.evaluations.samples import ASKED_EVENTS, Items, asked_evaluations_of
from projections.evaluations.state import Evaluations
from projections.fold import fold
from projections.ratings.bradley_terry.leaderboard import leaderboard
from projections.ratings.standings import standings, win_rates
from projections.results.columns import columns_of
from projections.results.evaluations import CurveRow, MetricRow, SampleRow
from projections.results.judges import BiasRow
from projections.results.money import EntrantSpendRow, SpendRow
from projections.results.outcomes import OutcomeRow, ResponseRow
from projections.results.ratings import BradleyTerryRow, EloRow, FragilityRow, WinRateRow
from projections.tournament.requests import endpoint_spend
from projections.tournament.spend import Spend, spend_of

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

Row = TypeVar("Row", bound=NamedTuple)
_SHOWN: Final = 60  # rows in a notebook
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

    def _repr_html_(self) -> str:
        """Show a table in a notebook, of the first rows; every text in it is escaped."""

        def cells(row: Iterable[object]) -> str:
            inside = (escape(escaped("" if cell is None else str(cell))) for cell in row)
            return "".join(f"<td>{cell}</td>" for cell in inside)

        about = {column.key: column.about for column in columns_of(self.kind)}
        headings = (
            f'<th title="{escape(about.get(name, ""))}">{name}</th>' for name in self.kind._fields
        )
        shown_rows = "".join(f"<tr>{cells(row)}</tr>" for row in self.rows[:_SHOWN])
        n_more = len(self.rows) - _SHOWN
        more = f"<p>and {n_more:,} more: to_frame() has all</p>" if n_more > 0 else ""
        head = f"<thead><tr>{''.join(headings)}</tr></thead>"
        return f"<table>{head}<tbody>{shown_rows}</tbody></table>{more}"

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
            ConfigurationError: It is another library.
            ModuleNotFoundError: The library is not installed; None: neither is.
        """
        if library not in {None, *_LIBRARIES}:  # whose name may be anybody's: do not install it
            raise ConfigurationError([f"library {library!r} is not known; known: pandas, polars"])
        names = _LIBRARIES if library is None else (library,)
        installed = next((name for name in names if find_spec(name)), None)
        if installed is None:
            lacking = "neither is" if library is None else "it is not"
            raise ModuleNotFoundError(
                f"to_frame() needs {library or 'pandas or polars'}, and {lacking} installed:"
                f" pip install {names[0]}"
            )
        module, columns = import_module(installed), list(self.kind._fields)
        if installed == "pandas":
            return module.DataFrame(list(self.rows), columns=columns)
        return module.DataFrame(self.rows, schema=columns, orient="row", infer_schema_length=None)


class OutcomesView(ABC):
    """What a tournament and an imported set of battles have in common.

    Arguments left at None take a tournament's recorded settings, or the defaults.
    """

    @property
    @abstractmethod
    def _outcomes(self) -> OutcomeSource: ...

    def elo(
        self,
        *,
        k: float | None = None,
        permutations: int | None = None,
        seed: int | None = None,
        initial_rating: float | None = None,
        ties: TieRule | None = None,
        bootstraps: int | None = None,
    ) -> Rows[EloRow]:
        """Return Elo ratings, best first on each dimension; bootstraps=0 leaves out intervals."""
        chosen = {
            "k": k,
            "permutations": permutations,
            "seed": seed,
            "initial_rating": initial_rating,
            "ties": ties,
            "bootstraps": bootstraps,
        }
        source = self._outcomes
        parameters = elo_parameters(source.settings("elo"), chosen, str)
        rated = (
            standings(dimension, battles, source.roster, parameters).rows
            for dimension, battles in source.columns.items()
        )
        return Rows(EloRow, tuple(chain.from_iterable(rated)))

    def bradley_terry(
        self,
        *,
        ties: TieModel | None = None,
        anchor: str | None = None,
        anchor_rating: float | None = None,
        prior_sd: float | None = None,
        interval: IntervalKind | None = None,
        unit: IntervalUnit | None = None,
        level: float | None = None,
        bootstraps: int | None = None,
        seed: int | None = None,
    ) -> Rows[BradleyTerryRow]:
        """Return Bradley-Terry ratings, best first on each dimension."""
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
        source = self._outcomes
        parameters = bradley_terry_parameters(source.settings("bradley_terry"), chosen, str)
        require_anchor(parameters, source.roster)
        rated = (
            leaderboard(name, battles, parameters, source.roster).rows
            for name, battles in source.rated_battles(parameters.ties).items()
        )
        return Rows(BradleyTerryRow, tuple(chain.from_iterable(rated)))

    def win_rates(self) -> Rows[WinRateRow]:
        """Return wins, losses and ties of each pair of entrants on each dimension."""
        return Rows(WinRateRow, win_rates(self._outcomes.columns))

    def fragility(self) -> Rows[FragilityRow]:
        """Return how few prompts decide who is ahead, for each two neighbours by Bradley-Terry."""
        return Rows(FragilityRow, tuple(fragility_rows(self._outcomes)))

    def outcomes(self) -> Rows[OutcomeRow]:
        """Return every planned comparison, or every imported battle, with its outcome or status."""
        compared = chain.from_iterable(self._outcomes.compared.values())
        return Rows(OutcomeRow, tuple(outcome_rows(compared)))


@dataclass(frozen=True)
class TournamentView(OutcomesView):
    """A tournament up to a position of its ledger: later events change nothing here."""

    ledger: Path
    tournament: StreamId
    as_of: int  # the last position that is read
    perspective: Perspective  # whose verdicts count, and by which rule

    def bias(self) -> Rows[BiasRow]:
        """Return what is known of the judges' biases, by the recorded verdicts on all prompts."""
        if self.perspective.where:
            raise ConfigurationError(["bias is measured on all prompts: leave out where"])
        return Rows(BiasRow, tuple(bias_rows(self._judged)))

    def responses(self) -> Rows[ResponseRow]:
        """Return every planned response."""
        source = self._judged
        rows = response_rows(source.state)
        return Rows(ResponseRow, tuple(row for row in rows if row.prompt in source.prompts))

    def spend(self) -> Rows[SpendRow]:
        """Return the cost of judges' replies, at the prices of their time."""
        bills = bills_of(self._judged, self._spend)
        return Rows(
            SpendRow, tuple(SpendRow(**key._asdict(), **bill.fields) for key, bill in bills)
        )

    def entrant_spend(self) -> Rows[EntrantSpendRow]:
        """Return what endpoint entrants cost, at the prices of their time."""
        return Rows(EntrantSpendRow, tuple(endpoint_spend(self._spend.entrants)))

    def metrics(self) -> Rows[MetricRow]:
        """Return the metrics of each entrant on each evaluation."""
        evaluations, _ = self._evaluations
        of_runs = (metric_rows(metrics_of(run)) for run in evaluations.runs)
        return Rows(MetricRow, tuple(chain.from_iterable(of_runs)))

    def curve(self) -> Rows[CurveRow]:
        """Return the metrics of evaluations over the steps of trainings."""
        evaluations, _ = self._evaluations
        return Rows(CurveRow, tuple(curve_rows(training_points(evaluations))))

    def samples(self) -> Rows[SampleRow]:
        """Return what evaluations asked, and what came of each sample, as planned last."""
        evaluations, items = self._evaluations
        of_runs = (sample_rows(run, items) for run in evaluations.runs)
        return Rows(SampleRow, tuple(chain.from_iterable(of_runs)))

    @property
    def _outcomes(self) -> JudgedTournament:
        return self._judged

    @property
    def _spend(self) -> Spend:
        return self._judged.folded(spend_of(self.tournament))

    @property
    def _evaluations(self) -> tuple[Evaluations, Items]:
        with Ledger.read_only(self.ledger) as opened:
            events = opened.read(until=self.as_of, types=ASKED_EVENTS)
            evaluations, items = fold(asked_evaluations_of(self.tournament), events)
        return evaluations, items

    @cached_property
    def _judged(self) -> JudgedTournament:
        with Ledger.read_only(self.ledger) as opened:
            state = tournament_at(opened, self.tournament, self.as_of)
        return judged_tournament(state, self.ledger, self.as_of, self.perspective, str)


@dataclass(frozen=True)
class SetView(OutcomesView):
    """An imported set of battles up to a position of its ledger."""

    selected: SelectedSet

    @property
    def _outcomes(self) -> SelectedSet:
        return self.selected
