"""`tourney plan`: what remains to be done and what it costs. Nothing is written."""

from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import islice
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
from commands.cli.shared.output import say, write_lines
from commands.cli.shared.selection import OF_LEDGER, WRITTEN, Selected, Selection, selecting
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
from commands.cli.tables.table import Table
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
from commands.judging.designs import DesignGoal, forecast_designs
from commands.judging.plan import JudgingOptions, chosen_judge
from commands.judging.preview import preview_requests
from commands.judging.savings import CascadeAdvice, advise_on_cascade, forecast_stops
from commands.judging.scoring import MissingScores, missing_scores
from commands.judging.unreadable import tell_without_gold
from commands.reading.resolve import require_known
from commands.runs.workspace import Workspace, prompts_to_judge
from commands.settings.schema import Settings
from commands.spending.endpoints import endpoint_costs
from commands.spending.pricing import (
    PlannedCost,
    PriceBook,
    Pricing,
    TokenPricing,
    counted_sample,
    plan_cost,
    price_book,
    way_as_set,
)
from ledger.events.registration import JudgeSettings
from ledger.identity import PromptId
from ledger.store import Ledger
from projections.evaluations.samples import ASKED_EVENTS, asked_evaluations_of
from projections.fold import Projection, State, fold
from projections.ratings.judge_bias.several_judges import family_of
from projections.tournament.folding import tournament_of
from projections.tournament.remaining import (
    OpenQuery,
    awaited_queries,
    missing_responses,
    open_queries,
    open_repeats,
    repeats_of,
    responses_to_come,
)
from projections.tournament.rewording import edited_answers, edited_texts, rewordings
from projections.tournament.state import Tournament
from projections.tournament.waves import not_asked

ExitCodeOption = Annotated[
    bool, typer.Option("--exit-code", help="Exit 9 if anything remains to be done, else 0.")
]
WORK_REMAINS = 9  # exit code


@selecting("mode", *OF_LEDGER, *WRITTEN)
def generate(ctx: Selected, exit_code: ExitCodeOption = False) -> None:
    """Count the missing responses.

    Example: tourney plan generate --mode pilot
    """
    if plan_generation(ctx.selection) and exit_code:
        raise typer.Exit(WORK_REMAINS)


def plan_generation(selection: Selection) -> bool:
    """Show which responses are missing; say whether any is."""
    place = workspace(selection.config, selection.ledger)
    state = _rehearsed(place)
    prompts = prompts_to_judge(place.opening, place.settings, selection.mode)
    rows = count_missing_responses(state, prompts)
    missing = missing_responses(state, prompts)
    book = price_book(place.settings, place.folder)
    costs = endpoint_costs(book.requests(responses_to_come(state, prompts)), book.table)
    edited, awaited = edited_texts(state, missing), [*_in_batches(state)]
    table = missing_responses_table(rows, costs, edited, [*not_asked(state), *awaited])
    selection.write(table)
    tell_unanswered(place, say)
    return bool(awaited) or any(row.n_responses for row in rows)


def _in_batches(state: Tournament) -> Iterator[str]:
    """Yield how many responses are in batches."""
    batches = (batch for batch in state.open_batches if state.is_to_entrant(batch))
    if n_awaited := sum(len(batch.planned.queries) for batch in batches):
        awaited = counted(n_awaited, "response is", "responses are")
        yield f"{awaited} in batches: `tourney batch wait` receives them"


@selecting("mode", *OF_LEDGER, *WRITTEN)
def judge(
    ctx: Selected,
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
    selection = ctx.selection
    if repeat is not None and any(each is not None for each in (show_prompt, target, separate)):
        fault = "--repeat works with none of --show-prompt, --target, --separate"
        raise ConfigurationError([fault])
    place = workspace(selection.config, selection.ledger)
    settings, folder = place.settings, place.folder
    prompts = prompts_to_judge(place.opening, settings, selection.mode)
    # answers in files cost nothing, so what is asked about them is known already
    state = with_recorded_answers(
        _rehearsed(place), prompts, ConfiguredBackends(settings, folder).recorded()
    )
    asked = chosen_judge(state, settings, folder, JudgingOptions(selection.mode, judge))
    if show_prompt is not None:
        build = make_request_builder(settings, asked)
        previews = preview_requests(state, show_prompt, asked, build)
        if selection.chosen_format is Format.TABLE:
            write_lines([requests_text(previews).encode()])
        else:
            selection.write(requests_table(previews))
        return
    planned = _PlannedJudging(
        settings, price_book(settings, folder), state, prompts, asked, counts_tokens=count_tokens
    )
    if target is not None or separate is not None:
        selection.write(_designs(planned, DesignGoal(target, separate)))
        return
    if repeat is not None:
        table, is_open = _planned_repeats(planned, repeat)
    else:
        of_mode = chosen_judge(state, settings, folder, JudgingOptions(selection.mode))
        table, is_open = _planned_queries(planned, of_mode)
    selection.write(table)
    if repeat is None:
        tell_without_gold(state, prompts, say)
        _tell_of_kin(state, asked)
    if exit_code and is_open:
        raise typer.Exit(WORK_REMAINS)


class _PlannedJudging(NamedTuple):
    """Whom a judge is to be asked about, and by which settings and prices."""

    settings: Settings
    book: PriceBook
    state: Tournament
    prompts: Collection[PromptId]
    judge: JudgeSettings
    counts_tokens: bool

    @property
    def about(self) -> tuple[Tournament, Collection[PromptId], JudgeSettings, int]:
        """What open queries follow from."""
        return self.state, self.prompts, self.judge, self.settings.judge.retries

    def pricing(self, queries: Sequence[OpenQuery]) -> Pricing:
        """Return the judge's prices; its provider may have counted the tokens of some queries."""
        counts = self.counts_tokens and self.judge.company == "anthropic"
        sample = counted_sample(queries, make_token_counter(self.judge)) if counts else ()
        return self.book.pricing(self.judge, self.state, counted=sample)

    def cost(self, queries: Sequence[OpenQuery], pricing: Pricing) -> PlannedCost | None:
        """Return what queries cost; None: the judge is free."""
        if not isinstance(pricing, TokenPricing):
            return None
        return plan_cost(self.state, queries, pricing, cap_usd=self.settings.judge.max_usd)


def _designs(planned: _PlannedJudging, goal: DesignGoal) -> Table:
    """Compare designs."""
    state, prompts, judge, retries = planned.about
    separate = goal.separate or ()
    require_known("--separate", separate, [entrant.entrant_id for entrant in state.roster])
    if len({*separate}) < len(separate):
        raise ConfigurationError(["--separate names one entrant twice; name two"])
    pricing = planned.pricing(open_queries(*planned.about))
    rows, notes = forecast_designs(state, prompts, judge, pricing, retries, goal)
    return designs_table(rows, notes, goal)


def _planned_queries(planned: _PlannedJudging, of_mode: JudgeSettings) -> tuple[Table, bool]:
    """Return what is missing, what it costs, and what is left out; and whether anything is."""
    state, prompts, judge, _ = planned.about
    queries, awaited = open_queries(*planned.about), awaited_queries(*planned.about)
    rows = count_missing_verdicts(state, prompts, judge, queries)
    pricing = planned.pricing(queries)
    later = None
    if isinstance(pricing, TokenPricing):
        later = way_as_set(awaited, pricing) if awaited else None
        _warn_of_old_prices(pricing)
    is_whole = len({*prompts}) == len(state.bank)  # of a pilot nothing is stopped
    by_looks = forecast_stops(state, judge, pricing, queries, awaited)
    table = missing_verdicts_table(
        rows,
        planned.cost(queries, pricing),
        rewordings(state, queries, judge),
        later,
        edited_texts(state, missing_responses(state, prompts)),
        edited_answers(state, queries, judge),
        (*not_asked(state, judge), *(by_looks if is_whole else ())),
        _advice(planned, of_mode),
    )
    return table, any(row.n_queries or row.n_waiting for row in rows)


def _advice(planned: _PlannedJudging, cheap: JudgeSettings) -> Sequence[CascadeAdvice]:
    """Advise on asking the judge on a share only, beside the mode's judge."""
    if cheap == planned.judge:
        return []
    both, pricing_of = (cheap, planned.judge), partial(planned.book.pricing, state=planned.state)
    return [*advise_on_cascade(planned.state, planned.prompts, both, pricing_of)]


def _planned_repeats(planned: _PlannedJudging, n: int) -> tuple[Table, bool]:
    """Return which of so many repeats are open, and what they cost; and whether any is."""
    state, prompts, judge, retries = planned.about
    repeats = [*islice(repeats_of(state, prompts, judge), n)]
    queries = open_repeats(state, repeats, retries)
    cost = planned.cost(queries, planned.book.pricing(judge, state))
    drawn = counted(len(repeats), "query", "queries")
    note = f"they ask {drawn} with a verdict again, drawn by the seed"
    rows = count_repeats(state, queries)
    return missing_verdicts_table(rows, cost, not_planned=[note]), bool(queries)


def _tell_of_kin(state: Tournament, judge: JudgeSettings) -> None:
    """Tell which entrants are of the judge's own family, by their names."""
    family = family_of(judge.model, judge.judge_id)
    kin = [
        entrant.entrant_id
        for entrant in state.roster
        if family and family == family_of(entrant.weights, entrant.entrant_id)
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
        old = f"{priced.source.title} are {days} days old and may have changed"
        say(f"{old}; compare {priced.source.path} with the provider's")


@selecting(*OF_LEDGER, *WRITTEN)
def evaluate(
    ctx: Selected,
    entrants: options.Entrants = None,
    evaluations: options.Evaluations = None,
    exit_code: ExitCodeOption = False,
) -> None:
    """Count the missing evaluation samples.

    Example: tourney plan evaluate --evaluation recall
    """
    place = workspace(ctx.selection.config, ctx.selection.ledger)
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
    ctx.selection.write(missing_samples_table(rows, planned.refused, costs, scores))
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
