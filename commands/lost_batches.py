"""What became of a batch that was planned and perhaps sent: look for it at the provider.

The process died, or no answer came, between the plan and the provider's id. The batch is looked
for by time and number of queries, and confirmed by the queries that its results name. It is
given up only when it cannot exist: then its queries are asked anew, in another batch.
"""

from collections.abc import Callable
from datetime import timedelta
from itertools import islice
from typing import Final

from commands.command import DropBatch, SubmitBatch
from commands.errors import NotFound, WorkInFlight
from commands.ports import BatchJudge, BatchState
from commands.recorder import Recorder
from commands.waiting import Waiting
from ledger.errors import TourneyError
from projections.batches import Batch
from projections.progress import ANY_QUESTION, open_queries

SKEW: Final = timedelta(hours=1)  # how far this clock may be from the provider's
_SAMPLE: Final = 100  # results that must name queries of the plan


class NotTheSameQuestions(TourneyError):
    """A planned batch asks what this version of tourney would not ask."""

    def __init__(self, batch: Batch, n_unknown: int) -> None:
        super().__init__(
            f"{n_unknown} queries of the batch planned at position {batch.recorded.position} are"
            " unknown to this version of tourney; go on with the version that planned it"
        )


def settle_uncertain(
    recorder: Recorder,
    port: BatchJudge,
    batch: Batch,
    waiting: Waiting,
    tell: Callable[[str], None],
) -> None:
    """Adopt the batch if the provider has it; drop the plan if it certainly has not.

    Raises:
        WorkInFlight: It cannot be told yet, and nobody waits.
    """
    found = _found(recorder, port, batch, waiting)
    if found is None and (too_early_s := _too_early_s(batch, waiting)) > 0:
        tell(f"whether a batch was created shows in {too_early_s:.0f} s")
        _sleep(waiting, too_early_s)
        found = _found(recorder, port, batch, waiting)
    if found is None:
        tell("a planned batch was never created: its queries are asked anew")
        recorder.record(DropBatch(batch.planned.batch_key, "the provider has no such batch"))
    else:
        adopt(recorder, batch, found)
        tell(f"batch {found.provider_batch_id} was sent before, and is taken up again")


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
        NotFound: No plan of uncertain fate asks what it asks, or it has not ended yet.
    """
    found = port.look(provider_batch_id)
    if not found.has_ended:
        raise NotFound(f"{provider_batch_id} has not ended: what it asks shows only then")
    state = recorder.state
    for batch in state.batches.values():
        if batch.status == "unknown" and batch.stream == state.stream and is_of(batch, found, port):
            adopt(recorder, batch, found)
            return
    raise NotFound(f"no batch that was planned here asks what {provider_batch_id} asks")


def is_of(batch: Batch, found: BatchState, port: BatchJudge) -> bool:
    """Say whether an ended batch asks what was planned."""
    planned = frozenset(batch.planned.queries)
    sample = tuple(islice(port.results(found.provider_batch_id), _SAMPLE))
    return bool(sample) and all(answer.query_key in planned for answer in sample)


def _found(
    recorder: Recorder, port: BatchJudge, batch: Batch, waiting: Waiting
) -> BatchState | None:
    """Wait for each batch that may be the one, the oldest first, and look into it."""
    for candidate in _candidates(recorder, port, batch):
        ended = _ended(candidate, port, waiting)
        if not ended.has_results or is_of(batch, ended, port):
            return ended  # where nothing can be read any more, it may have been ours: not certain
    return None


def _candidates(recorder: Recorder, port: BatchJudge, batch: Batch) -> list[BatchState]:
    known = {
        each.submitted.provider_batch_id
        for each in recorder.state.batches.values()
        if each.submitted is not None
    }
    since = batch.recorded.recorded_at - SKEW
    n_queries = len(batch.planned.queries)
    unknown = [
        state
        for state in port.created_since(since)
        if state.n_queries == n_queries and state.provider_batch_id not in known
    ]
    return sorted(unknown, key=lambda state: state.created_at)


def _ended(candidate: BatchState, port: BatchJudge, waiting: Waiting) -> BatchState:
    delays_s = waiting.delays_s()
    while not candidate.has_ended:
        _sleep(waiting, next(delays_s))
        candidate = port.look(candidate.provider_batch_id)
    return candidate


def _too_early_s(batch: Batch, waiting: Waiting) -> float:
    """Return how long to wait until a request that was on its way must have arrived."""
    return waiting.settle_s - (waiting.now() - batch.recorded.recorded_at).total_seconds()


def _sleep(waiting: Waiting, seconds: float) -> None:
    if not waiting.waits:
        raise WorkInFlight(
            "a planned batch may be with the provider; `tourney batch wait` finds it"
        )
    waiting.sleep(seconds)
