"""Elo standings as a table, with notes on intervals."""

from collections.abc import Iterable, Mapping
from typing import Final

from commands.cli.tables.table import KEPT, Column, DrawnInterval, Table, columns, judged_by
from commands.errors import MOST_NAMES, counted, joined_names
from commands.runs.reading.rows import EloRow
from commands.runs.report.drawings.figures import elo_chart
from ledger.events.ratings import EloParameters, TieRule
from ledger.events.registration import JudgeSettings
from ledger.identity import Json
from projections.intervals import FEWEST_CLUSTERS
from projections.ratings.standings import TIES, Standings
from projections.tournament.compared import Account


def elo_table(
    standings: Iterable[Standings], parameters: EloParameters, *judges: JudgeSettings
) -> Table:
    """Return a row for each entrant on each dimension, best first, with a column for each other K.

    The judges are the one whose verdicts count, or several whose majority counts; an imported set
    says on its own who decided.
    """
    standings = tuple(standings)
    others = dict.fromkeys(each.other_ties.ties for each in standings if each.other_ties)
    swept = dict.fromkeys(k for standing in standings for k, _ in standing.sweep)
    rows = tuple(row for standing in standings for row in _elo_rows(standing, others))
    return Table(
        schema="tourney/elo@1",
        title=f"Elo, K = {parameters.k:g}, {parameters.permutations} match orders",
        columns=(
            *columns("dimension", "entrant", importance=KEPT),
            *columns(digits=1, importance=KEPT, rating="Elo"),
            *columns(digits=1, group="interval", ci95_low="95 % low", ci95_high="95 % high"),
            *columns(digits=2, importance=0, order_sem="Order SEM"),
            *(Column(f"rating_ties_{ties}", TIES[ties], 1, importance=1) for ties in others),
            *columns("n_matches", importance=1),
            *(Column(f"k_{k:g}", f"K={k:g}", 1, importance=0) for k in swept),
        ),
        rows=rows,
        notes=(
            *([judged_by(judges)] if judges else []),
            *_account_notes(standings, parameters, is_jury=len(judges) > 1),
            *(
                f"{row['entrant']} has no rating on {row['dimension']}: no decided battles."
                for row in rows
                if row["rating"] is None
            ),
        ),
        facts={
            "judge": judges[0].judge_id if len(judges) == 1 else None,
            "parameters": parameters.fields,
            "accounts": {each.dimension: each.account.fields() for each in standings},
            "groups": {each.dimension: [*map(list, each.groups)] for each in standings},
            "tied_shares": {each.dimension: each.account.tied_share for each in standings},
            "intervals": {
                each.dimension: each.bootstrap.fields() if each.bootstrap else None
                for each in standings
            },
        },
        named_by=("dimension", "entrant"),
        compared=("rating", "n_matches"),
        interval=DrawnInterval("ci95_low", "rating", "ci95_high"),
        chart=elo_chart,
    )


def _elo_rows(standings: Standings, others: Iterable[TieRule]) -> Iterable[Mapping[str, Json]]:
    swept = {
        k: dict(zip(ratings.entrants, map(float, ratings.mean()), strict=True))
        for k, ratings in standings.sweep
    }
    other = standings.other_ties
    means_by_ties = {other.ties: other.ratings} if other else {}
    for row in standings.rows:
        yield {
            **EloRow(standings.dimension, *row[:-1])._asdict(),
            **{
                f"rating_ties_{ties}": means_by_ties.get(ties, {}).get(row.entrant_id)
                for ties in others
            },
            **{f"k_{k:g}": means.get(row.entrant_id) for k, means in swept.items()},
        }


_MANY: Final = 0.2  # of the judged pairs are left out


def _left_out(account: Account, *, is_jury: bool) -> str:
    """Say how many pairs are left out because their verdicts disagree."""
    are = "is" if account.inconsistent == 1 else "are"
    n_judged, share = f"{account.n_judged:,}", f"{account.inconsistent_share:.0%}"
    left_out = f"{account.inconsistent:,} of {n_judged} judged pairs ({share}) {are} left out"
    if is_jury:
        return f"{left_out}: no outcome has a majority."
    why = "the two orders disagree. `tourney project bt` counts their verdicts."
    return f"{left_out}, as in the published engine: {why}"


def _account_notes(
    standings: Iterable[Standings], parameters: EloParameters, *, is_jury: bool
) -> Iterable[str]:
    for each in standings:
        yield f"{each.dimension}: {each.account.sentence()}"
        if each.account.inconsistent:
            warning = "WARNING: " if each.account.inconsistent_share > _MANY else ""
            yield f"{warning}{each.dimension}: {_left_out(each.account, is_jury=is_jury)}"
        if each.ties_note:
            yield f"{each.dimension}: {each.ties_note}"
        if len(each.groups) > 1:
            named = "; ".join(joined_names(group) for group in each.groups[:MOST_NAMES])
            yield (
                f"WARNING: {each.dimension}: {len(each.groups)} groups that never met; ratings"
                f" compare only within a group: {named}."
            )
        if each.bootstrap is not None:
            if any(row.lower is not None for row in each.rows):
                yield f"{each.dimension}: {each.bootstrap.sentence()}"
            yield from _without_interval_notes(each)
        elif parameters.bootstraps:
            needed = f"at least {FEWEST_CLUSTERS} prompts with a decided pair are needed"
            yield f"{each.dimension}: no 95 % intervals ({needed})."
    yield "Order SEM: standard error over match orders. It is not the uncertainty of the rating."


def _without_interval_notes(standings: Standings) -> Iterable[str]:
    for row in standings.rows:
        if row.rating is not None and row.lower is None:
            why = (
                f"{counted(row.n_prompts, 'prompt')}: at least {FEWEST_CLUSTERS} are needed"
                if row.n_prompts < FEWEST_CLUSTERS
                else "prompts vary no more than match order does: see `tourney project bt`"
            )
            yield f"{row.entrant_id}: no interval on {standings.dimension} ({why})."
