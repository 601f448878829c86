"""Outcomes, responses, progress and imported ratings: their rows."""

from typing import Annotated, NamedTuple

from projections.results.columns import KEPT, Column, Kept, Shown


class OutcomeRow(NamedTuple):
    """The outcome of one planned comparison of two responses, or of an imported battle."""

    id: Annotated[
        str | None,
        Column("Battle", importance=1, after="prompt", meaning="null: of an imported battle"),
    ]
    dimension: Annotated[str, Column(importance=1, meaning="or the imported set")]
    prompt: Annotated[
        str | None, Column(importance=KEPT, meaning="null: an imported battle without an id")
    ]
    entrant_a: Annotated[str, Column("A", importance=KEPT)]
    entrant_b: Annotated[str, Column("B", importance=KEPT)]
    order: Annotated[str | None, Column(meaning="if the policy counts each order on its own")]
    status: Annotated[
        str,
        Column(
            importance=KEPT,
            meaning="a, b, tie, inconsistent, pending, or why there is no outcome",
        ),
    ]
    winner: Kept[str | None]


class ResponseRow(NamedTuple):
    """The response of an entrant to a prompt; None while it is missing."""

    prompt: Shown[str]
    entrant: Shown[str]
    response_key: str
    finish_reason: Annotated[str | None, Column("Finish")]
    n_tokens: Shown[int | None]
    text: Annotated[str | None, Column("Response", after="p_correct")]
    p_correct: Annotated[
        float | None, Column("P(correct)", 3, meaning="the entrant's own estimate")
    ]
    imported_from: str | None


class ProgressRow(NamedTuple):
    """How many responses of an entrant are done."""

    entrant: Shown[str]
    generated: Annotated[int, Column("Responses")]
    failed: Shown[int]
    owed: Annotated[int, Column("Missing")]


class ImportedRatingRow(NamedTuple):
    """A rating that was imported, on its own scale."""

    set: Shown[str]
    entrant: Annotated[str, Column(after="dimension")]
    rating: Annotated[float, Column(digits=1, after="entrant")]
    ci_low: Annotated[float | None, Column("95 % low", 1, group="interval", after="rating")]
    ci_high: Annotated[float | None, Column("95 % high", 1, group="interval", after="ci_low")]
    n_battles: Annotated[int | None, Column(after="ci_high")]
    source: Annotated[str, Column(after="n_battles")]
    dimension: Shown[str | None]


class BattleRow(NamedTuple):
    """What became of a battle in one order on one dimension."""

    id: str
    dimension: Shown[str]
    outcome: Annotated[str, Column(after="preferred")]
    winner: str | None
    order: Shown[str]
    first: Annotated[str, Column(meaning="whose response stood first")]
    status: Shown[str]
    verdict: Annotated[str | None, Column(meaning="on the slots shown")]
    preferred: Annotated[str | None, Column(meaning="by the verdict; null also for a tie")]
    reply: Annotated[str, Column(after="outcome")]
    detail: str
