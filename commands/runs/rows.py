"""The typed rows of results, and their conversion to a data frame of pandas or polars."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeVar, overload

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    from projections.evaluations.metrics import Metric, RunMetrics
    from projections.ratings.fragility import Fragility
    from projections.ratings.standings import WinRate
    from projections.tournament.matches import PlannedResponse
    from projections.tournament.settlement import Settlement
    from projections.tournament.state import Tournament

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
        chosen = library or next((each for each in _LIBRARIES if find_spec(each)), None)
        if chosen is None:
            raise ModuleNotFoundError(
                "to_frame() needs pandas or polars, and neither is installed: pip install pandas"
            )
        module, columns = import_module(chosen), list(self.kind._fields)
        if module.__name__ == "pandas":
            return module.DataFrame(list(self.rows), columns=columns)
        return module.DataFrame(self.rows, schema=columns, orient="row", infer_schema_length=None)


class EloRow(NamedTuple):
    """The Elo rating of an entrant on a dimension; None if it has no counted match."""

    dimension: str
    entrant: str
    rating: float | None
    ci95_low: float | None  # by resampling prompts
    ci95_high: float | None
    order_sem: float | None  # standard error of the mean over match orders
    n_matches: int


class BradleyTerryRow(NamedTuple):
    """The Bradley-Terry rating of an entrant on a dimension."""

    dimension: str
    entrant: str
    rating: float | None
    low: float | None  # of the interval, by default of 95 %
    high: float | None
    rank: int | None  # 1 + the number of significantly better entrants
    worst_rank: int | None  # the number of entrants that are not significantly worse
    n_battles: int
    group: int | None  # ratings of different groups cannot be compared
    reason: str | None  # why there is no rating


class WinRateRow(NamedTuple):
    """Wins, losses and ties of two entrants on a dimension."""

    dimension: str
    entrant_a: str
    entrant_b: str
    a_wins: int
    b_wins: int
    ties: int
    inconsistent: int
    missing: int
    win_rate: float | None  # a's share, a tie as half
    ci95_low: float | None  # clustered by prompt
    ci95_high: float | None

    @classmethod
    def of(cls, pair: "WinRate") -> "WinRateRow":
        """Return the row of a pair of entrants."""
        return cls(*pair[:-1], pair.win_rate, *(pair.interval or (None, None)))


class FragilityRow(NamedTuple):
    """How few prompts decide that one entrant is rated above its neighbour."""

    dimension: str
    ahead: str
    behind: str
    gap: float  # Elo points, of Bradley-Terry ratings
    n_decisive: int | None  # prompts; None if no prompts turn the gap
    n_prompts: int  # on which they or others comparable with them met
    decisive: tuple[str | None, ...] | None  # the most influential first; None: without an id

    @classmethod
    def of(cls, dimension: str, found: "Fragility") -> "FragilityRow":
        """Return the row of a pair of neighbours."""
        prompts = found.decisive
        return cls(
            dimension,
            found.ahead,
            found.behind,
            found.gap,
            n_decisive=None if prompts is None else len(prompts),
            n_prompts=found.n_prompts,
            decisive=None
            if prompts is None
            else tuple(None if each is None else str(each) for each in prompts),
        )


class OutcomeRow(NamedTuple):
    """The outcome of one planned comparison of two responses."""

    dimension: str
    prompt: str
    entrant_a: str
    entrant_b: str
    order: str | None  # only if the policy counts each order on its own
    status: str  # a, b, tie, inconsistent, pending, or why there is no outcome
    winner: str | None

    @classmethod
    def of(cls, settlement: "Settlement") -> "OutcomeRow":
        """Return the row of a pairing, or of one of its orders."""
        pairing = settlement.pairing
        return cls(
            pairing.rubric.dimension,
            pairing.prompt.prompt_id,
            pairing.a.entrant.entrant_id,
            pairing.b.entrant.entrant_id,
            order=settlement.order,
            status=settlement.status,
            winner=settlement.winner,
        )


class ResponseRow(NamedTuple):
    """The response of an entrant to a prompt; None while it is missing."""

    prompt: str
    entrant: str
    response_key: str
    finish_reason: str | None
    n_tokens: int | None
    text: str | None
    p_correct: float | None
    imported_from: str | None

    @classmethod
    def of(cls, state: "Tournament", cell: "PlannedResponse") -> "ResponseRow":
        """Return the row of what an entrant is to answer to a prompt."""
        found = state.responses.get(cell.response_key)
        return cls(
            cell.prompt.prompt_id,
            cell.entrant.entrant_id,
            cell.response_key,
            finish_reason=found.finish_reason if found else None,
            n_tokens=found.n_generated_tokens if found else None,
            text=found.text if found else None,
            p_correct=found.p_correct if found else None,
            imported_from=found.imported_from if found else None,
        )


class SpendRow(NamedTuple):
    """The tokens and cost of a judge's replies on a dimension and day, in UTC."""

    judge: str
    dimension: str | None
    day: date
    n_replies: int
    n_failed: int  # of the replies: without a verdict
    n_unpriced: int  # of the replies: at an unknown price
    n_maybe_billed: int  # requests that may have been billed without an answer
    maybe_usd: float  # for those, at most
    n_input: int
    n_output: int
    n_cache_write_5m: int
    n_cache_write_1h: int
    n_cache_read: int
    usd: float | None  # None: the price of a reply is unknown
    priced_usd: float  # of the replies at a known price
    failed_usd: float | None
    cache_saved_usd: float | None


class EntrantSpendRow(NamedTuple):
    """The tokens of an endpoint entrant, and their cost by today's prices."""

    entrant: str
    model: str
    n_answers: int
    n_input: int
    n_output: int
    usd: float | None  # None: the price is unknown
    price_table: str | None


class MetricRow(NamedTuple):
    """A metric of an entrant on an evaluation, with its 95 % interval."""

    id: str
    entrant: str
    evaluation: str
    metric: str
    value: float | None
    n: int  # samples that count
    standard_error: float | None  # clustered by prompt
    low: float | None
    high: float | None
    unit: str
    higher_is_better: bool
    n_planned: int
    n_observed: int
    n_unscorable: int
    n_truncated: int | None
    n_length_limited: int | None
    plan: int
    run_key: str

    @classmethod
    def of(cls, measured: "RunMetrics", metric: "Metric") -> "MetricRow":
        """Return the row of a metric of a run."""
        plan = measured.run.plan
        return cls(
            metric.id_on(plan.evaluation),
            plan.entrant.label,
            plan.evaluation,
            metric.name,
            *metric.estimate,
            metric.unit,
            metric.higher_is_better,
            *measured.counts,
            plan.number,
            plan.run_key,
        )
