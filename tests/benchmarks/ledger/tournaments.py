"""A ledger of real-looking tournaments: prompts, answers, judges' replies, a publication.

Each tournament has its own entrants on its own bank: 6 entrants, 500 prompts, 2 dimensions, every
pair asked in both orders. Texts have the lengths that models write, queries have the keys that the
texts give, and a few replies hold no verdict. The first tournament is published; the last one may
be cut off, as one that goes on. On as many prompts as it takes, all events are of one tournament.
"""

import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import count, islice
from pathlib import Path
from typing import Final

import msgspec
from immutables import Map

from commands.auditing.sections import KeyPlaces, SectionedTournament
from ledger.events.judging import (
    JudgeQueryFailed,
    JudgeQuerySubmitted,
    PairReconciled,
    Verdict,
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
from ledger.events.registration import Prompt
from ledger.events.registry import Event
from ledger.events.responses import ResponseGenerated
from ledger.identity import StreamId
from ledger.store import Ledger
from projections.ratings.elo.uncertainty import BOOTSTRAPS
from projections.tournament.matches import (
    Match,
    PlannedResponse,
    match_of,
    pairings,
    planned_responses,
)
from projections.tournament.state import Tournament
from projections.verdicts.policies import DEFAULT_POLICY, swap_consistent
from projections.verdicts.queries import JudgeQuery, PairQuery
from tests.support.builders.events import NOON, entrant, judge, known, opened, prompt, rubric

N_PROMPTS: Final = 500
N_ENTRANTS: Final = 6
_DIMENSIONS: Final = ("factuality", "clinical_utility")
_JUDGE: Final = judge(
    "sonnet", provider="anthropic", model="claude-sonnet-4-5", parameters=[("max_tokens", 1024.0)]
)
_N_PAIRS: Final = N_ENTRANTS * (N_ENTRANTS - 1) // 2
_EVENTS_A_PROMPT: Final = N_ENTRANTS + len(_DIMENSIONS) * _N_PAIRS * 5  # and some fewer
_PRICE: Final = Price(3.0, 15.0, 3.75, 6.0, 0.3, "anthropic 2026-04-01")
_AT_ONCE: Final = 5_000  # events
_PROMPTS_AT_ONCE: Final = 20
_UNREADABLE: Final = 0.004  # of the replies
_TIED: Final = 0.15
_BY_SLOT: Final = 0.12  # of the pairs: the judge prefers a slot
_SUBJECTS: Final = (
    "the first dose", "renal clearance", "the interaction", "the contraindication", "the onset",
    "a missed tablet", "the guideline", "the loading dose", "monitoring", "the plasma level",
)  # fmt: skip
_CLAIMS: Final = (
    "should be checked again after {} hours, because levels rise slowly in older patients",
    "is given as {} mg once a day, with food, unless the patient reports nausea",
    "was changed in {} and now asks for a second measurement before treatment begins",
    "depends on weight: about {} mg for each kilogram, and half of that in renal failure",
    "is safe below {} units; above it the risk of bleeding outweighs what is gained",
)


def write_tournaments(path: Path, n_events: int, *, n_prompts: int = N_PROMPTS) -> None:
    """Write a ledger of about so many events."""
    ticks = count()
    with Ledger.open(path, now=lambda: _time(next(ticks))) as ledger:
        for number in count(1):
            n_left = n_events - ledger.head.position
            if n_left <= 0:
                return
            stream = StreamId(f"cup-{number:03}")
            events = islice(_tournament(number, n_prompts), n_left)
            while some := list(islice(events, _AT_ONCE)):
                ledger.append(stream, some)
            if number == 1:
                _publish(ledger, stream)


def write_tournament(path: Path, n_events: int) -> None:
    """Write a ledger of one tournament of about so many events."""
    write_tournaments(path, n_events, n_prompts=1 + n_events // _EVENTS_A_PROMPT)


def _time(tick: int) -> datetime:
    return NOON + timedelta(seconds=30 * tick)


def _tournament(number: int, n_prompts: int) -> Iterator[Event]:
    """Yield all events of a tournament, in the order in which a run records them."""
    rng = random.Random(number)  # noqa: S311  # texts, not secrets
    opening = opened(
        prompts=[_prompt(rng, f"c{number}_{n:05}") for n in range(n_prompts)],
        rubrics=[rubric(name, needs_gold=name == "factuality") for name in _DIMENSIONS],
        entrants=[entrant(f"c{number}_{n}", max_new_tokens=512) for n in range(N_ENTRANTS)],
        judges=[_JUDGE],
    )
    yield from opening
    state = known(*opening)
    for first in range(0, n_prompts, _PROMPTS_AT_ONCE):
        asked = _with_prompts(state, first)
        some = [each.prompt_id for each in asked.bank]
        answers = [_answer(rng, cell) for cell in planned_responses(asked, some)]
        yield from answers
        answered = replace(asked, responses=Map({each.response_key: each for each in answers}))
        for pairing in pairings(answered, some):
            match = match_of(answered, pairing, _JUDGE)
            if match is not None:
                yield from _judged(rng, match)


def _with_prompts(state: Tournament, first: int) -> Tournament:
    """Return a state of which some prompts are the bank: to plan a whole one again takes long."""
    opening = state.opening
    assert opening is not None
    some = opening.prompts[first : first + _PROMPTS_AT_ONCE]
    return replace(state, opening=msgspec.structs.replace(opening, prompts=some))


def _prompt(rng: random.Random, prompt_id: str) -> Prompt:
    question = f"A patient asks about {rng.choice(_SUBJECTS)}. {_prose(rng, 2)} What do you say?"
    return prompt(prompt_id, text=question, gold=f"{rng.choice(_SUBJECTS)}, {rng.randrange(999)}")


def _answer(rng: random.Random, cell: PlannedResponse) -> ResponseGenerated:
    text = _prose(rng, rng.randrange(4, 13))
    return cell.made(
        text=text,
        finish_reason="stop",
        n_prompt_tokens=len(cell.prompt.text) // 4,
        n_generated_tokens=len(text) // 4,
        elapsed_s=len(text) / 400,
    )


def _judged(rng: random.Random, match: Match) -> Iterator[Event]:
    """Yield what becomes of a match: queries, replies, and mostly an outcome."""
    orders = (match.forward, match.swapped)
    yield from (_submitted(match, query) for query in orders)
    said = _opinions(rng, match)
    replies = [
        _verdict(rng, query, each) if rng.random() > _UNREADABLE else _failed(rng, query)
        for query, each in zip(orders, said, strict=True)
    ]
    yield from replies
    if all(isinstance(each, VerdictReceived) for each in replies):
        key_ = match.key(_JUDGE.judge_id)
        yield PairReconciled(outcome=swap_consistent(*said), **key_._asdict())


def _opinions(rng: random.Random, match: Match) -> tuple[Verdict, Verdict]:
    """Return the verdicts in both orders: later entrants are better, some judge by the slot."""
    luck = rng.random()
    if luck < _TIED:
        return "TIE", "TIE"
    if luck < _TIED + _BY_SLOT:
        return "A", "A"
    ahead = int(match.pairing.a.entrant.entrant_id[-1]) - int(
        match.pairing.b.entrant.entrant_id[-1]
    )
    return ("A", "B") if rng.random() < 1 / (1 + 1.5**-ahead) else ("B", "A")


def _submitted(match: Match, query: PairQuery) -> JudgeQuerySubmitted:
    return JudgeQuerySubmitted(
        query_key=query.query_key,
        judge=_JUDGE.judge_id,
        dimension=match.pairing.rubric.dimension,
        prompt_id=match.pairing.prompt.prompt_id,
        entrant_a=match.pairing.a.entrant.entrant_id,
        entrant_b=match.pairing.b.entrant.entrant_id,
        order=query.order,
        rubric_digest=match.pairing.rubric.digest,
        response_a=match.pairing.a.response_key,
        response_b=match.pairing.b.response_key,
        worst_usd=0.02,
    )


def _verdict(rng: random.Random, query: JudgeQuery, said: Verdict) -> VerdictReceived:
    reply = f"{_prose(rng, rng.randrange(3, 7))}\n\nVERDICT: {said}"
    return VerdictReceived(
        query_key=query.query_key,
        judge=_JUDGE.judge_id,
        verdict=said,
        reply=reply,
        parser="final-line@1",
        stop_reason="end_turn",
        model=_JUDGE.model,
        usage=_usage(query, reply),
        price=_PRICE,
    )


def _failed(rng: random.Random, query: JudgeQuery) -> JudgeQueryFailed:
    reply = _prose(rng, 4)
    return JudgeQueryFailed(
        query_key=query.query_key,
        judge=_JUDGE.judge_id,
        attempt=1,
        reason="unreadable",
        reply=reply,
        parser="final-line@1",
        stop_reason="end_turn",
        model=_JUDGE.model,
        usage=_usage(query, reply),
        price=_PRICE,
    )


def _usage(query: JudgeQuery, reply: str) -> Usage:
    return Usage(n_input=(len(query.system) + len(query.user)) // 4, n_output=len(reply) // 4)


def _prose(rng: random.Random, n_sentences: int) -> str:
    """Return sentences that hardly ever come twice."""
    subjects, claims = rng.choices(_SUBJECTS, k=n_sentences), rng.choices(_CLAIMS, k=n_sentences)
    return " ".join(
        f"Note that {subject} {claim.format(rng.randrange(2_000))}."
        for subject, claim in zip(subjects, claims, strict=True)
    )


def _publish(ledger: Ledger, stream: StreamId) -> None:
    """Publish the ratings of a tournament, as a run does."""
    places = KeyPlaces()
    tournament = SectionedTournament(stream, ledger.at, places)
    events = ledger.read(stream=stream)
    while some := list(islice(events, _AT_ONCE)):
        places.note(some)
        tournament.advance(some)
    publication = _publication(tournament.state)
    digests = tournament.digests(publication)
    artifacts = tuple(ArtifactDigest(path=path, digest=each) for path, each in digests.items())
    ledger.append(stream, [RatingsPublished(publication=publication, artifacts=artifacts)])


def _publication(state: Tournament) -> Publication:
    newest = state.newest
    assert newest is not None
    terms = PublicationTerms(
        mode="headline",
        judge=_JUDGE.judge_id,
        policy=DEFAULT_POLICY,
        elo=EloParameters(bootstraps=BOOTSTRAPS),
        entrants=tuple(each.entrant_id for each in state.roster),
        prompts=tuple(each.prompt_id for each in state.bank),
        bradley_terry=BradleyTerryParameters(),
    )
    return Publication(
        run="headline_20260427_120000",
        terms=terms,
        started_at=NOON,
        as_of=newest.position,
        head=newest.chain,
    )
