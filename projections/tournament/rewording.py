"""Why judge queries are asked again: the judge's instructions or a rubric changed.

Every opening stays on the ledger, so a query can be built in its earlier words, too.
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from ledger.events.registration import Instructions, JudgeSettings, Rubric
from ledger.identity import Dimension
from projections.tournament.remaining import OpenQuery
from projections.tournament.state import Tournament
from projections.verdicts.queries import build_query


class Rewording(NamedTuple):
    """Open queries that were asked in other words before, and what changed since."""

    instructions_changed: bool
    changed_rubric: Dimension | None  # None: their rubrics are the same
    n_queries: int

    @property
    def sentence(self) -> str:
        """Why queries are asked again."""
        changed = [
            *(["the judge's instructions"] if self.instructions_changed else []),
            *([f"the rubric of {self.changed_rubric}"] if self.changed_rubric else []),
        ]
        queries = "query is" if self.n_queries == 1 else "queries are"
        return f"{' and '.join(changed)} changed: {self.n_queries:,} {queries} asked again"


class _Wording(NamedTuple):
    """What the judge is told about a dimension."""

    instructions: Instructions
    rubric: Rubric


def rewordings(
    tournament: Tournament, queries: Sequence[OpenQuery], judge: JudgeSettings
) -> tuple[Rewording, ...]:
    """Count the open queries that were asked in other words before, by what changed since."""
    if tournament.opening is None:
        return ()
    wordings = {
        rubric.dimension: (
            _Wording(tournament.opening.instructions, rubric),
            _earlier_wordings(tournament, rubric.dimension),
        )
        for rubric in tournament.dimensions
    }
    changes: Counter[tuple[bool, Dimension | None]] = Counter()
    for query in queries:
        now, earlier = wordings[query.match.pairing.rubric.dimension]
        before = _last_asked(tournament, query, judge, earlier)
        if before is not None:
            changes[_change(before, now)] += 1
    return tuple(Rewording(*change, n) for change, n in changes.items())


def _earlier_wordings(tournament: Tournament, dimension: Dimension) -> tuple[_Wording, ...]:
    """Return the wordings of earlier openings, each once, the newest first."""
    wordings = (
        _Wording(opening.instructions, tournament.rubrics[reference])
        for opening in reversed(tournament.replaced_openings)
        for reference in opening.rubrics
        if reference.label == dimension and reference in tournament.rubrics
    )
    return tuple(dict.fromkeys(wordings))


def _last_asked(
    tournament: Tournament, query: OpenQuery, judge: JudgeSettings, earlier: Sequence[_Wording]
) -> _Wording | None:
    """Return the wording in which a query was last asked; None: never, or as it is now."""
    match, asked, _ = query
    if tournament.was_asked(asked.query_key):
        return None
    a, b, prompt = match.response_a.text, match.response_b.text, match.pairing.prompt
    for wording in earlier:
        former = build_query(judge, *wording, prompt, a=a, b=b, order=asked.order)
        if tournament.was_asked(former.query_key):
            return wording
    return None


def _change(before: _Wording, now: _Wording) -> tuple[bool, Dimension | None]:
    """Say whether the instructions changed, and name the rubric if it did."""
    has_new_rubric = _shown(before.rubric) != _shown(now.rubric)
    return (
        before.instructions.guidance != now.instructions.guidance,
        now.rubric.dimension if has_new_rubric else None,
    )


def _shown(rubric: Rubric) -> tuple[str, bool, bool]:
    """Return what of a rubric a judge is shown, or decides on what it is shown."""
    return rubric.guidance, rubric.needs_gold, rubric.shows_expected_behavior
