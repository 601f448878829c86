"""The typed rows of results: ratings, outcomes, responses, spend and metrics."""

from datetime import date
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from projections.evaluations.metrics import Metric, RunMetrics
    from projections.ratings.bradley_terry.leaderboard import LeaderboardRow
    from projections.ratings.fragility import Fragility
    from projections.ratings.standings import WinRate
    from projections.tournament.compared import Compared
    from projections.tournament.matches import PlannedResponse
    from projections.tournament.state import Tournament


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
    rank: str | None  # within the group, such as "1" or "2-4"; None: no interval
    rank_low: int | None  # 1 + the number of significantly better entrants
    rank_high: int | None  # the number of entrants that are not significantly worse
    n_battles: int
    group: int | None  # ratings of different groups cannot be compared
    reason: str | None  # why there is no rating
    no_interval: str | None  # why a rating has no interval

    @classmethod
    def of(cls, dimension: str, place: "LeaderboardRow") -> "BradleyTerryRow":
        """Return the row of an entrant."""
        return cls(
            dimension,
            *place[:4],
            place.rank,
            place.rank_low,
            place.rank_high,
            place.n_battles,
            place.group,
            place.reason,
            place.no_interval,
        )


class BradleyTerryPair(NamedTuple):
    """The difference of two Bradley-Terry ratings, compared together with all other pairs."""

    dimension: str
    entrant_a: str  # the one with the higher rating
    entrant_b: str
    difference: float
    low: float | None  # of an interval that holds for all pairs at once
    high: float | None
    p: float | None  # adjusted for the number of pairs


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


class BiasRow(NamedTuple):
    """A figure about a judge on a dimension, with its 95 % interval."""

    dimension: str
    judge: str
    measure: str
    of: str | None  # whom or what it concerns, where a judge has several of a kind
    value: float | None
    ci95_low: float | None  # clustered by prompt
    ci95_high: float | None
    unit: str
    n: int
    n_of: str  # what n counts
    reason: str | None  # why there is no value


class OutcomeRow(NamedTuple):
    """The outcome of one planned comparison of two responses, or of an imported battle."""

    id: str | None  # of the pairing: by dimension, prompt and entrants; None: imported
    dimension: str  # or the imported set
    prompt: str | None  # None: an imported battle without an id
    entrant_a: str
    entrant_b: str
    order: str | None  # only if the policy counts each order on its own
    status: str  # a, b, tie, inconsistent, pending, or why there is no outcome
    winner: str | None

    @classmethod
    def of(cls, compared: "Compared") -> "OutcomeRow":
        """Return the row of a pairing, of one of its orders, or of an imported battle."""
        return cls(
            compared.battle_id,
            compared.dimension,
            compared.prompt_id,
            compared.entrant_a,
            compared.entrant_b,
            order=compared.order,
            status=compared.status,
            winner=compared.winner,
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
    n_maybe_billed: int  # requests that may have been billed; their tokens are not known
    maybe_usd: float | None  # for those, at most; None: the price of some was unknown
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
    """The tokens of an endpoint entrant, and their cost by the prices of their time."""

    entrant: str
    model: str
    n_answers: int
    n_input: int
    n_output: int
    usd: float | None  # None: the price of some answer was unknown
    price_table: str | None
    n_maybe_billed: int
    maybe_usd: float | None  # for those, at worst; None: the price of some was unknown


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
