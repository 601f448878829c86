"""Write a golden payload of each event type that has none yet.

`python -m tests.support.goldens.events`, after adding an event type or raising a schema version.
A golden that is there is never written again: it stands for ledgers that exist.
"""

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from ledger.events.conversations import transcript
from ledger.events.evaluations import (
    AnswerObserved,
    Choice,
    ChoicesItem,
    ChoicesObserved,
    DocumentObserved,
    EvaluationCompleted,
    EvaluationItem,
    EvaluationPlanned,
    ItemRegistered,
    Observation,
    PredictionObserved,
    PromptItem,
    SampleName,
    SampleObserved,
    SampleScore,
    SampleUnscorable,
    TaskMetric,
    TaskReference,
    TaskResults,
    TextItem,
    WayOfAsking,
    item_digest,
)
from ledger.events.imports import (
    BattlesImported,
    CodedColumn,
    ImportedRating,
    JurorVote,
    LedgerMerged,
    RatingsImported,
)
from ledger.events.judging import (
    JudgeBatchEnded,
    JudgeBatchNotCreated,
    JudgeBatchPlanned,
    JudgeBatchSubmitted,
    JudgeQueryFailed,
    JudgeQueryReopened,
    JudgeQuerySubmitted,
    PairReconciled,
    ScoreQuerySubmitted,
    ScoreReceived,
    ScoreShared,
    VerdictReceived,
)
from ledger.events.money import Price, Usage
from ledger.events.ratings import (
    ArtifactDigest,
    BradleyTerryParameters,
    EloParameters,
    Publication,
    PublicationTerms,
    RatingsPublished,
)
from ledger.events.redaction import EventRedacted
from ledger.events.registration import (
    Adapter,
    EntrantRegistered,
    JudgeRegistered,
    PromptRegistered,
    Reference,
    RubricRegistered,
    ScoreScale,
    TournamentOpened,
)
from ledger.events.registry import EVENTS, Event
from ledger.events.requests import (
    Charge,
    ParameterRefused,
    RequestsSettled,
    RequestsSubmitted,
)
from ledger.events.responses import Diagnostics, ResponseFailed, ResponseGenerated
from ledger.events.values import type_name
from ledger.identity import Dimension, EntrantId, JudgeId, PromptId
from tests.support.builders.events import (
    entrant,
    hydra,
    instructions,
    judge,
    key,
    prompt,
    rubric,
    shards,
)

GOLDENS: Final = Path(__file__).parents[2] / "golden" / "events"

BASE, TUNED = EntrantId("base"), EntrantId("tuned")
RECALL_1 = PromptId("recall_001")
FACTUALITY = Dimension("factuality")
REFERENCE = JudgeId("reference")
USAGE = Usage(
    n_input=210, n_output=480, n_cache_write_5m=1_500, n_cache_write_1h=1_600, n_cache_read=1_700
)
PRICE = Price(
    input=2.5,
    output=12.5,
    cache_write_5m=3.125,
    cache_write_1h=5.0,
    cache_read=0.25,
    table="anthropic 2026-04-27, batch",
)

ASKED: Final[tuple[EvaluationItem, ...]] = (
    PromptItem(prompt='Which "β-lactam"?\n', expected="beta-lactam \\"),
    ChoicesItem(context="", choices=(" β", " a"), correct=1),
    TextItem(text="abab"),
)

OBSERVATIONS: Final[tuple[Observation, ...]] = (
    ChoicesObserved(
        choices=(
            Choice(
                log_likelihood=-1.25,
                n_tokens=2,
                n_bytes=7,
                n_chars=6,
                is_greedy=True,
                unconditional=-8.5,
            ),
            Choice(log_likelihood=-3.0, n_tokens=1, n_bytes=4, n_chars=4, is_greedy=False),
        ),
        correct=1,
        n_context_tokens=12,
        is_truncated=True,
    ),
    DocumentObserved(log_likelihood=-2_048.5, n_tokens=700, n_bytes=3_000, n_words=0, n_windows=2),
    AnswerObserved(
        text='"β-lactam"\n',
        cleaned="β-lactam",
        expected="beta-lactam \\",
        score=0.5,
        seed=4_294_967_295,
        finish_reason="length",
        n_prompt_tokens=12,
        n_generated_tokens=9,
        is_truncated=True,
    ),
    PredictionObserved(
        text="abab",
        predicted=(5, 0, 7),
        target=(5, 6, 7),
        prediction="a?a",
        cleaned="a a",
        score=1.0,
    ),
)

# Every optional field is filled, and text holds what JSON escapes and what it need not.
SAMPLES: Final[tuple[Event, ...]] = (
    TournamentOpened(
        opening=2,
        tournament_id="main",
        configuration='{"seed":7}',
        configuration_digest=key("configuration"),
        entrants=(Reference(label=BASE, digest=key("base")),),
        prompts=(Reference(label=RECALL_1, digest=key("prompt")),),
        rubrics=(Reference(label=FACTUALITY, digest=key("rubric")),),
        judges=(Reference(label=REFERENCE, digest=key("judge")),),
        instructions=instructions('Say which is "β-er".', version="2"),
        generation_seed=7,
        versions=(("tourney", "0.1.0"), ("numpy", "2.3.5")),
    ),
    PromptRegistered(
        digest=key("prompt"),
        prompt=prompt(
            RECALL_1,
            text='What is "β-lactam"?\n',
            tags=("recall", "antibiotics"),
            expected_behavior="answer",
            category="drugs",
        ),
    ),
    PromptRegistered(
        digest=key("conversation"),
        prompt=prompt(
            RECALL_1,
            text=transcript((("system", "Be brief."), ("user", "One?"), ("user", "Two?"))),
            messages=(("system", "Be brief."), ("user", "One?"), ("user", "Two?")),
        ),
    ),
    RubricRegistered(digest=key("rubric"), rubric=rubric(FACTUALITY, shows_expected_behavior=True)),
    EntrantRegistered(
        digest=key("entrant"),
        entrant=entrant(
            TUNED,
            loader="hydra",
            adapters=(Adapter(path="adapters/tuned", digest=key("adapter")),),
            temperature=0.7,
            hydra=hydra(
                robustness=shards("robustness"),
                uncertainty=Adapter(path="uncertainty", digest=key("uncertainty")),
                bypass_jury=True,
                beta=0.5,
            ),
            revision="2026-04-27",
            step=1_000,
            sampler=2,
        ),
    ),
    EntrantRegistered(
        digest=key("entrant"),
        entrant=entrant(
            EntrantId("answered"), loader="recorded", weights="answers.csv", dtype=None
        ),
    ),
    JudgeRegistered(
        digest=key("judge"),
        judge=judge(REFERENCE, parameters=(("margin", 0.5), ("reader", "chrF2"))),
    ),
    ResponseGenerated(
        response_key=key("response"),
        entrant_id=BASE,
        prompt_id=RECALL_1,
        seed=4_294_967_295,
        sample=1,
        text='An antibiotic: "penicillin" \\ 5 µg\n',
        finish_reason="stop",
        n_prompt_tokens=12,
        n_generated_tokens=9,
        elapsed_s=0.125,
        p_correct=0.875,
        diagnostics=Diagnostics(
            draft_head_idx=8,
            bypass_jury=False,
            entropies=(0.0, 1.5),
            stability_radii=(4, 0),
            stability_margins=(1.0, 0.25),
            resampled_at=(1,),
            rejected_tokens=(100_257,),
            validity_radii=(5,),
            suppressions=(0.0009765625,),
        ),
        imported_from=key("responses_base.jsonl"),
    ),
    ResponseFailed(
        response_key=key("response"),
        entrant_id=BASE,
        prompt_id=RECALL_1,
        reason="refused",
        detail='the server\'s "filter" kept the answer back',
        usage=USAGE,
    ),
    RequestsSubmitted(
        number=3,
        entrant=BASE,
        model="org/base-7b",
        requests=(key("response"), key("another response")),
        worst_usd=(0.0125, None),
    ),
    RequestsSettled(
        number=2,
        entrant=BASE,
        model="org/base-7b",
        charges=(
            Charge(request=key("response"), fate="answered", usage=USAGE, usd=0.0025),
            Charge(
                request=key("another response"),
                fate="perhaps billed",
                usd=None,
                detail="the connection broke",
            ),
        ),
        price_table="shipped prices of 2026-04-27",
    ),
    ParameterRefused(
        base_url="https://api.openai.com/v1",
        model="gpt-5.6",
        parameter="max_tokens",
        instead="max_completion_tokens",
        detail="HTTP 400: Unsupported parameter: 'max_tokens'",
    ),
    JudgeBatchPlanned(
        batch_key=key("batch"),
        number=2,
        judge=Reference(label=REFERENCE, digest=key("judge")),
        queries=(key("query"), key("another query")),
        expected_usd=0.0125,
        worst_usd=0.5,
        planned_at=datetime(2026, 4, 27, 12, 0, 0, 500, tzinfo=UTC),
        cap_usd=20.0,
    ),
    JudgeBatchSubmitted(
        batch_key=key("batch"),
        provider_batch_id="msgbatch_01",
        created_at=datetime(2026, 4, 27, 12, 0, 0, 500, tzinfo=UTC),
        expires_at=datetime(2026, 4, 28, 12, 0, 0, 500, tzinfo=UTC),
    ),
    JudgeBatchNotCreated(batch_key=key("batch"), why='400: "requests" holds too many'),
    JudgeBatchEnded(
        batch_key=key("batch"), n_succeeded=1_998, n_errored=1, n_canceled=0, n_expired=1
    ),
    JudgeQuerySubmitted(
        query_key=key("query"),
        judge=REFERENCE,
        dimension=FACTUALITY,
        prompt_id=RECALL_1,
        entrant_a=BASE,
        entrant_b=TUNED,
        order="swapped",
        rubric_digest=key("rubric"),
        response_a=key("response a"),
        response_b=key("response b"),
        attempt=2,
        batch_key=key("batch"),
    ),
    VerdictReceived(
        query_key=key("query"),
        judge=REFERENCE,
        verdict="TIE",
        reply="Both name penicillin.\nVERDICT: TIE",
        parser="final-line@1",
        stop_reason="end_turn",
        model="chrF2",
        usage=USAGE,
        price=PRICE,
        worst_usd=0.25,
    ),
    ScoreQuerySubmitted(
        query_key=key("score query"),
        judge=REFERENCE,
        evaluation="recall",
        scoring=key("scoring"),
        scale=ScoreScale((1.0, 10.0)),
        samples=(SampleName(key("run"), key("item"), 3),),
        attempt=2,
        batch_key=key("batch"),
        worst_usd=0.25,
    ),
    ScoreReceived(
        query_key=key("score query"),
        judge=REFERENCE,
        score=7.5,
        reply='Names "penicillin".\nSCORE: 7.5',
        parser="score-line@1",
        stop_reason="end_turn",
        model="chrF2",
        usage=USAGE,
        price=PRICE,
        worst_usd=0.25,
    ),
    ScoreShared(
        query_key=key("score query"),
        scoring=key("scoring"),
        samples=(SampleName(key("another run"), key("item"), 0),),
    ),
    JudgeQueryFailed(
        query_key=key("query"),
        judge=REFERENCE,
        attempt=1,
        reason="unreadable",
        reply="Perhaps.",
        parser="final-line@1",
        stop_reason="end_turn",
        model="chrF2",
        detail="The last line said no verdict.",
        usage=USAGE,
        price=PRICE,
    ),
    JudgeQueryReopened(query_key=key("query"), judge=REFERENCE, attempt=1, reason="unreadable"),
    PairReconciled(
        dimension=FACTUALITY,
        prompt_id=RECALL_1,
        entrant_a=BASE,
        entrant_b=TUNED,
        judge=REFERENCE,
        policy="agreement@1",
        outcome="tie",
        forward=key("query"),
        swapped=key("query"),
        basis="identical",
    ),
    RatingsPublished(
        publication=Publication(
            run="runs/2026-04-27",
            terms=PublicationTerms(
                mode="headline",
                judge=REFERENCE,
                policy="agreement@1",
                elo=EloParameters(bootstraps=400),
                entrants=(BASE, TUNED),
                prompts=(RECALL_1,),
                bradley_terry=BradleyTerryParameters(prior_sd=300.0, anchor=BASE, level=0.9),
            ),
            started_at=datetime(2026, 4, 27, 12, 0, 0, 500, tzinfo=UTC),
            as_of=1_234,
            head=key("head"),
        ),
        artifacts=(ArtifactDigest(path="ratings.csv", digest=key("ratings")),),
    ),
    LedgerMerged(head=key("head"), n_events=1_234, n_taken=56),
    BattlesImported(
        file_digest=key("battles.jsonl"),
        format="judgearena",
        mapping_version=1,
        chunk=2,
        n_skipped=1,
        entrants=('a "quoted" name', "β", "base"),
        a="#$#",
        b="$%%",
        winners=CodedColumn(("model_a", "no verdict"), "#$#"),
        prefs=CodedColumn((0.25, None, 0.125)),
        prompts=CodedColumn(("recall_001", None), "##$"),
        sources=CodedColumn(("llm-judge",)),
        judges=CodedColumn(("chrF2", "a \\ b"), "#$#"),
        weights=CodedColumn((1.0, 3.0), "##$"),
        votes=CodedColumn(
            ((JurorVote("chrF2", "model_a"), JurorVote("a b", "inconsistent")), ()), "#$$"
        ),
        categories=CodedColumn((("math", "code"), ()), "#$#"),
        languages=CodedColumn(("en", None), "##$"),
        lengths_a=CodedColumn((120, None, 7)),
    ),
    RatingsImported(
        file_digest=key("elo_ratings.json"),
        format="judgearena",
        mapping_version=1,
        arena="LMArena-100k",
        evaluated="tuned",
        judge_model="chrF2",
        n_bootstraps=20,
        seed=0,
        ratings=(
            ImportedRating(
                entrant="tuned",
                rating=1_012.5,
                ci_low=990.25,
                ci_high=1_031.0,
                n_battles=858,
                source="evaluated",
                dimension="factuality",
            ),
        ),
    ),
    *(ItemRegistered(item=item_digest(each.content, 2), copy=2, asked=each) for each in ASKED),
    EvaluationPlanned(
        number=2,
        run_key=key("run"),
        entrant=Reference(label=BASE, digest=key("base")),
        evaluation='a "quoted" name',
        kind="perplexity",
        higher_is_better=False,
        settings='{"kind":"perplexity"}',
        scorer=key("code"),
        items=(key("item"), key("another item")),
        n_samples=4,
        n_available=1_000,
    ),
    EvaluationPlanned(
        number=1,
        run_key=key("run"),
        entrant=Reference(label=BASE, digest=key("base")),
        evaluation="doses",
        kind="rollout",
        higher_is_better=True,
        settings='{"is_chat":true,"kind":"rollout"}',
        scorer=key("code"),
        items=(key("item"),),
        n_samples=1,
        n_available=1,
        asking=WayOfAsking(chat="turns", system='Speak as a "pirate".', max_new_tokens=24),
    ),
    EvaluationPlanned(
        number=1,
        run_key=key("run"),
        entrant=Reference(label=BASE, digest=key("base")),
        evaluation="mmlu.anatomy",
        kind="comparison",
        higher_is_better=True,
        settings='{"kind":"comparison"}',
        scorer=key("code"),
        items=(key("item"),),
        n_samples=1,
        n_available=1,
        asking=WayOfAsking(chat="none"),
        task=TaskReference(name="mmlu_anatomy", version="0.4.13", digest=key("task")),
    ),
    *(
        SampleObserved(
            run_key=key("run"),
            item=key("item"),
            sample=3,
            label="mmlu[7] β",
            cluster=key("prompt"),
            observation=observation,
        )
        for observation in OBSERVATIONS
    ),
    SampleUnscorable(
        run_key=key("run"),
        item=key("item"),
        sample=3,
        label="mmlu[7] β",
        reason="not_finite",
        detail="choice 2: nan",
    ),
    EvaluationCompleted(
        entrant=BASE,
        evaluation="recall",
        number=2,
        n_observed=7,
        n_unscorable=1,
        scores=(SampleScore(item=key("item"), sample=3, cleaned='a "β"', score=0.5),),
    ),
    EvaluationCompleted(
        entrant=BASE,
        evaluation="mmlu.anatomy",
        number=1,
        n_observed=3,
        n_unscorable=0,
        results=TaskResults(
            n_documents=3,
            documents=(0, 1, 4),
            metrics=(
                TaskMetric(
                    name="exact_match,strict-match",
                    value=0.5,
                    standard_error=0.25,
                    higher_is_better=True,
                    values=(1.0, 0.0, None),
                ),
                TaskMetric(name="ppl", value=None, standard_error=None, higher_is_better=False),
            ),
        ),
    ),
    EventRedacted(
        event_id="01a206c60adb6a0a9d804501198560c8",
        digest=key("payload"),
        tombstone=key("tombstone"),
        why="an API key in β's reply",
    ),
)


def golden_name(event: Event) -> str:
    """Return the file name of an event type and version, and of the shape of what it holds."""
    shape = ""
    if isinstance(event, SampleObserved):
        shape = f".{event.observation.__struct_config__.tag}"
    if isinstance(event, ItemRegistered):
        shape = f".{event.asked.__struct_config__.tag}"
    if isinstance(event, EvaluationPlanned) and event.asking:
        shape = ".task" if event.task else ".asking"
    if isinstance(event, EvaluationCompleted) and event.results:
        shape = ".results"
    if isinstance(event, EntrantRegistered) and event.entrant.loader == "recorded":
        shape = ".recorded"
    if isinstance(event, PromptRegistered) and event.prompt.turns:
        shape = ".conversation"
    return f"{type_name(event)}.v{event.schema_version}{shape}.json"


def write_missing(folder: Path) -> tuple[Path, ...]:
    """Write the goldens that are missing, and return where."""
    samples = {folder / golden_name(event): EVENTS.encode(event) for event in SAMPLES}
    missing = tuple(path for path in samples if not path.exists())
    for path in missing:
        path.write_bytes(samples[path])
    return missing


if __name__ == "__main__":
    for written in write_missing(GOLDENS):
        sys.stdout.write(f"wrote {written}\n")
