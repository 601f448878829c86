"""Responses and how many of them are there, as tables."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from commands.tables.table import Column, Table
from ledger.events.registration import JudgeSettings
from ledger.events.responses import Diagnostics, ResponseGenerated
from ledger.identity import Json
from projections.tournament.matches import cells
from projections.tournament.progress import Progress
from projections.tournament.state import Tournament

_NO_HEADS: Final[Mapping[str, Json]] = MappingProxyType(
    {
        **Diagnostics(draft_head_idx=0, bypass_jury=False).fields,
        "draft_head_idx": None,
        "bypass_jury": None,
    }
)
"""What is said, under the same keys, of a response that no heads decided on."""


def responses_table(tournament: Tournament) -> Table:
    """Show every response that the tournament wants; one not there is empty."""
    prompts = [prompt.prompt_id for prompt in tournament.bank]
    rows = [
        (cell, tournament.responses.get(cell.response_key)) for cell in cells(tournament, prompts)
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
    """Return how many drafts were rejected; of a Hydra's response that was imported, none knows."""
    if response.diagnostics is None:
        return 0
    return None if response.imported_from else len(response.diagnostics.resampled_at)


def progress_table(progress: Progress, judge: JudgeSettings) -> Table:
    """Show what is there, what failed and what is owed."""
    return Table(
        schema="tourney/progress@1",
        title=f"Progress, judge {judge.judge_id}",
        columns=(
            Column("entrant", "Entrant"),
            Column("generated", "Responses"),
            Column("failed", "Failed"),
            Column("owed", "Owed"),
        ),
        rows=tuple(
            {
                "entrant": row.entrant_id,
                "generated": row.generated,
                "failed": row.failed,
                "owed": row.owed,
            }
            for row in progress.responses
        ),
        notes=(
            *(f"{name}: {each.sentence()}" for name, each in progress.accounts),
            *(
                f"{dimension}: {count} prompts are left out, they have no gold answer."
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
