"""The outcomes that a tournament recorded, found by the names in them, without its texts.

An outcome names its pair, and its two queries by their keys; it counts if the pair's texts still
give these keys. Where nothing that a judge is shown was ever registered anew under the same name,
they do, and are not computed: that would take longer than everything else. The other outcomes are
*doubtful*: their pairs are settled by keys, as are pairs without an outcome.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from itertools import combinations
from math import prod
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ledger.events.judging import PairReconciled
from ledger.events.registration import Instructions, JudgeSettings, Reference, Rubric
from ledger.identity import Dimension, EntrantId, JudgeId, PromptId
from ledger.recorded import Recorded
from projections.battles.comparisons import CODES, TOOK, Comparisons
from projections.tournament.compared import IDENTICAL
from projections.tournament.matches import Pairing, is_eligible, pairings
from projections.tournament.settlement import recorded_settlement
from projections.tournament.state import PairNames, QueriesOnRecord, QueryKeys, Tournament

_OPEN: Final = 255  # no outcome is known by its names
_N_NAMES: Final = 4  # of a pair, with which the key of an outcome begins
_N_QUERIES: Final = 2  # with whose keys it ends
Codes: TypeAlias = NDArray[np.uint8]


class Axes(NamedTuple):
    """The places of names along three axes: a pair's byte stands where those of its names meet."""

    dimensions: Mapping[Dimension, int]
    prompts: Mapping[PromptId, int]
    pairs: Mapping[tuple[EntrantId, EntrantId], int]
    shape: tuple[int, int, int]

    def place(self, event: PairReconciled) -> int | None:
        """Return where the byte of an outcome's pair stands; None if a name has no place."""
        try:
            row = self.dimensions[event.dimension] * self.shape[1] + self.prompts[event.prompt_id]
            return row * self.shape[2] + self.pairs[event.entrant_a, event.entrant_b]
        except KeyError:
            return None

    def place_of(self, pairing: Pairing) -> int:
        """Return where a planned pairing's byte stands."""
        row = self.dimensions[pairing.rubric.dimension] * self.shape[1]
        names = pairing.a.entrant.entrant_id, pairing.b.entrant.entrant_id
        return (row + self.prompts[pairing.prompt.prompt_id]) * self.shape[2] + self.pairs[names]


class OutcomesOnRecord(NamedTuple):
    """How a tournament's pairs ended.

    known: By judge and policy, the codes of the outcomes that count, along the axes.
    doubtful: Outcomes that count only if they have the keys that the texts give.
    judges: All who have an outcome.
    """

    axes: Axes
    known: Mapping[tuple[str, str], bytearray]
    doubtful: tuple[Recorded, ...]
    judges: frozenset[JudgeId]

    def codes(self, judge: JudgeId, policy: str) -> Codes:
        """Return the codes by a judge and policy, (n_dimensions, n_prompts, n_pairs)."""
        found = self.known.get((judge, policy)) or _unknown(self.axes)
        return np.frombuffer(found, dtype=np.uint8).reshape(self.axes.shape).copy()


def outcomes_on_record(setting: Tournament, events: Iterable[Recorded]) -> OutcomesOnRecord | None:
    """Sort the outcomes that a tournament recorded, none of them merged in.

    Args:
        setting: The tournament with its openings and registrations.
        events: Its outcomes.

    Returns:
        None where names do not tell: the judges' instructions or the seed of responses changed, or
        two outcomes are of one pair.
    """
    if len(_told(setting)) > 1:
        return None
    axes = _axes_of(setting)
    firm, firm_judges = _firm_part(axes, setting), _registered_once(setting.judges)
    known: defaultdict[tuple[str, str], bytearray] = defaultdict(lambda: _unknown(axes))
    doubtful, judges = list[Recorded](), set[JudgeId]()
    for recorded in events:
        if not isinstance(event := recorded.event, PairReconciled):
            continue
        judges.add(event.judge)
        place = firm.place(event)
        if place is None or event.judge not in firm_judges:
            doubtful.append(recorded)
            continue
        codes = known[event.judge, event.policy]
        if codes[place] != _OPEN:
            return None
        is_identical = event.outcome == "tie" and event.forward == event.swapped
        codes[place] = CODES[IDENTICAL if is_identical else event.outcome]
    return OutcomesOnRecord(axes, known, tuple(doubtful), frozenset(judges))


def _unknown(axes: Axes) -> bytearray:
    return bytearray([_OPEN]) * prod(axes.shape)


def _told(setting: Tournament) -> set[tuple[Instructions, int]]:
    """Return what openings told judges and entrants, beside what is registered."""
    openings = (*setting.replaced_openings, setting.opening)
    return {(each.instructions, each.generation_seed) for each in openings if each}


def _axes_of(setting: Tournament) -> Axes:
    """Return the places of every prompt on every dimension, those that are left out of it, too."""
    roster = [each.entrant_id for each in setting.roster]
    dimensions = {each.dimension: n for n, each in enumerate(setting.dimensions)}
    prompts = {each.prompt_id: n for n, each in enumerate(setting.bank)}
    pairs = {pair: n for n, pair in enumerate(combinations(roster, 2))}
    return Axes(dimensions, prompts, pairs, (len(dimensions), len(prompts), len(pairs)))


def _firm_part(axes: Axes, setting: Tournament) -> Axes:
    """Keep the names that never had another meaning."""
    rubrics, prompts = _registered_once(setting.rubrics), _registered_once(setting.prompts)
    entrants = _registered_once(setting.entrants)
    return axes._replace(
        dimensions={name: n for name, n in axes.dimensions.items() if name in rubrics},
        prompts={name: n for name, n in axes.prompts.items() if name in prompts},
        pairs={pair: n for pair, n in axes.pairs.items() if entrants.issuperset(pair)},
    )


def _registered_once(known: Iterable[Reference]) -> set[str]:
    return {label for label, n in Counter(each.label for each in known).items() if n == 1}


def queries_on_record(tournament: Tournament) -> QueriesOnRecord:
    """Return the keys of the queries that recorded outcomes name, none of them merged in.

    Nothing where names do not tell which texts a judge was shown: some name had two meanings, or
    two outcomes of a pair have different keys.
    """
    named = (tournament.prompts, tournament.rubrics, tournament.entrants, tournament.judges)
    if len(_told(tournament)) > 1 or any(len(_registered_once(x)) < len(x) for x in named):
        return {}
    found: defaultdict[JudgeId, dict[PairNames, QueryKeys]] = defaultdict(dict)
    for key in tournament.outcomes:
        names, queries = key[:_N_NAMES], key[-_N_QUERIES:]
        if found[key.judge].setdefault(names, queries) != queries:
            return {}
    return found


def open_pairings(
    state: Tournament, found: OutcomesOnRecord, judge: JudgeSettings, policy: str
) -> tuple[Pairing, ...]:
    """Return the planned pairings without a known outcome by a judge, in match order."""
    codes = found.codes(judge.judge_id, policy)
    has_open = (codes == _OPEN).any(axis=(0, 2))
    prompts = [each.prompt_id for each, some in zip(state.bank, has_open, strict=True) if some]
    flat = codes.ravel()
    return tuple(
        each for each in pairings(state, prompts) if flat[found.axes.place_of(each)] == _OPEN
    )


def comparisons_on_record(
    state: Tournament,
    found: OutcomesOnRecord,
    judge: JudgeSettings,
    policy: str,
    unknown: Iterable[Pairing],
) -> dict[Dimension, Comparisons]:
    """Return how every planned pairing ended by a judge and policy, by dimension.

    Args:
        state: With the doubtful outcomes, and with whatever was recorded of the responses and
            queries of open pairings.
        found: The outcomes on record.
        judge: The judge.
        policy: How its verdicts became outcomes.
        unknown: The open pairings.
    """
    codes = found.codes(judge.judge_id, policy)
    flat = codes.ravel()
    for each in unknown:
        status = recorded_settlement(state, each, judge, policy).exact_status
        flat[found.axes.place_of(each)] = CODES[status]
    return {
        each.dimension: _on_dimension(state, each, codes[found.axes.dimensions[each.dimension]])
        for each in state.dimensions
    }


def _on_dimension(state: Tournament, rubric: Rubric, codes: Codes) -> Comparisons:
    """Return the comparisons of a dimension; codes: (n_prompts, n_pairs).

    Inconsistent pairs have share nan, as what verdicts say is not read: for Elo only.
    """
    eligible = np.flatnonzero([is_eligible(rubric, prompt) for prompt in state.bank])
    first, second = np.triu_indices(len(state.roster), 1)  # as `combinations` has them
    status = codes[eligible].ravel()
    prompts = {each.text: each.prompt_id for each in reversed(state.bank)}
    numbers = {text: number for number, text in enumerate(prompts)}
    cluster = np.array([numbers[each.text] for each in state.bank], dtype=np.intp)[eligible]
    return Comparisons(
        entrants=tuple(each.entrant_id for each in state.roster),
        clusters=tuple(prompts),
        prompts=tuple(prompts.values()),
        a=np.tile(first, len(eligible)),
        b=np.tile(second, len(eligible)),
        cluster=np.repeat(cluster, len(first)),
        status=status,
        share=np.asarray(TOOK[status]),
        weight=np.ones(len(status)),
    )
