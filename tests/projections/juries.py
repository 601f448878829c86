"""Tournaments that several judges judged."""

from collections.abc import Sequence
from typing import Final, TypeAlias

from msgspec.structs import replace

from ledger.events.judging import PairReconciled, Verdict, VerdictReceived
from ledger.events.registration import JudgeSettings
from ledger.events.registry import Event
from ledger.identity import Digest
from projections.tournament.matches import Match, match_of
from projections.tournament.state import Tournament
from projections.verdicts.parsers import SCORE_PARSER, JudgeScores, parse_score_verdict
from projections.verdicts.policies import DEFAULT_POLICY, swap_consistent
from tests.builders import entrant, judge, known, opened, prompt, verdict
from tests.projections.worlds import answered, planned

Said: TypeAlias = tuple[Verdict, Verdict]
"""A judge's verdicts on a pair: forward, swapped."""

JURORS = tuple(judge(name, model=name) for name in ("ann", "bob", "cleo"))
A: Final[Said] = ("A", "B")
B: Final[Said] = ("B", "A")
TIE: Final[Said] = ("TIE", "TIE")
SLOT_A: Final[Said] = ("A", "A")
SLOT_B: Final[Said] = ("B", "B")


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
    reply = f"score_A: {marks.a:g}\nscore_B: {marks.b:g}"
    said = parse_score_verdict(reply)
    assert said is not None
    return replace(verdict(query_key, said, by=by), reply=reply, parser=SCORE_PARSER)


def matches_for(tournament: Tournament, juror: JudgeSettings) -> tuple[Match, ...]:
    """Return every match that a judge can be asked about."""
    found = (match_of(tournament, pairing, juror) for pairing in planned(tournament))
    return tuple(match for match in found if match is not None)


def verdicts_of(match: Match, juror: JudgeSettings, said: Said) -> tuple[Event, ...]:
    """Return a judge's two verdicts on a match, and their outcome."""
    return (
        verdict(match.forward.query_key, said[0], by=juror.judge_id),
        verdict(match.swapped.query_key, said[1], by=juror.judge_id),
        PairReconciled(
            outcome=swap_consistent(*said), **match.key(juror.judge_id, DEFAULT_POLICY)._asdict()
        ),
    )
