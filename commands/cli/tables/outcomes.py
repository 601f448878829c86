"""Win rates, matches, responses, progress and imported ratings as tables."""

from collections.abc import Iterable, Mapping
from typing import Final

from commands.cli.tables.table import KEPT, Table, columns
from commands.judging.unreadable import gold_notes
from commands.runs.reading.rows import OutcomeRow, ResponseRow, WinRateRow
from commands.runs.report.drawings.figures import win_rates_chart
from ledger.events.imports import RatingsImported
from ledger.events.registration import JudgeSettings
from ledger.events.responses import Diagnostics, ResponseGenerated
from ledger.identity import Digest, Json
from projections.intervals import NO_INTERVAL
from projections.ratings.standings import WinRate
from projections.tournament.compared import Compared, Counted
from projections.tournament.matches import planned_responses
from projections.tournament.remaining import Progress
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
    rows: Iterable[WinRate],
    *,
    counted: Counted = "pairs",
    notes: tuple[str, ...] = (),
    facts: Mapping[str, Json] | None = None,
) -> Table:
    """Return a row for each pair of entrants; a comes before b in the alphabet."""
    shown = [WinRateRow.of(row) for row in rows]
    lacks_one = any(row.win_rate is not None and row.ci95_low is None for row in shown)
    shares = f"{_TIES}{_PREFERENCES if counted == 'battles' else ''}. {_INTERVAL}"
    return Table(
        schema="tourney/winrates@1",
        title=_TITLES[counted],
        columns=(
            *columns("dimension", importance=KEPT, entrant_a="A", entrant_b="B"),
            *columns("a_wins", "b_wins", "ties", importance=KEPT),
            *columns("inconsistent", "missing", importance=0),
            *columns(digits=3, importance=KEPT, win_rate="A's share"),
            *columns(
                digits=3,
                importance=1,
                group="interval",
                ci95_low="95 % low",
                ci95_high="95 % high",
            ),
        ),
        rows=tuple(row._asdict() for row in shown),
        notes=(*notes, f"{shares} {NO_INTERVAL}" if lacks_one else shares),
        facts={**(facts or {})},
        named_by=("dimension", "entrant_a", "entrant_b"),
        compared=("win_rate",),
        chart=win_rates_chart,
    )


def matches_table(
    compared: Iterable[Compared],
    *,
    notes: tuple[str, ...] = (),
    facts: Mapping[str, Json] | None = None,
) -> Table:
    """Return a row for each pair of responses, order of one, or imported battle."""
    compared = tuple(compared)
    by_order = any(each.order for each in compared)
    return Table(
        schema="tourney/matches@1",
        title="Matches",
        columns=(
            *columns("dimension", importance=1),
            *columns("prompt", importance=KEPT),
            *(
                columns(importance=1, id="Battle")
                if any(each.battle_id for each in compared)
                else ()
            ),
            *columns(importance=KEPT, entrant_a="A", entrant_b="B"),
            *(columns("order") if by_order else ()),
            *columns("status", "winner", importance=KEPT),
        ),
        rows=tuple(
            {key: cell for key, cell in row._asdict().items() if by_order or key != "order"}
            for row in map(OutcomeRow.of, compared)
        ),
        notes=notes,
        facts={**(facts or {})},
    )


_NO_HEADS: Final[Mapping[str, Json]] = {
    **Diagnostics(draft_head_idx=0, bypass_jury=False).fields,
    "draft_head_idx": None,
    "bypass_jury": None,
}
"""The diagnostics of a response that no Hydra wrote: the same keys, empty."""


def responses_table(tournament: Tournament) -> Table:
    """Return a row for each response of the tournament; missing ones are empty."""
    prompts = [prompt.prompt_id for prompt in tournament.bank]
    rows = [ResponseRow.of(tournament, cell) for cell in planned_responses(tournament, prompts)]
    rated = any(row.p_correct is not None for row in rows)
    return Table(
        schema="tourney/responses@1",
        title="Responses",
        columns=(
            *columns("prompt", "entrant", finish_reason="Finish", n_tokens="Tokens"),
            *(columns(digits=3, p_correct="P(correct)") if rated else ()),
            *columns(text="Response"),
        ),
        rows=tuple(_response_fields(tournament, row) for row in rows),
    )


def _response_fields(tournament: Tournament, row: ResponseRow) -> dict[str, Json]:
    response, fields = tournament.responses.get(Digest(row.response_key)), row._asdict()
    imported_from = fields.pop("imported_from")
    diagnostics = _diagnostics(response) if response else None
    return {**fields, "diagnostics": diagnostics, "imported_from": imported_from}


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


def progress_table(progress: Progress, judge: JudgeSettings) -> Table:
    """Return a row for each entrant: responses done, failed and missing."""
    return Table(
        schema="tourney/progress@1",
        title=f"Progress, judge {judge.judge_id}",
        columns=columns("entrant", generated="Responses", failed="Failed", owed="Missing"),
        rows=tuple(
            {
                "entrant": row.entrant_id,
                "generated": row.generated,
                "failed": row.failed,
                "owed": row.missing,
            }
            for row in progress.responses
        ),
        notes=(
            *(f"{name}: {each.sentence()}" for name, each in progress.accounts),
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
    return Table(
        schema="tourney/imported-ratings@1",
        title="Imported ratings",
        columns=(
            *columns("set", "dimension", "entrant"),
            *columns("rating", digits=1),
            *columns(digits=1, group="interval", ci_low="95 % low", ci_high="95 % high"),
            *columns("n_battles", "source"),
        ),
        rows=tuple(
            {"set": name, **each.fields}
            for name, event in sorted(newest.items())
            for each in sorted(event.ratings, key=lambda it: (it.dimension or "", -it.rating))
        ),
        notes=() if newest else (none,),
        facts={
            "sets": [
                {"set": name, "arena": event.arena, "judge_model": event.judge_model}
                for name, event in sorted(newest.items())
            ]
        },
    )
