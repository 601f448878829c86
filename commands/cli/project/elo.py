"""`tourney project elo`: Elo ratings, with any K, from the recorded verdicts."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Annotated, Final

import typer

from commands.cli.shared import options
from commands.cli.shared.reading import read_outcomes, show
from commands.cli.shared.selection import BATTLES, WRITTEN, Selected, selecting
from commands.cli.tables.table import MoreColumn, Table, judged_by, table_of
from commands.errors import MOST_NAMES, ConfigurationError, as_option, counted, joined_names
from commands.importing.imported_set import SelectedSet
from commands.reading.judged_tournament import JudgedTournament
from commands.reading.parameters import elo_parameters
from ledger.events.ratings import EloParameters, TieRule
from ledger.events.registration import JudgeSettings
from ledger.identity import Json
from projections.intervals import FEWEST_CLUSTERS
from projections.ratings.standings import TIES, Standings, standings
from projections.results.columns import Column
from projections.results.ratings import EloRow
from projections.tournament.compared import Account
from projections.tournament.waves import not_asked


@selecting(*BATTLES, *WRITTEN)
def elo(
    ctx: Selected,
    k: Annotated[
        str | None,
        typer.Option(
            metavar="K[,K...]",
            help="The largest rating change per match. Several, as 16,4,32: the first rates, and"
            " there is a column for each.",
        ),
    ] = None,
    ties: Annotated[
        TieRule | None, typer.Option(help="drop: ties do not count; half: half a win for each.")
    ] = None,
    diff: options.Diff = None,
) -> None:
    """Compute Elo ratings. Options override the recorded settings.

    [elo] and TOURNEY_ELO_K change nothing here until the next `tourney run` or `tourney apply`.

    Example: tourney project elo --k 16
    """
    show(ctx, read_outcomes, partial(_elo, chosen={**chosen_k(k), "ties": ties}), diff)


def _elo(source: JudgedTournament | SelectedSet, chosen: Mapping[str, object]) -> Table:
    parameters = elo_parameters(source.settings("elo"), chosen, _spelling)
    rated = [
        standings(dimension, battles, source.roster, parameters)
        for dimension, battles in source.columns.items()
    ]
    left_out: Sequence[str] = ()
    if isinstance(source, JudgedTournament):
        left_out = not_asked(source.state, *source.judges)
    return elo_table(rated, parameters, *source.judges, left_out=left_out)


def chosen_k(given: str | None) -> Mapping[str, object]:
    """Parse --k: the first value is used instead of the recorded K, further ones beside it."""
    if given is None:
        return {}
    try:
        values = tuple(map(float, given.split(",")))
    except ValueError as error:
        why = f"--k {given!r}: write a number, or several as 16,4,32"
        raise ConfigurationError([why]) from error
    return {"k": values[0], "k_sweep": values if len(values) > 1 else ()}


def _spelling(name: str) -> str:
    return "--k" if name.startswith("k_sweep") else as_option(name)


def elo_table(
    standings: Iterable[Standings],
    parameters: EloParameters,
    *judges: JudgeSettings,
    left_out: Iterable[str] = (),
) -> Table:
    """Return a row for each entrant on each dimension, best first, with a column for each other K.

    The judges are the one whose verdicts count, or several whose majority counts; an imported set
    says on its own who decided. What is left out, as by looks, is told in sentences.
    """
    standings = tuple(standings)
    others = dict.fromkeys(
        standing.other_ties.ties for standing in standings if standing.other_ties
    )
    swept = dict.fromkeys(k for standing in standings for k, _ in standing.sweep)
    rows = [row for standing in standings for row in standing.rows]
    return table_of(
        EloRow,
        rows,
        "tourney/elo@1",
        f"Elo, K = {parameters.k:g}, {parameters.permutations} match orders",
        more=(
            *(_under_other_ties(standings, ties) for ties in others),
            *(_under_other_k(standings, k) for k in swept),
        ),
        notes=(
            *([judged_by(judges)] if judges else []),
            *_account_notes(standings, parameters, is_jury=len(judges) > 1),
            *left_out,
            *(
                f"{row.entrant} has no rating on {row.dimension}: no decided battles."
                for row in rows
                if row.rating is None
            ),
        ),
        facts={
            "judge": judges[0].judge_id if len(judges) == 1 else None,
            "parameters": parameters.fields,
            "accounts": {standing.dimension: standing.account.fields() for standing in standings},
            "groups": {standing.dimension: [*map(list, standing.groups)] for standing in standings},
            "tied_shares": {
                standing.dimension: standing.account.tied_share for standing in standings
            },
            "intervals": {
                standing.dimension: standing.bootstrap.fields() if standing.bootstrap else None
                for standing in standings
            },
        },
    )


def _under_other_ties(standings: Sequence[Standings], ties: TieRule) -> MoreColumn:
    column = Column(TIES[ties], 1, key=f"rating_ties_{ties}", importance=1, after="order_sem")
    values: list[Json] = []
    for standing in standings:
        other = standing.other_ties
        known = other.ratings if other and other.ties == ties else {}
        values += [known.get(row.entrant) for row in standing.rows]
    return MoreColumn(column, values)


def _under_other_k(standings: Sequence[Standings], k: float) -> MoreColumn:
    values: list[Json] = []
    for standing in standings:
        ratings = dict(standing.sweep)[k]
        means = dict(zip(ratings.entrants, ratings.mean().tolist(), strict=True))
        values += [means.get(row.entrant) for row in standing.rows]
    return MoreColumn(Column(f"K={k:g}", 1, key=f"k_{k:g}", importance=0), values)


_MANY: Final = 0.2  # of the judged pairs are left out


def _left_out(account: Account, *, is_jury: bool) -> str:
    """Say how many pairs are left out because their verdicts disagree."""
    are = "is" if account.inconsistent == 1 else "are"
    judged = f"{account.n_in_both_orders:,} {account.judged_in_both}"
    share = f"{account.inconsistent_share:.0%}"
    left_out = f"{account.inconsistent:,} of {judged} ({share}) {are} left out"
    if is_jury:
        return f"{left_out}: no outcome has a majority."
    why = "the two orders disagree. `tourney project bt` counts their verdicts."
    return f"{left_out}, as in the published engine: {why}"


def _account_notes(
    standings: Iterable[Standings], parameters: EloParameters, *, is_jury: bool
) -> Iterable[str]:
    for standing in standings:
        yield f"{standing.dimension}: {standing.account.sentence()}"
        if standing.account.inconsistent:
            warning = "WARNING: " if standing.account.inconsistent_share > _MANY else ""
            yield f"{warning}{standing.dimension}: {_left_out(standing.account, is_jury=is_jury)}"
        if standing.ties_note:
            yield f"{standing.dimension}: {standing.ties_note}"
        if len(standing.groups) > 1:
            named = "; ".join(joined_names(group) for group in standing.groups[:MOST_NAMES])
            yield (
                f"WARNING: {standing.dimension}: {len(standing.groups)} groups that never met;"
                f" ratings compare only within a group: {named}."
            )
        if standing.bootstrap is not None:
            if any(row.ci95_low is not None for row in standing.rows):
                yield f"{standing.dimension}: {standing.bootstrap.sentence()}"
            yield from _without_interval_notes(standing)
        elif parameters.bootstraps:
            needed = f"at least {FEWEST_CLUSTERS} prompts with a decided pair are needed"
            yield f"{standing.dimension}: no 95 % intervals ({needed})."
    yield "Order SEM: standard error over match orders. It is not the uncertainty of the rating."


def _without_interval_notes(standings: Standings) -> Iterable[str]:
    for row in standings.rows:
        if row.rating is not None and row.ci95_low is None:
            n_prompts = standings.n_prompts[row.entrant]
            why = (
                f"{counted(n_prompts, 'prompt')}: at least {FEWEST_CLUSTERS} are needed"
                if n_prompts < FEWEST_CLUSTERS
                else "prompts vary no more than match order does: see `tourney project bt`"
            )
            yield f"{row.entrant}: no interval on {standings.dimension} ({why})."
