"""What remains to be done and what it costs, as tables."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Final

from commands.cli.tables.render import as_json
from commands.cli.tables.table import MoreColumn, Table, table_of
from commands.decisions.recorder import MissingResponses, MissingVerdicts
from commands.errors import counted, joined_names
from commands.evaluating.evaluate import MissingSamples
from commands.judging.designs import DesignGoal
from commands.judging.preview import RequestPreview
from commands.judging.savings import CascadeAdvice
from commands.judging.scoring import MissingScores
from commands.spending.budget import dollars, no_price, requests_to
from commands.spending.endpoints import EndpointCost
from commands.spending.pricing import NO_TOKENS, PlannedCost, SubmissionOption
from ledger.identity import Json, PromptId
from projections.artifacts.escaping import escaped
from projections.results.columns import Column
from projections.results.ratings import DesignRow
from projections.tournament.estimate import Basis
from projections.tournament.rewording import Rewording

_BASES: Final[Mapping[Basis, str]] = {
    "replies": "tokens: from this judge's recorded replies",
    "another judge": "tokens: estimated from another judge's replies; to measure them, run"
    " `tourney apply judge --limit 36`, then plan again",
    "counts": "tokens: prompts are counted, replies estimated; a pilot run measures them",
    "nothing": "tokens: estimated from bytes; a pilot run measures them",
}


def cost_notes(cost: PlannedCost) -> Iterator[str]:
    """Yield the cost of each way of asking, its basis, the spend so far, and warnings."""
    for way in cost.ways if cost.tokens else ():  # nothing is open: nothing to choose
        asked = "in batches" if way.in_batch else "one by one"
        cached = "no cache" if way.cache == "off" else f"cache {way.cache}"
        chosen = " (as set)" if way.is_chosen else ""
        usd = f"{dollars(way.expected_usd)}, at worst {dollars(way.worst_usd)}"
        yield f"{asked}, {cached}{chosen}: {usd}"
    yield _BASES[cost.basis]
    yield _standing(cost)
    if any(way.expected_usd is None for way in cost.ways):
        yield no_price(cost.model)
    elif cost.n_least_cached is None and any(way.cache != "off" for way in cost.ways):
        yield f"it is unknown how long a prefix must be for {cost.model} to cache it"
    for dimension, n_tokens in cost.too_short.items():
        yield (
            f"{dimension}: no caching, since its prefix of {n_tokens} tokens is shorter than the"
            f" {cost.n_least_cached} tokens that {cost.model} needs"
        )


def _standing(cost: PlannedCost) -> str:
    parts = [f"{dollars(cost.spent_usd)} spent"]
    if cost.n_unpriced:
        parts.append(f"and {counted(cost.n_unpriced, 'reply', 'replies')} of unknown price")
    if cost.n_in_flight:
        worst = dollars(cost.in_flight_usd)
        parts.append(f"{cost.n_in_flight} queries in flight, {worst} at worst")
    parts.append("no cap" if cost.cap_usd is None else f"cap {dollars(cost.cap_usd)}")
    return ", ".join(parts)


def cost_fields(cost: PlannedCost) -> dict[str, Json]:
    """Return the same as JSON; null: unknown."""
    return {
        "model": cost.model,
        "basis": cost.basis,
        "is_measured": cost.basis == "replies",
        "ways": [dict(way._asdict()) for way in cost.ways],
        "spent_usd": cost.spent_usd,
        "n_unpriced": cost.n_unpriced,
        "cap_usd": cost.cap_usd,
        "n_in_flight": cost.n_in_flight,
        "in_flight_at_worst_usd": cost.in_flight_usd,
        "min_cacheable_tokens": cost.n_least_cached,
        "prefix_tokens": {str(name): n for name, n in cost.prefixes.items()},
    }


def endpoint_notes(costs: Sequence[EndpointCost]) -> Iterator[str]:
    """Yield the requests to each endpoint entrant and their cost; an unknown price is not $0."""
    for cost in costs:
        asked = requests_to(cost.n_requests, cost.model)
        yield (
            f"{cost.entrant_id} ({'batches' if cost.in_batch else 'endpoint'}): {asked}, about"
            f" {cost.n_input:,} tokens in, at most {cost.n_output:,} out:"
            f" {dollars(cost.expected_usd)}, at worst {dollars(cost.worst_usd)}"
        )
    unpriced = dict.fromkeys(cost.model for cost in costs if cost.expected_usd is None)
    if unpriced:
        yield no_price(*unpriced)


def _edited_notes(
    texts: Sequence[PromptId], answers: Mapping[PromptId, int] | None = None
) -> Iterator[str]:
    """Yield which prompts changed, and what that means."""
    if texts:
        yield f"the text of {joined_names(texts)} changed: it is answered again"
    if answers:
        again = counted(sum(answers.values()), "query is", "queries are")
        names = joined_names([*answers])
        yield f"the gold answer or expected behaviour of {names} changed: {again} asked again"


def missing_responses_table(
    rows: Iterable[MissingResponses],
    costs: Sequence[EndpointCost] = (),
    edited: Sequence[PromptId] = (),
    not_planned: Sequence[str] = (),
) -> Table:
    """Return a row for each entrant: its missing responses.

    Notes tell the cost of endpoints, which prompts were edited, and what the design spares.
    """
    rows = tuple(rows)
    total = sum(row.n_responses for row in rows)
    return table_of(
        MissingResponses,
        rows,
        "tourney/plan-generate@1",
        "Missing responses",
        notes=(
            f"{total} responses are missing" if total else "nothing remains to be generated",
            *not_planned,
            *_edited_notes(edited),
            *endpoint_notes(costs),
        ),
        facts={
            "n_owed": total,
            "served": [asdict(cost) for cost in costs],
            "edited": [*edited],
        },
    )


def missing_samples_table(
    rows: Iterable[MissingSamples],
    refused: Sequence[str],
    costs: Sequence[EndpointCost] = (),
    scores: Sequence[MissingScores] = (),
) -> Table:
    """Return a row for each entrant and evaluation: its missing samples.

    Notes tell the cost of endpoints, what judges are still to score, and what cannot be run.
    """
    rows = tuple(rows)
    total = sum(row.n_owed for row in rows)
    return table_of(
        MissingSamples,
        rows,
        "tourney/plan-evaluate@1",
        "Missing samples",
        notes=(
            f"{total} samples are missing" if total else "nothing remains to be evaluated",
            *endpoint_notes(costs),
            *(note for score in scores for note in _score_notes(score)),
            *refused,
        ),
        facts={
            "n_owed": total,
            "served": [asdict(cost) for cost in costs],
            "scores": [
                {**score._asdict(), "cost": cost_fields(score.cost) if score.cost else None}
                for score in scores
            ],
            "refused": list(refused),
        },
    )


def _score_notes(missing: MissingScores) -> Iterator[str]:
    """Yield what a judge is still to score, and what it costs."""
    if missing.n_unscored:
        answers = counted(missing.n_unscored, "answer")
        yield f"{answers} without a score by {missing.judge}; `tourney apply evaluate` says why"
    if not missing.n_queries and not missing.n_waiting:
        if not missing.n_unscored:
            yield f"{missing.judge} has scored every answer"
        return
    waiting = f"; {counted(missing.n_waiting, 'sample')} must be answered first"
    yield (
        f"{missing.judge} is to score {counted(missing.n_queries, 'answer')}"
        f"{waiting if missing.n_waiting else ''}"
    )
    if missing.cost and missing.n_queries:
        yield from cost_notes(missing.cost)


def missing_verdicts_table(
    rows: Iterable[MissingVerdicts],
    cost: PlannedCost | None = None,
    rewordings: Sequence[Rewording] = (),
    awaited: SubmissionOption | None = None,
    texts: Sequence[PromptId] = (),
    answers: Mapping[PromptId, int] | None = None,
    not_planned: Sequence[str] = (),
    cascade: Sequence[CascadeAdvice] = (),
) -> Table:
    """Return a row for each dimension: its open queries; without a cost the judge is free.

    Notes tell why some are asked again (a rewording, or prompts with another text or gold answer),
    the cost for pairs that wait for responses, what the design spares, and whether this judge, of
    the jury, should be asked on a share of the prompts only.
    """
    rows = tuple(rows)
    total = sum(row.n_queries for row in rows)
    waiting = sum(row.n_waiting for row in rows)
    tokens = [cost.tokens.get(row.dimension, NO_TOKENS) if cost else None for row in rows]
    return table_of(
        MissingVerdicts,
        rows,
        "tourney/plan-judge@1",
        "Open judge queries",
        more=[
            MoreColumn(Column(heading, key=key), [each and getattr(each, key) for each in tokens])
            for heading, key in (("Tokens in", "n_input"), ("Tokens out", "n_output"))
        ],
        hidden=() if cost else {"n_input", "n_output"},
        notes=(
            f"{total} queries are open" if total else "no query is open",
            *not_planned,
            *(rewording.sentence for rewording in rewordings),
            *_edited_notes(texts, answers),
            *((f"{waiting} pairs wait for responses{_later(awaited)}",) if waiting else ()),
            *(cost_notes(cost) if cost else ()),
            *(advice.sentence for advice in cascade),
        ),
        facts={
            "n_owed": total,
            "n_waiting": waiting,
            "cascade": {
                advice.dimension: {
                    **advice.forecast._asdict(),
                    "worth": advice.forecast.is_worth_it,
                }
                for advice in cascade
                if advice.forecast
            },
            "asked_again": [rewording._asdict() for rewording in rewordings],
            "edited": [*texts, *(answers or ())],
            "cost": None if cost is None else cost_fields(cost),
            "awaited": None if awaited is None else dict(awaited._asdict()),
        },
    )


_HOW_SURE: Final = (
    "±: half of a rating's 95 % interval, the mean of all entrants. In simulations of 4 to 12"
    " entrants it was within 15 % of the forecast in 99 of 100, if a pilot of 20 prompts or more"
    " asked all pairs; one entrant's in 7 of 10, after 50 prompts in 9 of 10. The number of"
    " prompts may be off by a quarter. Prompts beyond the bank's are yours to add."
)


def designs_table(rows: Sequence[DesignRow], notes: Sequence[str], goal: DesignGoal) -> Table:
    """Return a row for each design and number of prompts."""
    return table_of(
        DesignRow,
        rows,
        "tourney/plan-designs@1",
        "Designs",
        hidden=() if goal.separate else {"power"},
        notes=(*notes, *([_HOW_SURE] if rows else [])),
        facts={"target": goal.target, "separate": [*(goal.separate or ())]},
    )


def _later(awaited: SubmissionOption | None) -> str:
    """Return what it costs to judge pairs whose responses are not there yet."""
    if awaited is None:
        return ""
    expected, worst = dollars(awaited.expected_usd), dollars(awaited.worst_usd)
    return f"; judging them costs {expected} if all are of the largest length, at worst {worst}"


def requests_table(previews: Iterable[RequestPreview]) -> Table:
    """Return a row for each request, with its texts."""
    return table_of(RequestPreview, previews, "tourney/plan-request@1", "Requests")


_NO_REQUEST: Final[Mapping[str, str]] = {
    "hf": "no request is sent: the weights read these texts through their chat template",
    "reference": "no request is sent: this judge compares with gold answers, not by these texts",
}


def requests_text(previews: Iterable[RequestPreview]) -> str:
    """Return the requests for people: the parameters, then both texts as they are."""
    return "\n\n".join(map(_request_text, previews)) + "\n"


def _request_text(preview: RequestPreview) -> str:
    if preview.request is None:
        request = _NO_REQUEST[preview.provider]
    else:
        named = {preview.system: "(the system text)", preview.user: "(the user text)"}
        parameters = _with_names(preview.request, named)
        request = as_json(parameters, indent=2).rstrip()
    return "\n".join(
        [
            "{dimension}: prompt {prompt}, {order}, {entrant_a} against {entrant_b};"
            " judge {judge} ({provider})".format_map(preview._asdict()),
            *("----- request -----", request),
            *("----- system text -----", escaped(preview.system)),
            *("----- user text -----", escaped(preview.user)),
            "----- end -----",
        ]
    )


def _with_names(value: Json, named: Mapping[str, str]) -> Json:
    """Return JSON with names in place of long texts."""
    match value:
        case str():
            return named.get(value, value)
        case list():
            return [_with_names(each, named) for each in value]
        case dict():
            return {key: _with_names(each, named) for key, each in value.items()}
        case _:
            return value
