"""Make the typed rows of results: ratings, win rates, outcomes, spend and metrics.

What rests on battles is of a tournament or of an imported set.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from commands.reading.judged_tournament import JudgedTournament, OutcomeSource
from commands.reading.parameters import bradley_terry_parameters, elo_parameters
from ledger.chain import Head
from ledger.events.ratings import EloParameters, Publication, PublicationTerms
from projections.artifacts.results import Results, rated_results
from projections.evaluations.metrics import RunMetrics, TrainingPoint, metrics_over_steps
from projections.evaluations.samples import Items, asked_samples
from projections.evaluations.state import EvaluationRun
from projections.ratings.fragility import fragility
from projections.ratings.judge_bias.measures import biases
from projections.results.evaluations import CurveRow, MetricRow, SampleRow
from projections.results.judges import BiasRow
from projections.results.outcomes import OutcomeRow, ResponseRow
from projections.results.ratings import FragilityRow
from projections.tournament.bank import is_eligible
from projections.tournament.designs import planned_orders, planned_pairs
from projections.tournament.matches import planned_responses, shown_response
from projections.tournament.requests import Bill
from projections.tournament.settlement import Compared
from projections.tournament.spend import Spend, SpendKey
from projections.tournament.state import Tournament
from projections.tournament.waves import looked_at, n_spared, stops_of

_ELO_OF_REPORT: Final = {"k_sweep": EloParameters().k_sweep, "bootstraps": 0}


def results_now(source: JudgedTournament, head: Head) -> Results:
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
        elo=elo_parameters(source.settings("elo"), _ELO_OF_REPORT),
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
    return rated_results(state, publication, source.judge, source.settlements)


def fragility_rows(source: OutcomeSource) -> Iterator[FragilityRow]:
    """Yield how few prompts decide who is ahead, by the recorded Bradley-Terry settings.

    Raises:
        CannotRate: The ratings cannot be computed.
    """
    parameters = bradley_terry_parameters(source.settings("bradley_terry"), {})
    for dimension, battles in source.rated_battles(parameters.ties).items():
        yield from fragility(dimension, battles, parameters)


def bias_rows(source: JudgedTournament) -> Iterator[BiasRow]:
    """Yield what is known of the biases of the judge that was named, or else of all.

    Raises:
        CannotRate: Strengths are too far apart to be computed.
    """
    for row in biases(source.state, source.state.panel):
        if source.named_judge in {None, row.judge}:
            yield row


def outcome_rows(compared: Iterable[Compared]) -> Iterator[OutcomeRow]:
    """Yield pairings, single orders of them, or imported battles, with their status."""
    for comparison in compared:
        yield OutcomeRow(
            id=comparison.battle_id,
            dimension=comparison.dimension,
            prompt=comparison.prompt_id,
            entrant_a=comparison.entrant_a,
            entrant_b=comparison.entrant_b,
            order=comparison.order,
            status=comparison.status,
            winner=comparison.winner,
        )


def response_rows(state: Tournament) -> Iterator[ResponseRow]:
    """Yield every planned response, missing ones included."""
    for cell in planned_responses(state, [prompt.prompt_id for prompt in state.bank]):
        response = shown_response(state, cell)
        yield ResponseRow(
            prompt=cell.prompt.prompt_id,
            entrant=cell.entrant.entrant_id,
            response_key=cell.response_key,
            finish_reason=response.finish_reason if response else None,
            n_tokens=response.n_generated_tokens if response else None,
            text=response.text if response else None,
            p_correct=response.p_correct if response else None,
            imported_from=response.imported_from if response else None,
        )


def bills_of(source: JudgedTournament, spend: Spend) -> Iterator[tuple[SpendKey, Bill]]:
    """Yield what was spent by the judge and on the dimension that were named, or else by all."""
    judge, dimension = source.named_judge, source.named_dimension
    for key, bill in spend.bills.items():
        if judge in {None, key.judge} and dimension in {None, key.dimension}:
            yield key, bill


def total_of(
    source: JudgedTournament, spend: Spend, bills: Iterable[tuple[SpendKey, Bill]]
) -> Bill:
    """Return the sum of those; over all dimensions a reply counts once."""
    if source.named_dimension is None:
        judge = source.named_judge
        bills = ((key, bill) for key, bill in spend.by_day.items() if judge in {None, key.judge})
    return sum((bill for _, bill in bills), Bill())


class Spared(NamedTuple):
    """What looks spared: comparisons, and about how many dollars; None: nobody knows."""

    n_comparisons: int
    usd: float | None


NOTHING_SPARED: Final = Spared(0, None)


def spared_by_looks(state: Tournament, spent: Mapping[SpendKey, Bill]) -> Spared:
    """Return what looks spared, at the mean price of a reply on pairs by the judge looked at."""
    n_comparisons = n_spared(state)
    if not n_comparisons:
        return NOTHING_SPARED
    judge_id = looked_at(state).judge_id
    dimensions = {rubric.dimension for rubric in state.dimensions}
    on_pairs = (
        bill for key, bill in spent.items() if key.judge == judge_id and key.dimension in dimensions
    )
    total = sum(on_pairs, Bill())
    if not total.n_replies or total.n_unpriced:
        return Spared(n_comparisons, None)
    return Spared(n_comparisons, _n_queries_spared(state) * total.usd / total.n_replies)


def _n_queries_spared(state: Tournament) -> int:
    """Count the orders of the comparisons that looks spared."""
    stops, pairs, orders = stops_of(state), planned_pairs(state), planned_orders(state)
    return sum(
        len(orders(prompt.prompt_id, *pair))
        for rubric in state.dimensions
        for prompt in state.bank
        if is_eligible(rubric, prompt)
        for pair in pairs[prompt.prompt_id]
        if stops.leaves_out(rubric.dimension, prompt.prompt_id, pair)
    )


def metric_rows(measured: RunMetrics) -> Iterator[MetricRow]:
    """Yield the metrics of a run."""
    plan = measured.run.plan
    for metric in measured.metrics:
        yield MetricRow(
            id=metric.id_on(plan.evaluation),
            entrant=plan.entrant.label,
            evaluation=plan.evaluation,
            metric=metric.name,
            **metric.estimate._asdict(),
            unit=metric.unit,
            higher_is_better=metric.higher_is_better,
            **measured.counts._asdict(),
            plan=plan.number,
            run_key=plan.run_key,
        )


def sample_rows(run: EvaluationRun, items: Items) -> Iterator[SampleRow]:
    """Yield what the samples of a run were asked, and what came of them."""
    plan = run.plan
    for sample in asked_samples(run, items):
        fields = sample._asdict()
        fate = fields.pop("fate")
        yield SampleRow(
            entrant=plan.entrant.label,
            evaluation=plan.evaluation,
            label=fate.label,
            sample=fate.sample,
            system=plan.asking.system if plan.asking else None,
            **fields,
            item=fate.item,
            run_key=plan.run_key,
        )


def curve_rows(points: Iterable[TrainingPoint]) -> Iterator[CurveRow]:
    """Yield the metrics of evaluations over the steps of trainings."""
    for point, metric in metrics_over_steps(points):
        plan, counts = point.measured.run.plan, point.measured.counts
        yield CurveRow(
            training=point.training,
            step=point.step,
            evaluation=plan.evaluation,
            metric=metric.name,
            **metric.estimate._asdict(),
            unit=metric.unit,
            higher_is_better=metric.higher_is_better,
            n_planned=counts.n_planned,
            n_observed=counts.n_observed,
            n_unscorable=counts.n_unscorable,
            entrant=plan.entrant.label,
            weights=point.entrant.weights if point.entrant else None,
            dtype=point.entrant.dtype if point.entrant else None,
            run_key=plan.run_key,
        )
