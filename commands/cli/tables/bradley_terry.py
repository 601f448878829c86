"""Bradley-Terry ratings as a table, with notes on intervals, groups and imported battles."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import exp
from typing import Final

import numpy as np

from commands.cli.tables.table import Table, columns
from commands.errors import MOST_NAMES, counted, joined_names
from commands.runs.rows import BradleyTerryRow
from ledger.events.ratings import BradleyTerryParameters
from ledger.identity import Json
from projections.battles.imported import WINNERS, BattleTable
from projections.intervals import Floats
from projections.ratings.bradley_terry.anchors import AnchoredRatings
from projections.ratings.bradley_terry.component import MEAN_RATING
from projections.ratings.bradley_terry.leaderboard import Leaderboard, Unrated, p_better
from projections.ratings.bradley_terry.overall import OverallRatings
from projections.ratings.bradley_terry.rate import Zero
from projections.ratings.style import AdjustedRatings, Coefficient


def order_notes(board: Leaderboard) -> Iterator[str]:
    """Yield notes on the order of groups whose ratings do not compare."""
    groups, above = board.groups, board.ratings.components.above
    if len(groups) <= 1:
        return
    yield f"{board.name}: {len(groups)} groups; ratings compare only within a group."
    for upper, group in enumerate(groups[:MOST_NAMES]):
        lower = [name for below in np.flatnonzero(above[upper]) for name in groups[below]]
        if lower:
            yield f"{board.name}: {joined_names(group)} above {joined_names(lower)}."
        elif not above[:, upper].any() and len(group) > 1:
            yield f"{board.name}: {joined_names(group)} not comparable with others."
    if len(groups) > MOST_NAMES:
        yield f"{board.name}: JSON output has the order of all groups."


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


def _spread_notes(board: Leaderboard) -> Iterator[str]:
    """Yield a note on ratings without an interval, where all clusters agree."""
    ratings = board.ratings
    unknown = np.isnan(ratings.lower) & ~np.isnan(ratings.rating)
    if unknown.any():
        names = [ratings.entrants[place] for place in np.flatnonzero(unknown)]
        have = "has" if len(names) == 1 else "have"
        yield (
            f"{board.name}: {joined_names(names)} {have} no interval: all {ratings.parameters.unit}"
            " agree, so the spread is unknown."
        )


def weights_note(ratings: OverallRatings) -> str:
    """Return the note on the weights of an overall rating."""
    shares = " + ".join(f"{part.share:.3g} {part.dimension}" for part in ratings.parts)
    return f"overall = {shares}; its interval keeps the dimensions of a prompt together."


def missing_notes(board: Leaderboard, ratings: OverallRatings) -> Iterator[str]:
    """Yield notes on the dimensions that an entrant has no rating on."""
    for place in board.rows:
        if place.rating is None and place.component is not None:
            for dimension, reason in ratings.missing(place.entrant):
                yield f"{place.entrant} has no rating on {dimension}: {reason}."


def coefficient_note(board: Leaderboard, coefficient: Coefficient) -> str:
    """Return the note on the effect of a style feature."""
    said = (
        f"{board.name}: one standard deviation more of {coefficient.feature} multiplies the odds by"
        f" {exp(coefficient.beta):.2f}"
    )
    if coefficient.lower is None or coefficient.upper is None:
        return f"{said} (no interval: all battles are on one prompt)."
    return f"{said} ({exp(coefficient.lower):.2f} to {exp(coefficient.upper):.2f})."


def left_out_note(board: Leaderboard, ratings: AdjustedRatings) -> str:
    """Return the note on style features that are the same in all battles."""
    names = joined_names(ratings.left_out)
    return f"{board.name}: left out, being the same in all pairs of responses: {names}."


def imported_note(name: str, battles: BattleTable, *, soft: bool) -> str:
    """Return the note on how many imported battles have which outcome, and on preferences."""
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
    how = "count as preferences (soft)" if soft else "count only who won (hard)"
    return f"{said}; {n_prefs} with a preference {how}"


def soft_scores_note(temperature: float, made_at: float | None = None) -> str:
    """Return the note on the temperature of soft scores."""
    made = "" if made_at is None else f", from preferences made at {made_at:g}"
    return f"Soft scores: a judge's scores at temperature {temperature:g}{made}."


def among_note(name: str, among: AnchoredRatings) -> str:
    """Return the note on how far the anchors' ratings are from those by human votes alone."""
    if among.mae is None:
        return f"{name}: no MAE (human votes alone compare no two anchors)."
    return (
        f"{name}: MAE {among.mae:.1f} Elo of {len(among.differences)} anchors against human votes"
        " alone."
    )


_WHY: Final[Mapping[Unrated, str]] = {
    "undefeated": "undefeated: above the others, by an unknown number",
    "winless": "winless: below the others, by an unknown number",
    "one-way": "above some and below others, by unknown numbers",
    "not comparable": "not comparable: no battle links it to any other",
    "no finite fit": "not rated: the fit among its opponents is not finite",
    "not rated on every dimension": "not rated overall, for lack of a rating on every dimension",
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
        len({place.component for place in board.rows if place.rating is not None}) > 1
        for board in boards
    )
    return Table(
        schema="tourney/bt@1",
        title=f"Bradley-Terry, {_model(parameters)}",
        columns=(
            *columns("dimension"),
            *(columns("group") if is_divided else ()),
            *columns("entrant"),
            *columns("rating", digits=1, low=f"{percent} low", high=f"{percent} high"),
            *columns("rank", worst_rank="At worst", n_battles="Battles"),
            *(columns("source") if sources else ()),
        ),
        rows=tuple(_rows(boards, sources)),
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
        named_by=("dimension", "entrant"),
        compared=("rating", "n_battles"),
        beside=("group",),
        zeros={"rating": zero_of},
    )


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


def _rows(
    boards: Sequence[Leaderboard], sources: Mapping[str, str] | None
) -> Iterator[Mapping[str, Json]]:
    for board in boards:
        for place in board.rows:
            row = BradleyTerryRow(board.name, *place[:-2], place.group, place.reason)
            yield row._asdict() | ({"source": sources[place.entrant]} if sources else {})


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
        f"Low and high: {100 * parameters.level:g} % interval, {kind}. Rank: 1 + how many are"
        " significantly better; at worst: how many are not significantly worse."
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
    reasons: dict[Unrated, list[str]] = {}
    for place in board.rows:
        if place.reason is not None:
            reasons.setdefault(place.reason, []).append(place.entrant)
    for reason, entrants in reasons.items():
        be = "is" if len(entrants) == 1 else "are"
        yield f"{board.name}: {joined_names(entrants)} {be} {_WHY[reason]}."
    yield from _spread_notes(board)
    if board.ratings.n_without_fit:
        resamples = counted(board.ratings.n_without_fit, "resample")
        yield f"{board.name}: {resamples} had no finite fit and count as beyond both bounds."


def _fit(board: Leaderboard) -> Json:
    """Return the fields of a fit beyond its rows; entrants in alphabetical order."""
    ratings = board.ratings
    return {
        "entrants": list(ratings.entrants),
        "covariance": _known(ratings.covariance),
        "p_better": _known(p_better(ratings)),
        "groups": [list(group) for group in board.groups],
        "above": [list(pair) for pair in board.above],
        "anchor": ratings.parameters.anchor,
        "nu": _known(ratings.nu),
        "n_without_fit": ratings.n_without_fit,
    }


def _known(values: Floats) -> Json:
    """Return numbers of any shape as lists, with null for those that are not finite."""
    known = values.astype(object)
    known[~np.isfinite(values)] = None
    numbers: Json = known.tolist()
    return numbers
