"""A tournament's results as typed rows: ratings, win rates, outcomes, spend, metrics."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from commands.runs.judged_tournament import JudgedTournament
from commands.runs.parameters import (
    bradley_terry_parameters,
    bradley_terry_settings,
    elo_parameters,
    require_anchor,
)
from commands.runs.rows import (
    BradleyTerryRow,
    EloRow,
    EntrantSpendRow,
    MetricRow,
    OutcomeRow,
    ResponseRow,
    SpendRow,
    WinRateRow,
)
from commands.spending.endpoints import endpoint_spend, endpoint_usage
from commands.spending.prices import price_table
from ledger.identity import StreamId
from ledger.store import Ledger
from projections.evaluations.metrics import Metric, RunMetrics, metric_id, metrics_of
from projections.evaluations.state import EVALUATION_EVENTS, evaluations_of
from projections.fold import fold
from projections.ratings.bradley_terry.leaderboard import LeaderboardRow
from projections.ratings.standings import Standing, standings, win_rates
from projections.ratings.tournament import by_dimension
from projections.tournament.matches import PlannedResponse, planned_responses
from projections.tournament.settlement import account_of
from projections.tournament.spend import Bill, SpendKey, spend_of
from projections.tournament.state import Tournament


def elo_rows(source: JudgedTournament, chosen: Mapping[str, object]) -> Iterator[EloRow]:
    """Yield Elo ratings; chosen parameters override the recorded settings.

    Raises:
        ConfigurationError: A value is out of range, or asks for too few resamples.
    """
    parameters = elo_parameters(source.state, chosen, str)
    for dimension, group in source.settlements.items():
        for each in standings(dimension, group, source.roster, parameters).rows:
            yield _elo_row(dimension, each)


def bradley_terry_rows(
    source: JudgedTournament, chosen: Mapping[str, object]
) -> Iterator[BradleyTerryRow]:
    """Yield Bradley-Terry ratings; chosen parameters override the recorded settings.

    Raises:
        ConfigurationError: A value is out of range, or the anchor is not an entrant.
        CannotRate: The ratings cannot be computed.
    """
    parameters = bradley_terry_parameters(bradley_terry_settings(source.state), chosen, str)
    require_anchor(parameters, source.roster)
    for board in by_dimension(source.settlements, parameters, source.roster):
        for place in board.rows:
            yield _bradley_terry_row(board.name, place)


def win_rate_rows(source: JudgedTournament) -> Iterator[WinRateRow]:
    """Yield wins, losses and ties by dimension and pair of entrants."""
    settlements = [each for group in source.settlements.values() for each in group]
    counted = account_of(settlements).counted
    for each in win_rates(settlements):
        low, high = each.interval(counted) or (None, None)
        yield WinRateRow(*each, win_rate=each.win_rate, ci95_low=low, ci95_high=high)


def outcome_rows(source: JudgedTournament) -> Iterator[OutcomeRow]:
    """Yield every planned comparison with its status."""
    for dimension, group in source.settlements.items():
        for settlement in group:
            pairing = settlement.pairing
            yield OutcomeRow(
                dimension,
                pairing.prompt.prompt_id,
                pairing.a.entrant.entrant_id,
                pairing.b.entrant.entrant_id,
                order=settlement.order,
                status=settlement.status,
                winner=settlement.winner,
            )


def response_rows(state: Tournament) -> Iterator[ResponseRow]:
    """Yield every planned response, missing ones included."""
    for cell in planned_responses(state, [prompt.prompt_id for prompt in state.bank]):
        yield _response_row(state, cell)


def spend_rows(source: JudgedTournament) -> Iterator[SpendRow]:
    """Yield the cost of judging, by judge, dimension and day."""
    bills = source.folded(spend_of(source.state.stream)).bills
    judge, dimension = source.named_judge, source.named_dimension
    for key in sorted(bills, key=lambda each: (each.judge, each.dimension or "", each.day)):
        if judge in {None, key.judge} and dimension in {None, key.dimension}:
            yield _spend_row(key, bills[key])


def entrant_spend_rows(source: JudgedTournament, prices: Path | None) -> Iterator[EntrantSpendRow]:
    """Yield the tokens and cost of endpoint entrants; a price file goes before the shipped one.

    Raises:
        ConfigurationError: The price table cannot be read.
    """
    with Ledger.read_only(source.ledger) as opened:
        used = endpoint_usage(opened, source.state, until=source.until)
    for each in endpoint_spend(used, price_table(prices)):
        yield EntrantSpendRow(*each)


def metric_rows(ledger: Path, tournament: StreamId, until: int) -> Iterator[MetricRow]:
    """Yield the metrics of each entrant on each evaluation.

    Raises:
        LedgerError: The ledger cannot be read.
    """
    with Ledger.read_only(ledger) as opened:
        events = opened.read(until=until, types=EVALUATION_EVENTS)
        runs = fold(evaluations_of(tournament), events).runs
    for each in map(metrics_of, runs):
        for metric in each.metrics:
            yield _metric_row(each, metric)


def _elo_row(dimension: str, standing: Standing) -> EloRow:
    return EloRow(
        dimension,
        standing.entrant_id,
        rating=standing.rating,
        ci95_low=standing.lower,
        ci95_high=standing.upper,
        order_sem=standing.order_sem,
        n_matches=standing.n_matches,
    )


def _bradley_terry_row(dimension: str, place: LeaderboardRow) -> BradleyTerryRow:
    return BradleyTerryRow(
        dimension,
        place.entrant,
        rating=place.rating,
        low=place.lower,
        high=place.upper,
        rank=place.rank,
        worst_rank=place.worst_rank,
        n_battles=place.n_battles,
        group=place.group,
        reason=place.reason,
    )


def _response_row(state: Tournament, cell: PlannedResponse) -> ResponseRow:
    found = state.responses.get(cell.response_key)
    return ResponseRow(
        cell.prompt.prompt_id,
        cell.entrant.entrant_id,
        cell.response_key,
        finish_reason=found.finish_reason if found else None,
        n_tokens=found.n_generated_tokens if found else None,
        text=found.text if found else None,
        p_correct=found.p_correct if found else None,
        imported_from=found.imported_from if found else None,
    )


def _spend_row(key: SpendKey, bill: Bill) -> SpendRow:
    """Return a bill as a row; sums with a reply of unknown price are None."""
    is_known = not bill.n_unpriced
    return SpendRow(
        *key,
        n_replies=bill.n_replies,
        n_failed=bill.n_failed,
        n_unpriced=bill.n_unpriced,
        n_maybe_billed=bill.n_maybe_billed,
        n_input=bill.tokens.n_input,
        n_output=bill.tokens.n_output,
        n_cache_write_5m=bill.tokens.n_cache_write_5m,
        n_cache_write_1h=bill.tokens.n_cache_write_1h,
        n_cache_read=bill.tokens.n_cache_read,
        usd=bill.usd if is_known else None,
        priced_usd=bill.usd,
        failed_usd=bill.failed_usd if is_known else None,
        cache_saved_usd=bill.saved_usd if is_known else None,
    )


def _metric_row(of: RunMetrics, metric: Metric) -> MetricRow:
    plan = of.run.plan
    return MetricRow(
        metric_id(plan.evaluation, metric.name),
        plan.entrant.label,
        plan.evaluation,
        metric.name,
        **metric.estimate._asdict(),
        unit=metric.unit,
        higher_is_better=metric.higher_is_better,
        **of.counts._asdict(),
        plan=plan.number,
        run_key=plan.run_key,
    )
