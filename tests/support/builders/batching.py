"""A judge that asks in batches at a price, and what became of its queries."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from commands.batching.receiving import BatchOptions, BatchReceiver
from commands.batching.recovery import adopt_named, forget_batch
from commands.decisions.recorder import Recorder
from commands.errors import WorkInFlight
from commands.judging.batches import JudgeSide, attending_batches, judge_in_batches
from commands.judging.judge import JudgeTask, JudgingSummary, resumed
from commands.ports import BatchJudge, BatchJudgeOf, Reply, no_progress
from commands.spending.pricing import FREE_OF_CHARGE, Pricing
from ledger.events.money import Usage
from ledger.identity import StreamId
from ledger.store import Ledger
from projections.tournament.remaining import open_queries
from projections.tournament.requests import Batch
from projections.verdicts.queries import JudgeQuery
from tests.support.builders.clock import Clock
from tests.support.builders.commands import JUDGE, P1, P2, PowerCut, prefer_tuned
from tests.support.builders.events import STREAM, key, verdict
from tests.support.scripted import ScriptedBatchJudge

SETTLE_S = 300.0
N_QUERIES = 4  # two entrants, two prompts, both orders
MERGED = pytest.mark.parametrize("stream", [StreamId("colleague"), STREAM])


def paid(query: JudgeQuery) -> Reply:
    """Answer for eleven cents, by a flat rate's price."""
    usage = Usage(n_input=1_000, n_output=10_900)
    return Reply(query.query_key, prefer_tuned(query), "end_turn", "scripted", usage)


def batching(
    clock: Clock,
    *,
    most_queries: int = 100,
    waits: bool = True,
    prewarms: bool = False,
    pricing: Pricing = FREE_OF_CHARGE,
    tell: Callable[[str], None] = lambda _: None,
) -> BatchOptions:
    """Return how batches are handled, by that clock."""
    return BatchOptions(
        tell,
        no_progress,
        lambda _: pricing,
        waits=waits,
        prewarms=prewarms,
        most_queries=most_queries,
        sleep=clock.sleep,
        now=clock.now,
    )


def ending(port: ScriptedBatchJudge, how: BatchOptions) -> BatchOptions:
    """Return the same, but that sleeping lets the provider's batches end."""

    def sleep(seconds: float) -> None:
        how.sleep(seconds)
        port.end()

    return replace(how, sleep=sleep)


def open_now(recorder: Recorder) -> list[JudgeQuery]:
    """Return the questions that are open."""
    queries = open_queries(recorder.state, [P1, P2], JUDGE, retries=0)
    return [query.asked for query in queries]


def judged(
    recorder: Recorder,
    port: ScriptedBatchJudge,
    how: BatchOptions,
    *,
    retries: int = 1,
    limit: int | None = None,
    max_usd: float | None = None,
) -> JudgingSummary:
    """Judge what is open on both prompts."""
    pricing = how.pricing_of(JUDGE)
    task = JudgeTask(JUDGE, [P1, P2], retries, pricing, max_usd=max_usd, limit=limit)
    return batched(recorder, task, lambda _: port, how)


def killed_sending(
    recorder: Recorder, port: ScriptedBatchJudge, how: BatchOptions, *, accepts: bool
) -> None:
    """Let the process die while it sends a batch, which the provider takes or does not."""
    port.fail_next(PowerCut(), accepts=accepts)  # type: ignore[arg-type]  # no error of ours
    with pytest.raises(PowerCut):
        judged(recorder, port, how)


def left_in_flight(
    recorder: Recorder, port: ScriptedBatchJudge, how: BatchOptions, *, limit: int | None = None
) -> None:
    """Judge without waiting, and leave batches with the provider."""
    with pytest.raises(WorkInFlight):
        judged(recorder, port, how, limit=limit)


def strangers_batch(recorder: Recorder, port: ScriptedBatchJudge) -> None:
    """Let somebody else send a batch of the same size in the same workspace."""
    port.create([query._replace(query_key=key(query.query_key)) for query in open_now(recorder)])


def taken_up(recorder: Recorder) -> str | None:
    """Return under which name the only batch is known."""
    (batch,) = recorder.state.batches.values()
    return batch.submitted.provider_batch_id if batch.submitted else None


def batched(
    recorder: Recorder, task: JudgeTask, port_of: BatchJudgeOf, how: BatchOptions
) -> JudgingSummary:
    """Judge as a command does: receive what earlier ones sent, then what is open."""
    task = resumed(recorder, task)
    with attending_batches(recorder, how.tell):
        reception = receiver(recorder, port_of, how)
        reception.receive_earlier()
        return judge_in_batches(recorder, task, port_of, reception)


def receiver(recorder: Recorder, port_of: BatchJudgeOf, how: BatchOptions) -> BatchReceiver:
    """Return what receives the batches of judges."""
    side = JudgeSide(recorder, port_of, how)
    return BatchReceiver(recorder, lambda _: side, how)


def forget(recorder: Recorder, port: BatchJudge, name: str) -> None:
    """Give up a batch, as `tourney batch forget`."""
    side = JudgeSide(recorder, lambda _: port, batching(Clock()))
    forget_batch(recorder, lambda _: side, name)


def adopt(recorder: Recorder, port: BatchJudge, name: str) -> None:
    """Take up a batch, as `tourney batch wait ID`."""
    side = JudgeSide(recorder, lambda _: port, batching(Clock()))
    adopt_named(recorder, lambda _: side, name)


def again(recorder: Recorder, ledger: Ledger) -> Recorder:
    """Return what another process makes of the ledger."""
    del recorder
    return Recorder(ledger, STREAM)


def merge_verdicts(ledger: Ledger, queries: Sequence[JudgeQuery], stream: StreamId) -> None:
    """Record what was answered elsewhere, as a merge does."""
    ledger.append(stream, [verdict(query.query_key) for query in queries])


def statuses(recorder: Recorder) -> list[str]:
    """Return where each batch is, by its number."""
    batches: list[Batch] = sorted(
        recorder.state.batches.values(), key=lambda batch: batch.planned.number
    )
    return [batch.status for batch in batches]
