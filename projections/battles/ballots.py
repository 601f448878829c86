"""Pairs for people to vote on, drawn by design, each with its sides drawn, too.

A pair's place in the sample follows from the seed and its id alone. So the sample of one seed stays
the same while responses are added, whoever votes and whenever; and the first so many of a random
one are a simple random sample.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ledger.events.imports import BattlesImported, VoteSample, Winner
from ledger.events.responses import ResponseGenerated
from ledger.identity import Digest, EntrantId, digest_of
from projections.tournament.matches import Pairing, pairings
from projections.tournament.settlement import settle_verdicts
from projections.tournament.state import Tournament


class Ballot(NamedTuple):
    """A pair as it is put to whoever votes: without names, one response as A and one as B."""

    pairing: Pairing
    a: ResponseGenerated
    b: ResponseGenerated
    entrant_a: EntrantId
    entrant_b: EntrantId

    def digest(self, name: str, annotator: str) -> Digest:
        """Identify what an annotator is asked for a set: the pair, whichever side is which."""
        texts = sorted((self.a.response_key, self.b.response_key))
        return digest_of([name, annotator, self.pairing.battle_id, *texts])


class CastVote(NamedTuple):
    """The vote that counts on a ballot, and how many were cast: the last one counts."""

    winner: Winner
    n_cast: int


def ballots_of(tournament: Tournament, sample: VoteSample) -> tuple[Ballot, ...]:
    """Return the ballots of a sample, in the order in which they are put."""
    prompts = frozenset(prompt.prompt_id for prompt in tournament.bank)
    planned = [
        pairing
        for pairing in pairings(tournament, prompts)
        if pairing.rubric.dimension == sample.dimension
    ]
    if sample.design == "disagreement":
        disputed = _disputed(tournament, sample)
        planned = [pairing for pairing in planned if pairing.battle_id in disputed]
    draws = {digest_of([sample.seed, each.battle_id]): each for each in planned}
    ballots = (_ballot(tournament, draws[draw], draw) for draw in sorted(draws))
    return tuple(ballot for ballot in ballots if ballot is not None)


def _disputed(tournament: Tournament, sample: VoteSample) -> frozenset[Digest]:
    """Return the pairs on which a judge's orders, or two judges, contradict each other."""
    prompts = frozenset(prompt.prompt_id for prompt in tournament.bank)
    said: defaultdict[Digest, set[str]] = defaultdict(set)
    for judge in tournament.panel:
        for each in settle_verdicts(tournament, prompts, judge):
            if each.outcome and each.dimension == sample.dimension:
                said[each.battle_id].add(each.outcome)
    return frozenset(
        battle
        for battle, outcomes in said.items()
        if len(outcomes) > 1 or "inconsistent" in outcomes
    )


def _ballot(tournament: Tournament, pairing: Pairing, draw: Digest) -> Ballot | None:
    """Return the ballot of a pair; the last bit of its draw says who is A."""
    first, second = pairing.a, pairing.b
    if int(draw[-1], 16) % 2:
        first, second = second, first
    a = tournament.responses.get(first.response_key)
    b = tournament.responses.get(second.response_key)
    if a is None or b is None:
        return None
    return Ballot(pairing, a, b, first.entrant.entrant_id, second.entrant.entrant_id)


def votes_cast(events: Iterable[BattlesImported]) -> Mapping[Digest, CastVote]:
    """Return the votes by the ballots that they are on."""
    cast: dict[Digest, CastVote] = {}
    for event in events:
        known = cast.get(event.file_digest)
        if event.drawn is not None and (known is None or event.mapping_version > known.n_cast):
            (winner,) = event.winners.values
            cast[event.file_digest] = CastVote(winner, event.mapping_version)
    return cast
