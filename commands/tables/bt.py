"""Bradley-Terry ratings as a table."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from commands.counted import counted, named
from commands.tables.bt_notes import adrift_notes, order_notes, spread_notes
from commands.tables.table import Column, Table
from ledger.events.ratings import BradleyTerryParameters
from ledger.identity import Json
from projections.intervals import Floats
from projections.ratings.bradley_terry.leaderboard import Leaderboard, Place, Unrated, p_better
from projections.ratings.bradley_terry.rate import Zero

_WHY: Final[Mapping[Unrated, str]] = {
    "undefeated": "undefeated, and so above the others by no number that can be known",
    "winless": "winless, and so below the others by no number that can be known",
    "one-way": "above some and below others, each by no number that can be known",
    "not comparable": "not comparable: no battle links it to anybody",
    "no finite fit": "without a rating: the model has no finite fit among those that it met",
    "not rated on every dimension": "not rated on every dimension, and so not overall",
    "no battle": "not rated: no battle of it counts",
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
    """Show every entrant of every leaderboard, from the best down.

    Args:
        boards: What was rated.
        parameters: By which model, with what interval.
        notes: What else must be said.
        facts: What else JSON has beside the rows.
        sources: Who rated each entrant, where that is asked.
        zeros: What the ratings of each leaderboard hang from, where its own do not say it.
    """
    boards = tuple(boards)
    hung = _zeros(boards, zeros)
    percent = f"{100 * parameters.level:g} %"
    return Table(
        schema="tourney/bt@1",
        title=f"Bradley-Terry, {_model(parameters)}",
        columns=(
            Column("dimension", "Dimension"),
            *([Column("group", "Group")] if any(map(_is_divided, boards)) else ()),
            Column("entrant", "Entrant"),
            Column("rating", "Rating", 1),
            Column("low", f"{percent} low", 1),
            Column("high", f"{percent} high", 1),
            Column("rank", "Rank"),
            Column("worst_rank", "At worst"),
            Column("n_battles", "Battles"),
            *([Column("source", "Source")] if sources else ()),
        ),
        rows=tuple(_rows(boards, sources)),
        notes=(
            *notes,
            _interval(parameters),
            *(note for each in boards for note in _notes(each, parameters, hung)),
        ),
        facts={
            "parameters": parameters.fields,
            "fits": {board.name: _fit(board) for board in boards},
            **(facts or {}),
        },
        named_by=("dimension", "entrant"),
        compared=("rating", "n_battles"),
        beside=("group",),
        zeros={"rating": hung},
    )


def _zeros(
    boards: Sequence[Leaderboard], zeros: Iterable[Sequence[Zero]] | None
) -> dict[tuple[Json, ...], Zero]:
    """Return by dimension and entrant what a rating hangs from."""
    own = (tuple((zero,) for zero in board.ratings.zeros()) for board in boards)
    return {
        (board.name, entrant): zero
        for board, found in zip(boards, zeros or own, strict=True)
        for entrant, zero in zip(board.ratings.entrants, found, strict=True)
    }


def _is_divided(board: Leaderboard) -> bool:
    """Say whether some have ratings that cannot be compared."""
    rated = {place.component for place in board.places if place.rating is not None}
    return len(rated) > 1


def _rows(
    boards: Sequence[Leaderboard], sources: Mapping[str, str] | None
) -> Iterator[Mapping[str, Json]]:
    for board in boards:
        for place in board.places:
            row = {"dimension": board.name, **_row(place)}
            yield row | ({"source": sources[place.entrant]} if sources else {})


def _row(place: Place) -> dict[str, Json]:
    return {
        "entrant": place.entrant,
        "rating": place.rating,
        "low": place.lower,
        "high": place.upper,
        "rank": place.rank,
        "worst_rank": place.worst_rank,
        "n_battles": place.n_battles,
        "group": place.group,
        "reason": place.reason,
    }


def _model(parameters: BradleyTerryParameters) -> str:
    ties = "ties as half" if parameters.ties == "half" else "ties by Davidson"
    prior = "" if parameters.prior_sd is None else f", prior of sd {parameters.prior_sd:g}"
    return f"{ties}{prior}"


def _interval(parameters: BradleyTerryParameters) -> str:
    """Say of which kind the intervals are, of what level, and of which unit."""
    kind = (
        f"the sandwich clustered by {parameters.unit}"
        if parameters.interval == "sandwich"
        else f"{parameters.resamples:,} {parameters.interval} resamples of {parameters.unit}"
    )
    return (
        f"Low and high: {100 * parameters.level:g} % by {kind}. Rank: 1 + how many are surely"
        " better; at worst: how many are not surely worse."
    )


def _notes(
    board: Leaderboard,
    parameters: BradleyTerryParameters,
    hung: Mapping[tuple[Json, ...], Zero],
) -> Iterator[str]:
    if parameters.anchor != board.ratings.parameters.anchor:
        yield f"{board.name}: {parameters.anchor} fought no battle; the mean rating is 1000."
    elif parameters.anchor is not None:
        yield from adrift_notes(board, parameters.anchor, hung)
    yield from order_notes(board)
    reasons: dict[Unrated, list[str]] = {}
    for place in board.places:
        if place.reason is not None:
            reasons.setdefault(place.reason, []).append(place.entrant)
    for reason, entrants in reasons.items():
        be = "is" if len(entrants) == 1 else "are"
        yield f"{board.name}: {named(entrants)} {be} {_WHY[reason]}."
    yield from spread_notes(board)
    if board.ratings.n_without_fit:
        resamples = counted(board.ratings.n_without_fit, "resample")
        yield f"{board.name}: {resamples} had no finite fit, and count as beyond both bounds."


def _fit(board: Leaderboard) -> Json:
    """Return what a fit knows beyond its rows; entrants in order of name."""
    ratings = board.ratings
    return {
        "entrants": list(ratings.entrants),
        "covariance": _matrix(ratings.covariance),
        "p_better": _matrix(p_better(ratings)),
        "groups": [list(group) for group in board.groups],
        "above": [list(pair) for pair in board.above],
        "anchor": ratings.parameters.anchor,
        "nu": _list(ratings.nu),
        "n_without_fit": ratings.n_without_fit,
    }


def _matrix(values: Floats) -> Json:
    return [_list(row) for row in values]


def _list(values: Floats) -> Json:
    return [value if np.isfinite(value) else None for value in values.tolist()]
