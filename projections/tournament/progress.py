"""Progress: missing responses, open queries, and matches that can be reconciled."""

import sys
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, NamedTuple

from ledger.events.judging import MAY_CHANGE, UNPAID
from ledger.events.registration import JudgeSettings
from ledger.identity import Digest, Dimension, EntrantId, PromptId
from projections.tournament.compared import Account, account_of
from projections.tournament.matches import (
    Match,
    PlannedResponse,
    is_eligible,
    matches,
    planned_responses,
    response_status,
)
from projections.tournament.settlement import by_dimension, settle
from projections.tournament.state import Tournament
from projections.verdicts.policies import DEFAULT_POLICY
from projections.verdicts.queries import JudgeQuery


class AskingRules(NamedTuple):
    """Which queries are sent, and how often."""

    retries: int  # of a reply that says no verdict
    skip_identical: bool = False  # two identical responses are a tie, unasked


ANY_QUESTION: Final = AskingRules(retries=sys.maxsize)
"""Rules under which everything without a verdict may be asked."""


class OpenQuery(NamedTuple):
    """A query without a verdict, and its failed attempts."""

    match: Match
    asked: JudgeQuery
    n_failed: int


class ResponseCount(NamedTuple):
    """One entrant's responses: generated, failed, missing."""

    entrant_id: EntrantId
    generated: int
    failed: int
    missing: int


@dataclass(frozen=True)
class Progress:
    """A tournament's progress for one judge."""

    responses: tuple[ResponseCount, ...]
    accounts: tuple[tuple[Dimension, Account], ...]
    left_out: tuple[tuple[Dimension, int], ...]  # prompts without the gold answer that is needed


def missing_responses(
    tournament: Tournament, prompts: Collection[PromptId]
) -> tuple[PlannedResponse, ...]:
    """Return the responses to generate, each key once: equal settings give equal responses."""
    missing: dict[Digest, PlannedResponse] = {}
    for cell in planned_responses(tournament, prompts):
        if response_status(tournament, cell) == "missing":
            missing.setdefault(cell.response_key, cell)
    return tuple(missing.values())


def open_queries(
    tournament: Tournament, prompts: Collection[PromptId], judge: JudgeSettings, rules: AskingRules
) -> tuple[OpenQuery, ...]:
    """Return the queries to send: without a verdict, not in flight, and worth another attempt.

    Two pairings may have the same query, as for equal responses; it is listed once.
    """
    queries: dict[str, OpenQuery] = {}
    for _, match in matches(tournament, prompts, judge):
        if match is None or _ties_unasked(tournament, match, judge, rules):
            continue
        for order, key in match.keys:
            if key not in queries and _is_open(tournament, key, rules.retries):
                query = OpenQuery(match, match.query(order), 0)
                queries[key] = _with_failures(tournament, query)
    return tuple(queries.values())


def _ties_unasked(
    tournament: Tournament, match: Match, judge: JudgeSettings, rules: AskingRules
) -> bool:
    """Say whether identical responses tie without being asked, now or on record."""
    return match.is_identical and (
        rules.skip_identical or match.key(judge.judge_id, DEFAULT_POLICY) in tournament.outcomes
    )


def refreshed_query(
    tournament: Tournament, query: OpenQuery, rules: AskingRules
) -> OpenQuery | None:
    """Return an open query with its current failures; None if it is no longer open."""
    if not _is_open(tournament, query.asked.query_key, rules.retries):
        return None
    return _with_failures(tournament, query)


def _with_failures(tournament: Tournament, query: OpenQuery) -> OpenQuery:
    failure = tournament.query_failures.get(query.asked.query_key)
    return query._replace(n_failed=failure.attempt if failure else 0)


def _is_open(tournament: Tournament, key: Digest, retries: int) -> bool:
    if key in tournament.verdicts or key in tournament.in_flight:
        return False
    failure = tournament.query_failures.get(key)
    if failure is None or failure.reason in UNPAID:
        return True
    if tournament.reopened.get(key) == failure.attempt:
        return True
    return failure.reason in MAY_CHANGE and tournament.useless_replies[key] <= retries


def unreconciled(
    tournament: Tournament,
    prompts: Collection[PromptId],
    judge: JudgeSettings,
    policy: str,
    *,
    skip_identical: bool,
) -> tuple[Match, ...]:
    """Return the matches with an outcome to record: both verdicts, or identical responses."""
    verdicts = tournament.verdicts
    return tuple(
        match
        for _, match in matches(tournament, prompts, judge)
        if match is not None
        and match.key(judge.judge_id, policy) not in tournament.outcomes
        and (
            (match.is_identical and skip_identical)
            or (match.forward_key in verdicts and match.swapped_key in verdicts)
        )
    )


def progress(
    tournament: Tournament, prompts: Collection[PromptId], judge: JudgeSettings
) -> Progress:
    """Count what is done, failed and missing."""
    grouped = by_dimension(tournament, settle(tournament, prompts, judge))
    chosen = frozenset(prompts)
    return Progress(
        responses=response_counts(tournament, prompts),
        accounts=tuple((dimension, account_of(group)) for dimension, group in grouped.items()),
        left_out=tuple(
            (
                rubric.dimension,
                sum(
                    not is_eligible(rubric, prompt)
                    for prompt in tournament.bank
                    if prompt.prompt_id in chosen
                ),
            )
            for rubric in tournament.dimensions
        ),
    )


def response_counts(
    tournament: Tournament, prompts: Collection[PromptId]
) -> tuple[ResponseCount, ...]:
    """Count each entrant's responses that are done, failed and missing."""
    counts: dict[EntrantId, Counter[str]] = {
        entrant.entrant_id: Counter() for entrant in tournament.roster
    }
    for cell in planned_responses(tournament, prompts):
        counts[cell.entrant.entrant_id][response_status(tournament, cell)] += 1
    return tuple(
        ResponseCount(entrant_id, count["generated"], count["failed"], count["missing"])
        for entrant_id, count in counts.items()
    )
