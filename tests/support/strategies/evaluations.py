"""Strategies of the events of evaluations."""

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from msgspec import UNSET

from ledger.events.evaluations import (
    AnswerObserved,
    Choice,
    ChoicesItem,
    ChoicesObserved,
    DocumentObserved,
    EvaluationCompleted,
    EvaluationPlanned,
    ItemRegistered,
    Observation,
    PredictionObserved,
    PromptItem,
    SampleObserved,
    SampleScore,
    SampleUnscorable,
    ScoredBy,
    TaskMetric,
    TaskReference,
    TaskResults,
    TextItem,
    WayOfAsking,
    item_digest,
)
from ledger.events.registration import Reference
from ledger.identity import Digest, digest_of
from tests.support.strategies.values import (
    COUNTS,
    FEW,
    FINITE,
    LABELS,
    ORDINALS,
    POSITIVE,
    built,
    digests,
    tuples,
)


def evaluation_planned() -> SearchStrategy[EvaluationPlanned]:
    """Return plans of few runs: what is observed is mostly of a plan that is there."""
    return built(
        EvaluationPlanned,
        number=ORDINALS,
        run_key=run_keys(),
        entrant=built(Reference, label=LABELS, digest=digests()),
        scorer=st.none() | digests(),
        evaluation=LABELS,
        items=st.lists(items(), unique=True).map(tuple),
        n_samples=st.integers(min_value=1, max_value=3),
        n_available=COUNTS,
        scored_by=st.just(UNSET) | scored_by(),
        asking=st.just(UNSET) | asking(),
        task=st.just(UNSET) | built(TaskReference, name=LABELS, version=LABELS, digest=digests()),
    )


def asking() -> SearchStrategy[WayOfAsking]:
    """Return ways to ask."""
    limits = {"temperature": st.none() | POSITIVE, "max_new_tokens": st.none() | ORDINALS}
    return built(WayOfAsking, **limits)


def scored_by() -> SearchStrategy[ScoredBy]:
    """Return judges and rubrics that need not be registered."""
    reference = built(Reference, label=LABELS, digest=digests())
    return built(ScoredBy, judge=reference, rubric=reference, scoring=digests())


def run_keys() -> SearchStrategy[Digest]:
    """Return the keys of few runs."""
    return st.sampled_from([digest_of(f"run {n}") for n in range(2)])


def items() -> SearchStrategy[Digest]:
    """Return few items."""
    return st.sampled_from([digest_of(f"item {n}") for n in range(3)])


def item_registered() -> SearchStrategy[ItemRegistered]:
    """Return registrations of items, under their true digests."""
    asked = st.one_of(
        built(PromptItem),
        built(ChoicesItem, correct=COUNTS, choices=tuples(st.text())),
        built(TextItem),
    )
    return st.builds(
        lambda each, copy: ItemRegistered(
            item=item_digest(each.content, copy), copy=copy, asked=each
        ),
        asked,
        ORDINALS,
    )


def observations() -> SearchStrategy[Observation]:
    """Return what is observed on samples of every kind; it need not hang together."""
    choices = built(
        Choice,
        log_likelihood=FINITE,
        n_tokens=ORDINALS,
        n_bytes=ORDINALS,
        n_chars=ORDINALS,
        unconditional=st.none() | FINITE,
    )
    counts = dict.fromkeys(("n_prompt_tokens", "n_generated_tokens"), COUNTS)
    return st.one_of(
        built(ChoicesObserved, choices=tuples(choices), correct=COUNTS, n_context_tokens=COUNTS),
        built(
            DocumentObserved,
            log_likelihood=FINITE,
            n_tokens=ORDINALS,
            n_bytes=ORDINALS,
            n_words=COUNTS,
            n_windows=ORDINALS,
        ),
        built(
            AnswerObserved,
            score=st.none() | FINITE,
            seed=st.none() | st.integers(min_value=0, max_value=2**32 - 1),
            **counts,
        ),
        built(
            PredictionObserved,
            predicted=tuples(COUNTS),
            target=tuples(COUNTS),
            score=st.none() | FINITE,
        ),
    )


def sample_observed() -> SearchStrategy[SampleObserved]:
    """Return observations; their plans need not be there."""
    return built(
        SampleObserved,
        run_key=run_keys(),
        item=items(),
        sample=FEW,
        cluster=digests(),
        observation=observations(),
    )


def sample_unscorable() -> SearchStrategy[SampleUnscorable]:
    """Return samples that were given up; their plans need not be there."""
    return built(SampleUnscorable, run_key=run_keys(), item=items(), sample=FEW)


def evaluation_completed() -> SearchStrategy[EvaluationCompleted]:
    """Return ends of runs; they need not be true."""
    return built(
        EvaluationCompleted,
        entrant=LABELS,
        evaluation=LABELS,
        number=ORDINALS,
        n_observed=COUNTS,
        n_unscorable=COUNTS,
        scores=tuples(built(SampleScore, item=items(), sample=FEW, score=FINITE)),
        results=st.just(UNSET) | task_results(),
    )


def task_results() -> SearchStrategy[TaskResults]:
    """Return metrics of lm-evaluation-harness; they need not be true."""
    number = st.none() | FINITE
    metric = built(
        TaskMetric, name=LABELS, value=number, standard_error=number, values=tuples(number)
    )
    return built(TaskResults, n_documents=COUNTS, documents=tuples(COUNTS), metrics=tuples(metric))
