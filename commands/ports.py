"""The doors to the outside: who generates responses, who judges them, and who is told.

Values in, values out; no type of torch or of a vendor's SDK crosses.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple, Protocol, TypeAlias

from ledger.events.evaluations import UnscorableReason
from ledger.events.registration import Entrant, JudgeSettings
from ledger.events.responses import Diagnostics, FinishReason, ResponseFailureReason
from ledger.events.values import Usage
from ledger.identity import Digest
from projections.verdicts.queries import JudgeQuery


@dataclass(frozen=True)
class GenerationOptions:
    """How a prompt is put to an entrant, and where its answer ends."""

    is_chat: bool = True  # as a user's turn, by the chat template; else the text alone
    top_p: float = 1.0  # draw from the likeliest tokens that have this probability together
    stop: tuple[str, ...] = ()  # texts that end an answer, and are no part of it
    may_truncate: bool = False  # leave out the beginning of a prompt that is too long


@dataclass(frozen=True)
class GenerationTask:
    """One response that is owed."""

    response_key: Digest
    entrant: Entrant
    prompt_text: str
    seed: int
    options: GenerationOptions = GenerationOptions()


@dataclass(frozen=True)
class GeneratedText:
    """What an entrant answered to a task."""

    response_key: Digest
    text: str
    finish_reason: FinishReason
    n_prompt_tokens: int
    n_generated_tokens: int
    elapsed_s: float
    p_correct: float | None = None
    diagnostics: Diagnostics | None = None
    is_truncated: bool = False  # the beginning of the prompt was left out
    prompt_ids: tuple[int, ...] = ()  # tokens; empty of an entrant that does not show them
    generated_ids: tuple[int, ...] = ()  # likewise, the one that ended it included


@dataclass(frozen=True)
class GenerationFailure:
    """Why a task has no answer: a fact about the task, not a fault of the program."""

    response_key: Digest
    reason: ResponseFailureReason
    detail: str
    usage: Usage | None = None  # of an answer that was kept back


class Generator(Protocol):
    """Answers prompts as entrants."""

    def generate(
        self, tasks: Sequence[GenerationTask]
    ) -> Iterator[tuple[GeneratedText | GenerationFailure, ...]]:
        """Yield what each finished batch made, in any order, each task exactly once."""
        ...


@dataclass(frozen=True)
class Continuation:
    """A text whose tokens are weighed, each by how likely it is behind those before it."""

    key: str  # of its own among those that are read together
    entrant: Entrant
    context: str
    text: str
    rolls: bool = False  # read a text that is too long window by window, rather than not at all


@dataclass(frozen=True)
class ContinuationLikelihood:
    """How likely the tokens of a passage's text are."""

    key: str
    log_likelihood: float  # nats, of all text_ids
    context_ids: tuple[int, ...]  # as read, with the token that begins a text, if there is one
    text_ids: tuple[int, ...]
    predicted_ids: tuple[int, ...]  # the likeliest token in the place of each of text_ids
    predicted: str  # those, decoded
    is_truncated: bool = False  # the beginning of the context was left out
    n_windows: int = 1


@dataclass(frozen=True)
class LikelihoodFailure:
    """Why a passage could not be read: a fact about it, not a fault of the program."""

    key: str
    reason: UnscorableReason
    detail: str


class LikelihoodModel(Protocol):
    """Reads texts as entrants."""

    def log_likelihoods(
        self, passages: Sequence[Continuation]
    ) -> Iterator[tuple[ContinuationLikelihood | LikelihoodFailure, ...]]:
        """Yield what each finished batch showed, in any order, each passage exactly once.

        Passages of one context are read together.
        """
        ...


@dataclass(frozen=True)
class Reply:
    """What a judge answered to a query, before anyone read a verdict into it."""

    query_key: Digest
    text: str
    stop_reason: str
    model: str
    usage: Usage | None = None


@dataclass(frozen=True)
class NoReply:
    """Why a query has no answer; the detail says if it may have been paid for all the same."""

    query_key: Digest
    reason: Literal["errored", "rejected", "expired", "canceled"]
    detail: str


Answer: TypeAlias = Reply | NoReply


class Judge(Protocol):
    """Compares the two responses of a query, while the process waits."""

    def answer(self, queries: Sequence[JudgeQuery]) -> Iterator[Answer]:
        """Yield answers as they come, in any order, each query at most once."""
        ...


@dataclass(frozen=True)
class BatchState:
    """A batch as the provider tells of it; the counts are zero until it has ended."""

    provider_batch_id: str
    created_at: datetime
    expires_at: datetime
    has_ended: bool
    n_queries: int
    n_succeeded: int = 0
    n_errored: int = 0
    n_canceled: int = 0
    n_expired: int = 0
    has_results: bool = True  # False: deleted, or older than the provider keeps them


class BatchJudge(Protocol):
    """Compares in batches, which go on without this process.

    Every method but `create` may be repeated at will, and repeats itself where a failure passes.

    Raises, each of them:
        NoCredentials: No key, or one that the provider refuses.
        ProviderError: The provider cannot be reached, or failed again and again.
    """

    def create(self, queries: Sequence[JudgeQuery]) -> BatchState:
        """Send a batch, at most once.

        Raises:
            BatchRefused: The provider said no: there is no such batch, and nothing is paid.
            BatchUncertain: No answer came: the batch may exist.
            SpendLimitReached: The provider's own limit; there is no such batch.
        """
        ...

    def n_bytes(self, query: JudgeQuery) -> int:
        """Return what a query takes of the size that a batch may have."""
        ...

    def retrieve(self, provider_batch_id: str) -> BatchState:
        """Return how a batch is doing."""
        ...

    def created_since(self, moment: datetime) -> Iterator[BatchState]:
        """Yield the batches created at or after a moment, the newest first."""
        ...

    def results(self, provider_batch_id: str) -> Iterator[Answer]:
        """Yield an ended batch's answers, in any order.

        Raises:
            ResultsLost: The provider keeps them no longer.
        """
        ...

    def cancel(self, provider_batch_id: str) -> BatchState:
        """Stop what is not yet answered; what is answered is paid for, and kept."""
        ...


class TokenCounter(Protocol):
    """Counts the input of queries, at no cost."""

    def count(self, queries: Sequence[JudgeQuery]) -> Mapping[Digest, int]:
        """Return the input tokens of queries, cached or not, by query key.

        Raises:
            NoCredentials: No key, or one that the provider refuses.
            ProviderError: The provider cannot be reached, or failed again and again.
        """
        ...


class OnProgress(Protocol):
    """Listens to a use case."""

    def __call__(self, what: str, done: int, total: int) -> None:
        """Hear that of a total this much is done."""
        ...


def no_progress(what: str, done: int, total: int) -> None:
    """Listen to nothing."""


Tell: TypeAlias = Callable[[str], None]
"""Says a line about the work."""

Confirm: TypeAlias = Callable[[str], bool]
"""Asks a question, and returns whether the answer was yes."""


class Console(NamedTuple):
    """How a use case talks to whoever started it."""

    tell: Tell
    confirm: Confirm | None  # None: nobody is there to answer
    on_progress: OnProgress


class Backends(Protocol):
    """Makes generators and judges; each is made only when there is something to ask."""

    def generator(self) -> Generator:
        """Return what answers as the entrants."""
        ...

    def judge(self, judge: JudgeSettings) -> Judge:
        """Return what compares while the process waits.

        Raises:
            NoCredentials: The provider needs a key, and there is none.
        """
        ...

    def batch_judge(self, judge: JudgeSettings) -> BatchJudge:
        """Return what compares in batches.

        Raises:
            NoCredentials: There is no key.
        """
        ...
