"""The report for other places: the card of a data set on the Hub, and a run of a tracker."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from commands.report.page import page_of
from commands.report.subject import Subject
from commands.report.summary import summary_of

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
