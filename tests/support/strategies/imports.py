"""Strategies of what is published, merged and imported."""

from typing import Final, get_args

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from ledger.events.imports import (
    MAX_WEIGHT,
    MIN_WEIGHT,
    BattlesImported,
    CodedColumn,
    ImportedRating,
    JurorSaid,
    JurorVote,
    LedgerMerged,
    RatingsImported,
    SampleDesign,
    Source,
    VoteSample,
    Winner,
    encode_cells,
)
from ledger.events.ratings import (
    ArtifactDigest,
    BradleyTerryParameters,
    EloParameters,
    Publication,
    PublicationTerms,
    RatingsPublished,
)
from ledger.events.redaction import EventRedacted
from ledger.events.values import MAX_LEVEL, MIN_LEVEL
from tests.support.strategies.values import (
    COUNTS,
    FINITE,
    LABELS,
    ORDINALS,
    RATINGS,
    REPEATS,
    SPREADS,
    STEPS,
    TEXTS,
    _Element,
    built,
    digests,
    moments,
    tuples,
)


def ratings_published() -> SearchStrategy[RatingsPublished]:
    """Return publications of ratings; they need not be true."""
    elo = built(
        EloParameters,
        k=STEPS,
        k_sweep=tuples(STEPS),
        initial_rating=RATINGS,
        permutations=REPEATS,
        seed=COUNTS,
        bootstraps=st.just(0) | REPEATS,
    )
    bradley_terry = built(
        BradleyTerryParameters,
        prior_sd=st.none() | SPREADS,
        anchor=st.none() | LABELS,
        anchor_rating=RATINGS,
        level=st.floats(min_value=MIN_LEVEL, max_value=MAX_LEVEL),
        resamples=REPEATS,
        seed=COUNTS,
    )
    terms = built(
        PublicationTerms,
        judge=LABELS,
        elo=elo,
        entrants=tuples(LABELS),
        prompts=tuples(LABELS),
        bradley_terry=bradley_terry,
    )
    publications = built(
        Publication,
        terms=terms,
        started_at=moments(),
        as_of=ORDINALS,
        head=digests(),
    )
    artifacts = tuples(built(ArtifactDigest, digest=digests()))
    return built(RatingsPublished, publication=publications, artifacts=artifacts)


def ledger_merged() -> SearchStrategy[LedgerMerged]:
    """Return merges of ledgers that need not exist."""
    return built(LedgerMerged, head=digests(), n_events=ORDINALS, n_taken=ORDINALS)


def event_redacted() -> SearchStrategy[EventRedacted]:
    """Return redactions of events that need not exist."""
    ids = st.binary(min_size=16, max_size=16).map(bytes.hex)
    return built(EventRedacted, event_id=ids, digest=digests(), tombstone=digests(), why=LABELS)


LENGTHS: Final = st.integers(min_value=0, max_value=10**9)
JUROR_VOTES: Final = st.builds(JurorVote, LABELS, st.sampled_from(get_args(JurorSaid)))


@st.composite
def battles_imported(draw: DrawFn) -> BattlesImported:
    """Draw battles; who won and what was preferred need not go together."""
    entrants = tuple(draw(st.lists(LABELS, min_size=2, max_size=4, unique=True)))
    pair = st.permutations(entrants).map(lambda each: each[:2])
    a, b = zip(*draw(st.lists(pair, min_size=1, max_size=6)), strict=True)

    def column(cells: SearchStrategy[_Element]) -> CodedColumn[_Element]:
        return CodedColumn.of(draw(st.lists(cells, min_size=len(a), max_size=len(a))))

    return BattlesImported(
        file_digest=draw(digests()),
        format=draw(LABELS),
        mapping_version=draw(ORDINALS),
        chunk=draw(ORDINALS),
        n_skipped=draw(COUNTS),
        entrants=entrants,
        a=encode_cells(a, entrants),
        b=encode_cells(b, entrants),
        winners=column(st.sampled_from(get_args(Winner))),
        prefs=column(st.none() | st.floats(min_value=0, max_value=1)),
        prompts=column(st.none() | TEXTS),
        sources=column(st.sampled_from(get_args(Source))),
        judges=column(st.none() | TEXTS),
        weights=column(st.floats(min_value=MIN_WEIGHT, max_value=MAX_WEIGHT)),
        votes=column(tuples(JUROR_VOTES)),
        categories=column(st.sampled_from(((), ("math",), ("a b", "math")))),
        languages=column(st.none() | LABELS),
        lengths_a=column(st.none() | LENGTHS),
        lengths_b=column(st.none() | LENGTHS),
        drawn=draw(st.none() | vote_samples()) if len(a) == 1 else None,
    )


def vote_samples() -> SearchStrategy[VoteSample]:
    """Return how pairs were drawn to be voted on."""
    designs = st.sampled_from(get_args(SampleDesign))
    seeds = st.integers(min_value=0, max_value=2**32 - 1)
    return built(VoteSample, tournament=LABELS, dimension=LABELS, design=designs, seed=seeds)


def ratings_imported() -> SearchStrategy[RatingsImported]:
    """Return ratings of others."""
    ratings = built(
        ImportedRating,
        entrant=LABELS,
        rating=FINITE,
        ci_low=st.none() | FINITE,
        ci_high=st.none() | FINITE,
        n_battles=st.none() | COUNTS,
    )
    return built(
        RatingsImported,
        file_digest=digests(),
        format=LABELS,
        mapping_version=ORDINALS,
        n_bootstraps=st.none() | COUNTS,
        ratings=tuples(ratings),
    )
