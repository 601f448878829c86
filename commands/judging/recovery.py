"""What became of a batch that was planned and perhaps sent: look for it at the provider.

The process died, or no answer came, between the plan and the provider's id. The batch is looked
for by time and number of queries, and confirmed by the queries that its results name. It is
given up only when it cannot exist: then its queries are asked anew, in another batch.
"""

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice
from typing import Final

from commands.decisions.commands import DropBatch, SubmitBatch
from commands.decisions.recorder import Recorder
from commands.errors import BatchGone, NotFound, WorkInFlight
from commands.ports import BatchJudge, BatchState, OnProgress
from commands.spending.pricing import Pricing
from ledger.errors import TourneyError
from ledger.events.registration import JudgeSettings
from ledger.store import utc_now
from projections.tournament.batches import Batch
from projections.tournament.progress import ANY_QUESTION, open_queries
from projections.tournament.state import Tournament

_FIRST_S: Final = 5.0
_GROWTH: Final = 1.5
_JITTER: Final = 0.1  # of a delay: processes that began together do not ask together


@dataclass(frozen=True)
class Polling:
    """The clock on the wall, and the patience of whoever looks at it."""

    poll_s: float  # between looks, at most
    settle_s: float  # until a batch that was sent without an answer shows, if it exists
    waits: bool = True  # False: come back later
    sleep: Callable[[float], None] = time.sleep
    now: Callable[[], datetime] = utc_now
    rng: random.Random = field(default_factory=random.Random)  # no secret

    def delays_s(self) -> Iterator[float]:
        """Yield how long to sleep between looks: longer and longer, up to `poll_s`."""
        delay_s = min(_FIRST_S, self.poll_s)
        while True:
            yield delay_s * self.rng.uniform(1 - _JITTER, 1 + _JITTER)
            delay_s = min(delay_s * _GROWTH, self.poll_s)


@dataclass(frozen=True)
class BatchOptions:
    """What the settings and the command line say of batches."""

    batch_queries: int  # in one batch, at most
    prewarm: bool
    polling: Polling
    pricing_of: Callable[[JudgeSettings], Pricing]
    tell: Callable[[str], None]
    on_progress: OnProgress


SKEW: Final = timedelta(days=1)  # how far this clock may be from the provider's
_SAMPLE: Final = 100  # results that must name queries of the plan


class AnotherWorkspace(TourneyError):
    """The key in use does not see the batches that were sent before."""

    def __init__(self, provider_batch_id: str) -> None:
        super().__init__(
            f"this key does not see batch {provider_batch_id}, so it may not see a batch that was"
            " planned either; use the key of the workspace that it was sent from"
        )
        self.provider_batch_id = provider_batch_id


class NotTheSameQuestions(TourneyError):
    """A planned batch asks what this version of tourney would not ask."""

    def __init__(self, batch: Batch, n_unknown: int) -> None:
        super().__init__(
            f"{n_unknown} queries of the batch planned at position {batch.recorded.position} are"
            " unknown to this version of tourney; go on with the version that planned it"
        )


def resolve_batches(recorder: Recorder, port: BatchJudge, options: BatchOptions) -> None:
    """Find out what became of the batches that were planned, and perhaps sent.

    Raises:
        WorkInFlight: It cannot be told yet, and nobody waits.
        AnotherWorkspace: This key does not see what was sent before.
    """
    for batch in recorder.state.open_batches:
        if batch.status == "unknown":
            _resolve(recorder, port, batch, options)


def _resolve(recorder: Recorder, port: BatchJudge, batch: Batch, options: BatchOptions) -> None:
    """Adopt the batch if the provider has it; drop the plan if it certainly has not."""
    found = _found(recorder.state, port, batch, options.polling)
    if found is None and (too_early_s := _too_early_s(batch, options.polling)) > 0:
        options.tell(f"whether a batch was created shows in {too_early_s:.0f} s")
        _sleep(options.polling, too_early_s)
        found = _found(recorder.state, port, batch, options.polling)
    if found is None:
        _require_same_workspace(recorder.state, port)
        options.tell("a planned batch was never created: its queries are asked anew")
        recorder.record(DropBatch(batch.planned.batch_key, "the provider has no such batch"))
    else:
        adopt(recorder, batch, found)
        options.tell(f"batch {found.provider_batch_id} was sent before, and is taken up again")


def _require_same_workspace(state: Tournament, port: BatchJudge) -> None:
    """Make sure that this key would see the batch: it sees the last one that was sent."""
    sent = [batch for batch in state.batches.values() if batch.submitted is not None]
    newest = max(sent, key=lambda batch: batch.recorded.position, default=None)
    if newest is None or newest.submitted is None:
        return
    try:
        port.retrieve(newest.submitted.provider_batch_id)
    except BatchGone as error:
        raise AnotherWorkspace(newest.submitted.provider_batch_id) from error


def adopt(recorder: Recorder, batch: Batch, found: BatchState) -> None:
    """Record that a plan became a batch, with the queries as they were when it was planned."""
    before = recorder.as_of(batch.recorded.position - 1)
    judge = recorder.state.judges[batch.planned.judge]
    everyone = [prompt.prompt_id for prompt in before.bank]
    asked = {
        each.asked.query_key: each for each in open_queries(before, everyone, judge, ANY_QUESTION)
    }
    queries = tuple(asked[key] for key in batch.planned.queries if key in asked)
    if len(queries) < len(batch.planned.queries):
        raise NotTheSameQuestions(batch, len(batch.planned.queries) - len(queries))
    recorder.record(SubmitBatch(batch.planned.batch_key, found, queries))


def adopt_named(recorder: Recorder, port: BatchJudge, provider_batch_id: str) -> None:
    """Adopt a batch that somebody found at the provider.

    Raises:
        NotFound: Nobody knows it, it has not ended yet, or no plan of uncertain fate asks the same.
    """
    state = recorder.state
    known = _known_ids(state)
    if provider_batch_id in known:
        raise NotFound(f"{provider_batch_id} is known already; see `tourney batch list`")
    try:
        found = port.retrieve(provider_batch_id)
    except BatchGone as error:
        raise NotFound(
            f"no batch is named {provider_batch_id!r}, here or where this key sees; known here:"
            f" {', '.join(sorted(known)) or 'none'}"
        ) from error
    if not found.has_ended:
        raise NotFound(f"{provider_batch_id} has not ended: what it asks shows only then")
    for batch in state.open_batches:
        if batch.status == "unknown" and is_of(batch, found, port):
            adopt(recorder, batch, found)
            return
    raise NotFound(f"no batch that was planned here asks what {provider_batch_id} asks")


def is_of(batch: Batch, found: BatchState, port: BatchJudge) -> bool:
    """Say whether an ended batch asks what was planned."""
    planned = frozenset(batch.planned.queries)
    sample = tuple(islice(port.results(found.provider_batch_id), _SAMPLE))
    return bool(sample) and all(answer.query_key in planned for answer in sample)


def _found(
    state: Tournament, port: BatchJudge, batch: Batch, polling: Polling
) -> BatchState | None:
    """Look into each batch that may be the one, and wait for those that have not ended.

    One that cannot be read any more may have been it: that is returned if no other is.
    """
    unreadable: BatchState | None = None
    for candidate in _candidates(state, port, batch, polling.now()):
        ended = _ended(candidate, port, polling)
        if not ended.has_results:
            unreadable = unreadable or ended
        elif is_of(batch, ended, port):
            return ended
    return unreadable


def _known_ids(state: Tournament) -> frozenset[str]:
    sent = (batch.submitted for batch in state.batches.values())
    return frozenset(each.provider_batch_id for each in sent if each is not None)


def _candidates(
    state: Tournament, port: BatchJudge, batch: Batch, now: datetime
) -> list[BatchState]:
    """Return batches of the plan's size, the oldest first, and first those that have ended.

    The clock may have been wrong at the plan, or be wrong now: the earlier time counts.
    """
    known, since = _known_ids(state), min(batch.planned.planned_at, now) - SKEW
    n_queries = len(batch.planned.queries)
    unknown = [
        each
        for each in port.created_since(since)
        if each.n_queries == n_queries and each.provider_batch_id not in known
    ]
    return sorted(unknown, key=lambda each: (not each.has_ended, each.created_at))


def _ended(candidate: BatchState, port: BatchJudge, polling: Polling) -> BatchState:
    delays_s = polling.delays_s()
    while not candidate.has_ended:
        _sleep(polling, next(delays_s))
        candidate = port.retrieve(candidate.provider_batch_id)
    return candidate


def _too_early_s(batch: Batch, polling: Polling) -> float:
    """Return how long to wait until a request that was on its way must have arrived.

    A plan from the future was made by a clock that was set back since: as if made just now.
    """
    ago_s = (polling.now() - batch.planned.planned_at).total_seconds()
    return polling.settle_s - max(0.0, ago_s)


def _sleep(polling: Polling, seconds: float) -> None:
    if not polling.waits:
        raise WorkInFlight(
            "a planned batch may be with the provider; `tourney batch wait` finds it"
        )
    polling.sleep(seconds)
