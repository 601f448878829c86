"""What is owed, as tables."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from types import MappingProxyType
from typing import Final

from commands.cli.tables.table import Column, Table
from commands.decisions.recorder import MissingResponses, MissingVerdicts
from commands.evaluating.evaluate import OwedSamples
from commands.spending.consent import dollars
from commands.spending.endpoints import EndpointCost
from commands.spending.forecast import NO_TOKENS, PlannedCost, SubmissionOption
from ledger.identity import Json
from projections.tournament.estimate import Basis

_BASES: Final[Mapping[Basis, str]] = MappingProxyType(
    {
        "replies": "tokens as in the replies of this judge that are on record",
        "another judge": "an estimate: tokens as in replies of another judge; a few of this"
        " judge's own would measure them: `tourney apply judge --limit 36`, then plan again",
        "counts": "an estimate: the provider counted prompts, and nobody knows yet how long"
        " replies are; a pilot would measure them",
        "nothing": "an estimate: tokens are guessed from bytes; a pilot would measure them",
    }
)


def cost_notes(cost: PlannedCost) -> Iterator[str]:
    """Say what is expected, in each way; what is spent already; and what to know about it."""
    for way in cost.ways:
        yield f"{_name(way)}: {dollars(way.expected_usd)}, at worst {dollars(way.worst_usd)}"
    yield _BASES[cost.basis]
    yield _standing(cost)
    if any(way.expected_usd is None for way in cost.ways):
        yield f"{cost.model} is in no price table; add a row by [judge] prices = FILE"
    elif cost.n_least_cached is None and any(way.cache != "off" for way in cost.ways):
        yield f"from how many tokens on {cost.model} caches a prefix is not known"
    for dimension, n_tokens in cost.too_short.items():
        yield (
            f"{dimension}: caching does nothing, its prefix of {n_tokens} tokens is below the"
            f" {cost.n_least_cached} from which {cost.model} caches"
        )


def _name(way: SubmissionOption) -> str:
    asked = "in batches" if way.in_batch else "one by one"
    cached = "no cache" if way.cache == "off" else f"cache {way.cache}"
    return f"{asked}, {cached}{' (as set)' if way.is_chosen else ''}"


def _standing(cost: PlannedCost) -> str:
    parts = [f"{dollars(cost.spent_usd)} spent"]
    if cost.n_in_flight:
        worst = dollars(cost.in_flight_usd)
        parts.append(f"{cost.n_in_flight} queries in flight, {worst} at worst")
    parts.append("no cap" if cost.cap_usd is None else f"cap {dollars(cost.cap_usd)}")
    return ", ".join(parts)


def cost_fields(cost: PlannedCost) -> dict[str, Json]:
    """Return the same as data; null where it is not known."""
    return {
        "model": cost.model,
        "basis": cost.basis,
        "is_measured": cost.basis == "replies",
        "ways": [dict(way._asdict()) for way in cost.ways],
        "spent_usd": cost.spent_usd,
        "cap_usd": cost.cap_usd,
        "n_in_flight": cost.n_in_flight,
        "in_flight_at_worst_usd": cost.in_flight_usd,
        "min_cacheable_tokens": cost.n_least_cached,
        "prefix_tokens": {str(name): n for name, n in cost.prefixes.items()},
    }


def served_notes(costs: Iterable[EndpointCost]) -> Iterator[str]:
    """Say what is asked of each server, and what it costs; a price that nobody knows is no $0."""
    for cost in costs:
        yield (
            f"{cost.entrant_id} is served: {cost.n_requests:,} requests to {cost.model}, about"
            f" {cost.n_input:,} tokens in, {cost.n_output:,} out at most:"
            f" {dollars(cost.expected_usd)}, at worst {dollars(cost.worst_usd)}"
        )
        if cost.expected_usd is None:
            yield f"{cost.model} is in no price table; add a row by [judge] prices = FILE"


def served_fields(costs: Iterable[EndpointCost]) -> list[Json]:
    """Return the same as data; null where it is not known."""
    return [asdict(cost) for cost in costs]


TOKENS: Final = (Column("n_input", "Tokens in"), Column("n_output", "Tokens out"))


def owed_responses_table(
    rows: Iterable[MissingResponses], costs: Sequence[EndpointCost] = ()
) -> Table:
    """Show what generating would do, and what of it servers are asked for."""
    rows = tuple(rows)
    total = sum(row.n_responses for row in rows)
    return Table(
        schema="tourney/plan-generate@1",
        title="Responses owed",
        columns=(
            Column("entrant", "Entrant"),
            Column("n_responses", "Responses"),
            Column("n_tokens_at_most", "Tokens at most"),
        ),
        rows=tuple(
            {
                "entrant": row.entrant_id,
                "n_responses": row.n_responses,
                "n_tokens_at_most": row.n_tokens_at_most,
            }
            for row in rows
        ),
        notes=(
            f"{total} responses are owed" if total else "nothing is owed",
            *served_notes(costs),
        ),
        facts={"n_owed": total, "served": served_fields(costs)},
    )


def owed_samples_table(
    rows: Iterable[OwedSamples], refused: Sequence[str], costs: Sequence[EndpointCost] = ()
) -> Table:
    """Show what evaluating would do, what of it cannot be done, and what servers are asked for."""
    rows = tuple(rows)
    total = sum(row.n_owed for row in rows)
    return Table(
        schema="tourney/plan-evaluate@1",
        title="Samples owed",
        columns=(
            Column("entrant", "Entrant"),
            Column("evaluation", "Evaluation"),
            Column("kind", "Kind"),
            Column("n_planned", "Samples"),
            Column("n_owed", "Owed"),
        ),
        rows=tuple(row._asdict() for row in rows),
        notes=(
            f"{total} samples are owed" if total else "nothing is owed",
            *served_notes(costs),
            *refused,
        ),
        facts={"n_owed": total, "served": served_fields(costs), "refused": list(refused)},
    )


def owed_verdicts_table(rows: Iterable[MissingVerdicts], cost: PlannedCost | None = None) -> Table:
    """Show what judging would do, and what it would cost; without a cost it is free."""
    rows = tuple(rows)
    total = sum(row.n_queries for row in rows)
    waiting = sum(row.n_waiting for row in rows)
    return Table(
        schema="tourney/plan-judge@1",
        title="Judge queries owed",
        columns=(
            Column("dimension", "Dimension"),
            Column("n_pairs", "Pairs"),
            Column("n_queries", "Queries"),
            Column("n_waiting", "Waiting pairs"),
            *(TOKENS if cost else ()),
        ),
        rows=tuple({**row._asdict(), **_tokens(row, cost)} for row in rows),
        notes=(
            f"{total} queries are owed" if total else "no query is owed",
            *((f"{waiting} pairs wait for responses",) if waiting else ()),
            *(cost_notes(cost) if cost else ()),
        ),
        facts={
            "n_owed": total,
            "n_waiting": waiting,
            "cost": None if cost is None else cost_fields(cost),
        },
    )


def _tokens(row: MissingVerdicts, cost: PlannedCost | None) -> dict[str, Json]:
    """Return the tokens that a dimension's queries are likely to take; null where it is free."""
    if cost is None:
        return {"n_input": None, "n_output": None}
    return dict(cost.tokens.get(row.dimension, NO_TOKENS)._asdict())
