"""Bradley-Terry ratings as a table."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import exp
from typing import Final

import numpy as np

from commands.cli.tables.table import Column, Table
from commands.errors import MOST_NAMES, counted, joined_names
from ledger.events.ratings import BradleyTerryParameters
from ledger.identity import Json
from projections.battles.imported import WINNERS, BattleTable
from projections.intervals import Floats
from projections.ratings.bradley_terry.anchors import AnchoredRatings
from projections.ratings.bradley_terry.fit import MEAN_RATING
from projections.ratings.bradley_terry.leaderboard import (
    Leaderboard,
    LeaderboardRow,
    Unrated,
    p_better,
)
from projections.ratings.bradley_terry.overall import OverallRatings
from projections.ratings.bradley_terry.rate import Zero
from projections.ratings.style import Coefficient


def order_notes(board: Leaderboard) -> Iterator[str]:
    """Say which groups are above which, where there are several."""
    groups, above = board.groups, board.ratings.components.above
    if len(groups) <= 1:
        return
    yield f"{board.name}: ratings compare within a group only, of which there are {len(groups)}."
    for upper, group in enumerate(groups[:MOST_NAMES]):
        lower = [name for below in np.flatnonzero(above[upper]) for name in groups[below]]
        if lower:
            yield f"{board.name}: {joined_names(group)} above {joined_names(lower)}."
        elif not above[:, upper].any() and len(group) > 1:
            yield f"{board.name}: {joined_names(group)} not comparable with others."
    if len(groups) > MOST_NAMES:
        yield f"{board.name}: JSON says the order of all groups."


def adrift_notes(
    board: Leaderboard, anchor: str, hung: Mapping[tuple[Json, ...], Zero]
) -> Iterator[str]:
    """Say whose ratings the anchor does not hold, as it is in another group."""
    adrift = [
        place.entrant
        for place in board.rows
        if place.rating is not None and {*hung[board.name, place.entrant]} != {frozenset({anchor})}
    ]
    if adrift:
        do = "does" if len(adrift) == 1 else "do"
        yield (
            f"{board.name}: {joined_names(adrift)} {do} not hang from {anchor}: the mean of a group"
            f" without it is {MEAN_RATING:g}."
        )


def spread_notes(board: Leaderboard) -> Iterator[str]:
    """Say who has a rating and no interval because all units say the same."""
    ratings = board.ratings
    unknown = np.isnan(ratings.lower) & ~np.isnan(ratings.rating)
    if unknown.any():
        names = [ratings.entrants[place] for place in np.flatnonzero(unknown)]
        have = "has" if len(names) == 1 else "have"
        yield (
            f"{board.name}: {joined_names(names)} {have} no interval: no two"
            f" {ratings.parameters.unit} differ, so nothing is known of the spread."
        )


def weights_note(ratings: OverallRatings) -> str:
    """Say what an overall rating is the mean of."""
    shares = " + ".join(f"{part.share:.3g} {part.dimension}" for part in ratings.parts)
    return f"overall = {shares}; a prompt's dimensions move together in its interval."


def missing_notes(board: Leaderboard, ratings: OverallRatings) -> Iterator[str]:
    """Say where those without an overall rating have none."""
    for place in board.rows:
        if place.rating is None and place.component is not None:
            for dimension, reason in ratings.missing(place.entrant):
                yield f"{place.entrant} is not rated on {dimension}: {reason}."


def coefficient_note(board: Leaderboard, coefficient: Coefficient) -> str:
    """Say what a feature wins."""
    said = (
        f"{board.name}: a standard deviation more {coefficient.feature} multiplies the odds by"
        f" {exp(coefficient.beta):.2f}"
    )
    if coefficient.lower is None or coefficient.upper is None:
        return f"{said}, without an interval: all battles are on one prompt."
    return f"{said} ({exp(coefficient.lower):.2f} to {exp(coefficient.upper):.2f})."


def imported_note(name: str, battles: BattleTable, *, soft: bool) -> str:
    """Say what became of imported battles, of which the parts add up, and of preferences."""
    counts = [int((battles.winner == place).sum()) for place in range(len(WINNERS))]
    n = dict(zip(WINNERS, counts, strict=True))
    decided, tied = n["model_a"] + n["model_b"], n["tie"] + n["tie (bothbad)"]
    said = (
        f"{name}: {len(battles.winner)} battles = {decided} decided + {tied} tied"
        f" + {n['no verdict']} without a verdict"
    )
    n_prefs = int((~np.isnan(battles.pref)).sum())
    if not n_prefs:
        return said
    how = "counts as such (soft)" if soft else "counts as who won (hard)"
    return f"{said}; the preference of {n_prefs} {how}"


def marks_note(temperature: float, made_at: float | None = None) -> str:
    """Say how steeply a judge's marks were read."""
    made = "" if made_at is None else f", of preferences that were made at {made_at:g}"
    return f"Soft scores: a judge's marks at temperature {temperature:g}{made}."


def among_note(name: str, among: AnchoredRatings) -> str:
    """Say how far the anchors' ratings are from those by people's battles alone."""
    if among.mae is None:
        return f"{name}: no two anchors can be compared by people's battles alone; no MAE."
    return (
        f"{name}: MAE {among.mae:.1f} Elo of {len(among.differences)} anchors against people's"
        " battles alone."
    )


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
    rated = {place.component for place in board.rows if place.rating is not None}
    return len(rated) > 1


def _rows(
    boards: Sequence[Leaderboard], sources: Mapping[str, str] | None
) -> Iterator[Mapping[str, Json]]:
    for board in boards:
        for place in board.rows:
            row = {"dimension": board.name, **_row(place)}
            yield row | ({"source": sources[place.entrant]} if sources else {})


def _row(place: LeaderboardRow) -> dict[str, Json]:
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
    for place in board.rows:
        if place.reason is not None:
            reasons.setdefault(place.reason, []).append(place.entrant)
    for reason, entrants in reasons.items():
        be = "is" if len(entrants) == 1 else "are"
        yield f"{board.name}: {joined_names(entrants)} {be} {_WHY[reason]}."
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
