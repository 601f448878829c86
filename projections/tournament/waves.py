"""The waves of a tournament whose verdicts are looked at before it is whole.

Prompts are judged in as many waves as there are looks, each an equal part of every source: the
pilot's first, since they may be judged already, then as the seed draws them. Where a look decided a
pair, or found it futile, the pair is not planned on prompts of later waves. A look holds for the
judge, the rubric and the two configurations that it saw: where one was changed since, all is open.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from math import ceil, inf
from typing import Final, Literal, NamedTuple

from ledger.events.judging import DimensionLook, LookTaken, PairOfEntrants
from ledger.events.registration import Entrant, JudgeSettings, Reference, Rubric
from ledger.identity import Digest, Dimension, EntrantId, PromptId, digest_of
from projections.tournament.bank import (
    first_samples,
    is_eligible,
    outside_share,
    recorded_pilot,
    recorded_samples,
)
from projections.tournament.designs import EntrantPair, not_planned, planned_pairs
from projections.tournament.state import Tournament

FEWEST_IN_A_WAVE: Final = 20  # prompts; on fewer, a look decides by chance
_MOST_WAVES: Final = 25


def planned_looks(tournament: Tournament) -> int | Literal["any"] | None:
    """Return the number of looks that the newest opening plans; None: there are none."""
    n_looks: int | Literal["any"] | None
    n_looks = tournament.configuration.get("judging", {}).get("looks")
    return n_looks


def n_looks_of(tournament: Tournament) -> int | None:
    """Return how many looks the newest opening plans, for its bank; None: there are none."""
    looks = planned_looks(tournament)
    if looks is None:
        return None
    n_prompts = len(first_samples(tournament.bank, recorded_samples(tournament.configuration)))
    return min(_MOST_WAVES if looks == "any" else looks, max(1, n_prompts // FEWEST_IN_A_WAVE))


def looked_at(tournament: Tournament) -> JudgeSettings:
    """Return the judge whose verdicts are looked at: that of all prompts."""
    return tournament.panel[0]


def judge_reference(tournament: Tournament) -> Reference:
    """Return that judge's label, and the digest of what determines its replies."""
    judge, opening = looked_at(tournament), tournament.opening
    guidance = judge.told(opening.instructions).guidance if opening else ""
    together = ["together"] if judge.is_together else []
    return Reference(label=judge.judge_id, digest=digest_of([judge.digest, guidance, *together]))


def looks_taken(tournament: Tournament) -> tuple[LookTaken, ...]:
    """Return the looks at the judge and the prompts of today, while looks are planned.

    Where most prompts of a wave were replaced since, its look says nothing of what they are now.
    """
    if not tournament.looks or n_looks_of(tournament) is None:
        return ()
    digest, bank = judge_reference(tournament).digest, {*_asked(tournament)}
    return tuple(
        look
        for look in tournament.looks
        if look.judge.digest == digest
        and 2 * len(bank.intersection(look.prompts)) >= len(look.prompts)
    )


def _asked(tournament: Tournament) -> Iterable[Reference]:
    return tournament.opening.prompts if tournament.opening else ()


def looks_at(tournament: Tournament, rubric: Rubric) -> tuple[DimensionLook, ...]:
    """Return what those looks say of a dimension by its rubric of today."""
    dimension_looks = (seen for look in looks_taken(tournament) for seen in look.dimensions)
    return tuple(seen for seen in dimension_looks if seen.rubric.digest == rubric.digest)


def entrant_reference(entrant: Entrant) -> Reference:
    """Return an entrant's label, and the digest of what determines its responses."""
    return Reference(label=entrant.entrant_id, digest=entrant.digest)


def entrant_now(tournament: Tournament, reference: Reference) -> EntrantId | None:
    """Return today's label of an entrant that a look names; None if its like is not there."""
    alike = [
        entrant.entrant_id for entrant in tournament.roster if entrant.digest == reference.digest
    ]
    return EntrantId(reference.label) if reference.label in alike else next(iter(alike), None)


def decided_pairs(tournament: Tournament, rubric: Rubric) -> frozenset[frozenset[EntrantId]]:
    """Return the pairs of today's entrants that a look decided on a dimension."""
    looks = looks_at(tournament, rubric)
    return frozenset(_pairs_now(tournament, (pair for look in looks for pair in look.decided)))


def _pairs_now(
    tournament: Tournament, pairs: Iterable[PairOfEntrants]
) -> Iterator[frozenset[EntrantId]]:
    """Yield pairs by today's labels; one whose like competes no more is left out."""
    for pair in pairs:
        a, b = entrant_now(tournament, pair.a), entrant_now(tournament, pair.b)
        if a is not None and b is not None:
            yield frozenset((a, b))


class Stops(NamedTuple):
    """Which pairs are not asked on which prompts, since a look stopped them."""

    wave_of: Mapping[PromptId, int]  # of waves that were looked at, from 0
    last_wave: Mapping[tuple[Dimension, frozenset[EntrantId]], int]  # in which a pair was asked

    def leaves_out(self, dimension: Dimension, prompt_id: PromptId, pair: Sequence[str]) -> bool:
        """Say whether a pair was stopped before a prompt's wave."""
        if not self.last_wave:
            return False
        last = self.last_wave.get((dimension, frozenset(map(EntrantId, pair))), inf)
        return self.wave_of.get(prompt_id, inf) > last


def stops_of(tournament: Tournament) -> Stops:
    """Return what the looks so far stopped."""
    looks = looks_taken(tournament)
    waves = {prompt: wave for wave, look in enumerate(looks) for prompt in look.prompts}
    wave_of = {
        PromptId(reference.label): waves[reference]
        for reference in _asked(tournament)
        if reference in waves
    }
    rubrics = {rubric.digest: rubric for rubric in tournament.dimensions}
    last_wave: dict[tuple[Dimension, frozenset[EntrantId]], int] = {}
    for wave, look in enumerate(looks):
        for seen in look.dimensions:
            if (rubric := rubrics.get(seen.rubric.digest)) is not None:
                # what was futile then need not be so on more prompts
                n_eligible = sum(is_eligible(rubric, prompt) for prompt in tournament.bank)
                futile = seen.futile if n_eligible <= seen.n_planned else ()
                for pair in _pairs_now(tournament, (*seen.decided, *futile)):
                    last_wave.setdefault((rubric.dimension, pair), wave)
    return Stops(wave_of, last_wave)


def prompts_so_far(tournament: Tournament, prompts: Collection[PromptId]) -> Collection[PromptId]:
    """Return those of the bank's prompts that are to be judged before the next look.

    All of them without looks, or where only a part of the bank is to be judged, as in a pilot.
    """
    bank = [prompt.prompt_id for prompt in tournament.bank]
    if n_looks_of(tournament) is None or not frozenset(prompts).issuperset(bank):
        return prompts
    later = frozenset(chain.from_iterable(waves_to_come(tournament)[1:]))
    return tuple(prompt for prompt in bank if prompt not in later)


def open_wave(tournament: Tournament) -> tuple[PromptId, ...]:
    """Return the prompts of the wave that was not looked at yet; none after the last look."""
    return next(iter(waves_to_come(tournament)), ())


def waves_to_come(tournament: Tournament) -> Sequence[tuple[PromptId, ...]]:
    """Return the prompts of each wave that was not looked at yet, as looks are planned today.

    What is left is divided in equal parts; a prompt is in one wave with all its samples.
    """
    n_looks, looks = n_looks_of(tournament), looks_taken(tournament)
    if n_looks is None:
        return ()
    looked_at_before = frozenset(prompt for look in looks for prompt in look.prompts)
    seen = {reference.label for reference in _asked(tournament) if reference in looked_at_before}
    left = [samples for samples in judging_order(tournament) if samples[0] not in seen]
    n_more, waves = n_looks - len(looks), list[tuple[PromptId, ...]]()
    while left:
        n_next = ceil(len(left) / max(1, n_more))
        waves.append(tuple(chain.from_iterable(left[:n_next])))
        left, n_more = left[n_next:], n_more - 1
    return waves


def judging_order(tournament: Tournament) -> Sequence[Sequence[PromptId]]:
    """Return the prompts, each with all its samples, in the order in which they are judged.

    Each source is spread over the whole, the pilot's prompts at the beginning.
    """
    opening, bank = tournament.opening, tournament.bank
    if opening is None:
        return ()
    firsts = first_samples(bank, recorded_samples(tournament.configuration))
    pilot = recorded_pilot(bank, tournament.configuration)
    by_source: defaultdict[str, list[tuple[bool, Digest, int]]] = defaultdict(list)
    for place, prompt in enumerate(firsts):
        drawn = digest_of([opening.generation_seed, prompt.text])
        by_source[prompt.source].append((prompt.prompt_id not in pilot, drawn, place))
    spread = sorted(
        ((rank + 0.5) / len(members), drawn, place)
        for members in by_source.values()
        for rank, (_, drawn, place) in enumerate(sorted(members))
    )
    return [[sample.prompt_id for sample in bank[place :: len(firsts)]] for *_, place in spread]


def widening_of(tournament: Tournament, judge: JudgeSettings, dimension: Dimension) -> float:
    """Return how much wider intervals by a judge's verdicts are, since they were looked at.

    A pair that stopped early was ahead by luck, too: an interval of the last look's critical value
    holds for all (Jennison and Turnbull 1989).
    """
    if not tournament.looks or judge != looked_at(tournament):
        return 1.0
    rubrics = [rubric for rubric in tournament.dimensions if rubric.dimension == dimension]
    looks = (look for rubric in rubrics for look in looks_at(tournament, rubric))
    return max((look.widening for look in looks), default=1.0)


def not_asked(tournament: Tournament, *judges: JudgeSettings) -> tuple[str, ...]:
    """Return sentences on what the design, the looks and the shares of judges leave out."""
    shares = (sentence for judge in judges for sentence in outside_share(tournament, judge))
    return (*not_planned(tournament), *_said_of_looks(tournament), *shares)


def n_spared(tournament: Tournament) -> int:
    """Return how many comparisons are not asked, since looks stopped their pairs."""
    stops, pairs = stops_of(tournament), planned_pairs(tournament)
    return sum(_n_spared(tournament, rubric, stops, pairs) for rubric in tournament.dimensions)


def _n_spared(
    tournament: Tournament,
    rubric: Rubric,
    stops: Stops,
    pairs: Mapping[PromptId, Sequence[EntrantPair]],
) -> int:
    return sum(
        stops.leaves_out(rubric.dimension, prompt.prompt_id, pair)
        for prompt in tournament.bank
        if is_eligible(rubric, prompt)
        for pair in pairs[prompt.prompt_id]
    )


def _said_of_looks(tournament: Tournament) -> Iterator[str]:
    n_looks = n_looks_of(tournament)
    if n_looks is None:
        return
    if not looks_taken(tournament):
        wished = planned_looks(tournament)
        few = f" instead of {wished}, since a look takes {FEWEST_IN_A_WAVE} prompts"
        reason = few if wished not in {n_looks, "any"} else ""
        yield (
            f"{n_looks} looks are planned{reason}; they may spare comparisons and responses"
            if n_looks > 1
            else f"one look is planned{reason}; it spares nothing"
        )
        return
    stops, pairs = stops_of(tournament), planned_pairs(tournament)
    planned = {frozenset(pair) for meeting in pairs.values() for pair in meeting}
    for rubric in tournament.dimensions:
        n_taken = len(looks_at(tournament, rubric))
        decided = planned & decided_pairs(tournament, rubric)
        stopped = {pair for dimension, pair in stops.last_wave if dimension == rubric.dimension}
        yield (
            f"{rubric.dimension}: {n_taken} of {max(n_taken, n_looks)} looks taken:"
            f" {len(decided)} of {len(planned)} pairs decided,"
            f" {len(planned & stopped - decided)} futile;"
            f" {_n_spared(tournament, rubric, stops, pairs)} comparisons spared"
        )
