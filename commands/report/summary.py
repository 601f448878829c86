"""The report in short, as Markdown: the finding, what speaks against it, and the ratings."""

from collections.abc import Iterable, Iterator, Sequence

from commands.report.judges import fragile_pairs
from commands.report.money import spending_of
from commands.report.page import DimensionView, n_judged_prompts, n_prompts, title_of, view_of
from commands.report.ratings import RatingRow
from commands.report.subject import Subject
from commands.report.text import NOTHING, interval, points
from projections.artifacts.escaping import markdown_text
from projections.tournament.waves import not_asked


def summary_of(subject: Subject) -> str:
    """Return the finding, its caveats and the ratings of each dimension as Markdown."""
    views = [view_of(subject, rated, fragile_pairs(rated)) for rated in subject.dimensions]
    parts = [
        f"# {markdown_text(title_of(subject))}",
        *(part for view in views for part in _dimension(view, is_one=len(views) == 1)),
        *map(markdown_text, not_asked(subject.results.tournament, subject.results.judge)),
        _footer(subject),
    ]
    return "\n\n".join(parts) + "\n"


def _dimension(view: DimensionView, *, is_one: bool) -> Iterator[str]:
    if not is_one:
        yield f"## {markdown_text(view.name)}"
    yield f"**{markdown_text(view.finding.sentence)}**"
    if view.finding.evidence:
        yield markdown_text(view.finding.evidence)
    if view.caveats:
        yield "\n".join(f"- {markdown_text(caveat)}" for caveat in view.caveats)
    yield _table(
        ("Rank", "Entrant", "Rating", f"{view.ratings.level} interval", "Won-lost-tied", "Elo"),
        map(_row, view.ratings.rows),
    )


def _row(row: RatingRow) -> Sequence[str]:
    place = row.place
    return (
        place.rank or NOTHING,
        place.entrant,
        points(place.rating),
        interval(place.low, place.high),
        f"{row.wins}-{row.losses}-{row.ties}",
        points(row.elo),
    )


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = (headings, ["---"] * len(headings), *(map(markdown_text, row) for row in rows))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _footer(subject: Subject) -> str:
    """Say who judged, on how many prompts, at what cost, and from what the page was made."""
    results = subject.results
    n_judged = f"{n_judged_prompts(results):,} of {n_prompts(results):,}"
    judge = f"{results.judge.judge_id} ({results.judge.model})"
    total = spending_of(results.tournament, subject.spend).total
    said = f"Judge: {judge}; {n_judged} prompts judged; spent: {total}; head: {subject.head}"
    return markdown_text(said)
