"""Ratings in the report: Bradley-Terry and Elo, who beats whom, and the sweep of K."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from commands.report.drawings import embedded, svg
from commands.report.drawings.panels import (
    HeatCell,
    HeatMap,
    shade_of,
    square_map,
    sweep_map,
)
from commands.report.subject import RatedDimension
from commands.report.text import listed, percent, points
from projections.ratings.bradley_terry.component import MEAN_RATING
from projections.ratings.bradley_terry.leaderboard import Leaderboard
from projections.ratings.standings import TIES, Standings, win_rates
from projections.results.ratings import BradleyTerryRow, WinRateRow


class RatingRow(NamedTuple):
    """An entrant in the leading table: its place, and what both engines make of its battles."""

    place: BradleyTerryRow
    bar: svg.Drawing | None
    wins: int
    losses: int
    ties: int
    elo: float | None


class Ratings(NamedTuple):
    """All that a dimension shows of ratings."""

    rows: tuple[RatingRow, ...]
    axis: svg.Drawing | None
    level: str
    groups: str | None  # which ratings compare
    elo: str  # why the other engine differs
    engines: str  # what both engines are, and the other's order
    grid: HeatMap
    sweep: HeatMap | None
    sweep_says: str  # whether another K orders the entrants otherwise


_Count: TypeAlias = Counter[str]


def ratings_of(rated: RatedDimension) -> Ratings:
    """Return what a dimension shows of its ratings, the best entrant first."""
    rates = win_rates({rated.standings.dimension: rated.comparisons})
    order = [place.entrant for place in rated.board.rows]
    scale = svg.scale_of(
        end for place in rated.board.rows for end in (place.rating, place.low, place.high)
    )
    return Ratings(
        rows=_rows(rated.board.rows, rates, rated.standings, scale),
        axis=None if scale is None else embedded.axis(scale),
        level=f"{100 * rated.board.ratings.parameters.level:g} %",
        groups=_groups(rated.board),
        elo=_why_elo_differs(rated.standings),
        engines=_about_engines(rated),
        grid=_grid(order, rates),
        sweep=_sweep(order, rated.standings),
        sweep_says=order_by_k(rated.standings),
    )


def _rows(
    places: Sequence[BradleyTerryRow],
    rates: Iterable[WinRateRow],
    standings: Standings,
    scale: svg.RoundScale | None,
) -> tuple[RatingRow, ...]:
    won = _totals(rates)
    elo = {row.entrant: row.rating for row in standings.rows}
    return tuple(
        RatingRow(
            place,
            bar=_bar(place, scale),
            wins=won[place.entrant]["won"],
            losses=won[place.entrant]["lost"],
            ties=won[place.entrant]["tied"],
            elo=elo.get(place.entrant),
        )
        for place in places
    )


def _bar(place: BradleyTerryRow, scale: svg.RoundScale | None) -> svg.Drawing | None:
    if place.rating is None or scale is None:
        return None
    return embedded.interval_bar(scale, place.rating, place.low, place.high)


def _totals(rates: Iterable[WinRateRow]) -> Mapping[str, _Count]:
    won: defaultdict[str, _Count] = defaultdict(Counter)
    for rate in rates:
        won[rate.entrant_a].update(won=rate.a_wins, lost=rate.b_wins, tied=rate.ties)
        won[rate.entrant_b].update(won=rate.b_wins, lost=rate.a_wins, tied=rate.ties)
    return won


def _groups(board: Leaderboard) -> str | None:
    """Say which ratings compare; None: all."""
    if len(board.groups) <= 1:
        return None
    named = "; ".join(f"{n}: {listed(group)}" for n, group in enumerate(board.groups, 1))
    order = ", ".join(f"{low} won nothing against {high}" for high, low in board.above)
    compared = f" Group {order}, which alone shows no order." if order else ""
    return f"Ratings compare within a group only. Group {named}.{compared}"


def _why_elo_differs(standings: Standings) -> str:
    ties = "leaves out ties, and so spreads entrants further apart"
    if standings.ties == "half":
        ties = "also counts ties as half a win, but its ratings have not converged"
    return f"Elo {ties}: compare its order, not its numbers."


def _about_engines(rated: RatedDimension) -> str:
    standings = rated.standings
    by_elo = [row.entrant for row in standings.rows if row.rating is not None]
    by_both = [place.entrant for place in rated.board.rows if place.entrant in by_elo]
    same = "The order is the same." if by_elo == by_both else f"By Elo: {', '.join(by_elo)}."
    others = standings.other_ties.ratings if standings.other_ties else {}
    ranked = sorted(others, key=lambda name: -others[name])
    named = listed([f"{name} {points(others[name])}" for name in ranked])
    anchor = rated.board.ratings.parameters.anchor
    said = (
        f"The Bradley-Terry ratings of a group have a mean of {MEAN_RATING:g}." * (not anchor),
        f"Elo: K = {standings.k:g}, mean over {len(standings.ratings.traces)} orders of play.",
        "Each battle moves it by at most K points, so it has not moved all the way from the start.",
        same if by_elo else "",
        f"{TIES[standings.other_ties.ties]}, Elo gives {named}." if standings.other_ties else "",
    )
    return " ".join(filter(None, said))


def _grid(order: Sequence[str], rates: Iterable[WinRateRow]) -> HeatMap:
    cells: dict[tuple[str, str], HeatCell] = {}
    for rate in rates:
        a, b, share = rate.entrant_a, rate.entrant_b, rate.win_rate
        cells[a, b] = _share(share, rate.a_wins, rate.b_wins, rate.ties)
        other = None if share is None else 1 - share
        cells[b, a] = _share(other, rate.b_wins, rate.a_wins, rate.ties)
    return square_map(order, cells)


def _share(share: float | None, won: int, lost: int, tied: int) -> HeatCell:
    return HeatCell(percent(share), shade_of(share), f"{won}–{lost}–{tied}")  # noqa: RUF001


def _sweep(order: Sequence[str], standings: Standings) -> HeatMap | None:
    """Return the ratings by Elo under each K of the sweep; None: there is no sweep."""
    by_k = [dict(zip(each.entrants, each.mean(), strict=True)) for _, each in standings.sweep]
    if not by_k or not by_k[0]:
        return None
    rated = {name: [ratings[name] for ratings in by_k] for name in order if name in by_k[0]}
    return sweep_map((f"K = {k:g}" for k, _ in standings.sweep), rated)


_SAME: Final = 0.5  # Elo points: whoever is not further ahead may be shown as level


def order_by_k(standings: Standings) -> str:
    """Say under which K of the sweep somebody is ahead who is behind under that of the ratings."""
    mean = standings.ratings.mean()
    is_behind = mean[:, None] - mean < -_SAME
    others = [
        f"{k:g}"
        for k, each in standings.sweep
        if (is_behind & (each.mean()[:, None] - each.mean() > _SAME)).any()
    ]
    if not others:
        return "The order is the same with every K."
    return (
        f"With K = {listed(others)} the order differs from that with K = {standings.k:g}: there it"
        " depends on K rather than on the battles."
    )
