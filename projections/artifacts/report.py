"""The report of a run: one HTML file, no script, no network, readable on paper.

Everything in it that people or models wrote is escaped.
"""

from html import escape

from projections.artifacts.html import rounded, table
from projections.artifacts.results import Results
from projections.artifacts.strengths import strengths
from projections.elo_bootstrap import EloBootstrap
from projections.standings import FEWEST_PROMPTS, Standings
from projections.winrates import win_rates

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
    """Write the report."""
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
<p>Folded from the first {publication.as_of} events of the ledger. The hash chain there is
<code>{escape(publication.head)}</code>. <code>tourney replay --against
runs/{escape(publication.run)}</code> folds them again and compares every file but this one
byte for byte.</p>
</body>
</html>
"""


def _dimension(results: Results, standing: Standings) -> str:
    return f"""<h2>{escape(standing.dimension)}</h2>
{_leaderboard(standing)}{_strengths(results, standing)}
<p class="note">{escape(standing.account.sentence())}.</p>
{_head_to_head(results, standing)}"""


def _strengths(results: Results, standing: Standings) -> str:
    boards = (board for board in results.boards if board.name == standing.dimension)
    return "".join(f"\n{strengths(board)}" for board in boards)


def _leaderboard(standing: Standings) -> str:
    resampled = standing.bootstrap
    rows = (
        (
            row.entrant_id,
            "not rated: no decisive match" if row.rating is None else f"{row.rating:.1f}",
            *([rounded(row.lower, 1), rounded(row.upper, 1)] if resampled else ()),
            rounded(row.order_sem, 2),
            str(row.n_matches),
        )
        for row in standing.rows
    )
    bounds = ("95 % low", "95 % high") if resampled else ()
    headers = ("Entrant", "Elo", *bounds, "Order SEM", "Matches")
    caption = f"Elo at K = {standing.k:g}, mean over {len(standing.ratings.traces)} orders of play"
    note = (
        '<p class="note">Order SEM says how much the mean depends on the orders drawn. It is not'
        " the uncertainty of the rating.</p>"
    )
    return table(caption, headers, rows) + note + (_interval(resampled) if resampled else "")


def _interval(resampled: EloBootstrap) -> str:
    return (
        f'\n<p class="note">{escape(resampled.sentence())}; all matches on one move together. An'
        f" entrant met on fewer than {FEWEST_PROMPTS} has none.</p>"
    )


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
