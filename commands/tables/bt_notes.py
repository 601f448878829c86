"""What must be said beside Bradley-Terry ratings: what they are of, and what nobody knows."""

from collections.abc import Iterator, Mapping
from math import exp

import numpy as np

from commands.counted import MOST_NAMED, named
from ledger.identity import Json
from projections.battles.imported import WINNERS, BattleTable
from projections.ratings.bradley_terry.anchors import Anchored
from projections.ratings.bradley_terry.fit import MEAN_RATING
from projections.ratings.bradley_terry.leaderboard import Leaderboard
from projections.ratings.bradley_terry.overall import OverallRatings
from projections.ratings.bradley_terry.rate import Zero
from projections.ratings.style import Coefficient


def order_notes(board: Leaderboard) -> Iterator[str]:
    """Say which groups are above which, where there are several."""
    groups, above = board.groups, board.ratings.components.above
    if len(groups) <= 1:
        return
    yield f"{board.name}: ratings compare within a group only, of which there are {len(groups)}."
    for upper, group in enumerate(groups[:MOST_NAMED]):
        lower = [name for below in np.flatnonzero(above[upper]) for name in groups[below]]
        if lower:
            yield f"{board.name}: {named(group)} above {named(lower)}."
        elif not above[:, upper].any() and len(group) > 1:
            yield f"{board.name}: {named(group)} not comparable with others."
    if len(groups) > MOST_NAMED:
        yield f"{board.name}: JSON says the order of all groups."


def adrift_notes(
    board: Leaderboard, anchor: str, hung: Mapping[tuple[Json, ...], Zero]
) -> Iterator[str]:
    """Say whose ratings the anchor does not hold, as it is in another group."""
    adrift = [
        place.entrant
        for place in board.places
        if place.rating is not None and {*hung[board.name, place.entrant]} != {frozenset({anchor})}
    ]
    if adrift:
        do = "does" if len(adrift) == 1 else "do"
        yield (
            f"{board.name}: {named(adrift)} {do} not hang from {anchor}: the mean of a group"
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
            f"{board.name}: {named(names)} {have} no interval: no two {ratings.parameters.unit}"
            " differ, so nothing is known of the spread."
        )


def weights_note(ratings: OverallRatings) -> str:
    """Say what an overall rating is the mean of."""
    shares = " + ".join(f"{part.share:.3g} {part.dimension}" for part in ratings.parts)
    return f"overall = {shares}; a prompt's dimensions move together in its interval."


def missing_notes(board: Leaderboard, ratings: OverallRatings) -> Iterator[str]:
    """Say where those without an overall rating have none."""
    for place in board.places:
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


def among_note(name: str, among: Anchored) -> str:
    """Say how far the anchors' ratings are from those by people's battles alone."""
    if among.mae is None:
        return f"{name}: no two anchors can be compared by people's battles alone; no MAE."
    return (
        f"{name}: MAE {among.mae:.1f} Elo of {len(among.differences)} anchors against people's"
        " battles alone."
    )
