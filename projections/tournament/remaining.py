"""What remains to be done: missing responses, open queries, pairs that can be reconciled."""

import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final, NamedTuple, TypeAlias

from ledger.events.judging import MAY_CHANGE, UNPAID, Order, repeat_key
from ledger.events.registration import JudgeSettings
from ledger.events.responses import ResponseFailureReason, ResponseGenerated
from ledger.identity import Digest, Dimension, EntrantId, PromptId, digest_of
from projections.tournament.bank import is_eligible
from projections.tournament.estimate import BYTES_PER_TOKEN
from projections.tournament.matches import (
    Match,
    Pairing,
    PlannedResponse,
    complete_matches,
    planned_response,
    planned_responses,
    response_status,
)
from projections.tournament.settlement import Settlement, settle
from projections.tournament.state import Tournament
from projections.verdicts.queries import PairQuery, ScoreQuery
from projections.verdicts.scoring import ScoreQuestion

ENDLESS_RETRIES: Final = sys.maxsize
"""Retries of unreadable replies by which everything without a verdict may be asked."""


WhichPairs: TypeAlias = Callable[[Pairing], bool] | None
"""Which pairs are asked about; None: all."""


class OpenQuery(NamedTuple):
    """A query without a verdict, and its failed attempts.

    A request may ask several together, one for each dimension: `others` are those that are open
    beside this one.
    """

    match: Match
    asked: PairQuery  # the request
    n_failed: int
    is_repeat: bool = False
    others: tuple["OpenQuery", ...] = ()

    @property
    def subject(self) -> Dimension:
        """The dimension that it is about."""
        return self.match.pairing.rubric.dimension

    @property
    def key(self) -> Digest:
        """What identifies its verdict."""
        return repeat_key(self._first_asked) if self.is_repeat else self._first_asked

    @property
    def repeats(self) -> Digest | None:
        """The key of the query that it asks again; None: its verdict is the one that counts."""
        return self._first_asked if self.is_repeat else None

    @property
    def _first_asked(self) -> Digest:
        return self.match.key_in(self.asked.order)

    @property
    def every(self) -> tuple["OpenQuery", ...]:
        """All open queries of its request."""
        return (self, *self.others)


class OpenScore(NamedTuple):
    """A query without a score, and its failed attempts."""

    question: ScoreQuestion
    asked: ScoreQuery
    n_failed: int

    @property
    def key(self) -> Digest:
        """What identifies its score."""
        return self.asked.query_key

    @property
    def every(self) -> tuple["OpenScore", ...]:
        """Itself: a request asks for one score."""
        return (self,)

    @property
    def subject(self) -> Dimension:
        """The evaluation that it is about."""
        return Dimension(self.question.evaluation)


Unanswered: TypeAlias = OpenQuery | OpenScore
"""A query that a judge may be sent."""


class ResponseCount(NamedTuple):
    """One entrant's responses: generated, failed, missing."""

    entrant_id: EntrantId
    generated: int
    failed: int
    missing: int


class WithoutGold(NamedTuple):
    """How many prompts a dimension leaves out, since they lack the gold answer that it needs."""

    dimension: Dimension
    n_prompts: int
    n_asked: int  # with and without one


def missing_responses(
    tournament: Tournament,
    prompts: Collection[PromptId],
    retry: Collection[ResponseFailureReason] = (),
    entrants: Collection[EntrantId] | None = None,
) -> tuple[PlannedResponse, ...]:
    """Return the responses to generate that are in no batch, each key once.

    Equal settings give equal responses.

    Args:
        tournament: What is recorded.
        prompts: Those to respond to.
        retry: Failures for these reasons count as missing.
        entrants: Whose responses; None: of all.
    """
    cells = _unanswered(tournament, prompts, retry, entrants)
    return _each_once(cell for cell in cells if cell.response_key not in tournament.in_flight)


def _unanswered(
    tournament: Tournament,
    prompts: Collection[PromptId],
    retry: Collection[ResponseFailureReason],
    entrants: Collection[EntrantId] | None,
) -> list[PlannedResponse]:
    return [
        cell
        for cell in planned_responses(tournament, prompts)
        if entrants is None or cell.entrant.entrant_id in entrants
        if _is_unanswered(tournament, cell, retry)
    ]


def is_missing(
    tournament: Tournament, cell: PlannedResponse, retry: Collection[ResponseFailureReason] = ()
) -> bool:
    """Say whether a response is to be generated: not there, nor in a batch, nor failed for good."""
    is_in_flight = cell.response_key in tournament.in_flight
    return not is_in_flight and _is_unanswered(tournament, cell, retry)


def _is_unanswered(
    tournament: Tournament, cell: PlannedResponse, retry: Collection[ResponseFailureReason]
) -> bool:
    status = response_status(tournament, cell)
    failure = tournament.response_failures.get(cell.response_key)
    return status == "missing" or (
        status == "failed" and failure is not None and failure.reason in retry
    )


def _each_once(cells: Iterable[PlannedResponse]) -> tuple[PlannedResponse, ...]:
    firsts: dict[Digest, PlannedResponse] = {}
    for cell in cells:
        firsts.setdefault(cell.response_key, cell)
    return tuple(firsts.values())


def responses_to_come(
    tournament: Tournament,
    prompts: Collection[PromptId],
    retry: Collection[ResponseFailureReason] = (),
    *,
    entrants: Collection[EntrantId] | None = None,
    longest: bool = True,
    in_flight: bool = False,
) -> tuple[PlannedResponse, ...]:
    """Return the missing responses, and those to the questions that follow in conversations.

    What is asked then depends on answers that are not there yet: they are as long as may be, or
    with `longest=False` one line each. With `in_flight=True` those in batches are among them.
    """
    sent = frozenset() if in_flight else tournament.in_flight
    cells = _unanswered(tournament, prompts, retry, entrants)
    responses = [cell for cell in cells if cell.response_key not in sent]
    while cells := [cell for cell in cells if not cell.is_last]:
        imagined = {cell.response_key: _imagined_response(cell, longest=longest) for cell in cells}
        tournament = replace(tournament, responses=tournament.responses.update(imagined))
        cells = [planned_response(tournament, cell.entrant, cell.prompt) for cell in cells]
        responses += cells
    return _each_once(responses)


def open_queries(
    tournament: Tournament,
    prompts: Collection[PromptId],
    judge: JudgeSettings,
    retries: int,
    *,
    only: WhichPairs = None,
) -> tuple[OpenQuery, ...]:
    """Return the queries to send: without a verdict, not in flight, and worth another attempt.

    Two identical responses tie unasked. Two pairings may have the same query, where their responses
    are equal; it is listed once. What a judge is asked together is one entry, and whole if any of
    it is chosen: to ask for the rest later would be paid for again.
    """
    queries: dict[Digest, OpenQuery] = {}
    chosen: set[Digest] = set()
    for match in complete_matches(tournament, prompts, judge):
        is_chosen = only is None or only(match.pairing)
        is_asked = is_chosen or judge.is_together
        if not is_asked or match.is_identical:
            continue
        for order, key in match.keys:
            if key not in queries and _is_open(tournament, key, retries):
                asked = match.query(order)
                queries[key] = OpenQuery(match, asked, _n_failed(tournament, key))
                if is_chosen:
                    chosen.add(asked.query_key)
    wanted = (query for query in queries.values() if query.asked.query_key in chosen)
    in_flight = tournament.in_flight
    return tuple(query for query in _together(wanted) if query.asked.query_key not in in_flight)


def _together(queries: Iterable[OpenQuery]) -> Iterator[OpenQuery]:
    """Yield one entry for each request, with its queries in order."""
    requests: dict[Digest, list[OpenQuery]] = {}
    for query in queries:
        requests.setdefault(query.asked.query_key, []).append(query)
    for first, *others in requests.values():
        yield first._replace(others=tuple(others))


def repeats_of(
    tournament: Tournament, prompts: Collection[PromptId], judge: JudgeSettings
) -> Iterator[OpenQuery]:
    """Yield the repeats of all queries with a verdict: first those sent, then as the seed draws.

    So the first n are a random sample, of which a larger one asks more. It stays one of the queries
    that had a verdict when it was drawn: verdicts that come later are drawn only to fill it up.
    Each is made when its turn comes, since it holds the texts that it asks about.
    """
    asked: dict[Digest, dict[Digest, tuple[Match, Order]]] = {}  # by repeat and query
    for match in complete_matches(tournament, prompts, judge):
        for order, key in match.keys:
            if key in tournament.verdicts:
                request = match.query(order).query_key if match.wording.together else key
                asked.setdefault(repeat_key(request), {})[key] = match, order
    seed = tournament.opening.generation_seed if tournament.opening else 0

    def place(repeat: Digest) -> tuple[bool, Digest]:
        return not tournament.was_asked(repeat), digest_of([seed, repeat])

    for repeat in sorted(asked, key=place):
        first, *others = (
            OpenQuery(match, match.query(order)._replace(query_key=repeat), 0, is_repeat=True)
            for match, order in asked[repeat].values()
        )
        yield first._replace(others=tuple(others))


def open_repeats(
    tournament: Tournament, repeats: Iterable[OpenQuery], retries: int
) -> tuple[OpenQuery, ...]:
    """Return the repeats to send: without a verdict, not in flight, worth another attempt."""
    queries = (refreshed_query(tournament, repeat, retries) for repeat in repeats)
    return tuple(query for query in queries if isinstance(query, OpenQuery))


def awaited_queries(
    tournament: Tournament,
    prompts: Collection[PromptId],
    judge: JudgeSettings,
    retries: int,
    *,
    longest: bool = True,
    only: WhichPairs = None,
) -> tuple[OpenQuery, ...]:
    """Return the queries of pairs that wait for responses, as if each were as long as may be.

    With `longest=False`, as if each were one line: a lower bound of the cost.
    """
    missing = responses_to_come(tournament, prompts, longest=longest, in_flight=True)
    imagined = {cell.response_key: _imagined_response(cell, longest=longest) for cell in missing}
    answered = replace(tournament, responses=tournament.responses.update(imagined))
    waiting = {cell.prompt.prompt_id for cell in missing}
    return tuple(
        query
        for query in open_queries(answered, waiting, judge, retries, only=only)
        if not imagined.keys().isdisjoint(
            (query.match.response_a.response_key, query.match.response_b.response_key)
        )
    )


def _imagined_response(cell: PlannedResponse, *, longest: bool) -> ResponseGenerated:
    """Return a response to its entrant's limit or of one line, unlike the other entrants'."""
    n_tokens = cell.entrant.max_new_tokens if longest else 0
    return cell.made(
        text=cell.response_key.ljust(round(n_tokens * BYTES_PER_TOKEN)),
        finish_reason="length",
        n_prompt_tokens=0,
        n_generated_tokens=n_tokens,
        elapsed_s=0.0,
    )


def open_scores(
    tournament: Tournament, questions: Iterable[ScoreQuestion], retries: int
) -> tuple[OpenScore, ...]:
    """Return the questions to send: without a score, not in flight, worth another attempt.

    Two rubrics may put the same query, as if they differ in version alone; it is listed once.
    """
    firsts: dict[Digest, ScoreQuestion] = {}
    for question in questions:
        firsts.setdefault(question.asked.query_key, question)
    return tuple(
        OpenScore(question, question.asked, _n_failed(tournament, key))
        for key, question in firsts.items()
        if _is_open(tournament, key, retries)
    )


def refreshed_query(tournament: Tournament, query: Unanswered, retries: int) -> Unanswered | None:
    """Return an open query with its current failures; None if it is no longer open."""
    if query.asked.query_key in tournament.in_flight:
        return None
    still_open: list[Unanswered] = [
        unanswered._replace(n_failed=_n_failed(tournament, unanswered.key))
        for unanswered in query.every
        if _is_open(tournament, unanswered.key, retries)
    ]
    return one_request(still_open)


def one_request(queries: Sequence[Unanswered]) -> Unanswered | None:
    """Return the request that has some queries, which are asked together; None: there are none."""
    if not queries:
        return None
    first, *others = queries
    if isinstance(first, OpenScore):
        return first
    return first._replace(others=tuple(query for query in others if isinstance(query, OpenQuery)))


def _n_failed(tournament: Tournament, key: Digest) -> int:
    failure = tournament.query_failures.get(key)
    return failure.attempt if failure else 0


def _is_open(tournament: Tournament, key: Digest, retries: int) -> bool:
    if tournament.is_answered(key) or key in tournament.in_flight:
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
) -> tuple[Match, ...]:
    """Return the matches with an outcome to record: both verdicts, or identical responses.

    A pair that is asked in one order has none: its verdict says all.
    """
    verdicts = tournament.verdicts
    return tuple(
        match
        for match in complete_matches(tournament, prompts, judge)
        if match.key(judge.judge_id) not in tournament.outcomes
        and (
            match.is_identical
            or (not match.pairing.slot and all(key in verdicts for _, key in match.keys))
        )
    )


def n_waiting_pairs(
    tournament: Tournament, prompts: Collection[PromptId], judge: JudgeSettings
) -> int:
    """Count the pairs that cannot be judged yet, since they lack a response."""
    return sum(map(is_waiting, settle(tournament, prompts, judge)))


def is_waiting(settlement: Settlement) -> bool:
    """Say whether a pair lacks a response that may still be generated."""
    return settlement.match is None and settlement.status == "pending"


def without_gold(tournament: Tournament, prompts: Collection[PromptId]) -> tuple[WithoutGold, ...]:
    """Count for each dimension the prompts that lack the gold answer that it needs."""
    ids = frozenset(prompts)
    asked = [prompt for prompt in tournament.bank if prompt.prompt_id in ids]
    return tuple(
        WithoutGold(
            rubric.dimension,
            sum(not is_eligible(rubric, prompt) for prompt in asked),
            len(asked),
        )
        for rubric in tournament.dimensions
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
