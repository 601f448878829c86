"""Elo standings as a table, with notes on intervals."""

from collections.abc import Iterable, Mapping

from commands.cli.tables.table import Column, Table, columns, judged_by
from commands.errors import counted
from commands.runs.rows import EloRow
from ledger.events.ratings import EloParameters
from ledger.events.registration import JudgeSettings
from ledger.identity import Json
from projections.ratings.standings import FEWEST_PROMPTS, Standings


def elo_table(
    standings: Iterable[Standings], parameters: EloParameters, *judges: JudgeSettings
) -> Table:
    """Return a row for each entrant on each dimension, best first, with a column for each other K.

    The judges are the one whose verdicts count, or several whose majority counts; an imported set
    says on its own who decided.
    """
    standings = tuple(standings)
    swept = dict.fromkeys(k for standing in standings for k, _ in standing.sweep)
    rows = tuple(row for standing in standings for row in _elo_rows(standing))
    return Table(
        schema="tourney/elo@1",
        title=f"Elo, K = {parameters.k:g}, {parameters.permutations} match orders",
        columns=(
            *columns("dimension", "entrant"),
            *columns(digits=1, rating="Elo", ci95_low="95 % low", ci95_high="95 % high"),
            *columns(digits=2, order_sem="Order SEM"),
            *columns("n_matches"),
            *(Column(f"k_{k:g}", f"K={k:g}", 1) for k in swept),
        ),
        rows=rows,
        notes=(
            *([judged_by(judges)] if judges else []),
            *_account_notes(standings, parameters),
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
            "intervals": {
                each.dimension: each.bootstrap.fields() if each.bootstrap else None
                for each in standings
            },
        },
        named_by=("dimension", "entrant"),
        compared=("rating", "n_matches"),
    )


def _elo_rows(standings: Standings) -> Iterable[Mapping[str, Json]]:
    swept = {
        k: dict(zip(ratings.entrants, map(float, ratings.mean()), strict=True))
        for k, ratings in standings.sweep
    }
    for row in standings.rows:
        yield {
            **EloRow(standings.dimension, *row[:-1])._asdict(),
            **{f"k_{k:g}": means.get(row.entrant_id) for k, means in swept.items()},
        }


def _account_notes(standings: Iterable[Standings], parameters: EloParameters) -> Iterable[str]:
    for each in standings:
        yield f"{each.dimension}: {each.account.sentence()}"
        if parameters.ties == "drop" and each.account.tie:
            yield _dropped_note(each)
        if each.bootstrap is not None:
            if any(row.lower is not None for row in each.rows):
                yield f"{each.dimension}: {each.bootstrap.sentence()}"
            yield from _without_interval_notes(each)
        elif parameters.bootstraps:
            needed = f"{FEWEST_PROMPTS} prompts with a decided pair needed"
            yield f"{each.dimension}: no 95 % intervals ({needed})."
    yield "Order SEM: standard error over match orders. It is not the uncertainty of the rating."


def _dropped_note(standings: Standings) -> str:
    """Say how many pairs do not count, being ties: without them ratings lie further apart."""
    n_tied = standings.account.tie
    share = n_tied / (n_tied + standings.account.decided)
    return (
        f"{standings.dimension}: {counted(n_tied, 'tie')} ({share:.0%} of decided and tied pairs)"
        f" {'does' if n_tied == 1 else 'do'} not count, so ratings lie further apart than with"
        " `--ties half`."
    )


def _without_interval_notes(standings: Standings) -> Iterable[str]:
    for row in standings.rows:
        if row.rating is not None and row.lower is None:
            why = (
                f"{counted(row.n_prompts, 'prompt')}, {FEWEST_PROMPTS} needed"
                if row.n_prompts < FEWEST_PROMPTS
                else "prompts make no more difference than match order: see `tourney project bt`"
            )
            yield f"{row.entrant_id}: no interval on {standings.dimension} ({why})."
