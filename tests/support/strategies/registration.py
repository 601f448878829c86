"""Strategies of the events of registration: what a tournament is made of."""

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from msgspec import UNSET

from ledger.events.options import EntrantOptions
from ledger.events.registration import (
    Adapter,
    Entrant,
    EntrantRegistered,
    Hydra,
    JudgeRegistered,
    JudgeSettings,
    Prompt,
    PromptRegistered,
    Reference,
    Rubric,
    RubricRegistered,
    ScoreScale,
    TournamentOpened,
)
from tests.support.strategies.values import (
    COUNTS,
    FINITE,
    LABELS,
    ORDINALS,
    POSITIVE,
    TEXTS,
    built,
    digests,
    tuples,
)


def tournament_opened() -> SearchStrategy[TournamentOpened]:
    """Return openings; what they name need not be registered."""
    references = tuples(built(Reference, label=LABELS, digest=digests()))
    return built(
        TournamentOpened,
        opening=ORDINALS,
        configuration_digest=digests(),
        entrants=references,
        prompts=references,
        rubrics=references,
        judges=references,
        generation_seed=COUNTS,
        versions=tuples(st.tuples(LABELS, TEXTS)),
    )


def prompt_registered() -> SearchStrategy[PromptRegistered]:
    """Return registrations of prompts, under their true digests."""
    prompts = built(
        Prompt,
        prompt_id=LABELS,
        text=st.text(min_size=1),
    )
    return prompts.map(lambda each: PromptRegistered(prompt=each, digest=each.content_digest))


def rubric_registered() -> SearchStrategy[RubricRegistered]:
    """Return registrations of rubrics, under their true digests."""
    rubrics = built(Rubric, dimension=LABELS, scale=st.just(UNSET) | scales())
    return rubrics.map(lambda each: RubricRegistered(rubric=each, digest=each.content_digest))


def scales() -> SearchStrategy[ScoreScale]:
    """Return scales of scores."""
    return built(ScoreScale, limits=st.none() | st.just((1.0, 10.0)))


def entrant_registered() -> SearchStrategy[EntrantRegistered]:
    """Return registrations of entrants, under their true digests."""
    entrants = built(
        Entrant,
        entrant_id=LABELS,
        weights_digest=digests(),
        adapters=tuples(adapters()),
        temperature=st.none() | POSITIVE,
        max_new_tokens=ORDINALS,
        hydra=st.none() | hydras(),
        step=st.none() | COUNTS,
        options=st.just(UNSET) | entrant_options(),
        sampler=st.none() | ORDINALS,
    )
    return entrants.map(lambda each: EntrantRegistered(entrant=each, digest=each.content_digest))


def entrant_options() -> SearchStrategy[EntrantOptions]:
    """Return how entrants are prompted and sampled, by settings of which some are left out."""
    return built(
        EntrantOptions,
        top_p=st.none() | st.just(0.5),
        top_k=st.none() | ORDINALS,
        min_p=st.none() | st.just(0.25),
        repetition_penalty=st.none() | POSITIVE,
    )


def adapters() -> SearchStrategy[Adapter]:
    """Return LoRA adapters."""
    return built(Adapter, digest=digests())


def hydras() -> SearchStrategy[Hydra]:
    """Return the heads of a Hydra, as many as you like."""
    return built(
        Hydra,
        heads_depth=ORDINALS,
        security=tuples(adapters()),
        robustness=tuples(adapters()),
        uncertainty=st.none() | adapters(),
        beta=POSITIVE,
    )


def judge_registered() -> SearchStrategy[JudgeRegistered]:
    """Return registrations of judges, under their true digests."""
    judges = built(
        JudgeSettings,
        judge_id=LABELS,
        parameters=tuples(st.tuples(LABELS, TEXTS | FINITE)),
    )
    return judges.map(lambda each: JudgeRegistered(judge=each, digest=each.content_digest))
