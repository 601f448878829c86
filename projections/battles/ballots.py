"""Pairs for people to vote on, drawn by design, each with its sides drawn, too.

Two identical responses are no pair to vote on: judges are not asked about them either.

A pair's place in the sample follows from the seed and its id alone. So the sample of one seed stays
the same while responses are added, whoever votes and whenever; and the first so many of a random
one are a simple random sample.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from ledger.events.imports import BattlesImported, ImportedBattle, VoteSample, Winner
from ledger.events.responses import ResponseGenerated
from ledger.identity import Digest, Dimension, EntrantId, PromptId, digest_of
from projections.tournament.matches import Pairing, pairings, shown_response
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
        return _digest(self.pairing, name, annotator)


def _digest(pairing: Pairing, name: str, annotator: str | None) -> Digest:
    texts = sorted((pairing.a.response_key, pairing.b.response_key))
    return digest_of([name, annotator, pairing.battle_id, *texts])


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
    draws = {digest_of([sample.seed, pairing.battle_id]): pairing for pairing in planned}
    ballots = (_ballot(tournament, draws[draw], draw) for draw in sorted(draws))
    return tuple(ballot for ballot in ballots if ballot is not None)


def _disputed(tournament: Tournament, sample: VoteSample) -> frozenset[Digest]:
    """Return the pairs on which a judge's orders, or two judges, contradict each other."""
    prompts = frozenset(prompt.prompt_id for prompt in tournament.bank)
    said: defaultdict[Digest, set[str]] = defaultdict(set)
    for judge in tournament.panel:
        for settlement in settle_verdicts(tournament, prompts, judge):
            if settlement.outcome and settlement.dimension == sample.dimension:
                said[settlement.battle_id].add(settlement.outcome)
    return frozenset(
        battle
        for battle, outcomes in said.items()
        if len(outcomes) > 1 or "inconsistent" in outcomes
    )


def _ballot(tournament: Tournament, pairing: Pairing, draw: Digest) -> Ballot | None:
    """Return the ballot of a pair of two texts; the last bit of its draw says who is A."""
    first, second = pairing.a, pairing.b
    if int(draw[-1], 16) % 2:
        first, second = second, first
    a, b = shown_response(tournament, first), shown_response(tournament, second)
    if a is None or b is None or a.text == b.text:
        return None
    return Ballot(pairing, a, b, first.entrant.entrant_id, second.entrant.entrant_id)


def votes_cast(events: Iterable[BattlesImported]) -> Mapping[Digest, CastVote]:
    """Return the votes by the ballots that they are on."""
    cast: dict[Digest, CastVote] = {}
    for event in events:
        earlier = cast.get(event.file_digest)
        if event.drawn is not None and (earlier is None or event.mapping_version > earlier.n_cast):
            (winner,) = event.winners.values
            cast[event.file_digest] = CastVote(winner, event.mapping_version)
    return cast


def current_votes(
    tournament: Tournament, name: str, events: Sequence[BattlesImported]
) -> tuple[Mapping[Dimension, Sequence[BattlesImported]], int]:
    """Return the votes of a set on responses that compete, by dimension, and how many do not.

    A vote is on two texts; once an entrant was changed, its name stands for others. Battles of a
    file name no texts, and are on every dimension.
    """
    on: dict[Dimension, list[BattlesImported]] = {
        rubric.dimension: [] for rubric in tournament.dimensions
    }
    planned = _planned_by_names(tournament, events)
    n_outdated = 0
    for event in events:
        if event.drawn is None:
            dimensions = [*on]
        else:
            (vote,) = event.battles()
            dimensions = [
                pairing.rubric.dimension
                for pairing in planned[_names(vote)]
                if _digest(pairing, name, vote.judge_model) == event.file_digest
            ]
            n_outdated += not dimensions
        for dimension in dimensions:
            on[dimension].append(event)
    return on, n_outdated


_Names: TypeAlias = tuple[str | None, frozenset[str]]
"""A prompt and two entrants."""


def _names(vote: ImportedBattle) -> _Names:
    return vote.question_id, frozenset((vote.model_a, vote.model_b))


def _planned_by_names(
    tournament: Tournament, events: Iterable[BattlesImported]
) -> Mapping[_Names, Sequence[Pairing]]:
    """Return the pairings, on all dimensions, on whose prompts people voted."""
    prompts = {vote.question_id for event in events if event.drawn for vote in event.battles()}
    planned: defaultdict[_Names, list[Pairing]] = defaultdict(list)
    for pairing in pairings(tournament, {PromptId(prompt) for prompt in prompts if prompt}):
        planned[pairing.prompt.prompt_id, frozenset(pairing.entrants)].append(pairing)
    return planned
