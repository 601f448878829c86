"""`tourney project winrates`, `matches`, `responses` and `spend`."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Final, get_args

from commands.cli.shared import options
from commands.cli.shared.reading import read_outcomes, read_verdicts, show, show_outcomes
from commands.cli.shared.selection import BATTLES, JUDGED, WRITTEN, Selected, selecting
from commands.cli.tables.table import MoreColumn, Table, table_of
from commands.errors import ConfigurationError, counted
from commands.judging.unreadable import gold_notes
from commands.reading.judged_tournament import JudgedTournament, OutcomeSource
from commands.reading.resolve import require_known
from commands.reading.rows import (
    NOTHING_SPARED,
    Spared,
    bills_of,
    outcome_rows,
    response_rows,
    spared_by_looks,
    total_of,
)
from commands.spending.budget import dollars, no_price
from ledger.events.registration import JudgeSettings
from ledger.events.responses import Diagnostics, ResponseGenerated
from ledger.identity import Digest, Dimension, Json
from projections.battles.imported_sets import COLUMNS, PROMPT_COLUMNS, Where
from projections.intervals import NO_INTERVAL
from projections.ratings.standings import win_rates
from projections.results.columns import Column
from projections.results.money import FRACTIONS, EntrantSpendRow, SpendRow
from projections.results.outcomes import OutcomeRow, ProgressRow, ResponseRow
from projections.results.ratings import WinRateRow
from projections.tournament.compared import Account, Counted, OutcomeKind, kind_of
from projections.tournament.remaining import response_counts, without_gold
from projections.tournament.requests import Bill, endpoint_spend
from projections.tournament.settlement import Compared, account_of
from projections.tournament.spend import SpendKey, spend_of
from projections.tournament.state import Tournament
from projections.tournament.waves import not_asked
from projections.verdicts.policies import MAJORITY

_BY_MATCH: Final = ("prompt", "entrant", "outcome")
"""The columns of --where that choose among listed matches: they narrow no count below the table."""


@selecting(*BATTLES, *WRITTEN)
def matches(ctx: Selected) -> None:
    """List every pair of responses with its outcome.

    --where also takes prompt=ID, entrant=ID (given twice: the matches of the two), and
    outcome=decided, tie, inconsistent, failed or pending.

    Example: tourney project matches --where entrant=full_poe --where outcome=inconsistent
    """
    kept = ctx.selection.kept
    columns = COLUMNS if ctx.selection.name else PROMPT_COLUMNS
    require_known("--where", kept, (*_BY_MATCH, *columns))
    of_matches = {column: kept[column] for column in _BY_MATCH if column in kept}
    of_prompts = [f"{name}={value}" for name in columns for value in kept.get(name, ())]

    def view(source: OutcomeSource) -> Table:
        compared = chain.from_iterable(source.compared.values())
        return matches_table(chosen_matches(compared, of_matches))

    show_outcomes(
        ctx, view, read=lambda selection: read_outcomes(replace(selection, where=of_prompts))
    )


def chosen_matches(every: Iterable[Compared], where: Where) -> list[Compared]:
    """Return the matches on one of some prompts, of all named entrants, with one of the outcomes.

    Args:
        every: All matches.
        where: The prompts, entrants and outcomes; of a column that it does not name, any.
    """
    compared = [*every]
    prompts = {match.prompt_id: None for match in compared if match.prompt_id is not None}
    roster = {name: None for match in compared for name in (match.entrant_a, match.entrant_b)}
    on, entrants, outcomes = (where.get(column, ()) for column in _BY_MATCH)
    require_known("--where: prompt", on, [*prompts])
    require_known("--where: entrant", entrants, [*roster])
    require_known("--where: outcome", outcomes, get_args(OutcomeKind))
    if len({*entrants}) > 2:  # noqa: PLR2004  # a match has two
        why = f"--where: a match has two entrants; name two of {', '.join(entrants)}"
        raise ConfigurationError([why])
    return [
        match
        for match in compared
        if (not on or match.prompt_id in on)
        and {*entrants} <= {match.entrant_a, match.entrant_b}
        and (not outcomes or kind_of(match.status) in outcomes)
    ]


@selecting(*BATTLES, *WRITTEN)
def winrates(ctx: Selected, diff: options.Diff = None) -> None:
    """Count wins, losses and ties by pair of entrants.

    Example: tourney project winrates --format csv
    """
    show_outcomes(ctx, _winrates, diff)


def _winrates(source: OutcomeSource) -> Table:
    kinds = (battles.counted for battles in source.columns.values() if len(battles))
    return winrates_table(win_rates(source.columns), counted=next(kinds, "pairs"))


@selecting(*JUDGED, *WRITTEN)
def responses(ctx: Selected) -> None:
    """List every response.

    Example: tourney project responses --format jsonl
    """
    show(ctx, read_verdicts, lambda source: responses_table(source.state))


@selecting(*JUDGED, *WRITTEN)
def spend(ctx: Selected) -> None:
    """Show what was spent, by judge, dimension and day.

    Example: tourney project spend --json
    """
    show(ctx, read_verdicts, _spent)


def _spent(source: JudgedTournament) -> Table:
    spent = source.folded(spend_of(source.state.stream))
    is_narrowed = source.named_judge is not None or source.named_dimension is not None
    served = () if is_narrowed else endpoint_spend(spent.entrants)
    spared = NOTHING_SPARED if is_narrowed else spared_by_looks(source.state, spent.bills)
    bills = [*bills_of(source, spent)]
    return spend_table(bills, total_of(source, spent, bills), served, spared=spared)


def spend_table(
    bills: Sequence[tuple[SpendKey, Bill]],
    total: Bill,
    served: Sequence[EntrantSpendRow] = (),
    *,
    spared: Spared = NOTHING_SPARED,
) -> Table:
    """Return a row for each judge, dimension and day.

    Notes tell the total, the spend of endpoint entrants, and what looks spared.
    """
    return table_of(
        SpendRow,
        (SpendRow(**key._asdict(), **bill.fields) for key, bill in bills),
        "tourney/spend@1",
        "Spent",
        notes=(*_notes(total), *_on_served(served), *_on_spared(spared)) or ("nothing was spent",),
        facts={"total": total.fields, "entrants": [*map(_entrant_fields, served)]},
    )


def _entrant_fields(row: EntrantSpendRow) -> dict[str, Json]:
    fields = row._asdict()
    return {"entrant_id": fields.pop("entrant"), **fields}


def _notes(total: Bill) -> Iterator[str]:
    usd, failed_usd = (None, None) if total.n_unpriced else (total.usd, total.failed_usd)
    if total.n_replies:
        yield f"{_replies(total.n_replies)} for {dollars(usd)}"
    if total.n_failed:
        yield f"{dollars(failed_usd)} of it for {_replies(total.n_failed)} without a verdict"
    if total.n_unpriced:
        others = total.n_replies > total.n_unpriced
        rest = f", and the others for {dollars(total.usd)}" if others else ""
        yield (
            f"{_replies(total.n_unpriced)} came while the model had no price{rest}: caps do not"
            " count them, and a price added later does not change that"
        )
    saved = round(total.saved_usd, FRACTIONS)
    if saved:
        yield f"the cache {'saved' if saved > 0 else 'cost'} {dollars(abs(saved))}"
    if total.n_maybe_billed:
        yield _maybe_billed(total.n_maybe_billed, total.most_usd)


def _on_spared(spared: Spared) -> Iterator[str]:
    if spared.n_comparisons:
        usd = spared.usd
        worth = f", about {dollars(usd)} by what a reply cost on average" if usd else ""
        yield f"looks spared {counted(spared.n_comparisons, 'comparison')}{worth}"


def _on_served(served: Sequence[EntrantSpendRow]) -> Iterator[str]:
    """Yield the spend of each endpoint entrant."""
    for entrant in served:
        answers = f"{counted(entrant.n_answers, 'answer')} by {entrant.model}"
        took = f"{entrant.n_input:,} tokens in, {entrant.n_output:,} out"
        by = f" by {entrant.price_table}" if entrant.price_table else ""
        who = f"{entrant.entrant} (endpoint)"
        yield f"{who}: {answers}, {took}: {dollars(entrant.usd)}{by}"
        if entrant.n_maybe_billed:
            yield f"{who}: {_maybe_billed(entrant.n_maybe_billed, entrant.maybe_usd)}"
    if unpriced := dict.fromkeys(entrant.model for entrant in served if entrant.usd is None):
        yield no_price(*unpriced)


def _maybe_billed(n_requests: int, usd: float | None) -> str:
    requests = counted(n_requests, "request")
    return (
        f"{requests} without an answer, or without its tokens, may be billed:"
        f" {'$? (the price was unknown)' if usd is None else f'{dollars(usd)} at most'}"
    )


def _replies(n: int) -> str:
    return "1 reply" if n == 1 else f"{n:,} replies"


_TITLES: Final[Mapping[Counted, str]] = {
    "pairs": "Wins by pair of entrants, each pair of responses counted once",
    "orders": "Wins by pair of entrants, each pair of responses counted twice, once in each order",
    "battles": "Wins by pair of entrants, each imported battle counted once",
}
_TIES: Final = "A's share counts a tie as half a win"
_PREFERENCES: Final = ", and weights and preferences as they are"
_INTERVAL: Final = "Interval: Wilson's with Student's t, clustered by prompt."


def winrates_table(rows: Iterable[WinRateRow], *, counted: Counted = "pairs") -> Table:
    """Return a row for each pair of entrants; a comes before b in the alphabet."""
    rows = tuple(rows)
    lacks_one = any(row.win_rate is not None and row.ci95_low is None for row in rows)
    shares = f"{_TIES}{_PREFERENCES if counted == 'battles' else ''}. {_INTERVAL}"
    return table_of(
        WinRateRow,
        rows,
        "tourney/winrates@1",
        _TITLES[counted],
        notes=(f"{shares} {NO_INTERVAL}" if lacks_one else shares,),
    )


def matches_table(compared: Iterable[Compared]) -> Table:
    """Return a row for each pair of responses, order of one, or imported battle."""
    rows = tuple(outcome_rows(compared))
    return table_of(
        OutcomeRow,
        rows,
        "tourney/matches@1",
        "Matches",
        hidden=() if any(row.id for row in rows) else {"id"},
        without=() if any(row.order for row in rows) else {"order"},
    )


_NO_HEADS: Final[Mapping[str, Json]] = {
    **Diagnostics(draft_head_idx=0, bypass_jury=False).fields,
    "draft_head_idx": None,
    "bypass_jury": None,
}
"""The diagnostics of a response that no Hydra wrote: the same keys, empty."""


def responses_table(tournament: Tournament) -> Table:
    """Return a row for each response of the tournament; missing ones are empty."""
    rows = tuple(response_rows(tournament))
    responses = [tournament.responses.get(Digest(row.response_key)) for row in rows]
    diagnostics = [None if response is None else _diagnostics(response) for response in responses]
    rated = any(row.p_correct is not None for row in rows)
    return table_of(
        ResponseRow,
        rows,
        "tourney/responses@1",
        "Responses",
        more=(
            MoreColumn(Column(key="diagnostics"), diagnostics),
            MoreColumn(Column(key="imported_from"), [row.imported_from for row in rows]),
        ),
        hidden={"diagnostics", "imported_from", *(() if rated else ("p_correct",))},
        without={"imported_from"},  # it stands behind the diagnostics
    )


def _diagnostics(response: ResponseGenerated) -> Mapping[str, Json]:
    decided = response.diagnostics
    n_resampled: int | None = 0
    if decided:  # of what a Hydra wrote elsewhere, nobody knows how many drafts were rejected
        n_resampled = None if response.imported_from else len(decided.resampled_at)
    return {
        **(decided.fields if decided else _NO_HEADS),
        "seed": response.seed,
        "n_resampled": n_resampled,
        "n_tokens_generated": response.n_generated_tokens,
    }


def show_progress(ctx: Selected) -> None:
    """Print the progress of the tournament that a command's options select."""
    show(ctx, read_verdicts, _progress)


def _progress(source: JudgedTournament) -> Table:
    if source.rule.policy == MAJORITY:
        raise ConfigurationError(["progress is counted for one judge: choose it with --judge"])
    accounts = {name: account_of(group) for name, group in source.settlements.items()}
    not_planned = not_asked(source.state, source.judge)
    return progress_table(source.state, source.judge, accounts, not_planned)


def progress_table(
    state: Tournament,
    judge: JudgeSettings,
    accounts: Mapping[Dimension, Account],
    not_planned: Iterable[str] = (),
) -> Table:
    """Return a row for each entrant: responses done, failed and missing."""
    bank = frozenset(prompt.prompt_id for prompt in state.bank)
    lacking = without_gold(state, bank)
    return table_of(
        ProgressRow,
        (
            ProgressRow(
                row.entrant_id, generated=row.generated, failed=row.failed, owed=row.missing
            )
            for row in response_counts(state, bank)
        ),
        "tourney/progress@1",
        f"Progress, judge {judge.judge_id}",
        notes=(
            *(f"{name}: {each.sentence()}" for name, each in accounts.items()),
            *not_planned,
            *gold_notes(lacking),
        ),
        facts={
            "judge": judge.judge_id,
            "accounts": {name: each.fields() for name, each in accounts.items()},
            "left_out": {each.dimension: each.n_prompts for each in lacking},
        },
    )
