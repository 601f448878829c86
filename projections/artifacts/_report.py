"""The HTML report of a run: one file without scripts or network, good on paper.

Everything that people or models wrote is escaped.
"""

from collections.abc import Iterable, Iterator
from html import escape

import numpy as np

from ledger.events.ratings import BradleyTerryParameters
from projections.artifacts.results import Results
from projections.intervals import FEWEST_CLUSTERS
from projections.ratings.bradley_terry.component import MEAN_RATING
from projections.ratings.bradley_terry.leaderboard import Leaderboard, LeaderboardRow
from projections.ratings.standings import TIES, Standings, win_rates


def table(caption: str, headers: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return an HTML table; each row has one cell per header."""
    head = "".join(f'<th scope="col">{escape(header)}</th>' for header in headers)
    body = "\n".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return (
        f"<table><caption>{escape(caption)}</caption>\n<thead><tr>{head}</tr></thead>\n"
        f"<tbody>\n{body}\n</tbody></table>\n"
    )


def note(text: str) -> str:
    """Return a paragraph with a note on a table."""
    return f'<p class="note">{escape(text)}</p>'


def rounded(value: float | None, digits: int) -> str:
    """Format a number for a table; the files beside the report have every digit."""
    return "" if value is None else f"{value:.{digits}f}"


def strengths(board: Leaderboard) -> str:
    """Return the Bradley-Terry table, with notes on what cannot be compared."""
    parameters = board.ratings.parameters
    level, is_divided = f"{100 * parameters.level:g} %", len(board.groups) > 1
    headers = (
        *("Entrant", "Rating", f"{level} low", f"{level} high", "Rank", "Battles"),
        *(["Group"] if is_divided else []),
    )
    rows = (_cells(place)[: len(headers)] for place in board.rows)
    notes = "\n".join(map(note, _notes(board)))
    return table(f"Bradley-Terry, {_model(parameters)}", headers, rows) + notes


def _cells(place: LeaderboardRow) -> tuple[str, ...]:
    return (
        place.entrant,
        f"not rated: {place.reason}" if place.rating is None else f"{place.rating:.1f}",
        rounded(place.lower, 1),
        rounded(place.upper, 1),
        place.rank or "",
        str(place.n_battles),
        rounded(place.group, 0),
    )


def _model(parameters: BradleyTerryParameters) -> str:
    ties = "ties as half a win each" if parameters.ties == "half" else "ties by Davidson"
    prior = "" if parameters.prior_sd is None else f", prior of sd {parameters.prior_sd:g}"
    return f"{ties}{prior}"


def _notes(board: Leaderboard) -> Iterator[str]:
    parameters = board.ratings.parameters
    sure = f"no difference is wrongly called sure in {100 * parameters.level:g} % of such boards"
    yield (
        f"{_interval_note(parameters)}. Rank: from 1 + the number of significantly better entrants"
        f" to the number that are not significantly worse; {sure}. {_zero(parameters)}"
    )
    for place in board.rows:
        if place.no_interval is not None:
            yield f"{place.entrant} has no interval and no rank: {place.no_interval}."
    if board.ratings.n_without_fit.any():
        of_groups = enumerate(board.ratings.n_without_fit.tolist(), start=1)
        counts = [f"{n} in group {number}" for number, n in of_groups if n]
        several = len(board.groups) > 1
        found = ", ".join(counts) if several else str(board.ratings.n_without_fit.sum())
        yield f"Resamples without a finite fit: {found}; they count as beyond both bounds."
    if len(board.groups) > 1:
        yield " ".join(("Compare ratings within a group only.", *_order(board)))


def _interval_note(parameters: BradleyTerryParameters) -> str:
    if parameters.interval == "sandwich":
        return f"Cluster-robust (sandwich) interval, clustered by {parameters.unit}"
    resamples = f"{parameters.resamples} {parameters.interval} resamples"
    return f"Interval from {resamples} of {parameters.unit}"


def _zero(parameters: BradleyTerryParameters) -> str:
    """Say what fixes the scale; an anchor without battles does not."""
    mean = f"the mean of a group is {MEAN_RATING:g}."
    if parameters.anchor is None:
        return mean.capitalize()
    return f"{parameters.anchor} is at {parameters.anchor_rating:g}; elsewhere {mean}"


def _order(board: Leaderboard) -> Iterator[str]:
    """Say for each group which groups are below it, or that it is not comparable."""
    above = board.ratings.components.above
    for number in range(len(board.groups)):
        lower = [str(below + 1) for below in np.flatnonzero(above[number])]
        if lower:
            yield f"Group {number + 1} is above {', '.join(lower)}."
        elif not above[:, number].any():
            yield f"Group {number + 1} is not comparable with others."


_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: 1rem 0; }
caption { text-align: left; font-weight: 600; padding: .3rem 0; }
th, td { padding: .3rem .8rem; border-bottom: 1px solid #8886; text-align: right; }
th:first-child, td:first-child { text-align: left; }
.note { opacity: .8; font-size: .9rem; }
code { overflow-wrap: anywhere; }
"""


def report(results: Results) -> str:
    """Return the report as HTML."""
    publication = results.publication
    title = f"{results.tournament.stream}: {publication.terms.mode} run"
    sections = "\n".join(_dimension(results, standing) for standing in results.standings.values())
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>{escape(title)}</h1>
<p>{len(publication.terms.entrants)} entrants, {len(publication.terms.prompts)} prompts, judged by
{escape(results.judge.judge_id)} ({escape(results.judge.model)}) in both orders,
reconciled by {escape(publication.terms.policy)}.</p>
{sections}
<h2>Provenance</h2>
<p>Computed from the first {publication.as_of} events of the ledger. Its head hash there is
<code>{escape(publication.head)}</code>. <code>tourney replay --against
runs/{escape(publication.run)}</code> computes them again and compares every file but this one
byte for byte.</p>
</body>
</html>
"""


def _dimension(results: Results, standing: Standings) -> str:
    return f"""<h2>{escape(standing.dimension)}</h2>
{_leaderboard(standing)}{_strengths(results, standing)}
{note(f"{standing.account.sentence()}.")}
{_head_to_head(results, standing)}"""


def _strengths(results: Results, standing: Standings) -> str:
    boards = (board for board in results.boards if board.name == standing.dimension)
    return "".join(f"\n{strengths(board)}" for board in boards)


def _leaderboard(standing: Standings) -> str:
    resampled, other = standing.bootstrap, standing.other_ties
    rows = (
        (
            row.entrant_id,
            "not rated: no decisive match" if row.rating is None else f"{row.rating:.1f}",
            *([rounded(row.lower, 1), rounded(row.upper, 1)] if resampled else ()),
            *([rounded(other.ratings.get(row.entrant_id), 1)] if other else ()),
            rounded(row.order_sem, 2),
            str(row.n_matches),
        )
        for row in standing.rows
    )
    bounds = ("95 % low", "95 % high") if resampled else ()
    others = (TIES[other.ties],) if other else ()
    headers = ("Entrant", "Elo", *bounds, *others, "Order SEM", "Matches")
    caption = f"Elo at K = {standing.k:g}, mean over {len(standing.ratings.traces)} orders of play"
    about_orders = "Order SEM says how much the mean depends on the orders drawn."
    notes = [f"{about_orders} It is not the uncertainty of the rating."]
    if standing.ties_note:
        notes.append(standing.ties_note)
    if resampled:
        notes.append(
            f"{resampled.sentence()}; matches on one prompt are drawn together."
            f" An entrant with matches on fewer than {FEWEST_CLUSTERS} prompts has none."
        )
    return table(caption, headers, rows) + "\n".join(map(note, notes))


def _head_to_head(results: Results, standing: Standings) -> str:
    rows = (
        (
            f"{row.entrant_a} : {row.entrant_b}",
            f"{row.a_wins} : {row.b_wins}",
            str(row.ties),
            str(row.inconsistent),
            str(row.missing),
        )
        for row in win_rates(results.settlements[standing.dimension])
    )
    headers = ("Pair", "Wins", "Ties", "Inconsistent", "Missing")
    return table("Head to head", headers, rows)
