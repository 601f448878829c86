"""Events of judging: batches, queries, verdicts, failures and outcomes."""

from collections.abc import Sequence
from operator import attrgetter
from typing import Final, Literal, NamedTuple

from msgspec import UNSET, UnsetType

from ledger.events.evaluations import EvaluationFact, SampleName
from ledger.events.money import Price, Usage
from ledger.events.registration import Reference, ScoreScale
from ledger.events.values import Count, Dollars, Fact, Moment, Ordinal, Positive, Value
from ledger.identity import (
    Digest,
    Dimension,
    EntrantId,
    JudgeId,
    PromptId,
    StreamId,
    digest_of,
    digest_of_bytes,
)


def batch_key(stream: StreamId, number: int, queries: Sequence[Digest]) -> Digest:
    """Identify a batch by its queries and the number of its plan.

    So the same queries may be sent again.
    """
    return digest_of([stream, number, queries])


class BatchFact(Fact, frozen=True):
    """A step of a batch."""

    # each step is taken once. A batch that was not created is planned again under a new number
    key_fields = ("batch_key",)
    batch_key: Digest


class JudgeBatchPlanned(BatchFact, frozen=True):
    """A batch is about to be sent; recorded before it can cost money."""

    number: Ordinal  # of the tournament's plans
    judge: Reference  # or the entrant that is asked, as it was registered when this was planned
    queries: tuple[Digest, ...]  # query keys, or response keys of an entrant, as they are sent
    expected_usd: Dollars | None  # None: nobody knows the price
    worst_usd: Dollars | None
    cap_usd: Dollars | None  # None: no cap was set
    planned_at: Moment  # by the provider's clock if it tells the time, else by this machine's


class JudgeBatchSubmitted(BatchFact, frozen=True):
    """The provider accepted a batch; its queries are recorded in the same transaction."""

    provider_batch_id: str
    created_at: Moment  # the provider's clock
    expires_at: Moment


class JudgeBatchNotCreated(BatchFact, frozen=True):
    """A planned batch does not exist at the provider, and never will; nothing was paid."""

    why: str


class JudgeBatchEnded(BatchFact, frozen=True):
    """Every result of a batch was read and recorded, or it was given up."""

    n_succeeded: Count
    n_errored: Count
    n_canceled: Count
    n_expired: Count


Order = Literal["forward", "swapped"]
Verdict = Literal["A", "B", "TIE"]
Outcome = Literal["a", "b", "tie", "inconsistent"]
"""`a` and `b` are the pair's entrants in roster order, whatever slot they were shown in."""

FailureReason = Literal[
    "refused", "truncated", "unreadable", "empty", "errored", "rejected", "expired", "canceled"
]
UNPAID: Final = frozenset[FailureReason]({"errored", "expired", "canceled"})
"""No reply was made, and another time one may be."""

MAY_CHANGE: Final = frozenset[FailureReason]({"unreadable", "empty"})
"""A reply was paid for, and another may say more."""

FINAL: Final = frozenset[FailureReason]({"refused", "truncated", "rejected"})
"""Asking the same again would end the same; all but `rejected` were paid for."""

Fate = Literal["not sent", "refused", "answered", "perhaps billed"]
"""What became of a request: only the last two may cost money."""

PAID: Final = MAY_CHANGE | FINAL - {"rejected"}

Basis = Literal["verdicts", "identical"]


def query_key(judge_digest: Digest, system_digest: Digest, user: str) -> Digest:
    """Identify a query by the judge's whole request as sent; the system text enters as a digest.

    It includes neither entrants nor prompt ids. So renaming or reordering them asks nothing again,
    and correcting a gold answer, a rubric or the judge's instructions does.
    """
    return digest_of_bytes(f"{judge_digest}{system_digest}{user}".encode())


def repeat_key(query_key: Digest) -> Digest:
    """Identify the repeat of a query: the same request, sent to see whether the verdict changes.

    A key of its own keeps its verdict apart from the one that counts.
    """
    return digest_of(["repeat", query_key])


def part_key(request: Digest, dimension: Dimension) -> Digest:
    """Identify the query about one dimension in a request that asks about several."""
    return digest_of(["part", request, dimension])


class PairKey(NamedTuple):
    """Identifies an outcome: the pair, the judge, the policy, and both queries.

    Queries are identified by key, not by position: positions change when ledgers are merged.
    """

    dimension: Dimension
    prompt_id: PromptId
    entrant_a: EntrantId
    entrant_b: EntrantId
    judge: JudgeId
    policy: str
    forward: Digest
    swapped: Digest


_FIELDS_OF_KEY: Final = attrgetter(*PairKey._fields)


class JudgeQuerySubmitted(Fact, frozen=True):
    """A pair was sent to a judge on one dimension in one order."""

    # the same query may be sent again after a failure, as another attempt
    key_fields = ("query_key", "attempt")
    query_key: Digest
    judge: JudgeId
    dimension: Dimension
    prompt_id: PromptId
    entrant_a: EntrantId
    entrant_b: EntrantId
    order: Order
    rubric_digest: Digest
    response_a: Digest  # response key of entrant_a, in either order
    response_b: Digest
    attempt: int = 1
    batch_key: Digest | None = None  # None: sent alone
    worst_usd: Dollars | None = 0.0  # of a query sent alone, at most; None: nobody knows the price
    repeats: Digest | UnsetType = UNSET  # the key of the query that is asked again, of a repeat
    request: Digest | UnsetType = UNSET  # of a query that was asked together with others


class VerdictReceived(Fact, frozen=True):
    """A judge's reply was read as a verdict on the slots shown."""

    key_fields = ("query_key",)  # one verdict per query: a second would have been paid for twice
    query_key: Digest
    judge: JudgeId
    verdict: Verdict
    reply: str
    parser: str
    stop_reason: str
    model: str  # as the judge names itself in its answer
    usage: Usage | None = None  # None: nothing was counted, as offline
    price: Price | None = None  # None: not known, or nothing to pay
    worst_usd: Dollars | None = 0.0  # if nothing was counted; None: unknown price


class ScoreQuerySubmitted(Fact, frozen=True):
    """An answer of an evaluation was sent to a judge that scores it by a rubric."""

    # the same query may be sent again after a failure, as another attempt
    key_fields = ("query_key", "attempt")
    query_key: Digest
    judge: JudgeId
    evaluation: str
    scoring: Digest  # of the judge and the rubric, as in the plan
    scale: ScoreScale
    samples: tuple[SampleName, ...]  # those known to have this answer to this prompt
    attempt: int = 1
    batch_key: Digest | None = None  # None: sent alone
    worst_usd: Dollars | None = 0.0  # as of a JudgeQuerySubmitted


class ScoreReceived(Fact, frozen=True):
    """A judge's reply was read as a score."""

    key_fields = ("query_key",)  # one score per query, as of verdicts
    query_key: Digest
    judge: JudgeId
    score: float  # within the scale; 1 if the answer passes, 0 if it fails
    reply: str
    parser: str
    stop_reason: str
    model: str  # as the judge names itself in its answer
    usage: Usage | None = None  # None: nothing was counted, as offline
    price: Price | None = None  # None: not known, or nothing to pay
    worst_usd: Dollars | None = 0.0  # if nothing was counted; None: unknown price


class ScoreShared(EvaluationFact, frozen=True):
    """Further samples have an answer that was sent to a judge before: its score is theirs, too."""

    query_key: Digest
    scoring: Digest
    samples: tuple[SampleName, ...]

    @property
    def natural_key(self) -> tuple[str, ...]:
        """The same samples share the score of a query once."""
        samples = digest_of([sample.fields for sample in self.samples])
        return (self.query_key, self.scoring, samples)


QuerySubmitted = JudgeQuerySubmitted | ScoreQuerySubmitted
ReplyRead = VerdictReceived | ScoreReceived


class JudgeQueryFailed(Fact, frozen=True):
    """A judge gave no verdict, which is never a tie, or no score."""

    key_fields = ("query_key", "attempt")  # each attempt fails at most once
    query_key: Digest
    judge: JudgeId
    attempt: int
    reason: FailureReason
    reply: str
    parser: str
    stop_reason: str
    model: str
    detail: str = ""  # what the provider said of it
    usage: Usage | None = None
    price: Price | None = None
    fate: Fate = "answered"
    worst_usd: Dollars | None = 0.0  # if perhaps billed, or not counted; None: unknown price


class JudgeQueryReopened(Fact, frozen=True):
    """The user wants a query asked again whose attempt failed for good."""

    key_fields = ("query_key", "attempt")  # an attempt is given another chance once
    query_key: Digest
    judge: JudgeId
    attempt: int  # the one that failed
    reason: FailureReason


class PairOfEntrants(Value, frozen=True):
    """Two entrants, each by its label and the digest of what determines its responses."""

    a: Reference
    b: Reference


class DimensionLook(Value, frozen=True):
    """What a look decided on a dimension."""

    rubric: Reference  # the dimension, and the digest of the rubric's text
    n_prompts: Count  # in the waves so far
    n_planned: Count  # in all waves
    critical: float | None  # |z| from which a pair is decided; None: none could be yet
    widening: Positive  # how much wider intervals are, since there are looks
    decided: tuple[PairOfEntrants, ...]  # the better one first
    futile: tuple[PairOfEntrants, ...]


class LookTaken(Fact, frozen=True):
    """The verdicts were looked at when a wave of prompts was judged.

    Pairs that are decided or futile are asked no more on prompts of later waves.
    """

    key_fields = ("number",)
    number: Ordinal  # of the tournament's looks
    judge: Reference  # its label, and the digest of what determines its replies
    n_looks: Ordinal  # planned in all
    prompts: tuple[Reference, ...]  # of this wave alone, as they were registered
    dimensions: tuple[DimensionLook, ...]


class PairReconciled(Fact, frozen=True):
    """A pair's outcome under a policy: from both orders' verdicts, or from identical responses.

    Identical responses give the same query in both orders, and tie even if the judge is not asked.
    """

    dimension: Dimension
    prompt_id: PromptId
    entrant_a: EntrantId
    entrant_b: EntrantId
    judge: JudgeId
    policy: str
    outcome: Outcome
    forward: Digest
    swapped: Digest
    basis: Basis = "verdicts"

    @property
    def natural_key(self) -> PairKey:
        """One outcome for the two verdicts of a pair."""
        return PairKey._make(_FIELDS_OF_KEY(self))
