"""Builders of evaluations: a plan, and what was observed on its samples."""

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from ledger.events.evaluations import (
    AnswerObserved,
    Choice,
    ChoicesObserved,
    DocumentObserved,
    EvaluationCompleted,
    EvaluationItem,
    EvaluationPlanned,
    ItemRegistered,
    Observation,
    PredictionObserved,
    PromptItem,
    SampleObserved,
    SampleUnscorable,
    item_digest,
)
from ledger.events.registration import EntrantRegistered, Reference
from ledger.events.registry import Event
from ledger.identity import EntrantId
from projections.evaluations.state import EvaluationRun, evaluations_of
from projections.fold import fold
from tests.support.builders import events
from tests.support.builders.events import STREAM, key, recorded


def plan(entrant: str = "base", n_items: int = 4, **fields: object) -> EvaluationPlanned:
    """Return a plan of items 0, 1 ...; without more fields of a rollout."""
    event = EvaluationPlanned(
        number=1,
        run_key=key(f"run of {entrant}"),
        entrant=Reference(label=entrant, digest=events.entrant(entrant).content_digest),
        evaluation="recall",
        kind="rollout",
        higher_is_better=True,
        settings="{}",
        scorer=key("code"),
        items=tuple(item(n).item for n in range(n_items)),
        n_samples=1,
        n_available=n_items,
    )
    return replace(event, **fields)


def item(n: int, asked: EvaluationItem | None = None) -> ItemRegistered:
    """Return the registration of an item; without more that of a question."""
    asked = asked or PromptItem(prompt=f"Which is number {n}?", expected="aspirin")
    return ItemRegistered(item=item_digest(asked.content, 1), copy=1, asked=asked)


def registrations(planned: EvaluationPlanned) -> tuple[Event, ...]:
    """Return the registrations of the entrant and of the items of a plan of this builder."""
    who = events.entrant(planned.entrant.label)
    items = (item(n) for n in range(len(planned.items)))
    return (EntrantRegistered(digest=who.content_digest, entrant=who), *items)


def observed(
    planned: EvaluationPlanned, observations: Iterable[Observation], *, start: int = 0
) -> tuple[SampleObserved, ...]:
    """Return what was observed on the samples of a plan, in order, from one of them on."""
    return tuple(
        SampleObserved(
            run_key=planned.run_key,
            item=planned.items[place // planned.n_samples],
            sample=place % planned.n_samples,
            label=f"{planned.evaluation}[{place // planned.n_samples}]",
            cluster=key(f"cluster {place // planned.n_samples}"),
            observation=each,
        )
        for place, each in enumerate(observations, start)
    )


def unscorable(planned: EvaluationPlanned, n: int = 0) -> SampleUnscorable:
    """Return that the first sample of an item of a plan was given up."""
    return SampleUnscorable(
        run_key=planned.run_key,
        item=planned.items[n],
        sample=0,
        label=f"{planned.evaluation}[{n}]",
        reason="too_long",
        detail="4,100 tokens, at most 4,096",
    )


def completed(
    planned: EvaluationPlanned, n_observed: int, n_unscorable: int = 0
) -> EvaluationCompleted:
    """Return that a run is over."""
    return EvaluationCompleted(
        entrant=EntrantId(planned.entrant.label),
        evaluation=planned.evaluation,
        number=planned.number,
        n_observed=n_observed,
        n_unscorable=n_unscorable,
    )


def answer(score: float | None = 1.0, cleaned: str = "aspirin", **fields: object) -> AnswerObserved:
    """Return an answer where aspirin was expected."""
    event = AnswerObserved(
        text=cleaned,
        cleaned=cleaned,
        expected="aspirin",
        score=score,
        seed=None,
        finish_reason="stop",
        n_prompt_tokens=3,
        n_generated_tokens=2,
        is_truncated=False,
    )
    return replace(event, **fields)


def choice(log_likelihood: float, text: str = "yes", n_tokens: int = 1, **fields: object) -> Choice:
    """Return how likely a continuation is."""
    event = Choice(
        log_likelihood=log_likelihood,
        n_tokens=n_tokens,
        n_bytes=len(text.encode()),
        n_chars=len(text),
        is_greedy=False,
    )
    return replace(event, **fields)


def choices(*weighed: Choice, correct: int = 0, is_truncated: bool = False) -> ChoicesObserved:
    """Return continuations of a context."""
    return ChoicesObserved(
        choices=weighed, correct=correct, n_context_tokens=5, is_truncated=is_truncated
    )


def document(
    log_likelihood: float, n_tokens: int = 2, n_bytes: int = 8, n_words: int = 1
) -> DocumentObserved:
    """Return a document that was read in one window."""
    return DocumentObserved(
        log_likelihood=log_likelihood,
        n_tokens=n_tokens,
        n_bytes=n_bytes,
        n_words=n_words,
        n_windows=1,
    )


def prediction(
    predicted: Sequence[int], target: Sequence[int], score: float | None = 1.0
) -> PredictionObserved:
    """Return the tokens that were predicted where others may have been true."""
    return PredictionObserved(
        text="abab",
        predicted=tuple(predicted),
        target=tuple(target),
        prediction="abab",
        cleaned="abab",
        score=score,
    )


def run_of(planned: EvaluationPlanned, *after: Event) -> EvaluationRun:
    """Return what became of a plan after events."""
    known = fold(evaluations_of(STREAM), recorded([planned, *after]))
    return known.run(planned)
