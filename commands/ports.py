"""Ports to the outside, such as generators, judges and the console; only plain values cross."""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from threading import Event
from typing import Literal, NamedTuple, Protocol, TypeAlias, TypeVar, runtime_checkable

from ledger.errors import TourneyError
from ledger.events.conversations import Messages
from ledger.events.evaluations import UnscorableReason
from ledger.events.judging import Fate
from ledger.events.money import Usage
from ledger.events.registration import Entrant, JudgeSettings
from ledger.events.requests import Charge, ParameterRefused, ServerFacts
from ledger.events.responses import Diagnostics, FinishReason, ResponseFailureReason
from ledger.identity import Digest, EntrantId, PromptId
from projections.verdicts.queries import JudgeQuery


@dataclass(frozen=True)
class GenerationOptions:
    """How a prompt is sent to an entrant, and where its response ends."""

    is_chat: bool = True  # as a user turn of the chat template; False: the text alone
    top_p: float = 1.0  # sample from the smallest set of likeliest tokens that reaches this
    stop: tuple[str, ...] = ()  # texts that end a response and are not part of it
    may_truncate: bool = False  # drop the beginning of a prompt that is too long
    bos: bool = True  # as of a `Continuation`
    top_k: int | None = None  # sample from so many likeliest tokens
    min_p: float = 0.0  # sample from tokens this many times as likely as the likeliest
    repetition_penalty: float = 1.0  # above 1: earlier tokens are less likely


@dataclass(frozen=True)
class GenerationTask:
    """One response to generate."""

    response_key: Digest
    entrant: Entrant
    prompt_text: str
    seed: int
    options: GenerationOptions = GenerationOptions()
    messages: Messages = ()  # of a chat, in place of the system prompt and the prompt's text
    prompt_id: PromptId | None = None  # of use to recorded answers alone


@dataclass(frozen=True)
class GeneratedText:
    """A generated response."""

    response_key: Digest
    text: str
    finish_reason: FinishReason
    n_prompt_tokens: int | None  # None: a server does not say it, or says what cannot be
    n_generated_tokens: int | None  # likewise
    elapsed_s: float | None  # None: not known, as of a recorded answer
    p_correct: float | None = None
    diagnostics: Diagnostics | None = None
    reasoning: str | None = None  # what a server gave beside the text
    attention: str | None = None  # the implementation of attention that computed it
    usd: float | None = None  # what it cost elsewhere, as the file says that has it
    imported_from: Digest | None = None  # of the file that it was read from
    is_truncated: bool = False  # the beginning of the prompt was dropped
    prompt_ids: tuple[int, ...] = ()  # tokens; empty if the entrant does not show them
    generated_ids: tuple[int, ...] = ()  # likewise, including the one that ended it
    refused: Sequence[ParameterRefused] = field(default=(), compare=False)
    """What a server was found not to take, if it is news."""


@dataclass(frozen=True)
class GenerationFailure:
    """Why a task has no response: a fact about it, not a bug."""

    response_key: Digest
    reason: ResponseFailureReason
    detail: str
    usage: Usage | None = None  # of an answer that the server withheld


class Billing(Hashable, Protocol):
    """Records the requests to endpoint entrants, which may cost money, and keeps the cap."""

    @property
    def refused(self) -> Sequence[ParameterRefused]:
        """What servers were found not to take."""

    def learn(self, refused: Sequence[ParameterRefused]) -> None:
        """Record and tell what a server was found not to take."""

    def sending(self) -> AbstractContextManager[Event]:
        """Yield an event that is set once nothing more may be sent; raise the reason at the end."""

    def submit(
        self, tasks: Sequence[GenerationTask], server: ServerFacts | None = None, /
    ) -> Sequence[GenerationTask]:
        """Record the first of one entrant's tasks as sent, and return them; none if none may be."""

    def halt(self, entrant: EntrantId) -> None:
        """Let an entrant be sent nothing more; what is under way is recorded."""

    def is_halted(self, entrant: Entrant) -> bool:
        """Say whether an entrant is asked nothing more, and the others go on."""

    def settle(self, entrant: Entrant, endings: Sequence[Charge]) -> None:
        """Record what became of an entrant's requests, at the prices of now."""


class Generator(Protocol):
    """Generates responses as entrants."""

    def generate(
        self, tasks: Sequence[GenerationTask]
    ) -> Iterator[tuple[GeneratedText | GenerationFailure, ...]]:
        """Yield the results of each finished batch, in any order, each task exactly once."""


@dataclass(frozen=True)
class Continuation:
    """A text whose log-likelihood is computed, given the context before it."""

    key: str  # unique among those computed together
    entrant: Entrant
    context: str
    text: str
    rolls: bool = False  # split a text that is too long into windows instead of failing
    bos: bool = True  # begin with BOS, or as the template does; False: as the tokenizer does
    messages: Messages = ()  # of a chat, with its system prompt, in place of the context
    shows_predicted: bool = False  # decode the likeliest tokens, too


@dataclass(frozen=True)
class ContinuationLikelihood:
    """The log-likelihood of a continuation, with its tokens."""

    key: str
    log_likelihood: float  # nats, summed over text_ids
    context_ids: tuple[int, ...]  # as used, with the token that begins a text, if there is one
    text_ids: tuple[int, ...]
    predicted_ids: tuple[int, ...]  # the likeliest token at the place of each of text_ids
    predicted: str  # those, decoded; empty unless the continuation shows them
    is_truncated: bool = False  # the beginning of the context was dropped
    n_windows: int = 1


@dataclass(frozen=True)
class LikelihoodFailure:
    """Why a continuation has no log-likelihood: a fact about it, not a bug."""

    key: str
    reason: UnscorableReason
    detail: str


class LikelihoodModel(Protocol):
    """Computes log-likelihoods as entrants."""

    def log_likelihoods(
        self, continuations: Sequence[Continuation]
    ) -> Iterator[tuple[ContinuationLikelihood | LikelihoodFailure, ...]]:
        """Yield the results of each finished batch, in any order, each continuation exactly once.

        Continuations of one context are computed together.
        """


@dataclass(frozen=True)
class Reply:
    """A judge's raw reply to a query."""

    query_key: Digest
    text: str
    stop_reason: str
    model: str
    usage: Usage | None = None
    refused: Sequence[ParameterRefused] = field(default=(), compare=False)
    """What the server was found not to take, if it is news."""


Then: TypeAlias = Literal["go on", "ask again", "wait", "stop"]
"""What follows from a request without an answer: nothing for others; it was not sent, and is sent
again; the server takes none at present, or not in this form; no other request can succeed."""


@dataclass(frozen=True)
class NoReply:
    """Why a request has no answer, whether it may have been billed, and what follows from it."""

    query_key: Digest  # or the response key, if an entrant was asked
    reason: Literal["errored", "rejected", "expired", "canceled"]
    detail: str
    fate: Fate = "refused"
    then: Then = field(default="go on", compare=False)
    error: TourneyError | None = field(default=None, compare=False)
    """What is wrong, if it is not the request: raised at a stop, or when patience ends."""
    asked_s: float | None = field(default=None, compare=False)  # the wait that the server asks for
    is_certain: bool = field(default=True, compare=False)
    """False: a stop or a rejection whose cause may be a server that answers others."""
    refused: Sequence[ParameterRefused] = field(default=(), compare=False)
    """What the server was found not to take, if it is news."""


Answer: TypeAlias = Reply | NoReply


@dataclass(frozen=True)
class Host:
    """Who answers requests, one thread each."""

    name: str  # in messages
    n_at_a_time: int  # requests under way, at most
    timeout_s: float  # of one request


class Judge(Protocol):
    """Answers one query while the process waits; threads share it."""

    @property
    def host(self) -> Host:
        """Who is asked."""

    def ask(self, query: JudgeQuery) -> Answer:
        """Send a query once, and return what became of it."""


@runtime_checkable
class LocalJudge(Protocol):
    """Answers queries on this machine, many together."""

    @property
    def n_together(self) -> int:
        """How many queries to ask together."""

    def answers(self, queries: Sequence[JudgeQuery], stops: Event) -> Iterator[tuple[Answer, ...]]:
        """Yield answers in groups as they come, in any order, one for each query.

        Once `stops` is set, the others may be left unanswered.
        """


class Responder(Protocol):
    """Answers one entrant's tasks through a server; threads share it."""

    @property
    def host(self) -> Host:
        """Who is asked."""

    @property
    def url(self) -> str:
        """The server's address; entrants at the same one share its limits."""

    def facts(self) -> ServerFacts | None:
        """Return what the server says of itself, asking it free of charge; None: nothing."""

    def n_input_at_most(self, task: GenerationTask) -> int:
        """Return an upper bound on the tokens of a task's request."""

    def ask(self, task: GenerationTask) -> GeneratedText | GenerationFailure | NoReply:
        """Send a task once, and return what became of it."""


ResponderOf: TypeAlias = Callable[[Entrant, Sequence[ParameterRefused]], Responder]
"""Returns who answers for an entrant, given what servers were found not to take."""

JudgeOf: TypeAlias = Callable[[JudgeSettings, Sequence[ParameterRefused]], Judge | LocalJudge]
"""Returns a judge, given what servers were found not to take."""


@dataclass(frozen=True)
class BatchState:
    """A batch's status at the provider; the counts are zero until it has ended.

    A provider's counts may be missing or wrong: what is read counts.
    """

    provider_batch_id: str
    created_at: datetime
    expires_at: datetime
    has_ended: bool
    n_queries: int
    n_succeeded: int = 0
    n_errored: int = 0
    n_canceled: int = 0
    n_expired: int = 0
    n_results: int | None = None  # that can be read once it has ended; None: it does not say
    has_results: bool = True  # False: deleted, or too old for the provider to keep
    queries_digest: Digest | None = None  # None: only the results tell which queries it has
    failure: str | None = None  # why the provider did nothing on it, and bills nothing


BatchAnswer: TypeAlias = Answer | GeneratedText | GenerationFailure
"""What becomes of a request in a batch: to a judge, or to an entrant."""


def key_of(each: JudgeQuery | GenerationTask | BatchAnswer) -> Digest:
    """Return what identifies a request, of the request or of what became of it."""
    if isinstance(each, GenerationTask | GeneratedText | GenerationFailure):
        return each.response_key
    return each.query_key


_Request_contra = TypeVar("_Request_contra", contravariant=True)
_Answer_co = TypeVar("_Answer_co", covariant=True)


class Batches(Protocol[_Request_contra, _Answer_co]):
    """Answers requests of a judge or of an entrant in batches, which go on without this process.

    Every method but `create` is safe to repeat, and repeats what failed for a while by itself. Each
    raises `NoCredentials` without a valid key; `NotAnswering` if the provider cannot be reached or
    has a fault of its own; and another `ProviderError` for what cannot pass.
    """

    def create(self, requests: Sequence[_Request_contra], /) -> BatchState:
        """Send a batch, at most once.

        Raises:
            BatchRefused: The provider says that it took none.
            BatchBusy: It takes none at present.
            BatchUncertain: No answer came, or one that says nothing: the batch may exist.
            SpendLimitReached: The provider's spend limit is reached.
        """

    def n_bytes(self, request: _Request_contra, /) -> int:
        """Return how many bytes a request adds to a batch."""

    def retrieve(self, provider_batch_id: str) -> BatchState:
        """Return a batch's status."""

    def now(self) -> datetime | None:
        """Return the time by the provider's clock; None if it does not tell it now.

        Raises:
            TourneyError: It refuses to list batches, so nobody could tell whether it took one.
        """

    def created_since(self, moment: datetime) -> Iterator[BatchState]:
        """Yield the batches created at or after a moment, by its clock; the newest first."""

    def results(self, provider_batch_id: str) -> Iterator[_Answer_co]:
        """Yield the answers in an ended batch's results, in any order, as one download has them.

        A download may lack some: cut off without a sign, or a web page in its place; a provider's
        fault may add others.

        Raises:
            NotAnswering: The download broke off.
            ResultsLost: The provider keeps them no longer.
        """

    def cancel(self, provider_batch_id: str) -> BatchState:
        """Stop a batch; what is answered already is billed and kept."""


BatchJudge: TypeAlias = Batches[JudgeQuery, Answer]
BatchResponder: TypeAlias = Batches[GenerationTask, GeneratedText | GenerationFailure | NoReply]
BatchJudgeOf: TypeAlias = Callable[[JudgeSettings], BatchJudge]
"""Returns the port of a judge, the same one each time: each judge may have its own provider."""
BatchResponderOf: TypeAlias = Callable[[Entrant], BatchResponder]
"""Likewise, of an entrant."""


TokenCounter: TypeAlias = Callable[[Sequence[JudgeQuery]], Mapping[Digest, int]]
"""Counts the input tokens of queries, cached ones included, by query key, free of charge.

It raises NoCredentials without a key or if the provider refuses it, and ProviderError if the
provider keeps failing.
"""

OnProgress: TypeAlias = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and the total."""


def no_progress(what: str, done: int, total: int) -> None:
    """Ignore progress."""


Tell: TypeAlias = Callable[[str], None]
"""Shows a line about the work."""

Confirm: TypeAlias = Callable[[str], bool]
"""Asks a question, and returns whether the answer was yes."""


class Console(NamedTuple):
    """How a use case talks to the user."""

    tell: Tell
    confirm: Confirm | None  # None: there is no terminal to answer at
    on_progress: OnProgress


class Backends(Protocol):
    """Makes generators and judges, each only once it is needed."""

    def generator(self, billing: Billing) -> Generator:
        """Return the generator of all entrants; `billing` records requests to endpoints."""

    def judge(
        self, judge: JudgeSettings, refused: Sequence[ParameterRefused] = ()
    ) -> Judge | LocalJudge:
        """Return a judge that answers while the process waits; NoCredentials if it needs a key.

        Args:
            judge: Its settings.
            refused: What servers were found not to take.
        """

    def batch_judge(
        self, judge: JudgeSettings, refused: Sequence[ParameterRefused] = ()
    ) -> BatchJudge:
        """Return a judge that answers in batches, likewise."""

    def batch_responder(self, entrant: Entrant) -> BatchResponder:
        """Return what answers for an entrant in batches, likewise."""
