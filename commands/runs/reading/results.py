"""Results as typed rows: ratings, win rates, outcomes, spend and metrics.

What rests on battles is of a tournament or of an imported set.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Final

from commands.runs.judged_tournament import JudgedTournament, OutcomeSource
from commands.runs.parameters import (
    bradley_terry_parameters,
    elo_parameters,
    require_anchor,
)
from commands.runs.reading import evaluated, rows
from ledger.chain import Head
from ledger.events.ratings import EloParameters, Publication, PublicationTerms
from ledger.identity import StreamId
from ledger.store import Ledger
from projections.artifacts.results import Results, Starter, rated_results
from projections.evaluations.curve import metrics_over_steps, training_points
from projections.evaluations.metrics import metrics_of
from projections.evaluations.samples import ASKED_EVENTS, asked_evaluations_of, asked_samples
from projections.evaluations.state import EVALUATION_EVENTS, evaluations_of
from projections.fold import fold
from projections.ratings.bradley_terry.leaderboard import leaderboard
from projections.ratings.fragility import fragility
from projections.ratings.judge_bias.measures import biases
from projections.ratings.standings import standings, win_rates
from projections.tournament.matches import planned_responses
from projections.tournament.requests import endpoint_spend
from projections.tournament.spend import spend_of
from projections.tournament.state import Tournament

_OF_REPORT: Final = {"k_sweep": EloParameters().k_sweep, "bootstraps": 0}


def results_now(source: JudgedTournament, head: Head, start: Starter = partial) -> Results:
    """Return what a run would publish of a tournament as it stands at a head.

    Without Elo's intervals: they take hundreds of resamples, and a report shows none.

    Raises:
        ConfigurationError: A recorded setting is out of range.
        CannotRate: The ratings cannot be computed.
    """
    state = source.state
    if state.newest is None:
        raise ValueError(f"tournament {state.stream!r} was never opened: there is nothing to rate")
    terms = PublicationTerms(
        mode="headline",
        judge=source.judge.judge_id,
        policy=source.rule.policy,
        elo=elo_parameters(source.settings("elo"), _OF_REPORT),
        entrants=tuple(source.roster),
        prompts=tuple(prompt.prompt_id for prompt in state.bank),
        bradley_terry=bradley_terry_parameters(source.settings("bradley_terry"), {}),
    )
    publication = Publication(
        run="",
        terms=terms,
        started_at=state.newest.recorded_at,
        as_of=head.position,
        head=head.chain,
    )
    return rated_results(state, publication, source.judge, source.settlements, start)


def elo_rows(source: OutcomeSource, chosen: Mapping[str, object]) -> Iterator[rows.EloRow]:
    """Yield Elo ratings; chosen parameters override the recorded settings.

    Raises:
        ConfigurationError: A value is out of range, or asks for too few resamples.
        CannotRate: A battle has a weight.
    """
    parameters = elo_parameters(source.settings("elo"), chosen, str)
    for dimension, group in source.compared.items():
        for each in standings(dimension, group, source.roster, parameters).rows:
            yield rows.EloRow(dimension, *each[:-1])


def bradley_terry_rows(
    source: OutcomeSource, chosen: Mapping[str, object]
) -> Iterator[rows.BradleyTerryRow]:
    """Yield Bradley-Terry ratings; chosen parameters override the recorded settings.

    Raises:
        ConfigurationError: A value is out of range, or the anchor is not an entrant.
        CannotRate: The ratings cannot be computed.
    """
    parameters = bradley_terry_parameters(source.settings("bradley_terry"), chosen, str)
    require_anchor(parameters, source.roster)
    for name, battles in source.rated_battles(parameters.ties).items():
        for place in leaderboard(name, battles, parameters, source.roster).rows:
            yield rows.BradleyTerryRow.of(name, place)


def fragility_rows(source: OutcomeSource) -> Iterator[rows.FragilityRow]:
    """Yield how few prompts decide who is ahead, by the recorded Bradley-Terry settings.

    Raises:
        CannotRate: The ratings cannot be computed.
    """
    parameters = bradley_terry_parameters(source.settings("bradley_terry"), {})
    for dimension, battles in source.rated_battles(parameters.ties).items():
        for each in fragility(battles, parameters):
            yield rows.FragilityRow.of(dimension, each)


def bias_rows(source: JudgedTournament) -> Iterator[rows.BiasRow]:
    """Yield what is known of the biases of the judge that was named, or else of all.

    Raises:
        CannotRate: Strengths are too far apart to be computed.
    """
    for each in biases(source.state, source.state.panel):
        if source.named_judge in {None, each.judge}:
            yield rows.BiasRow(each.dimension, each.judge, *each.figure)


def win_rate_rows(source: OutcomeSource) -> Iterator[rows.WinRateRow]:
    """Yield wins, losses and ties by dimension and pair of entrants."""
    compared = chain.from_iterable(source.compared.values())
    yield from map(rows.WinRateRow.of, win_rates(compared))


def outcome_rows(source: OutcomeSource) -> Iterator[rows.OutcomeRow]:
    """Yield every planned comparison, or every imported battle, with its status."""
    for group in source.compared.values():
        yield from map(rows.OutcomeRow.of, group)


def response_rows(state: Tournament) -> Iterator[rows.ResponseRow]:
    """Yield every planned response, missing ones included."""
    for cell in planned_responses(state, [prompt.prompt_id for prompt in state.bank]):
        yield rows.ResponseRow.of(state, cell)


def spend_rows(source: JudgedTournament) -> Iterator[rows.SpendRow]:
    """Yield the cost of judging, by judge, dimension and day."""
    bills = source.folded(spend_of(source.state.stream)).bills
    judge, dimension = source.named_judge, source.named_dimension
    for key in sorted(bills, key=lambda each: (each.judge, each.dimension or "", each.day)):
        if judge in {None, key.judge} and dimension in {None, key.dimension}:
            yield rows.SpendRow(*key, **bills[key].fields)


def entrant_spend_rows(source: JudgedTournament) -> Iterator[rows.EntrantSpendRow]:
    """Yield the tokens and cost of endpoint entrants."""
    for each in endpoint_spend(source.folded(spend_of(source.state.stream)).entrants):
        yield rows.EntrantSpendRow(*each)


def metric_rows(ledger: Path, tournament: StreamId, until: int) -> Iterator[rows.MetricRow]:
    """Yield the metrics of each entrant on each evaluation.

    Raises:
        LedgerError: The ledger cannot be read.
    """
    with Ledger.read_only(ledger) as opened:
        events = opened.read(until=until, types=EVALUATION_EVENTS)
        runs = fold(evaluations_of(tournament), events).runs
    for each in map(metrics_of, runs):
        for metric in each.metrics:
            yield rows.MetricRow.of(each, metric)


def recorded_samples(
    ledger: Path, tournament: StreamId, until: int
) -> Iterator[evaluated.SampleRow]:
    """Yield the samples of a tournament's evaluations, as they were planned last.

    Raises:
        LedgerError: The ledger cannot be read.
    """
    with Ledger.read_only(ledger) as opened:
        events = opened.read(until=until, types=ASKED_EVENTS)
        known, items = fold(asked_evaluations_of(tournament), events)
    for run in known.runs:
        for each in asked_samples(run, items):
            yield evaluated.SampleRow.of(run.plan, each)


def recorded_curve(ledger: Path, tournament: StreamId, until: int) -> Iterator[evaluated.CurveRow]:
    """Yield the metrics of a tournament's evaluations over the steps of trainings.

    Raises:
        LedgerError: The ledger cannot be read.
    """
    with Ledger.read_only(ledger) as opened:
        events = opened.read(until=until, types=EVALUATION_EVENTS)
        known = fold(evaluations_of(tournament), events)
    for point, metric in metrics_over_steps(training_points(known)):
        yield evaluated.CurveRow.of(point, metric)
