"""Win rates, matches, responses and progress as tables."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, Literal

from commands.cli.tables.table import Column, Table
from ledger.events.registration import JudgeSettings
from ledger.events.responses import Diagnostics, ResponseGenerated
from ledger.identity import Json
from projections.ratings.standings import WinRate
from projections.tournament.matches import planned_responses
from projections.tournament.progress import Progress
from projections.tournament.settlement import Settlement
from projections.tournament.state import Tournament

_TITLES: Final = {
    "pairs": "Wins by pair of entrants, each pair of responses counted once",
    "orders": "Wins by pair of entrants, each pair of responses counted twice, once in each order",
}
_NOTES: Final = {
    "pairs": "A's share counts a tie as half a win. Interval: Wilson.",
    "orders": (
        "A's share counts a tie as half a win. Interval: Wilson with half as many trials, since the"
        " two orders of a pair are not independent."
    ),
}


def winrates_table(
    rows: Iterable[WinRate],
    *,
    counted: Literal["pairs", "orders"] = "pairs",
    notes: tuple[str, ...] = (),
    facts: Mapping[str, Json] | None = None,
) -> Table:
    """Return a row for each pair of entrants; a comes before b in the alphabet.

    Args:
        rows: The counts.
        counted: Whether pairs or their orders are counted.
        notes: Further notes.
        facts: Further fields of JSON beside the rows.
    """
    return Table(
        schema="tourney/winrates@1",
        title=_TITLES[counted],
        columns=(
            Column("dimension", "Dimension"),
            Column("entrant_a", "A"),
            Column("entrant_b", "B"),
            Column("a_wins", "A wins"),
            Column("b_wins", "B wins"),
            Column("ties", "Ties"),
            Column("inconsistent", "Inconsistent"),
            Column("missing", "Missing"),
            Column("win_rate", "A's share", 3),
            Column("ci95_low", "95 % low", 3),
            Column("ci95_high", "95 % high", 3),
        ),
        rows=tuple(_win_rate_row(row, counted) for row in rows),
        notes=(*notes, _NOTES[counted]),
        facts={**(facts or {})},
        named_by=("dimension", "entrant_a", "entrant_b"),
        compared=("win_rate",),
    )


def _win_rate_row(row: WinRate, counted: Literal["pairs", "orders"]) -> Mapping[str, Json]:
    lower, upper = row.interval(counted) or (None, None)
    return {
        **row._asdict(),
        "win_rate": row.win_rate,
        "ci95_low": lower,
        "ci95_high": upper,
    }


def matches_table(
    settlements: Iterable[Settlement],
    *,
    notes: tuple[str, ...] = (),
    facts: Mapping[str, Json] | None = None,
) -> Table:
    """Return a row for each pair of responses, or for each of its orders, with its outcome.

    Args:
        settlements: The outcomes.
        notes: Further notes.
        facts: Further fields of JSON beside the rows.
    """
    settlements = tuple(settlements)
    by_order = any(each.order for each in settlements)
    return Table(
        schema="tourney/matches@1",
        title="Matches",
        columns=(
            Column("dimension", "Dimension"),
            Column("prompt", "Prompt"),
            Column("entrant_a", "A"),
            Column("entrant_b", "B"),
            *([Column("order", "Order")] if by_order else ()),
            Column("status", "Status"),
            Column("winner", "Winner"),
        ),
        rows=tuple(
            {
                "dimension": pairing.rubric.dimension,
                "prompt": pairing.prompt.prompt_id,
                "entrant_a": pairing.a.entrant.entrant_id,
                "entrant_b": pairing.b.entrant.entrant_id,
                **({"order": settlement.order} if by_order else {}),
                "status": settlement.status,
                "winner": settlement.winner,
            }
            for settlement in settlements
            for pairing in (settlement.pairing,)
        ),
        notes=notes,
        facts={**(facts or {})},
    )


_NO_HEADS: Final[Mapping[str, Json]] = MappingProxyType(
    {
        **Diagnostics(draft_head_idx=0, bypass_jury=False).fields,
        "draft_head_idx": None,
        "bypass_jury": None,
    }
)
"""The diagnostics of a response that no Hydra wrote: the same keys, empty."""


def responses_table(tournament: Tournament) -> Table:
    """Return a row for each response of the tournament; missing ones are empty."""
    prompts = [prompt.prompt_id for prompt in tournament.bank]
    rows = [
        (cell, tournament.responses.get(cell.response_key))
        for cell in planned_responses(tournament, prompts)
    ]
    rated = any(response and response.p_correct is not None for _, response in rows)
    return Table(
        schema="tourney/responses@1",
        title="Responses",
        columns=(
            Column("prompt", "Prompt"),
            Column("entrant", "Entrant"),
            Column("finish_reason", "Finish"),
            Column("n_tokens", "Tokens"),
            *((Column("p_correct", "P(correct)", 3),) if rated else ()),
            Column("text", "Response"),
        ),
        rows=tuple(
            {
                "prompt": cell.prompt.prompt_id,
                "entrant": cell.entrant.entrant_id,
                "response_key": cell.response_key,
                "finish_reason": response.finish_reason if response else None,
                "n_tokens": response.n_generated_tokens if response else None,
                "text": response.text if response else None,
                "p_correct": response.p_correct if response else None,
                "diagnostics": _diagnostics(response) if response else None,
                "imported_from": response.imported_from if response else None,
            }
            for cell, response in rows
        ),
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


def progress_table(progress: Progress, judge: JudgeSettings) -> Table:
    """Return a row for each entrant: responses done, failed and missing."""
    return Table(
        schema="tourney/progress@1",
        title=f"Progress, judge {judge.judge_id}",
        columns=(
            Column("entrant", "Entrant"),
            Column("generated", "Responses"),
            Column("failed", "Failed"),
            Column("owed", "Missing"),
        ),
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
            *(
                f"{dimension}: prompts without a gold answer are left out ({count})."
                for dimension, count in progress.left_out
                if count
            ),
        ),
        facts={
            "judge": judge.judge_id,
            "accounts": {name: each.fields() for name, each in progress.accounts},
            "left_out": dict(progress.left_out),
        },
    )
