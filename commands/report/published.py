"""The report for other places: as Markdown in short, as a data set's card, as a tracker's run."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from commands.report.judges import fragile_pairs
from commands.report.money import spending_of
from commands.report.page import (
    DimensionView,
    n_judged_prompts,
    n_prompts,
    page_of,
    title_of,
    view_of,
)
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


_CARD: Final = """\
---
pretty_name: {name}
tags:
- tourney
- llm-as-a-judge
configs:
- config_name: battles
  data_files: battles.parquet
  default: true
- config_name: responses
  data_files: responses.parquet
---

{summary}
## Files

`battles.parquet` has a row for each pair of responses with a verdict: `model_a`, `model_b`,
`winner`, and `pref`, the share of both orders' verdicts for `model_b` (`weight` is 0.5 where only
one order has a verdict). `question_id` is the `prompt_id` of `responses.parquet`, which has the
texts. `tourney import battles battles.parquet` rates them again.

```python
from datasets import load_dataset

battles = load_dataset("...", "battles", split="train")
```
"""
_UNSAFE: Final = re.compile(r"[^/\w.\- :]")  # of a metric's name, in MLflow


def card_of(subject: Subject) -> str:
    """Return the card of a data set of battles and responses, with the ratings."""
    return _CARD.format(name=json.dumps(_stream(subject)), summary=summary_of(subject))


class TrackedRun(NamedTuple):
    """What a tracker of experiments is told of a tournament."""

    project: str
    name: str
    facts: Mapping[str, str]
    metrics: Mapping[str, float]
    files: Mapping[str, str]


def tracked_run(subject: Subject, name: str | None) -> TrackedRun:
    """Return the ratings with their intervals, and the report."""
    stream, head, judge = _stream(subject), subject.head, subject.results.judge
    return TrackedRun(
        project=stream,
        name=name or f"{stream}@{head.position}",
        facts={
            "judge": f"{judge.judge_id} ({judge.model})",
            "position": str(head.position),
            "head": head.chain,
        },
        metrics=dict(_metrics(subject)),
        files={"report.html": page_of(subject), "report.md": summary_of(subject)},
    )


def _stream(subject: Subject) -> str:
    return subject.results.tournament.stream


def _metrics(subject: Subject) -> Iterator[tuple[str, float]]:
    for rated in subject.dimensions:
        elo = {row.entrant: row.rating for row in rated.standings.rows}
        for row in rated.board.rows:
            numbers = {
                "rating": row.rating,
                "low": row.low,
                "high": row.high,
                "elo": elo.get(row.entrant),
            }
            for name, number in numbers.items():
                if number is not None:
                    yield _UNSAFE.sub("_", f"{rated.name}/{row.entrant}/{name}"), number
