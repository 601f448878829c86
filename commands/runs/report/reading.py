"""Read from a ledger what a report shows: with two processes if the ledger is long.

One reads the outcomes, as ratings read them; meanwhile the other reads what judges said, and adds
up what was spent. Replies stay on the ledger until a battle shows them. Of what other tournaments'
judges said, only the verdicts on this one's queries are read, which are looked up by their keys.
"""

import gc
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from itertools import chain
from multiprocessing import get_context
from pathlib import Path
from typing import Final, NamedTuple

from immutables import Map

from commands.runs.judged_tournament import JudgedTournament
from commands.runs.reading.results import results_now
from commands.runs.report.subject import Subject, subject_of
from ledger.chain import Head
from ledger.events.judging import (
    JudgeQueryFailed,
    JudgeQuerySubmitted,
    ScoreQuerySubmitted,
    ScoreReceived,
    Verdict,
    VerdictReceived,
)
from ledger.events.registration import JudgeRegistered
from ledger.events.requests import RequestsSettled, RequestsSubmitted
from ledger.events.values import type_name
from ledger.identity import Digest, StreamId
from ledger.keys import key_named
from ledger.store import Ledger
from projections.artifacts.results import Parameters, Result, Starter
from projections.fold import fold
from projections.tournament.folding import tournament_of
from projections.tournament.matches import known_matches
from projections.tournament.spend import Spend, SpendDraft
from projections.verdicts.queries import RecordedVerdict

_SHORT: Final = 100_000  # events: fewer are read before another process has begun
_VERDICT: Final = type_name(VerdictReceived)
_BILLED: Final = frozenset(
    type_name(each)
    for each in (
        JudgeRegistered,
        JudgeQuerySubmitted,
        ScoreQuerySubmitted,
        VerdictReceived,
        ScoreReceived,
        JudgeQueryFailed,
        RequestsSubmitted,
        RequestsSettled,
    )
)


@contextmanager
def starter(n_events: int, *, short: int = _SHORT) -> Iterator[Starter]:
    """Yield a function that starts computations: in a second process, or lazily in this one.

    Both processes disable garbage collection: nearly all that is read is needed to the end.

    Args:
        n_events: Of the ledger.
        short: Up to so many there is no second process.
    """
    if n_events <= short or (os.cpu_count() or 1) == 1:
        yield _later
        return
    with ProcessPoolExecutor(1, get_context("spawn"), gc.disable) as pool, _without_garbage():

        def start(
            compute: Callable[Parameters, Result],
            /,
            *args: Parameters.args,
            **kwargs: Parameters.kwargs,
        ) -> Callable[[], Result]:
            return pool.submit(compute, *args, **kwargs).result

        yield start


@contextmanager
def _without_garbage() -> Iterator[None]:
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()  # all of it was read just now, and is no garbage: to look takes a while
        gc.enable()


def _later(
    compute: Callable[Parameters, Result], /, *args: Parameters.args, **kwargs: Parameters.kwargs
) -> Callable[[], Result]:
    return cache(partial(compute, *args, **kwargs))


class VerdictsAndSpend(NamedTuple):
    """A tournament's verdicts by query, and what was spent."""

    verdicts: Mapping[Digest, Verdict]
    spend: Spend


def verdicts_and_spend_at(path: Path, stream: StreamId, until: int) -> VerdictsAndSpend:
    """Read verdicts and spend up to a position.

    Raises:
        LedgerError: The ledger cannot be read.
    """
    with Ledger.read_only(path) as ledger:
        return verdicts_and_spend_on(ledger, stream, until)


def verdicts_and_spend_on(ledger: Ledger, stream: StreamId, until: int) -> VerdictsAndSpend:
    """Read the same of an open ledger; each query has its first verdict.

    Raises:
        LedgerError: The ledger cannot be read.
    """
    verdicts: dict[Digest, Verdict] = {}
    draft = SpendDraft(Spend(stream))
    for each in ledger.read(stream=stream, types=_BILLED, until=until):
        if isinstance(event := each.event, VerdictReceived):
            verdicts.setdefault(event.query_key, event.verdict)
        draft.add(each.recorded_us, event)
    return VerdictsAndSpend(
        verdicts, replace(draft.finish(), dimensions=Map())
    )  # the bills name them


def subject_now(
    ledger: Ledger,
    source: JudgedTournament,
    head: Head,
    verdicts_and_spend: Callable[[], VerdictsAndSpend],
    start: Starter = _later,
) -> Subject:
    """Return what a report shows of a tournament that was read with outcomes only.

    Args:
        ledger: Which holds it.
        source: The tournament.
        head: Up to which it was read.
        verdicts_and_spend: Returns its verdicts and spend, once they are read.
        start: Starts what takes long.

    Raises:
        LedgerError: The ledger cannot be read.
        ConfigurationError: A recorded setting is out of range.
        CannotRate: The ratings cannot be computed.
    """
    until, stream = head.position, source.state.stream
    is_redacted = bool(source.state.redactions.responses)
    if is_redacted:  # their outcomes are found by the queries that were sent
        whole = fold(tournament_of(stream), ledger.read(until=until))
        source = replace(source, state=replace(whole, opening=source.state.opening))
    results = results_now(source, head, start)
    verdicts, spend = verdicts_and_spend()
    subject = subject_of(ledger, results, is_run=False, spend=spend)
    if is_redacted:
        return subject
    others = [each for each in ledger.streams(types={_VERDICT}) if each != stream]
    missing = _queries(source).difference(verdicts) if others else frozenset()
    replies = partial(_replies, ledger, stream, others, until)
    elsewhere = {key: each.event.verdict for key, each in replies(missing).items()}
    found = {**elsewhere, **verdicts}
    return replace(subject, said=found.get, replies=replies)


def _replies(
    ledger: Ledger,
    own: StreamId,
    others: Sequence[StreamId],
    until: int,
    queries: Collection[Digest],
) -> Map[Digest, RecordedVerdict]:
    """Return the verdicts on queries, with their replies: a tournament's own, else the first."""
    keys = (key_named(each, _VERDICT, [key]) for each in (own, *others) for key in queries)
    found: dict[Digest, RecordedVerdict] = {}
    own_first = sorted(ledger.find(keys, until=until), key=lambda each: each.stream != own)
    for recorded in own_first:
        if isinstance(event := recorded.event, VerdictReceived):
            found.setdefault(event.query_key, RecordedVerdict(event, recorded.recorded_us))
    return Map(found)


def _queries(source: JudgedTournament) -> frozenset[Digest]:
    """Return the keys of all queries to the panel, and to the judge that was chosen."""
    state = source.state
    prompts = frozenset(prompt.prompt_id for prompt in state.bank)
    judges = dict.fromkeys((source.judge, *state.panel))
    asked = chain.from_iterable(known_matches(state, prompts, judge) for judge in judges)
    return frozenset(key for _, match in asked if match for _, key in match.keys)
