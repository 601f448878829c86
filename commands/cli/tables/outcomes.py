"""Win rates, matches, responses, progress and imported ratings as tables."""

from collections.abc import Iterable, Mapping
from typing import Final

from commands.cli.tables.table import MoreColumn, Table, table_of
from commands.judging.unreadable import gold_notes
from commands.reading.results import outcome_rows, response_rows
from ledger.events.imports import RatingsImported
from ledger.events.registration import JudgeSettings
from ledger.events.responses import Diagnostics, ResponseGenerated
from ledger.identity import Digest, Json
from projections.intervals import NO_INTERVAL
from projections.results.columns import Column
from projections.results.outcomes import (
    ImportedRatingRow,
    OutcomeRow,
    ProgressRow,
    ResponseRow,
)
from projections.results.ratings import WinRateRow
from projections.tournament.compared import Counted
from projections.tournament.remaining import Progress
from projections.tournament.settlement import Compared
from projections.tournament.state import Tournament

_TITLES: Final[Mapping[Counted, str]] = {
    "pairs": "Wins by pair of entrants, each pair of responses counted once",
    "orders": "Wins by pair of entrants, each pair of responses counted twice, once in each order",
    "battles": "Wins by pair of entrants, each imported battle counted once",
}
_TIES: Final = "A's share counts a tie as half a win"
_PREFERENCES: Final = ", and weights and preferences as they are"
_INTERVAL: Final = "Interval: Wilson's with Student's t, clustered by prompt."


def winrates_table(
    rows: Iterable[WinRateRow],
    *,
    counted: Counted = "pairs",
    notes: tuple[str, ...] = (),
    facts: Mapping[str, Json] | None = None,
) -> Table:
    """Return a row for each pair of entrants; a comes before b in the alphabet."""
    rows = tuple(rows)
    lacks_one = any(row.win_rate is not None and row.ci95_low is None for row in rows)
    shares = f"{_TIES}{_PREFERENCES if counted == 'battles' else ''}. {_INTERVAL}"
    return table_of(
        WinRateRow,
        rows,
        "tourney/winrates@1",
        _TITLES[counted],
        notes=(*notes, f"{shares} {NO_INTERVAL}" if lacks_one else shares),
        facts=facts,
    )


def matches_table(
    compared: Iterable[Compared],
    *,
    notes: tuple[str, ...] = (),
    facts: Mapping[str, Json] | None = None,
) -> Table:
    """Return a row for each pair of responses, order of one, or imported battle."""
    rows = tuple(outcome_rows(compared))
    return table_of(
        OutcomeRow,
        rows,
        "tourney/matches@1",
        "Matches",
        notes=notes,
        facts=facts,
        hidden=() if any(row.id for row in rows) else {"id"},
        without=() if any(row.order for row in rows) else {"order"},
    )


_NO_HEADS: Final[Mapping[str, Json]] = {
    **Diagnostics(draft_head_idx=0, bypass_jury=False).fields,
    "draft_head_idx": None,
    "bypass_jury": None,
}
"""The diagnostics of a response that no Hydra wrote: the same keys, empty."""


def responses_table(tournament: Tournament) -> Table:
    """Return a row for each response of the tournament; missing ones are empty."""
    rows = tuple(response_rows(tournament))
    responses = [tournament.responses.get(Digest(row.response_key)) for row in rows]
    diagnostics = [None if response is None else _diagnostics(response) for response in responses]
    rated = any(row.p_correct is not None for row in rows)
    return table_of(
        ResponseRow,
        rows,
        "tourney/responses@1",
        "Responses",
        more=(
            MoreColumn(Column(key="diagnostics"), diagnostics),
            MoreColumn(Column(key="imported_from"), [row.imported_from for row in rows]),
        ),
        hidden={"diagnostics", "imported_from", *(() if rated else ("p_correct",))},
        without={"imported_from"},  # it stands behind the diagnostics
    )


def _diagnostics(response: ResponseGenerated) -> Mapping[str, Json]:
    decided = response.diagnostics
    return {
        **(decided.fields if decided else _NO_HEADS),
        "seed": response.seed,
        "n_resampled": _n_resampled(response),
        "n_tokens_generated": response.n_generated_tokens,
    }


def _n_resampled(response: ResponseGenerated) -> int | None:
    """Return how many drafts were rejected; None: unknown, for imported responses of a Hydra."""
    if response.diagnostics is None:
        return 0
    return None if response.imported_from else len(response.diagnostics.resampled_at)


def progress_table(
    progress: Progress, judge: JudgeSettings, not_planned: Iterable[str] = ()
) -> Table:
    """Return a row for each entrant: responses done, failed and missing."""
    return table_of(
        ProgressRow,
        (
            ProgressRow(
                row.entrant_id, generated=row.generated, failed=row.failed, owed=row.missing
            )
            for row in progress.responses
        ),
        "tourney/progress@1",
        f"Progress, judge {judge.judge_id}",
        notes=(
            *(f"{name}: {each.sentence()}" for name, each in progress.accounts),
            *not_planned,
            *gold_notes(progress.without_gold),
        ),
        facts={
            "judge": judge.judge_id,
            "accounts": {name: each.fields() for name, each in progress.accounts},
            "left_out": {each.dimension: each.n_prompts for each in progress.without_gold},
        },
    )


def imported_ratings_table(newest: Mapping[str, RatingsImported]) -> Table:
    """Return a row for each of the newest ratings of each set, on its own scale."""
    none = "no imported ratings; `tourney import elo-ratings` imports some"
    return table_of(
        ImportedRatingRow,
        (
            ImportedRatingRow(
                set=name,
                entrant=each.entrant,
                rating=each.rating,
                ci_low=each.ci_low,
                ci_high=each.ci_high,
                n_battles=each.n_battles,
                source=each.source,
                dimension=each.dimension,
            )
            for name, event in sorted(newest.items())
            for each in sorted(event.ratings, key=lambda it: (it.dimension or "", -it.rating))
        ),
        "tourney/imported-ratings@1",
        "Imported ratings",
        notes=() if newest else (none,),
        facts={
            "sets": [
                {"set": name, "arena": event.arena, "judge_model": event.judge_model}
                for name, event in sorted(newest.items())
            ]
        },
    )
