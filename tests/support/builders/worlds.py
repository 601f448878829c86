"""Whole tournaments, of one judge or several, for tests of what became of each pairing."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Final, Literal, TypeAlias

from msgspec.structs import replace

from ledger.events.judging import (
    Basis,
    FailureReason,
    JudgeQueryFailed,
    Outcome,
    PairReconciled,
    Verdict,
    VerdictReceived,
)
from ledger.events.ratings import (
    BradleyTerryParameters,
    EloParameters,
    Publication,
    PublicationTerms,
)
from ledger.events.registration import JudgeSettings, TournamentOpened
from ledger.events.registry import Event
from ledger.events.responses import ResponseFailed, ResponseFailureReason, ResponseGenerated
from ledger.identity import Digest, PromptId
from projections.artifacts.results import Results, results_of
from projections.tournament.matches import Match, Pairing, PlannedResponse, match_of, pairings
from projections.tournament.remaining import ENDLESS_RETRIES, open_queries, unreconciled
from projections.tournament.settlement import Settlement, settle
from projections.tournament.state import Tournament
from projections.verdicts.parsers import SCORE_PARSER, JudgeScores, parse_score_verdict
from projections.verdicts.policies import DEFAULT_POLICY, swap_consistent
from projections.verdicts.queries import JudgeQuery, PairQuery
from tests.support.builders.events import (
    NOON,
    entrant,
    judge,
    key,
    known,
    opened,
    prompt,
    responses,
    rubric,
    verdict,
)

Fate: TypeAlias = Outcome | FailureReason | Literal["pending"]

RUBRICS = (rubric("factuality"), rubric("utility", needs_gold=False))  # one needs gold
ELO = EloParameters(permutations=4, seed=7)
VERDICTS: Mapping[Outcome, tuple[Verdict, Verdict]] = {
    "a": ("A", "B"),
    "b": ("B", "A"),
    "tie": ("TIE", "TIE"),
    "inconsistent": ("A", "A"),
}


def cup(n_prompts: int = 2) -> tuple[Event, ...]:
    """Return the opening of three entrants: three pairings on factuality a prompt.

    In the order of the match list they are zoe-amy, zoe-kim, amy-kim, and the same
    again on the next prompt.
    """
    return opened(
        prompts=[prompt(f"p{n}") for n in range(1, n_prompts + 1)],
        entrants=[entrant("zoe"), entrant("amy"), entrant("kim")],
    )


COUNTERBALANCED: Final = '{"orders": "counterbalanced"}'


def with_judging(events: Sequence[Event], judging: str) -> tuple[Event, ...]:
    """Return events whose openings have another section [judging]."""
    configuration = f'{{"judging": {judging}}}'
    return tuple(
        replace(each, configuration=configuration) if isinstance(each, TournamentOpened) else each
        for each in events
    )


def judged(
    events: Sequence[Event], verdict_on: Callable[[PairQuery], Verdict]
) -> tuple[Event, ...]:
    """Return events, and verdicts on all that is open, with the outcomes that follow."""
    state = known(*events)
    prompts = everything(state)
    told: list[Event] = []
    for juror in state.panel:
        queries = open_queries(state, prompts, juror, ENDLESS_RETRIES)
        said = {each.asked.query_key: verdict_on(each.asked) for each in queries}
        told += [verdict(key, given, by=juror.judge_id) for key, given in said.items()]
    after = known(*events, *told)
    for juror in state.panel:
        open_pairs = unreconciled(after, prompts, juror)
        for match in open_pairs:
            on_record = match.key(juror.judge_id)._asdict()
            outcome: Outcome = "tie"
            if not match.is_identical:
                both = (after.verdicts[key].event.verdict for _, key in match.keys)
                outcome = swap_consistent(*both)
            basis: Basis = "identical" if match.is_identical else "verdicts"
            told.append(PairReconciled(outcome=outcome, basis=basis, **on_record))
    return (*events, *told)


def answered(opening: Sequence[Event]) -> tuple[Event, ...]:
    """Return an opening and every response that it wants."""
    return (*opening, *responses(known(*opening)))


def history(opening: Sequence[Event], *fates: Fate) -> tuple[Event, ...]:
    """Return an opening, every response, and matches that meet fates in the match list's order.

    Matches without a fate stay pending.
    """
    events = answered(opening)
    fated = zip(matches_of(known(*events)), fates, strict=False)
    return (*events, *(event for match, fate in fated for event in become(match, fate)))


def become(match: Match, fate: Fate) -> tuple[Event, ...]:
    """Return the events that make a match end so."""
    match fate:
        case "a" | "b" | "tie" | "inconsistent":
            forward, swapped = VERDICTS[fate]
            return (
                verdict(match.forward.query_key, forward),
                verdict(match.swapped.query_key, swapped),
                reconciled(match, fate),
            )
        case "pending":
            return ()
        case _:
            return (failure(match.forward, fate),)


def reconciled(match: Match, outcome: Outcome) -> PairReconciled:
    """Return the outcome of a match under the default policy."""
    key_ = match.key(judge().judge_id)
    return PairReconciled(outcome=outcome, **key_._asdict())


def failure(
    question: JudgeQuery, reason: FailureReason = "unreadable", *, attempt: int = 1
) -> JudgeQueryFailed:
    """Return an attempt at a question that gave no verdict."""
    return failure_of(question.query_key, reason, attempt=attempt)


def failure_of(
    query_key: Digest, reason: FailureReason = "unreadable", *, attempt: int = 1
) -> JudgeQueryFailed:
    """Return the same, of the query of a key."""
    return JudgeQueryFailed(
        query_key=query_key,
        judge=judge().judge_id,
        attempt=attempt,
        reason=reason,
        reply="",
        parser="final-line@1",
        stop_reason="end_turn",
        model="chrF2",
    )


def unanswerable(
    cell: PlannedResponse, reason: ResponseFailureReason = "prompt_too_long"
) -> ResponseFailed:
    """Return an entrant's failure to answer a prompt."""
    return ResponseFailed(
        response_key=cell.response_key,
        entrant_id=cell.entrant.entrant_id,
        prompt_id=cell.prompt.prompt_id,
        reason=reason,
        detail="",
    )


def everything(tournament: Tournament) -> frozenset[PromptId]:
    """Return the ids of the whole bank."""
    return frozenset(each.prompt_id for each in tournament.bank)


def planned_pairings(tournament: Tournament) -> tuple[Pairing, ...]:
    """Return every pairing on the whole bank."""
    return pairings(tournament, everything(tournament))


def matches_of(tournament: Tournament) -> tuple[Match, ...]:
    """Return every match that the first judge can be asked about."""
    found = (
        match_of(tournament, pairing, tournament.panel[0])
        for pairing in planned_pairings(tournament)
    )
    return tuple(match for match in found if match is not None)


def questions_of(tournament: Tournament) -> tuple[JudgeQuery, ...]:
    """Return the planned questions of every match, forward before swapped."""
    return tuple(
        question
        for match in matches_of(tournament)
        for question in map(match.query, match.pairing.orders)
    )


def settled(tournament: Tournament) -> tuple[Settlement, ...]:
    """Return what became of every pairing, for the first judge."""
    return settle(tournament, everything(tournament), tournament.panel[0])


def publication(tournament: Tournament, elo: EloParameters = ELO) -> Publication:
    """Return the claim of a pilot on the whole bank, made on what is known."""
    newest = tournament.newest
    return Publication(
        run="pilot_20260427_120000",
        terms=PublicationTerms(
            mode="pilot",
            judge=judge().judge_id,
            policy=DEFAULT_POLICY,
            elo=elo,
            entrants=tuple(each.entrant_id for each in tournament.roster),
            prompts=tuple(each.prompt_id for each in tournament.bank),
            bradley_terry=BradleyTerryParameters(),
        ),
        started_at=NOON,
        as_of=newest.position if newest else 1,
        head=key("head"),
    )


def results(*events: Event) -> Results:
    """Return the results of a pilot that is published after these events."""
    tournament = known(*events)
    return results_of(tournament, publication(tournament))


Said: TypeAlias = tuple[Verdict, Verdict]
"""A judge's verdicts on a pair: forward, swapped."""

JURORS = tuple(judge(name, model=name) for name in ("ann", "bob", "cleo"))
A: Final[Said] = ("A", "B")
B: Final[Said] = ("B", "A")
TIE: Final[Said] = ("TIE", "TIE")
SLOT_A: Final[Said] = ("A", "A")
SLOT_B: Final[Said] = ("B", "B")


@cache
def court(n_judges: int = 3) -> tuple[Event, ...]:
    """Return two prompts that zoe, amy and kim answered, and a panel: six pairings.

    In the order of the match list they are zoe-amy, zoe-kim, amy-kim, and the same again.
    """
    return answered(
        opened(
            prompts=[prompt("p1"), prompt("p2")],
            entrants=[entrant("zoe"), entrant("amy"), entrant("kim")],
            judges=JURORS[:n_judges],
        )
    )


def heard(events: Sequence[Event], *saids: Sequence[Said | None]) -> tuple[Event, ...]:
    """Return events, then each judge's verdicts on the pairings in turn, with their outcomes.

    Args:
        events: The opening and the responses.
        saids: For each judge of the panel what it says of each pairing; None is nothing.
    """
    tournament = known(*events)
    told = [
        event
        for juror, said_of in zip(tournament.panel, saids, strict=False)
        for match, said in zip(matches_for(tournament, juror), said_of, strict=False)
        if said is not None
        for event in verdicts_of(match, juror, said)
    ]
    return (*events, *told)


def marked(
    events: Sequence[Event], given: Sequence[tuple[JudgeScores, JudgeScores]]
) -> tuple[Event, ...]:
    """Return events, then the first judge's marks on the pairings in turn: forward, swapped."""
    tournament = known(*events)
    juror = tournament.panel[0]
    told = [
        verdict_by_marks(query.query_key, marks, by=juror.judge_id)
        for match, both in zip(matches_for(tournament, juror), given, strict=False)
        for query, marks in zip((match.forward, match.swapped), both, strict=True)
    ]
    return (*events, *told)


def verdict_by_marks(query_key: Digest, marks: JudgeScores, *, by: str) -> VerdictReceived:
    """Return the verdict of a reply in JudgeArena's form."""
    reply = "score_A: {:g}\nscore_B: {:g}".format(*marks)
    said = parse_score_verdict(reply)
    assert said is not None
    return replace(verdict(query_key, said, by=by), reply=reply, parser=SCORE_PARSER)


def matches_for(tournament: Tournament, juror: JudgeSettings) -> tuple[Match, ...]:
    """Return every match that a judge can be asked about."""
    found = (match_of(tournament, pairing, juror) for pairing in planned_pairings(tournament))
    return tuple(match for match in found if match is not None)


def verdicts_of(match: Match, juror: JudgeSettings, said: Said) -> tuple[Event, ...]:
    """Return a judge's two verdicts on a match, and their outcome."""
    return (
        verdict(match.forward.query_key, said[0], by=juror.judge_id),
        verdict(match.swapped.query_key, said[1], by=juror.judge_id),
        PairReconciled(outcome=swap_consistent(*said), **match.key(juror.judge_id)._asdict()),
    )


def sure(events: Sequence[Event], said: Mapping[str, float]) -> tuple[Event, ...]:
    """Return events in which some entrants say how likely their responses are right."""
    return tuple(
        replace(each, p_correct=said.get(each.entrant_id))
        if isinstance(each, ResponseGenerated)
        else each
        for each in events
    )
