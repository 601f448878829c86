"""Events of evaluations: what is asked, and what comes of it sample by sample.

Every metric is computed from them.
"""

from typing import Literal

from msgspec import UNSET, UnsetType

from ledger.events.registration import Reference
from ledger.events.responses import FinishReason
from ledger.events.values import (
    REDACTED,
    Count,
    Fact,
    FilledText,
    Ordinal,
    Positive,
    Seed32,
    Value,
)
from ledger.identity import Digest, EntrantId, Json, digest_of

EvaluationKind = Literal["rollout", "encoding", "perplexity", "comparison"]
UnscorableReason = Literal[
    "too_long", "empty", "not_finite", "out_of_memory", "rejected", "refused"
]


def run_key(entrant_digest: Digest, settings: str) -> Digest:
    """Identify a run by everything that determines an observation, except the item.

    So a plan of more items reuses the samples of a plan of fewer.

    Args:
        entrant_digest: Of the entrant, with the evaluation's decoding settings.
        settings: Canonical JSON of everything else.
    """
    return digest_of([entrant_digest, settings])


def item_digest(content: Json, copy: int) -> Digest:
    """Identify an item by its content, and the second and further items of that content.

    Args:
        content: Of the item, as JSON.
        copy: 1, 2 ... among the items of an evaluation that have the content.
    """
    return digest_of(content if copy == 1 else [content, copy])


def scoring_digest(judge_digest: Digest, rubric_digest: Digest) -> Digest:
    """Identify a judge with the rubric that it scores answers by."""
    return digest_of([judge_digest, rubric_digest])


class EvaluationFact(Fact, frozen=True):
    """An event of an evaluation."""


class PromptItem(Value, frozen=True, kw_only=True, tag="prompt"):
    """A prompt, and the expected answer."""

    prompt: str
    expected: str

    @property
    def content(self) -> Json:
        """What identifies it."""
        return [self.prompt, self.expected]


class ChoicesItem(Value, frozen=True, kw_only=True, tag="choices"):
    """A context, its continuations, and the index of the right one."""

    context: str
    choices: tuple[str, ...]
    correct: Count

    @property
    def content(self) -> Json:
        """What identifies it."""
        return [self.context, [*self.choices], self.correct]


class TextItem(Value, frozen=True, kw_only=True, tag="text"):
    """A text that is read without a context."""

    text: str

    @property
    def content(self) -> Json:
        """What identifies it."""
        return self.text


EvaluationItem = PromptItem | ChoicesItem | TextItem


class ItemRegistered(EvaluationFact, frozen=True, kw_only=True):
    """An item of an evaluation was registered, whole; plans and samples refer to it.

    An item is registered once in a ledger, whichever evaluations, entrants and tournaments share
    it.
    """

    key_fields = ("item",)
    item: Digest
    copy: Ordinal  # 1, 2 ... of the items of this content
    asked: EvaluationItem

    @property
    def is_sound(self) -> bool:
        """Say whether its content is the one that it is named by."""
        return self.item == item_digest(self.asked.content, self.copy)


class ScoredBy(Value, frozen=True):
    """A judge that scores answers, and the rubric that it scores by, as registered."""

    judge: Reference
    rubric: Reference
    scoring: Digest  # of what determines the scores of an answer, see `scoring_digest`


class WayOfAsking(Value, frozen=True, kw_only=True):
    """How an evaluation asks its entrant, whole: a run is found by the digest of it."""

    chat: Literal["turns", "one-turn", "none"]  # none: plain text
    system: str | None = None  # the system prompt of the chat, whoever sets it
    temperature: Positive | None = None  # None: greedy, or nothing is generated
    max_new_tokens: Ordinal | None = None  # of an answer


class TaskReference(Value, frozen=True, kw_only=True):
    """A task of lm-evaluation-harness, or a group of them."""

    name: FilledText
    version: FilledText  # of lm-evaluation-harness
    digest: Digest  # of the task's configuration and its code


class EvaluationPlanned(EvaluationFact, frozen=True, kw_only=True):
    """An evaluation of an entrant on some items was planned.

    The same run may be planned under other labels; its samples are observed once. Of plans under
    the same labels the newest holds.
    """

    number: Ordinal  # 1, 2 ... of the plans under these labels
    run_key: Digest
    entrant: Reference  # as registered
    evaluation: FilledText
    kind: EvaluationKind
    higher_is_better: bool  # of its own score
    settings: str  # canonical JSON
    scorer: Digest | None  # of the code that scores; None: the metrics alone do
    items: tuple[Digest, ...]
    n_samples: Ordinal  # of each item
    n_available: Count  # items that the evaluation has; fewer may be planned
    scored_by: ScoredBy | UnsetType = UNSET  # not stored where no judge scores the answers
    asking: WayOfAsking | UnsetType = UNSET  # plans made by earlier versions do not say
    task: TaskReference | UnsetType = UNSET  # not stored where lm-evaluation-harness has no part

    @property
    def natural_key(self) -> tuple[str, ...]:
        """An earlier plan may come back, so plans are numbered."""
        return (self.entrant.label, self.evaluation, str(self.number))


class Choice(Value, frozen=True, kw_only=True):
    """The log-likelihood of one continuation of a context."""

    log_likelihood: float  # nats, of all its tokens
    n_tokens: Ordinal
    n_bytes: Ordinal  # of its UTF-8
    n_chars: Ordinal
    is_greedy: bool  # each token is the likeliest
    unconditional: float | None = None  # log_likelihood after no context; None: not asked


class ChoicesObserved(Value, frozen=True, kw_only=True, tag="choices"):
    """The log-likelihoods of a context's continuations."""

    choices: tuple[Choice, ...]
    correct: Count  # index of the right one
    n_context_tokens: Count  # those that were read, of the longest
    is_truncated: bool  # of a context the beginning was left out


class DocumentObserved(Value, frozen=True, kw_only=True, tag="document"):
    """The log-likelihood of a document, in windows where it is long; each token counts once."""

    log_likelihood: float  # nats
    n_tokens: Ordinal
    n_bytes: Ordinal
    n_words: Count
    n_windows: Ordinal


class AnswerObserved(Value, frozen=True, kw_only=True, tag="answer"):
    """An entrant's answer to a prompt."""

    text: str
    cleaned: str  # by the evaluation, before it was compared
    expected: str
    score: float | None  # by the evaluation; None: it needs all samples, see EvaluationCompleted
    seed: Seed32 | None  # None: nothing was drawn
    finish_reason: FinishReason
    n_prompt_tokens: Count | None  # None: a server does not say it, or says what cannot be
    n_generated_tokens: Count | None  # likewise
    is_truncated: bool  # of the prompt something was left out

    @property
    def is_redacted(self) -> bool:
        """Say whether the texts were removed; the score remains."""
        return self.expected == REDACTED


class PredictionObserved(Value, frozen=True, kw_only=True, tag="prediction"):
    """The next-token predictions on a text, each given the true tokens before it."""

    text: str
    predicted: tuple[Count, ...]  # the likeliest token ids
    target: tuple[Count, ...]  # the true ones
    prediction: str  # what was predicted, decoded
    cleaned: str  # by the evaluation, before it was compared
    score: float | None  # by the evaluation; None: as above

    @property
    def is_redacted(self) -> bool:
        """Say whether the texts and tokens were removed; the score remains."""
        return self.text == REDACTED


Observation = ChoicesObserved | DocumentObserved | AnswerObserved | PredictionObserved


class SampleScore(Value, frozen=True, kw_only=True):
    """How a sample was scored by the code of its evaluation."""

    item: Digest
    sample: Count
    cleaned: str
    score: float


class SampleObserved(EvaluationFact, frozen=True, kw_only=True):
    """A sample was observed: raw facts, from which metrics are computed."""

    key_fields = ("run_key", "item", "sample")  # a sample is observed once
    run_key: Digest
    item: Digest
    sample: Count
    label: str  # where the item comes from, for people
    cluster: Digest  # samples of one cluster share a prompt, and are not independent
    observation: Observation

    @property
    def scored(self) -> SampleScore | None:
        """Its score by its evaluation's code; None if it has none, or none yet."""
        match self.observation:
            case (
                AnswerObserved(cleaned=cleaned, score=float(score))
                | PredictionObserved(cleaned=cleaned, score=float(score))
            ):
                return SampleScore(item=self.item, sample=self.sample, cleaned=cleaned, score=score)
            case _:
                return None


class SampleName(Value, frozen=True):
    """One sample of an item in a run."""

    run_key: Digest
    item: Digest
    sample: Count


class SampleUnscorable(EvaluationFact, frozen=True, kw_only=True):
    """A sample could not be observed; this is not a wrong answer."""

    key_fields = ("run_key", "item", "sample")  # a sample is unscorable once
    run_key: Digest
    item: Digest
    sample: Count
    label: str
    reason: UnscorableReason
    detail: str


class TaskMetric(Value, frozen=True, kw_only=True):
    """A metric of a task or a group, as lm-evaluation-harness computes it."""

    name: FilledText  # `acc`; of a filter with a name `exact_match,strict-match`
    value: float | None  # None: it is no finite number
    standard_error: float | None  # None: it gives none
    higher_is_better: bool
    values: tuple[float | None, ...] = ()  # of each document, if the value is their mean


class TaskResults(Value, frozen=True, kw_only=True):
    """What lm-evaluation-harness makes of the answers to a task or a group."""

    n_documents: Count
    documents: tuple[Count, ...]  # their numbers in the task's data; none of a group
    metrics: tuple[TaskMetric, ...]

    def of_documents(self, metric: TaskMetric) -> dict[int, float]:
        """Return a metric's values by document; none if it is no mean of them."""
        values = dict(zip(self.documents, metric.values, strict=False))
        return {document: value for document, value in values.items() if value is not None}


class EvaluationCompleted(EvaluationFact, frozen=True, kw_only=True):
    """Every sample of a plan was observed or found unscorable, and scored by the plan's code."""

    key_fields = ("entrant", "evaluation", "number")  # a plan is completed once
    entrant: EntrantId
    evaluation: FilledText
    number: Ordinal  # of the plan under these labels
    n_observed: Count
    n_unscorable: Count
    scores: tuple[SampleScore, ...] = ()  # those that are not as recorded with the observation
    results: TaskResults | UnsetType = UNSET  # not stored where lm-evaluation-harness has no part
