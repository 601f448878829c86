"""`tourney plan` and `prices`: what remains to be done and what it costs. Nothing is written."""

import datetime as dt
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, NamedTuple

import typer

from commands.backends.wiring import (
    READERS,
    ConfiguredBackends,
    make_inference_factory,
    make_request_builder,
    make_token_counter,
)
from commands.cli.shared import completion, options
from commands.cli.shared.ledger import DEFAULT_CONFIG
from commands.cli.shared.output import Writer, say
from commands.cli.shared.selection import OF_LEDGER, WRITTEN, Selection, selecting
from commands.cli.shared.workspace import tell_unanswered, workspace
from commands.cli.tables.plan import (
    designs_table,
    missing_responses_table,
    missing_samples_table,
    missing_verdicts_table,
    requests_table,
    requests_text,
)
from commands.cli.tables.render import Format
from commands.cli.tables.table import Table, table_of
from commands.decisions.recorder import (
    count_missing_responses,
    count_missing_verdicts,
    count_repeats,
    rehearse,
)
from commands.entrants.generate import with_recorded_answers
from commands.errors import ConfigurationError, counted, joined_names
from commands.evaluating.evaluate import missing_requests, missing_samples
from commands.evaluating.plan import plan_evaluations
from commands.judging.cascades import advise_on_cascade
from commands.judging.designs import DesignGoal, forecast_designs
from commands.judging.preview import preview_requests
from commands.judging.scoring import MissingScores, missing_scores
from commands.judging.session import JudgingOptions, asking_rules, chosen_judge
from commands.judging.unreadable import tell_without_gold
from commands.reading.resolve import unknown
from commands.runs.register import prompts_to_judge
from commands.runs.workspace import Workspace
from commands.settings.reader import read_settings
from commands.spending.endpoints import Request, endpoint_costs
from commands.spending.forecast import counted_sample, plan_cost, way_as_set
from commands.spending.price_table import PricedModel, PriceTable, price_table
from commands.spending.pricing import TokenPricing, price_book
from ledger.events.money import Usage
from ledger.events.registration import JudgeSettings
from ledger.identity import Json
from ledger.store import Ledger
from projections.evaluations.samples import ASKED_EVENTS, asked_evaluations_of
from projections.fold import Projection, State, fold
from projections.ratings.judge_bias.several_judges import family_of
from projections.results.columns import KEPT, Column, Shown
from projections.results.money import FRACTIONS
from projections.tournament.folding import tournament_of
from projections.tournament.looks import not_asked
from projections.tournament.remaining import (
    Repeat,
    awaited_queries,
    missing_responses,
    open_queries,
    open_repeats,
    repeats_of,
    responses_to_come,
)
from projections.tournament.rewording import edited_answers, edited_texts, rewordings
from projections.tournament.shares import outside_share
from projections.tournament.state import Tournament

ExitCodeOption = Annotated[
    bool, typer.Option("--exit-code", help="Exit 9 if anything remains to be done, else 0.")
]
WORK_REMAINS = 9  # exit code


def generate(
    mode: options.Mode = "headline",
    exit_code: ExitCodeOption = False,
    config: options.Config = DEFAULT_CONFIG,
    ledger: options.Ledger = None,
    output_format: options.OutputFormat = Format.TABLE,
    as_json: options.AsJson = False,
) -> None:
    """Count the missing responses.

    Example: tourney plan generate --mode pilot
    """
    writer = Writer(output_format, as_json)
    place = workspace(config, ledger)
    state = _rehearsed(place)
    prompts = prompts_to_judge(place.opening, place.settings, mode)
    rows = count_missing_responses(state, prompts)
    missing = missing_responses(state, prompts)
    requests = [Request(cell.entrant, cell.text) for cell in responses_to_come(state, prompts)]
    costs = endpoint_costs(requests, price_book(place.settings, place.folder).table)
    edited, spared = edited_texts(state, missing), not_asked(state)
    writer.write(missing_responses_table(rows, costs, edited, spared))
    tell_unanswered(place, say)
    if exit_code and any(row.n_responses for row in rows):
        raise typer.Exit(WORK_REMAINS)


@selecting(*OF_LEDGER, *WRITTEN)
def judge(
    ctx: typer.Context,
    mode: options.Mode = "headline",
    judge: options.AskedJudge = None,
    count_tokens: Annotated[
        bool,
        typer.Option(
            "--count-tokens", help="Let the provider count the tokens of a few prompts (free)."
        ),
    ] = False,
    show_prompt: Annotated[
        str | None,
        typer.Option(
            "--show-prompt",
            metavar="PROMPT",
            autocompletion=completion.prompts,
            help="Show the requests for one pair of this prompt instead. Nothing is sent.",
        ),
    ] = None,
    target: Annotated[
        float | None,
        typer.Option(
            min=1.0,
            callback=options.finite,
            metavar="ELO",
            help="Compare designs instead: which brings the mean half of a rating's 95 % interval"
            " to so many points.",
        ),
    ] = None,
    separate: Annotated[
        tuple[str, str] | None,
        typer.Option(
            metavar="ID ID",
            help="Likewise: which tells these two entrants apart in 4 of 5, if their gap is as"
            " judged so far.",
        ),
    ] = None,
    repeat: options.Repeat = None,
    exit_code: ExitCodeOption = False,
) -> None:
    """Count the open judge queries and estimate their cost.

    Example: tourney plan judge --target 25
    """
    selection: Selection = ctx.obj
    if repeat is not None and any(each is not None for each in (show_prompt, target, separate)):
        fault = "--repeat works with none of --show-prompt, --target, --separate"
        raise ConfigurationError([fault])
    place = workspace(selection.config, selection.ledger)
    prompts = prompts_to_judge(place.opening, place.settings, mode)
    settings, folder = place.settings, place.folder
    # answers in files cost nothing, so what is asked about them is known already
    state = with_recorded_answers(
        _rehearsed(place), prompts, ConfiguredBackends(settings, folder).recorded()
    )
    chosen = chosen_judge(state, settings, JudgingOptions(mode, judge))
    if show_prompt is not None:
        build = make_request_builder(settings, chosen)
        previews = preview_requests(state, show_prompt, chosen, build)
        selection.writer.write_text(requests_text(previews), requests_table(previews))
        return
    rules = asking_rules(settings.judge)
    if repeat is not None:
        repeats = repeats_of(state, prompts, chosen)[:repeat]
        selection.writer.write(_planned_repeats(place, state, chosen, repeats))
        if exit_code and open_repeats(state, repeats, rules):
            raise typer.Exit(WORK_REMAINS)
        return
    rows = count_missing_verdicts(state, prompts, chosen, rules)
    queries = open_queries(state, prompts, chosen, rules)
    counts = count_tokens and chosen.company == "anthropic"
    sample = counted_sample(queries, make_token_counter(chosen)) if counts else ()
    pricing = price_book(settings, folder).pricing(chosen, state, counted=sample)
    if target is not None or separate is not None:
        _require_two(separate or (), [entrant.entrant_id for entrant in state.roster])
        goal = DesignGoal(target, separate)
        selection.writer.write(
            designs_table(forecast_designs(state, prompts, chosen, pricing, rules, goal), goal)
        )
        return
    cap_usd = settings.judge.max_usd
    cost = awaited = None
    if isinstance(pricing, TokenPricing):
        cost = plan_cost(state, queries, pricing, cap_usd=cap_usd)
        later = awaited_queries(state, prompts, chosen, rules)
        awaited = way_as_set(later, pricing) if later else None
        _warn_of_old_prices(pricing)
    texts = edited_texts(state, missing_responses(state, prompts))
    answers, changed = edited_answers(state, queries, chosen), rewordings(state, queries, chosen)
    left_out = (*not_asked(state), *outside_share(state, chosen))
    cheap, book = chosen_judge(state, settings, JudgingOptions(mode)), price_book(settings, folder)
    advice = advise_on_cascade(state, prompts, (cheap, chosen), partial(book.pricing, state=state))
    selection.writer.write(
        missing_verdicts_table(
            rows,
            cost,
            changed,
            awaited,
            texts,
            answers,
            left_out,
            [*advice] if chosen != cheap else [],
        )
    )
    tell_without_gold(state, prompts, say)
    _tell_of_kin(state, chosen)
    if exit_code and any(row.n_queries or row.n_waiting for row in rows):
        raise typer.Exit(WORK_REMAINS)


def _planned_repeats(
    place: Workspace, state: Tournament, judge: JudgeSettings, repeats: Sequence[Repeat]
) -> Table:
    """Return which repeats are open on each dimension, and what they cost."""
    queries = open_repeats(state, repeats, asking_rules(place.settings.judge))
    pricing = price_book(place.settings, place.folder).pricing(judge, state)
    cost = None
    if isinstance(pricing, TokenPricing):
        cost = plan_cost(state, queries, pricing, cap_usd=place.settings.judge.max_usd)
    drawn = counted(len(repeats), "query", "queries")
    note = f"they ask {drawn} with a verdict again, drawn by the seed"
    return missing_verdicts_table(count_repeats(state, queries), cost, not_planned=[note])


def _require_two(names: Sequence[str], roster: Sequence[str]) -> None:
    """Refuse names of --separate that are not two entrants of the roster."""
    for name in names:
        if name not in roster:
            raise unknown("--separate", name, roster)
    if len({*names}) < len(names):
        raise ConfigurationError(["--separate names one entrant twice; name two"])


def _tell_of_kin(state: Tournament, judge: JudgeSettings) -> None:
    """Tell which entrants are of the judge's own family, by their names."""
    family = family_of(judge.model, judge.judge_id)
    kin = [
        each.entrant_id
        for each in state.roster
        if family and family == family_of(each.weights, each.entrant_id)
    ]
    if kin:
        say(
            f"judge {judge.judge_id} is of the family {family}, as {joined_names(kin)}:"
            " it may prefer its own; `tourney project bias` measures that"
        )


def _warn_of_old_prices(pricing: TokenPricing) -> None:
    priced, today = pricing.prices.of(pricing.judge.model), datetime.now(UTC).date()
    if priced is not None and priced.source.sheet.is_stale(today):
        days = priced.source.sheet.age_days(today)
        say(f"{priced.source.title} are {days} days old and may have changed; see `tourney prices`")


@selecting(*OF_LEDGER, *WRITTEN)
def evaluate(
    ctx: typer.Context,
    entrants: options.Entrants = None,
    evaluations: options.Evaluations = None,
    exit_code: ExitCodeOption = False,
) -> None:
    """Count the missing evaluation samples.

    Example: tourney plan evaluate --evaluation recall
    """
    selection: Selection = ctx.obj
    place = workspace(selection.config, selection.ledger)
    planned = plan_evaluations(
        place.settings,
        place.folder,
        place.opening,
        make_inference_factory(place.settings),
        READERS,
        entrants=entrants or (),
        evaluations=evaluations or (),
    )
    known, items = _recorded(place, asked_evaluations_of(place.stream), ASKED_EVENTS)
    rows = missing_samples(known, planned.evaluations)
    requests = missing_requests(known, planned.evaluations)
    costs = endpoint_costs(requests, price_book(place.settings, place.folder).table)
    scores: tuple[MissingScores, ...] = ()
    if any(plan.scored_by for plan in planned.plans):
        state = _rehearsed(place)
        scores = missing_scores(state, known, items, planned.plans, place.settings, place.folder)
    selection.writer.write(missing_samples_table(rows, planned.refused, costs, scores))
    if exit_code and (any(row.n_owed for row in rows) or any(score.n_queries for score in scores)):
        raise typer.Exit(WORK_REMAINS)


def _rehearsed(place: Workspace) -> Tournament:
    """Return the recorded tournament as the settings would reopen it, in memory only."""
    return rehearse(_recorded(place, tournament_of(place.stream)), place.opening)


def _recorded(
    place: Workspace, projection: Projection[State], types: Collection[str] | None = None
) -> State:
    """Fold what is on record; there need be no ledger yet."""
    if not place.ledger.exists():
        return projection.initial
    with Ledger.read_only(place.ledger) as ledger:
        return fold(projection, ledger.read(types=types))


@selecting("config", *WRITTEN)
def prices(
    ctx: typer.Context,
) -> None:
    """Show the price table and its date.

    Example: tourney prices --json
    """
    selection: Selection = ctx.obj
    config = selection.config
    if config == DEFAULT_CONFIG and not config.exists():
        table = price_table()
    else:
        table = price_book(read_settings(config, os.environ), config.parent).table
    selection.writer.write(prices_table(table, datetime.now(UTC).date()))


_SHORT = Usage(n_input=0, n_output=0)


def _usd(heading: str, importance: int) -> Column:
    return Column(heading, FRACTIONS, unknown="?", importance=importance)


class PriceRow(NamedTuple):
    """The price of a model, in dollars per million tokens."""

    model: Shown[str]
    input_usd: Annotated[float | None, _usd("Input", KEPT)]
    output_usd: Annotated[float | None, _usd("Output", KEPT)]
    cache_write_5m_usd: Annotated[float | None, _usd("Write 5m", 1)]
    cache_write_1h_usd: Annotated[float | None, _usd("Write 1h", 1)]
    cache_read_usd: Annotated[float | None, _usd("Read", 1)]
    batch_input_usd: Annotated[float | None, _usd("Batch in", 2)]
    batch_output_usd: Annotated[float | None, _usd("Batch out", 2)]
    min_cacheable_tokens: Annotated[int | None, Column("Caches from", unknown="?", importance=0)]
    long_prompt_tokens: int | None
    long_prompt_factor: float | None
    source: Annotated[str, Column("From", importance=0)]


def prices_table(prices: PriceTable, today: dt.date) -> Table:
    """Return the valid price of each model, in dollars per million tokens."""
    held: dict[str, PricedModel] = {}
    for priced in prices.rows:
        held.setdefault(priced.row.id, priced)
    return table_of(
        PriceRow,
        map(_price_row, held.values()),
        "tourney/prices@1",
        "Dollars per million tokens",
        notes=(*_long_prompts(held.values()), *age_notes(prices, today)),
        facts={"today": today.isoformat(), "sheets": [*_sheets(prices, today)]},
    )


def age_notes(prices: PriceTable, today: dt.date) -> Iterator[str]:
    """Yield the age of each price table, with a warning where it may be out of date."""
    for named in prices.sheets:
        days = counted(named.sheet.age_days(today), "day")
        stale = ": prices may have changed, check them" if named.sheet.is_stale(today) else ""
        yield f"{named.title}, {days} old{stale}; from {', '.join(named.sheet.sources) or '?'}"


def _price_row(priced: PricedModel) -> PriceRow:
    price, row = priced.price(_SHORT, in_batch=False), priced.row
    batch = priced.price(_SHORT, in_batch=True)
    return PriceRow(
        model=row.id,
        input_usd=price.input,
        output_usd=price.output,
        cache_write_5m_usd=price.cache_write_5m,
        cache_write_1h_usd=price.cache_write_1h,
        cache_read_usd=None if row.cache_read_factor is None else price.cache_read,
        batch_input_usd=batch.input,
        batch_output_usd=batch.output,
        min_cacheable_tokens=row.min_cacheable_tokens,
        long_prompt_tokens=row.long_prompt_tokens,
        long_prompt_factor=row.long_prompt_factor,
        source=priced.source.title,
    )


def _long_prompts(rows: Iterable[PricedModel]) -> Iterator[str]:
    for _, row in rows:
        if row.long_prompt_tokens is not None:
            n, factor = row.long_prompt_tokens, row.long_prompt_factor
            yield f"{row.id}: prompts of more than {n:,} tokens cost {factor:g} times as much"


def _sheets(prices: PriceTable, today: dt.date) -> Iterator[dict[str, Json]]:
    for named in prices.sheets:
        yield {
            "name": named.name,
            "date": named.sheet.date.isoformat(),
            "age_days": named.sheet.age_days(today),
            "is_stale": named.sheet.is_stale(today),
            "sources": list(named.sheet.sources),
        }
