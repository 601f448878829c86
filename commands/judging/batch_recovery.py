"""Recover batches whose fate is unknown, and forget lost ones.

The process died, or no answer came, between the plan and the provider's id. The batch is searched
for at the provider by time. It is identified by the digest of its queries, if the provider tells
it, and else by their number and the queries in its results. Its queries are sent again only once it
certainly does not exist.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import Final

from commands.decisions.commands import DropBatch, EndBatch, ReopenBatch, SubmitBatch
from commands.decisions.recorder import Recorder
from commands.errors import BatchGone, NotAnswering, NotFound, ResultsLost, counted
from commands.judging.judge import JudgeTask
from commands.judging.waiting import BatchOptions
from commands.ports import BatchJudge, BatchJudgeOf, BatchState
from ledger.errors import TourneyError
from ledger.events.judging import JudgeBatchSubmitted
from ledger.events.registration import JudgeSettings
from ledger.identity import Digest
from projections.evaluations.judged import Scorers, score_questions
from projections.tournament.batches import Batch
from projections.tournament.remaining import ANY_QUESTION, Unanswered, one_request, repeats_of
from projections.tournament.state import Tournament
from projections.verdicts.queries import queries_digest

SKEW: Final = timedelta(days=1)  # of a clock, where the provider's is not known
_SAMPLE: Final = 100  # results, at least half of which must be of planned queries


class FateUnknown(TourneyError):
    """Whether a planned batch is with the provider cannot be known yet."""


def port_for(state: Tournament, batch: Batch, port_of: BatchJudgeOf) -> BatchJudge:
    """Return the port of the judge that a batch was planned for."""
    return port_of(state.judges[batch.planned.judge])


def now_at(port: BatchJudge, options: BatchOptions) -> datetime:
    """Return the time by the provider's clock, or by ours if it does not tell the time."""
    return port.now() or options.now()


def resolve_batch(
    recorder: Recorder,
    port_of: BatchJudgeOf,
    batch: Batch,
    left_s: float,
    *,
    now: datetime,
) -> str:
    """Adopt a planned batch if the provider has it; drop its plan if it certainly does not exist.

    Args:
        recorder: The tournament.
        port_of: Returns the ports.
        batch: The planned batch, of unknown fate.
        left_s: Until a batch that was sent must have appeared, in seconds.
        now: The time, as of `now_at`.

    Returns:
        What became of it.

    Raises:
        FateUnknown: It cannot be known yet.
        TourneyError: The API key does not see the batches that were sent before.
        NotAnswering: The provider does not answer at present.
    """
    port = port_for(recorder.state, batch, port_of)
    found = sent_since(recorder.state, port, batch, min(batch.planned.planned_at, now) - SKEW)
    if found is not None:
        adopt(recorder, batch, found)
        return f"found batch {found.provider_batch_id}, which was sent before"
    if left_s > 0:
        raise FateUnknown(f"it will be known in {left_s:.0f} s whether a batch was created")
    _require_same_workspace(recorder.state, batch, port_of)
    recorder.record(DropBatch(batch.planned.batch_key, "the provider has no such batch"))
    return "a planned batch was never created: its queries are sent again"


def _require_same_workspace(state: Tournament, batch: Batch, port_of: BatchJudgeOf) -> None:
    """Require that the API key sees the last batch that was sent, and so would see this one.

    Two judges of one company have one key at Anthropic; at servers with OpenAI's API each has its
    own.
    """
    own = state.judges[batch.planned.judge]
    sent = [
        each
        for each in state.batches.values()
        if each.submitted is not None
        and (judge := state.judges.get(each.planned.judge)) is not None
        and judge.company == own.company
        and (own.company == "anthropic" or judge.judge_id == own.judge_id)
    ]
    newest = max(sent, key=lambda each: each.recorded.position, default=None)
    if newest is None or newest.submitted is None:
        return
    try:
        port_for(state, newest, port_of).retrieve(newest.submitted.provider_batch_id)
    except BatchGone as error:
        raise TourneyError(
            f"this API key does not see batch {newest.submitted.provider_batch_id}, so it may not"
            " see a planned batch, either; use the key of the workspace that sent it"
        ) from error


def adopt(recorder: Recorder, batch: Batch, found: BatchState) -> None:
    """Record that a planned batch exists, with the queries as of its plan."""
    recorder.record(SubmitBatch(batch.planned.batch_key, found, _queries_of(recorder, batch)))


def _queries_of(recorder: Recorder, batch: Batch) -> tuple[Unanswered, ...]:
    """Return the queries of a batch, as of its plan."""
    judge = recorder.state.judges[batch.planned.judge]
    position = batch.recorded.position - 1
    before = recorder.as_of(position)
    open_before = everything_asked(recorder, before, judge, position).open_in(before)
    asked = {each.asked.query_key: each for each in open_before}
    queries = tuple(asked[key] for key in batch.planned.queries if key in asked)
    if (n_unknown := len(batch.planned.queries) - len(queries)) > 0:
        raise TourneyError(
            f"{n_unknown} queries of the batch planned at position {batch.recorded.position} are"
            " unknown to this version of tourney; continue with the version that planned it"
        )
    return queries


def everything_asked(
    recorder: Recorder, state: Tournament, judge: JudgeSettings, position: int | None = None
) -> JudgeTask:
    """Return all that a judge could be asked, now or as of an earlier position."""
    known, items = recorder.evaluations(position)
    scorers = Scorers(state.judges, state.rubrics)
    questions = score_questions(known, items, known.every.values(), scorers)
    answers = tuple(each for each in questions if each.judge == judge)
    prompts = [prompt.prompt_id for prompt in state.bank]
    sent = {key for batch in recorder.state.own_batches for key in batch.planned.queries}
    repeats = [each for each in repeats_of(state, prompts, judge) if each.key in sent]
    return JudgeTask(judge, prompts, ANY_QUESTION, answers=answers, repeats=repeats)


def adopt_named(recorder: Recorder, port_of: BatchJudgeOf, provider_batch_id: str) -> None:
    """Adopt a batch by the id that the user found at the provider.

    One that was recorded as ended is received again, if queries are without a result.

    Raises:
        NotFound: The provider does not have it, its queries are not known before it has ended, or
            nothing is to be had from it.
    """
    state = recorder.state
    if (known := _named(state.own_batches, provider_batch_id)) is not None:
        _reopen(recorder, port_for(state, known, port_of), known, provider_batch_id)
        return
    is_seen = False
    for batch in state.open_batches:
        port = port_for(state, batch, port_of)
        if batch.status != "unknown" or (found := _retrieved(port, provider_batch_id)) is None:
            continue
        if is_of(batch, found, port):
            adopt(recorder, batch, found)
            return
        is_seen = True
    if is_seen:
        raise NotFound(f"no batch planned here has the queries of {provider_batch_id}")
    raise NotFound(
        f"no provider of a batch of unknown fate has {provider_batch_id!r}, as far as the API key"
        f" sees; recorded here: {', '.join(sorted(_known_ids(state))) or 'none'}"
    )


def _named(batches: Sequence[Batch], provider_batch_id: str) -> Batch | None:
    """Return the last batch of an id."""
    named = [
        each
        for each in batches
        if each.submitted and each.submitted.provider_batch_id == provider_batch_id
    ]
    return named[-1] if named else None


def _reopen(recorder: Recorder, port: BatchJudge, batch: Batch, provider_batch_id: str) -> None:
    """Record that a batch that was ended is with the provider, for queries without a result."""
    if batch.is_open:
        raise NotFound(f"{provider_batch_id} is in flight: `tourney batch wait` receives it")
    state = recorder.state
    lost = (_lost_of(state, query) for query in _queries_of(recorder, batch))
    missing = tuple(each for each in lost if each is not None)
    if not missing:
        raise NotFound(
            f"{provider_batch_id} has ended: each of its queries has a result, or was asked again"
        )
    recorder.record(ReopenBatch(batch.planned.batch_key, port.retrieve(provider_batch_id), missing))


def _lost_of(state: Tournament, request: Unanswered) -> Unanswered | None:
    """Return a request with the queries that have no result, after their last attempts."""
    lost: list[Unanswered] = [
        query._replace(n_failed=state.attempts[query.key])
        for query in request.every
        if _has_no_result(state, query.key)
    ]
    return one_request(lost)


def _has_no_result(state: Tournament, key: Digest) -> bool:
    failure = state.query_failures.get(key)
    is_lost = failure is not None and failure.fate == "perhaps billed"
    is_asked_again = key in state.in_flight or key in state.under_way
    return is_lost and not state.is_answered(key) and not is_asked_again


def forget_batch(recorder: Recorder, port_of: BatchJudgeOf, provider_batch_id: str) -> None:
    """Close a batch whose results cannot be had, or not all; its other queries are open again.

    Raises:
        NotFound: No batch with that id is in flight, or it can still be received.
    """
    batch = _named(recorder.state.open_batches, provider_batch_id)
    if batch is None or batch.submitted is None:
        raise NotFound(f"no batch {provider_batch_id!r} is in flight; see `tourney batch list`")
    port = port_for(recorder.state, batch, port_of)
    lost = _lost(recorder.state, batch, batch.submitted, port)
    recorder.record(EndBatch(batch.planned.batch_key, lost))


def _lost(
    state: Tournament, batch: Batch, submitted: JudgeBatchSubmitted, port: BatchJudge
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
        read.update(answer.query_key for answer in port.results(name))
    except (NotAnswering, ResultsLost):
        is_broken = True
    planned = frozenset(batch.planned.queries)
    n_new = sum(any(map(state.is_unanswered, state.queries_in(key))) for key in read & planned)
    if n_new:
        raise NotFound(
            f"{counted(n_new, 'result')} of {name} can still be received: `tourney batch wait`"
            " receives what there is"
        )
    if planned <= read and not is_broken:
        raise NotFound(f"every result of {name} is recorded; `tourney batch wait` closes it")
    return found


def _retrieved(port: BatchJudge, provider_batch_id: str) -> BatchState | None:
    """Return a batch whose queries can be known; None: the provider does not have it.

    Raises:
        NotFound: It has not ended, and only its results tell its queries.
    """
    try:
        found = port.retrieve(provider_batch_id)
    except BatchGone:
        return None
    if found.queries_digest is None and not found.has_ended:
        raise NotFound(f"{provider_batch_id} has not ended: its queries are known only then")
    return found


def is_of(batch: Batch, found: BatchState, port: BatchJudge) -> bool:
    """Return whether a batch has the planned queries; only results tell it of some, once ended.

    There may be results too many, of queries that are nobody's.

    Raises:
        NotAnswering: Its results cannot be read at present.
    """
    if found.queries_digest is not None:
        return found.queries_digest == queries_digest(batch.planned.queries)
    planned = frozenset(batch.planned.queries)
    sample = tuple(islice(port.results(found.provider_batch_id), _SAMPLE))
    if not sample and found.n_results != 0:  # a web page in their place, say
        raise NotAnswering(f"the results of batch {found.provider_batch_id} cannot be read")
    n_planned = sum(answer.query_key in planned for answer in sample)
    return 0 < len(sample) <= 2 * n_planned


def sent_since(
    state: Tournament, port: BatchJudge, batch: Batch, since: datetime
) -> BatchState | None:
    """Return the provider's batch that is the planned one, if it was created since then.

    A candidate whose results are lost is returned if no other candidate is the one.

    Raises:
        FateUnknown: A candidate has not ended, and only its results will tell its queries.
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
    return frozenset(each.provider_batch_id for each in sent if each is not None)


def _candidates(
    state: Tournament, port: BatchJudge, batch: Batch, since: datetime
) -> list[BatchState]:
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
