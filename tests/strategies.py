"""Hypothesis strategies: any event of a type, and any history that a ledger takes."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, TypeVar, cast, get_args

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy
from msgspec.structs import fields

from ledger.events.evaluations import (
    AnswerObserved,
    Choice,
    ChoicesObserved,
    DocumentObserved,
    EvaluationCompleted,
    EvaluationPlanned,
    Observation,
    PredictionObserved,
    SampleObserved,
    SampleUnscorable,
)
from ledger.events.imports import (
    BattlesImported,
    CodedColumn,
    ImportedRating,
    LedgerMerged,
    RatingsImported,
    Source,
    Winner,
    encode_cells,
)
from ledger.events.judging import (
    JudgeBatchEnded,
    JudgeBatchNotCreated,
    JudgeBatchPlanned,
    JudgeBatchSubmitted,
    JudgeQueryFailed,
    JudgeQuerySubmitted,
    PairReconciled,
    VerdictReceived,
)
from ledger.events.ratings import (
    ArtifactDigest,
    BradleyTerryParameters,
    EloParameters,
    Publication,
    PublicationTerms,
    RatingsPublished,
)
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
    TournamentOpened,
)
from ledger.events.registry import Event
from ledger.events.responses import Diagnostics, ResponseFailed, ResponseGenerated
from ledger.events.values import (
    MAX_LEVEL,
    MAX_POINTS,
    MAX_REPEATS,
    MIN_LEVEL,
    MIN_SPREAD,
    Price,
    Usage,
    Value,
    type_name,
)
from ledger.identity import Digest, digest_of

_Element = TypeVar("_Element")
_Model = TypeVar("_Model", bound=Value)

_TEXTS: Final = st.text(max_size=20)
_LABELS: Final = st.text(min_size=1, max_size=8)
_COUNTS: Final = st.integers(min_value=0)
_FEW: Final = st.integers(min_value=0, max_value=2)
_ORDINALS: Final = st.integers(min_value=1)
_FINITE: Final = st.floats(allow_nan=False, allow_infinity=False)
_DOLLARS: Final = st.floats(min_value=0, max_value=1e9)
_POSITIVE: Final = st.floats(min_value=0, exclude_min=True, allow_infinity=False)
_STEPS: Final = st.floats(min_value=0, exclude_min=True, max_value=MAX_POINTS)
_SPREADS: Final = st.floats(min_value=MIN_SPREAD, max_value=MAX_POINTS)
_RATINGS: Final = st.floats(min_value=-MAX_POINTS, max_value=MAX_POINTS)
_REPEATS: Final = st.integers(min_value=1, max_value=MAX_REPEATS)


def _tuples(of: SearchStrategy[_Element]) -> SearchStrategy[tuple[_Element, ...]]:
    return st.lists(of, max_size=3).map(tuple)


def _built(model: type[_Model], **known: SearchStrategy[Any]) -> SearchStrategy[_Model]:
    """Fill the fields that are not named from their annotations, which say no limits."""
    inferred = {
        field.name: st.from_type(cast("type[Any]", field.type))
        for field in fields(model)
        if field.name not in known
    }
    return st.builds(model, **inferred, **known)


def events() -> SearchStrategy[Event]:
    """Return events of any type."""
    return st.one_of(*BY_TYPE.values())


def histories(max_size: int = 8) -> SearchStrategy[list[Event]]:
    """Return events that one stream takes: no two under the same key."""
    return st.lists(
        events(),
        max_size=max_size,
        unique_by=lambda event: (type_name(event), tuple(event.natural_key)),
    )


def digests() -> SearchStrategy[Digest]:
    """Return digests of this and that; two are often the same."""
    return st.integers(min_value=0, max_value=99).map(digest_of)


def batch_keys() -> SearchStrategy[Digest]:
    """Return the keys of few batches: what is said of one is mostly about a plan that is there."""
    return st.sampled_from([digest_of(f"batch {n}") for n in range(3)])


def moments() -> SearchStrategy[datetime]:
    """Return times in UTC."""
    start = datetime(1970, 1, 1)  # noqa: DTZ001  # Hypothesis wants its limits naive
    return st.datetimes(min_value=start, timezones=st.just(UTC))


def tournament_opened() -> SearchStrategy[TournamentOpened]:
    """Return openings; what they name need not be registered."""
    references = _tuples(_built(Reference, label=_LABELS, digest=digests()))
    return _built(
        TournamentOpened,
        opening=_ORDINALS,
        configuration_digest=digests(),
        entrants=references,
        prompts=references,
        rubrics=references,
        judges=references,
        generation_seed=_COUNTS,
        versions=_tuples(st.tuples(_LABELS, _TEXTS)),
    )


def prompt_registered() -> SearchStrategy[PromptRegistered]:
    """Return registrations of prompts, under their true digests."""
    prompts = _built(
        Prompt,
        prompt_id=_LABELS,
        text=st.text(min_size=1),
    )
    return prompts.map(lambda each: PromptRegistered(prompt=each, digest=each.content_digest))


def rubric_registered() -> SearchStrategy[RubricRegistered]:
    """Return registrations of rubrics, under their true digests."""
    rubrics = _built(Rubric, dimension=_LABELS)
    return rubrics.map(lambda each: RubricRegistered(rubric=each, digest=each.content_digest))


def entrant_registered() -> SearchStrategy[EntrantRegistered]:
    """Return registrations of entrants, under their true digests."""
    entrants = _built(
        Entrant,
        entrant_id=_LABELS,
        weights_digest=digests(),
        adapters=_tuples(adapters()),
        temperature=st.none() | _POSITIVE,
        max_new_tokens=_ORDINALS,
        hydra=st.none() | hydras(),
    )
    return entrants.map(lambda each: EntrantRegistered(entrant=each, digest=each.content_digest))


def adapters() -> SearchStrategy[Adapter]:
    """Return LoRA adapters."""
    return _built(Adapter, digest=digests())


def hydras() -> SearchStrategy[Hydra]:
    """Return the heads of a Hydra, as many as you like."""
    return _built(
        Hydra,
        heads_depth=_ORDINALS,
        security=_tuples(adapters()),
        robustness=_tuples(adapters()),
        uncertainty=st.none() | adapters(),
        gamma=_ORDINALS,
        beta=_POSITIVE,
    )


def judge_registered() -> SearchStrategy[JudgeRegistered]:
    """Return registrations of judges, under their true digests."""
    judges = _built(
        JudgeSettings,
        judge_id=_LABELS,
        parameters=_tuples(st.tuples(_LABELS, _TEXTS | _FINITE)),
    )
    return judges.map(lambda each: JudgeRegistered(judge=each, digest=each.content_digest))


def response_generated() -> SearchStrategy[ResponseGenerated]:
    """Return responses."""
    return _built(
        ResponseGenerated,
        response_key=digests(),
        entrant_id=_LABELS,
        prompt_id=_LABELS,
        seed=st.integers(min_value=0, max_value=2**32 - 1),
        sample=_COUNTS,
        n_prompt_tokens=st.none() | _COUNTS,
        n_generated_tokens=_COUNTS,
        elapsed_s=st.none() | st.floats(min_value=0, allow_infinity=False),
        p_correct=st.none() | st.floats(min_value=0, max_value=1),
        diagnostics=st.none() | diagnostics(),
        imported_from=st.none() | digests(),
    )


def diagnostics() -> SearchStrategy[Diagnostics]:
    """Return how heads decided on a response; its lists need not be as long as each other."""
    counts = ("stability_radii", "resampled_at", "rejected_tokens", "validity_radii")
    floats = ("entropies", "stability_margins", "suppressions")
    return _built(
        Diagnostics,
        draft_head_idx=_COUNTS,
        **dict.fromkeys(counts, _tuples(_COUNTS)),
        **dict.fromkeys(floats, _tuples(_FINITE)),
    )


def response_failed() -> SearchStrategy[ResponseFailed]:
    """Return failures to respond."""
    return _built(
        ResponseFailed,
        response_key=digests(),
        entrant_id=_LABELS,
        prompt_id=_LABELS,
        usage=st.none() | usages(),
    )


def usages() -> SearchStrategy[Usage]:
    """Return counts of tokens."""
    counts = dict.fromkeys(Usage.__struct_fields__, _COUNTS)
    return _built(Usage, **counts)


def prices() -> SearchStrategy[Price]:
    """Return prices, of which some are nothing."""
    dollars = {name: _DOLLARS for name in Price.__struct_fields__ if name != "table"}
    return _built(Price, **dollars)


def judge_batch_planned() -> SearchStrategy[JudgeBatchPlanned]:
    """Return plans of batches; nothing need have come of them."""
    usd = {name: st.none() | _DOLLARS for name in ("expected_usd", "worst_usd", "cap_usd")}
    return _built(
        JudgeBatchPlanned,
        batch_key=batch_keys(),
        planned_at=moments(),
        number=_ORDINALS,
        judge=_built(Reference, label=_LABELS, digest=digests()),
        queries=_tuples(digests()),
        **usd,
    )


def judge_batch_submitted() -> SearchStrategy[JudgeBatchSubmitted]:
    """Return batches that a provider took; their plans need not be there."""
    return _built(
        JudgeBatchSubmitted, batch_key=batch_keys(), created_at=moments(), expires_at=moments()
    )


def judge_batch_not_created() -> SearchStrategy[JudgeBatchNotCreated]:
    """Return batches that do not exist; their plans need not be there."""
    return _built(JudgeBatchNotCreated, batch_key=batch_keys())


def judge_batch_ended() -> SearchStrategy[JudgeBatchEnded]:
    """Return ends of batches that need not have begun."""
    counts = {name: _COUNTS for name in JudgeBatchEnded.__struct_fields__ if name != "batch_key"}
    return _built(JudgeBatchEnded, batch_key=batch_keys(), **counts)


def judge_query_submitted() -> SearchStrategy[JudgeQuerySubmitted]:
    """Return judge queries; the responses they show need not be there."""
    return _built(
        JudgeQuerySubmitted,
        query_key=digests(),
        judge=_LABELS,
        dimension=_LABELS,
        prompt_id=_LABELS,
        entrant_a=_LABELS,
        entrant_b=_LABELS,
        rubric_digest=digests(),
        response_a=digests(),
        response_b=digests(),
        attempt=_ORDINALS,
        batch_key=st.none() | batch_keys(),
    )


def verdict_received() -> SearchStrategy[VerdictReceived]:
    """Return verdicts; their queries need not be there."""
    return _built(VerdictReceived, query_key=digests(), judge=_LABELS, **_paid())


def judge_query_failed() -> SearchStrategy[JudgeQueryFailed]:
    """Return failures to judge; their queries need not be there."""
    return _built(
        JudgeQueryFailed, query_key=digests(), judge=_LABELS, attempt=_ORDINALS, **_paid()
    )


def _paid() -> dict[str, SearchStrategy[Any]]:
    """Return what is known of a reply's cost, which may be nothing."""
    return {"usage": st.none() | usages(), "price": st.none() | prices()}


def pair_reconciled() -> SearchStrategy[PairReconciled]:
    """Return outcomes; their verdicts need not be there."""
    return _built(
        PairReconciled,
        dimension=_LABELS,
        prompt_id=_LABELS,
        entrant_a=_LABELS,
        entrant_b=_LABELS,
        judge=_LABELS,
        forward=digests(),
        swapped=digests(),
    )


def ratings_published() -> SearchStrategy[RatingsPublished]:
    """Return publications of ratings; they need not be true."""
    elo = _built(
        EloParameters,
        k=_STEPS,
        k_sweep=_tuples(_STEPS),
        initial_rating=_RATINGS,
        permutations=_REPEATS,
        seed=_COUNTS,
        bootstraps=st.just(0) | _REPEATS,
    )
    bradley_terry = _built(
        BradleyTerryParameters,
        prior_sd=st.none() | _SPREADS,
        anchor=st.none() | _LABELS,
        anchor_rating=_RATINGS,
        level=st.floats(min_value=MIN_LEVEL, max_value=MAX_LEVEL),
        resamples=_REPEATS,
        seed=_COUNTS,
    )
    terms = _built(
        PublicationTerms,
        judge=_LABELS,
        elo=elo,
        entrants=_tuples(_LABELS),
        prompts=_tuples(_LABELS),
        bradley_terry=bradley_terry,
    )
    publications = _built(
        Publication,
        terms=terms,
        started_at=moments(),
        as_of=_ORDINALS,
        head=digests(),
    )
    artifacts = _tuples(_built(ArtifactDigest, digest=digests()))
    return _built(RatingsPublished, publication=publications, artifacts=artifacts)


def ledger_merged() -> SearchStrategy[LedgerMerged]:
    """Return merges of ledgers that need not exist."""
    return _built(LedgerMerged, head=digests(), n_events=_ORDINALS, n_taken=_ORDINALS)


@st.composite
def battles_imported(draw: DrawFn) -> BattlesImported:
    """Draw battles; who won and what was preferred need not go together."""
    entrants = tuple(draw(st.lists(_LABELS, min_size=2, max_size=4, unique=True)))
    pair = st.permutations(entrants).map(lambda each: each[:2])
    a, b = zip(*draw(st.lists(pair, min_size=1, max_size=6)), strict=True)

    def column(cells: SearchStrategy[_Element]) -> CodedColumn[_Element]:
        return CodedColumn.of(draw(st.lists(cells, min_size=len(a), max_size=len(a))))

    return BattlesImported(
        file_digest=draw(digests()),
        format=draw(_LABELS),
        mapping_version=draw(_ORDINALS),
        chunk=draw(_ORDINALS),
        n_skipped=draw(_COUNTS),
        entrants=entrants,
        a=encode_cells(a, entrants),
        b=encode_cells(b, entrants),
        winners=column(st.sampled_from(get_args(Winner))),
        prefs=column(st.none() | st.floats(min_value=0, max_value=1)),
        prompts=column(st.none() | _TEXTS),
        sources=column(st.sampled_from(get_args(Source))),
        judges=column(st.none() | _TEXTS),
        weights=column(_POSITIVE),
    )


def ratings_imported() -> SearchStrategy[RatingsImported]:
    """Return ratings of others."""
    ratings = _built(
        ImportedRating,
        entrant=_LABELS,
        rating=_FINITE,
        ci_low=st.none() | _FINITE,
        ci_high=st.none() | _FINITE,
        n_battles=st.none() | _COUNTS,
    )
    return _built(
        RatingsImported,
        file_digest=digests(),
        format=_LABELS,
        mapping_version=_ORDINALS,
        n_bootstraps=st.none() | _COUNTS,
        ratings=_tuples(ratings),
    )


def evaluation_planned() -> SearchStrategy[EvaluationPlanned]:
    """Return plans of few runs: what is observed is mostly of a plan that is there."""
    return _built(
        EvaluationPlanned,
        number=_ORDINALS,
        run_key=run_keys(),
        entrant=_built(Reference, label=_LABELS, digest=digests()),
        evaluation=_LABELS,
        items=st.lists(items(), unique=True).map(tuple),
        n_samples=st.integers(min_value=1, max_value=3),
        n_available=_COUNTS,
    )


def run_keys() -> SearchStrategy[Digest]:
    """Return the keys of few runs."""
    return st.sampled_from([digest_of(f"run {n}") for n in range(2)])


def items() -> SearchStrategy[Digest]:
    """Return few items."""
    return st.sampled_from([digest_of(f"item {n}") for n in range(3)])


def observations() -> SearchStrategy[Observation]:
    """Return what is observed on samples of every kind; it need not hang together."""
    choices = _built(
        Choice,
        log_likelihood=_FINITE,
        n_tokens=_ORDINALS,
        n_bytes=_ORDINALS,
        n_chars=_ORDINALS,
        unconditional=st.none() | _FINITE,
    )
    counts = dict.fromkeys(("n_prompt_tokens", "n_generated_tokens"), _COUNTS)
    return st.one_of(
        _built(
            ChoicesObserved, choices=_tuples(choices), correct=_COUNTS, n_context_tokens=_COUNTS
        ),
        _built(
            DocumentObserved,
            log_likelihood=_FINITE,
            n_tokens=_ORDINALS,
            n_bytes=_ORDINALS,
            n_words=_COUNTS,
            n_windows=_ORDINALS,
        ),
        _built(
            AnswerObserved,
            score=_FINITE,
            seed=st.none() | st.integers(min_value=0, max_value=2**32 - 1),
            **counts,
        ),
        _built(
            PredictionObserved,
            predicted=_tuples(_COUNTS),
            target=_tuples(_COUNTS),
            score=_FINITE,
        ),
    )


def sample_observed() -> SearchStrategy[SampleObserved]:
    """Return observations; their plans need not be there."""
    return _built(
        SampleObserved,
        run_key=run_keys(),
        item=items(),
        sample=_FEW,
        cluster=digests(),
        observation=observations(),
    )


def sample_unscorable() -> SearchStrategy[SampleUnscorable]:
    """Return samples that were given up; their plans need not be there."""
    return _built(SampleUnscorable, run_key=run_keys(), item=items(), sample=_FEW)


def evaluation_completed() -> SearchStrategy[EvaluationCompleted]:
    """Return ends of runs; they need not be true."""
    return _built(
        EvaluationCompleted,
        entrant=_LABELS,
        evaluation=_LABELS,
        number=_ORDINALS,
        n_observed=_COUNTS,
        n_unscorable=_COUNTS,
    )


BY_TYPE: Final[Mapping[str, SearchStrategy[Event]]] = {
    "TournamentOpened": tournament_opened(),
    "PromptRegistered": prompt_registered(),
    "RubricRegistered": rubric_registered(),
    "EntrantRegistered": entrant_registered(),
    "JudgeRegistered": judge_registered(),
    "ResponseGenerated": response_generated(),
    "ResponseFailed": response_failed(),
    "JudgeBatchPlanned": judge_batch_planned(),
    "JudgeBatchSubmitted": judge_batch_submitted(),
    "JudgeBatchNotCreated": judge_batch_not_created(),
    "JudgeBatchEnded": judge_batch_ended(),
    "JudgeQuerySubmitted": judge_query_submitted(),
    "VerdictReceived": verdict_received(),
    "JudgeQueryFailed": judge_query_failed(),
    "PairReconciled": pair_reconciled(),
    "RatingsPublished": ratings_published(),
    "LedgerMerged": ledger_merged(),
    "BattlesImported": battles_imported(),
    "RatingsImported": ratings_imported(),
    "EvaluationPlanned": evaluation_planned(),
    "SampleObserved": sample_observed(),
    "SampleUnscorable": sample_unscorable(),
    "EvaluationCompleted": evaluation_completed(),
}
