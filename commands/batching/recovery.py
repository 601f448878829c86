"""Recover batches whose fate is unknown, and forget lost ones.

The process died, or no answer came, between the plan and the provider's id. The batch is searched
for at the provider by time. It is identified by the digest of its requests, if the provider tells
it, and else by their number and the keys in its results. Its requests are sent again only once it
certainly does not exist.
"""

from collections.abc import Callable, Hashable, Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, Final, Protocol, TypeAlias

from commands.decisions.commands import DropBatch, EndBatch, ReopenBatch, SubmitBatch
from commands.decisions.recorder import Recorder
from commands.errors import BatchGone, NotAnswering, NotFound, ResultsLost, counted
from commands.ports import BatchAnswer, Batches, BatchState, key_of
from ledger.errors import TourneyError
from ledger.events.judging import JudgeBatchSubmitted
from ledger.identity import Digest
from projections.tournament.remaining import Unanswered
from projections.tournament.requests import Batch
from projections.tournament.state import Tournament
from projections.verdicts.queries import queries_digest

SKEW: Final = timedelta(days=1)  # of a clock, where the provider's is not known
_SAMPLE: Final = 100  # results, at least half of which must be of planned requests


class BatchSide(Protocol):
    """Knows the provider, the requests and the answers of one side's batches."""

    def port_of(self, batch: Batch) -> Batches[Any, BatchAnswer]:
        """Return the provider of a batch."""

    def submission(self, batch: Batch, found: BatchState) -> SubmitBatch:
        """Return how to record that the provider has a planned batch, sent by another process."""

    def lost(self, batch: Batch) -> tuple[Unanswered | Digest, ...]:
        """Return what of an ended batch has no result, and was not sent again.

        Queries of a judge, or the keys of requests to an entrant.
        """

    def record(self, batch: Batch, answers: Sequence[BatchAnswer]) -> None:
        """Record what came of a batch's requests; what is on record already adds nothing."""


SideOf: TypeAlias = Callable[[Batch], BatchSide]
"""Returns the side that a batch is of."""


class FateUnknown(TourneyError):
    """Whether a planned batch is with the provider cannot be known yet."""


_Port = Batches[Any, BatchAnswer]


def resolve_batch(
    recorder: Recorder,
    side_of: SideOf,
    batch: Batch,
    left_s: float,
    *,
    now: datetime,
) -> str:
    """Adopt a planned batch if the provider has it; drop its plan if it certainly does not exist.

    Args:
        recorder: The tournament.
        side_of: Returns the side of a batch.
        batch: The planned batch, of unknown fate.
        left_s: Until a batch that was sent must have appeared, in seconds.
        now: The time by the provider's clock, or by ours if it does not tell the time.

    Returns:
        What became of it.

    Raises:
        FateUnknown: It cannot be known yet.
        TourneyError: The API key does not see the batches that were sent before.
        NotAnswering: The provider does not answer at present.
    """
    port = side_of(batch).port_of(batch)
    found = sent_since(recorder.state, port, batch, min(batch.planned.planned_at, now) - SKEW)
    if found is not None:
        recorder.record(side_of(batch).submission(batch, found))
        return f"found batch {found.provider_batch_id}, which was sent before"
    if left_s > 0:
        raise FateUnknown(f"it will be known in {left_s:.0f} s whether a batch was created")
    _require_same_workspace(recorder.state, batch, side_of)
    recorder.record(DropBatch(batch.planned.batch_key, "the provider has no such batch"))
    return "a planned batch was never created: its requests are sent again"


def _require_same_workspace(state: Tournament, batch: Batch, side_of: SideOf) -> None:
    """Require that the API key sees the last batch that was sent, and so would see this one."""
    own = _account(state, batch)
    sent = [
        each
        for each in state.batches.values()
        if each.submitted is not None and _account(state, each) == own
    ]
    newest = max(sent, key=lambda each: each.recorded.position, default=None)
    if newest is None or newest.submitted is None:
        return
    try:
        side_of(newest).port_of(newest).retrieve(newest.submitted.provider_batch_id)
    except BatchGone as error:
        raise TourneyError(
            f"this API key does not see batch {newest.submitted.provider_batch_id}, so it may not"
            " see a planned batch, either; use the key of the workspace that sent it"
        ) from error


def _account(state: Tournament, batch: Batch) -> Hashable:
    """Return what stands for the key that a batch is sent with; None: nobody here has sent it.

    All judges and entrants at Anthropic have one; at servers with OpenAI's API each judge has its
    own.
    """
    judge = state.judges.get(batch.planned.judge)
    if judge is None:
        return "anthropic" if state.is_to_entrant(batch) else None
    return judge.company if judge.company == "anthropic" else (judge.company, judge.judge_id)


def adopt_named(recorder: Recorder, side_of: SideOf, provider_batch_id: str) -> None:
    """Adopt a batch by the id that the user found at the provider.

    One that was recorded as ended is received again, if requests are without a result.

    Raises:
        NotFound: The provider does not have it, its requests are not known before it has ended, or
            nothing is to be had from it.
    """
    state = recorder.state
    if (known := _named(state.own_batches, provider_batch_id)) is not None:
        _reopen(recorder, side_of, known, provider_batch_id)
        return
    is_seen = False
    for batch in state.open_batches:
        port = side_of(batch).port_of(batch)
        if batch.status != "unknown" or (found := _retrieved(port, provider_batch_id)) is None:
            continue
        if is_of(batch, found, port):
            recorder.record(side_of(batch).submission(batch, found))
            return
        is_seen = True
    if is_seen:
        raise NotFound(f"no batch planned here has the requests of {provider_batch_id}")
    raise NotFound(
        f"no provider of a batch of unknown fate has {provider_batch_id!r}, as far as the API key"
        f" sees; recorded here: {', '.join(sorted(_known_ids(state))) or 'none'}"
    )


def _named(batches: Sequence[Batch], provider_batch_id: str) -> Batch | None:
    """Return the last batch of an id."""
    named = [
        batch
        for batch in batches
        if batch.submitted and batch.submitted.provider_batch_id == provider_batch_id
    ]
    return named[-1] if named else None


def _reopen(recorder: Recorder, side_of: SideOf, batch: Batch, provider_batch_id: str) -> None:
    """Record that a batch that was ended is with the provider, for requests without a result."""
    if batch.is_open:
        raise NotFound(f"{provider_batch_id} is in flight: `tourney batch wait` receives it")
    side = side_of(batch)
    lost = side.lost(batch)
    if not lost:
        raise NotFound(
            f"{provider_batch_id} has ended: each of its requests has a result, or was sent again"
        )
    found = side.port_of(batch).retrieve(provider_batch_id)
    recorder.record(ReopenBatch(batch.planned.batch_key, found, lost))


def forget_batch(recorder: Recorder, side_of: SideOf, provider_batch_id: str) -> None:
    """Close a batch whose results cannot be had, or not all; its other requests are open again.

    Raises:
        NotFound: No batch with that id is in flight, or it can still be received.
    """
    batch = _named(recorder.state.open_batches, provider_batch_id)
    if batch is None or batch.submitted is None:
        raise NotFound(f"no batch {provider_batch_id!r} is in flight; see `tourney batch list`")
    port = side_of(batch).port_of(batch)
    lost = _lost(recorder.state, batch, batch.submitted, port)
    recorder.record(EndBatch(batch.planned.batch_key, lost))


def _lost(
    state: Tournament, batch: Batch, submitted: JudgeBatchSubmitted, port: _Port
) -> BatchState:
    """Return the final status of a batch, after checking that nothing of it can be received."""
    name = submitted.provider_batch_id
    try:
        found = port.retrieve(name)
    except BatchGone:
        return BatchState(
            name, submitted.created_at, submitted.expires_at, has_ended=True, n_queries=0
        )
    if not found.has_ended:
        raise NotFound(
            f"{name} can still be received: `tourney batch wait` receives it, `cancel` stops it"
        )
    read, is_broken = set[Digest](), False
    try:
        read.update(map(key_of, port.results(name)))
    except (NotAnswering, ResultsLost):
        is_broken = True
    planned = frozenset(batch.planned.queries)
    n_new = sum(state.is_awaited(batch, key) for key in read & planned)
    if n_new:
        raise NotFound(
            f"{counted(n_new, 'result')} of {name} can still be received: `tourney batch wait`"
            " receives what there is"
        )
    if planned <= read and not is_broken:
        raise NotFound(f"every result of {name} is recorded; `tourney batch wait` closes it")
    return found


def _retrieved(port: _Port, provider_batch_id: str) -> BatchState | None:
    """Return a batch whose requests can be known; None: the provider does not have it.

    Raises:
        NotFound: It has not ended, and only its results tell its requests.
    """
    try:
        batch = port.retrieve(provider_batch_id)
    except BatchGone:
        return None
    if batch.queries_digest is None and not batch.has_ended:
        raise NotFound(f"{provider_batch_id} has not ended: its requests are known only then")
    return batch


def is_of(batch: Batch, found: BatchState, port: _Port) -> bool:
    """Return whether a batch has the planned requests; only results tell it of some, once ended.

    There may be results too many, of requests that are nobody's.

    Raises:
        NotAnswering: Its results cannot be read at present.
    """
    if found.queries_digest is not None:
        return found.queries_digest == queries_digest(batch.planned.queries)
    planned = frozenset(batch.planned.queries)
    sample = tuple(islice(port.results(found.provider_batch_id), _SAMPLE))
    if not sample and found.n_results != 0:  # a web page in their place, say
        raise NotAnswering(f"the results of batch {found.provider_batch_id} cannot be read")
    n_planned = sum(key_of(answer) in planned for answer in sample)
    return 0 < len(sample) <= 2 * n_planned


def sent_since(state: Tournament, port: _Port, batch: Batch, since: datetime) -> BatchState | None:
    """Return the provider's batch that is the planned one, if it was created since then.

    A candidate whose results are lost is returned if no other candidate is the one.

    Raises:
        FateUnknown: A candidate has not ended, and only its results will tell its requests.
        NotAnswering: The provider does not answer at present.
    """
    unreadable: BatchState | None = None
    for candidate in _candidates(state, port, batch, since):
        if candidate.queries_digest is not None:
            return candidate
        name = candidate.provider_batch_id
        ended = candidate if candidate.has_ended else port.retrieve(name)
        if not ended.has_ended:
            raise FateUnknown(f"whether a batch was created will be known once {name} has ended")
        if not ended.has_results:
            unreadable = unreadable or ended
        elif is_of(batch, ended, port):
            return ended
    return unreadable


def _known_ids(state: Tournament) -> frozenset[str]:
    sent = (batch.submitted for batch in state.batches.values())
    return frozenset(batch.provider_batch_id for batch in sent if batch is not None)


def _candidates(state: Tournament, port: _Port, batch: Batch, since: datetime) -> list[BatchState]:
    """Return unknown batches that may be the planned one: ended ones first, oldest first."""
    known = _known_ids(state)
    n_queries, digest = len(batch.planned.queries), queries_digest(batch.planned.queries)
    unknown = [
        each
        for each in port.created_since(since)
        if each.provider_batch_id not in known
        and (
            each.n_queries in {0, n_queries}  # 0: not counted
            if each.queries_digest is None
            else each.queries_digest == digest
        )
    ]
    return sorted(unknown, key=lambda each: (not each.has_ended, each.created_at))
