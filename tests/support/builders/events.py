"""Builders of events: a test states what it is about, and these fill in the rest."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import TypeVar

import msgspec

from ledger.events.judging import Order, Verdict, VerdictReceived
from ledger.events.registration import (
    Adapter,
    Entrant,
    EntrantRegistered,
    Hydra,
    Instructions,
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
from ledger.events.responses import ResponseGenerated
from ledger.events.values import Value
from ledger.identity import Digest, JudgeId, StreamId, digest_of
from ledger.recorded import Receipt, Recorded, microseconds
from ledger.storage.writer import draft
from projections.fold import fold
from projections.tournament.folding import tournament_of
from projections.tournament.matches import planned_response
from projections.tournament.state import Tournament
from projections.verdicts.queries import PairQuery, wording_of

AnyValue = TypeVar("AnyValue", bound=Value)

STREAM = StreamId("main")
NOON = datetime(2026, 4, 27, 12, tzinfo=UTC)


def valid(kind: type[AnyValue], fields: Mapping[str, object]) -> AnyValue:
    """Return an event or value of the fields, checked against its limits."""
    return msgspec.convert(fields, kind)


def key(name: str) -> Digest:
    """Return a digest that stands for something."""
    return digest_of(name)


def prompt(prompt_id: str = "p1", *, gold: str | None = "aspirin", **fields: object) -> Prompt:
    """Return a prompt whose text names its id."""
    given = {"source": "recall", "subject": "pharmacology", "text": f"Question {prompt_id}?"}
    return valid(Prompt, {**given, "prompt_id": prompt_id, "gold_answer": gold, **fields})


def rubric(dimension: str = "factuality", *, needs_gold: bool = True, **fields: object) -> Rubric:
    """Return a rubric whose text names its dimension."""
    given = {"version": "1", "text": f"Judge {dimension}."}
    return valid(Rubric, {**given, "dimension": dimension, "needs_gold": needs_gold, **fields})


def instructions(text: str = "Compare two responses.", *, version: str = "1") -> Instructions:
    """Return instructions to a judge."""
    return Instructions(version=version, text=f"<!-- version: {version} -->\n\n{text}\n")


def entrant(entrant_id: str = "base", **fields: object) -> Entrant:
    """Return an entrant whose weights are its own."""
    given = {
        "loader": "hf",
        "weights": f"weights/{entrant_id}",
        "weights_digest": key(entrant_id),
        "max_new_tokens": 32,
        "dtype": "float32",
    }
    return valid(Entrant, {**given, "entrant_id": entrant_id, **fields})


def shards(name: str, n: int = 2) -> tuple[Adapter, ...]:
    """Return as many LoRA shards of a set."""
    return tuple(Adapter(path=f"{name}/shard_{i}", digest=key(f"{name} {i}")) for i in range(n))


def hydra(**fields: object) -> Hydra:
    """Return two heads that have learnt security."""
    return valid(Hydra, {"heads_depth": 2, "security": shards("security"), **fields})


def judge(judge_id: str = "reference", **fields: object) -> JudgeSettings:
    """Return a judge."""
    given = {"provider": "reference", "model": "chrF2"}
    return valid(JudgeSettings, {**given, "judge_id": judge_id, **fields})


def registrations(
    prompts: Iterable[Prompt] = (),
    rubrics: Iterable[Rubric] = (),
    entrants: Iterable[Entrant] = (),
    judges: Iterable[JudgeSettings] = (),
) -> tuple[PromptRegistered | RubricRegistered | EntrantRegistered | JudgeRegistered, ...]:
    """Return the registrations of things."""
    return (
        *(PromptRegistered(prompt=each, digest=each.content_digest) for each in prompts),
        *(RubricRegistered(rubric=each, digest=each.content_digest) for each in rubrics),
        *(EntrantRegistered(entrant=each, digest=each.content_digest) for each in entrants),
        *(JudgeRegistered(judge=each, digest=each.content_digest) for each in judges),
    )


def opened(
    *,
    prompts: Sequence[Prompt] | None = None,
    rubrics: Sequence[Rubric] | None = None,
    entrants: Sequence[Entrant] | None = None,
    judges: Sequence[JudgeSettings] | None = None,
    opening: int = 1,
    told: Instructions | None = None,
) -> tuple[Event, ...]:
    """Return an opening and the registrations of what it names."""
    prompts = [prompt()] if prompts is None else prompts
    rubrics = [rubric()] if rubrics is None else rubrics
    entrants = [entrant("base"), entrant("tuned")] if entrants is None else entrants
    judges = [judge()] if judges is None else judges

    def references(things: Iterable[tuple[str, Digest]]) -> tuple[Reference, ...]:
        return tuple(Reference(label=label, digest=digest) for label, digest in things)

    return (
        TournamentOpened(
            opening=opening,
            tournament_id=STREAM,
            configuration="{}",
            configuration_digest=key("{}"),
            entrants=references((each.entrant_id, each.content_digest) for each in entrants),
            prompts=references((each.prompt_id, each.content_digest) for each in prompts),
            rubrics=references((each.dimension, each.content_digest) for each in rubrics),
            judges=references((each.judge_id, each.content_digest) for each in judges),
            instructions=told or instructions(),
            generation_seed=0,
            versions=(("tourney", "0.1.0"),),
        ),
        *registrations(prompts, rubrics, entrants, judges),
    )


def responses(
    tournament: Tournament, texts: dict[tuple[str, str], str] | None = None
) -> tuple[ResponseGenerated, ...]:
    """Return a response of every entrant to every prompt, or those that texts names."""
    return tuple(
        cell.made(
            text=f"{who.entrant_id} on {what.prompt_id}" if texts is None else texts[place],
            finish_reason="stop",
            n_prompt_tokens=3,
            n_generated_tokens=3,
            elapsed_s=0.1,
        )
        for what in tournament.bank
        for who in tournament.roster
        for place in ((str(who.entrant_id), str(what.prompt_id)),)
        for cell in (planned_response(tournament, who, what),)
        if texts is None or place in texts
    )


def verdict(query_key: Digest, said: Verdict = "A", *, by: str = "reference") -> VerdictReceived:
    """Return a verdict on a query."""
    return VerdictReceived(
        query_key=query_key,
        judge=JudgeId(by),
        verdict=said,
        reply=f"VERDICT: {said}",
        parser="final-line@1",
        stop_reason="end_turn",
        model="chrF2",
    )


def recorded(events: Iterable[Event], *, stream: StreamId = STREAM) -> tuple[Recorded, ...]:
    """Return events as a ledger records them, a second apart, and each fact once."""
    facts = dict[bytes, tuple[bytes, Recorded]]()
    found = list[Recorded]()
    for event in events:
        drafted, place = draft(stream, event), len(facts) + 1
        when = microseconds(NOON) + 1_000_000 * (place - 1)
        placed = Recorded(place, stream, place, when, place.to_bytes(32), event)
        data, fact = facts.setdefault(drafted.key, (drafted.data, placed))
        assert data == drafted.data, "two events of one key"
        found.append(fact)
    return tuple(found)


def known(*events: Event, stream: StreamId = STREAM) -> Tournament:
    """Return what a tournament knows after events."""
    return _known(events, stream)


@lru_cache(maxsize=64)
def _known(events: tuple[Event, ...], stream: StreamId) -> Tournament:
    return fold(tournament_of(stream), recorded(events, stream=stream))


N_FILED = 3  # events in the ledger that the fixture `filed` gives


def verdicts(n: int, *, after: int = 0) -> tuple[VerdictReceived, ...]:
    """Return so many different events."""
    return tuple(verdict(key(str(number))) for number in range(after, after + n))


def placed(receipts: Iterable[Receipt]) -> tuple[Recorded, ...]:
    """Return the events that receipts are for, with their places."""
    return tuple(each.recorded for each in receipts)


def build_query(
    judge: JudgeSettings,
    instructions: Instructions,
    rubric: Rubric,
    prompt: Prompt,
    *,
    a: str,
    b: str,
    order: Order,
) -> PairQuery:
    """Build the query for a pair's texts (a, b) in one order."""
    return wording_of(judge, instructions, rubric, prompt).query(a, b, order)
