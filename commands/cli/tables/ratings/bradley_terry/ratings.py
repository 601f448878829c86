"""Bradley-Terry ratings as a table, with notes on intervals, groups and imported battles."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from commands.cli.tables.ratings.bradley_terry.notes import order_notes
from commands.cli.tables.ratings.bradley_terry.pairs import known_values
from commands.cli.tables.table import MoreColumn, Table, table_of
from commands.errors import counted, joined_names
from ledger.events.ratings import BradleyTerryParameters
from ledger.identity import Json
from projections.ratings.bradley_terry.component import MEAN_RATING
from projections.ratings.bradley_terry.leaderboard import Leaderboard
from projections.ratings.bradley_terry.rate import Zero
from projections.results.columns import Column
from projections.results.ratings import BradleyTerryRow


def _unanchored_notes(
    board: Leaderboard, anchor: str, zeros: Mapping[tuple[Json, ...], Zero]
) -> Iterator[str]:
    """Yield a note on the entrants whose group lacks the anchor."""
    unanchored = [
        place.entrant
        for place in board.rows
        if place.rating is not None and {*zeros[board.name, place.entrant]} != {frozenset({anchor})}
    ]
    if unanchored:
        yield (
            f"{board.name}: {joined_names(unanchored)}: no link to the anchor {anchor}, so the"
            f" mean of their group is {MEAN_RATING:g}."
        )


def _no_interval_notes(board: Leaderboard) -> Iterator[str]:
    """Yield notes on ratings without an interval, by reason."""
    for reason, names in _by_reason((place.no_interval, place) for place in board.rows).items():
        have = "has" if len(names) == 1 else "have"
        yield f"{board.name}: {joined_names(names)} {have} no interval ({reason})."


def _by_reason(found: Iterable[tuple[str | None, BradleyTerryRow]]) -> dict[str, list[str]]:
    """Return the entrants to whom each reason applies, in their order."""
    names: dict[str, list[str]] = {}
    for reason, place in found:
        if reason is not None:
            names.setdefault(reason, []).append(place.entrant)
    return names


def _counted(place: BradleyTerryRow) -> str:
    """Name an entrant, and how many battles its having no rating rests on."""
    n = place.n_battles
    return f"{place.entrant} ({counted(n, 'battle')})" if n else place.entrant


_WHY: Final[Mapping[str, str]] = {
    "undefeated": "undefeated, so without a finite rating",
    "winless": "winless, so without a finite rating",
    "one-way": "not rated: it won or lost every battle against each opponent",
    "not comparable": "not comparable: no battle links it to any other",
    "no finite fit": "not rated: the fit among its opponents is not finite",
    "not rated on every dimension": "not rated overall: it has no rating on some dimension",
    "no battle": "not rated: no decided battles",
}


def bt_table(
    boards: Iterable[Leaderboard],
    parameters: BradleyTerryParameters,
    *,
    notes: Iterable[str] = (),
    facts: Mapping[str, Json] | None = None,
    sources: Mapping[str, str] | None = None,
    zeros: Iterable[Sequence[Zero]] | None = None,
) -> Table:
    """Return a row for each entrant of each leaderboard, best first.

    Args:
        boards: The leaderboards.
        parameters: Of the model and its intervals.
        notes: What is told above the notes on intervals.
        facts: Further fields of JSON.
        sources: Who judged each entrant's battles; None: no such column.
        zeros: The reference of each rating (anchor or group mean); None: as the leaderboards say.
    """
    boards = tuple(boards)
    zero_of = _zeros(boards, zeros)
    percent = f"{100 * parameters.level:g} %"
    is_divided = any(
        len({place.group for place in board.rows if place.rating is not None}) > 1
        for board in boards
    )
    rows = [place for board in boards for place in board.rows]
    table = table_of(
        BradleyTerryRow,
        rows,
        "tourney/bt@1",
        f"Bradley-Terry, {_model(parameters)}",
        more=[
            MoreColumn(Column("Source", key="source"), [sources[place.entrant] for place in rows])
        ]
        if sources
        else (),
        hidden=() if is_divided else {"group"},
        headings={"low": f"{percent} low", "high": f"{percent} high"},
        notes=(
            *notes,
            _interval(parameters),
            *(note for each in boards for note in _notes(each, parameters, zero_of)),
        ),
        facts={
            "parameters": parameters.fields,
            "fits": {board.name: _fit(board) for board in boards},
            **(facts or {}),
        },
    )
    return replace(table, zeros={"rating": zero_of})


def _zeros(
    boards: Sequence[Leaderboard], zeros: Iterable[Sequence[Zero]] | None
) -> dict[tuple[Json, ...], Zero]:
    """Return the reference of each rating, by dimension and entrant."""
    own = (tuple((zero,) for zero in board.ratings.zeros()) for board in boards)
    return {
        (board.name, entrant): zero
        for board, found in zip(boards, zeros or own, strict=True)
        for entrant, zero in zip(board.ratings.entrants, found, strict=True)
    }


def _model(parameters: BradleyTerryParameters) -> str:
    ties = "ties as half" if parameters.ties == "half" else "ties by Davidson"
    prior = "" if parameters.prior_sd is None else f", prior of sd {parameters.prior_sd:g}"
    return f"{ties}{prior}"


def _interval(parameters: BradleyTerryParameters) -> str:
    """Return the note on the method, level and clusters of intervals, and on ranks."""
    kind = (
        f"cluster-robust (sandwich), clusters: {parameters.unit}"
        if parameters.interval == "sandwich"
        else f"{parameters.resamples:,} {parameters.interval} resamples of {parameters.unit}"
    )
    return (
        f"Low and high: {100 * parameters.level:g} % interval, {kind}. Rank: from 1 + how many are"
        " significantly better to how many are not significantly worse; all pairs tested at once."
    )


def _notes(
    board: Leaderboard,
    parameters: BradleyTerryParameters,
    zeros: Mapping[tuple[Json, ...], Zero],
) -> Iterator[str]:
    if parameters.anchor != board.ratings.parameters.anchor:
        yield f"{board.name}: the anchor {parameters.anchor} has no battles; the mean is 1000."
    elif parameters.anchor is not None:
        yield from _unanchored_notes(board, parameters.anchor, zeros)
    yield from order_notes(board)
    told = ((place.reason, place._replace(entrant=_counted(place))) for place in board.rows)
    for reason, entrants in _by_reason(told).items():
        be = "is" if len(entrants) == 1 else "are"
        yield f"{board.name}: {joined_names(entrants)} {be} {_WHY[reason]}."
    yield from _no_interval_notes(board)
    for number, n in enumerate(board.ratings.n_without_fit.tolist(), start=1):
        if n:
            group = f" of group {number}" if len(board.groups) > 1 else ""
            resamples = f"{n:,} of {counted(parameters.resamples, 'resample')}{group}"
            yield f"{board.name}: {resamples} had no finite fit and count as beyond both bounds."


def _fit(board: Leaderboard) -> Json:
    """Return the fields of a fit beyond its rows; `bt --pairs` has its matrices."""
    ratings = board.ratings
    return {
        "groups": [list(group) for group in board.groups],
        "above": [list(pair) for pair in board.above],
        "anchor": ratings.parameters.anchor,
        "nu": known_values(ratings.nu),
        "n_without_fit": ratings.n_without_fit.tolist(),
    }
