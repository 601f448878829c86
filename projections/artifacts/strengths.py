"""The Bradley-Terry table of a report."""

from collections.abc import Iterator

import numpy as np

from ledger.events.ratings import BradleyTerryParameters
from projections.artifacts.html import note, rounded, table
from projections.leaderboard import Leaderboard, Place
from projections.scale import MEAN_RATING


def strengths(board: Leaderboard) -> str:
    """Show every entrant with interval and ranks, and say what cannot be compared."""
    parameters = board.ratings.parameters
    level, is_divided = f"{100 * parameters.level:g} %", len(board.groups) > 1
    headers = (
        *("Entrant", "Rating", f"{level} low", f"{level} high", "Rank", "At worst", "Battles"),
        *(["Group"] if is_divided else []),
    )
    rows = (_cells(place)[: len(headers)] for place in board.places)
    notes = "\n".join(map(note, _notes(board)))
    return table(f"Bradley-Terry, {_model(parameters)}", headers, rows) + notes


def _cells(place: Place) -> tuple[str, ...]:
    return (
        place.entrant,
        f"not rated: {place.reason}" if place.rating is None else f"{place.rating:.1f}",
        rounded(place.lower, 1),
        rounded(place.upper, 1),
        rounded(place.rank, 0),
        rounded(place.worst_rank, 0),
        str(place.n_battles),
        rounded(place.group, 0),
    )


def _model(parameters: BradleyTerryParameters) -> str:
    ties = "ties as half a win each" if parameters.ties == "half" else "ties by Davidson"
    prior = "" if parameters.prior_sd is None else f", prior of sd {parameters.prior_sd:g}"
    return f"{ties}{prior}"


def _notes(board: Leaderboard) -> Iterator[str]:
    parameters = board.ratings.parameters
    yield (
        f"{_interval(parameters)}. Rank: 1 + how many are surely better; at worst: how many are not"
        f" surely worse. {_zero(parameters)}"
    )
    rated = [place for place in board.places if place.rating is not None]
    if any(None in {place.lower, place.upper} for place in rated):
        why = f"no two {parameters.unit} differ, or it is beyond all numbers"
        yield f"A bound is missing where {why}."
    if board.ratings.n_without_fit:
        yield f"Resamples without a finite fit: {board.ratings.n_without_fit}, beyond both bounds."
    if len(board.groups) > 1:
        yield " ".join(("Ratings compare within a group only.", *_order(board)))


def _interval(parameters: BradleyTerryParameters) -> str:
    if parameters.interval == "sandwich":
        return f"Interval by the sandwich, clustered by {parameters.unit}"
    resamples = f"{parameters.resamples} {parameters.interval} resamples"
    return f"Interval by {resamples} of {parameters.unit}"


def _zero(parameters: BradleyTerryParameters) -> str:
    """Say what ratings hang from; an anchor that fought no battle is none."""
    mean = f"the mean of a group is {MEAN_RATING:g}."
    if parameters.anchor is None:
        return mean.capitalize()
    return f"{parameters.anchor} is at {parameters.anchor_rating:g}; elsewhere {mean}"


def _order(board: Leaderboard) -> Iterator[str]:
    """Say of each group which are below it, by no number that can be known, or that none is."""
    above = board.ratings.components.above
    for number in range(len(board.groups)):
        lower = [str(below + 1) for below in np.flatnonzero(above[number])]
        if lower:
            yield f"Group {number + 1} is above {', '.join(lower)}."
        elif not above[:, number].any():
            yield f"Group {number + 1} is not comparable with others."
