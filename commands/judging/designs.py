"""Use case: forecast what each design would cost, and how sure it would leave the ratings."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import NormalDist
from typing import Final, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from commands.errors import counted, joined_names
from commands.spending.budget import dollars
from commands.spending.pricing import PRICED_OF_ALL, Pricing, evenly_spaced
from ledger.events.judging import Order
from ledger.events.ratings import BradleyTerryParameters
from ledger.events.registration import JudgeSettings, Rubric
from ledger.identity import EntrantId, PromptId
from projections.battles.columns import Battles, battles_of
from projections.ratings.bradley_terry.leaderboard import differences, pairs
from projections.ratings.bradley_terry.rate import BradleyTerryRatings, rate
from projections.ratings.forecast import (
    FEWEST_PROMPTS,
    SURE,
    Pilot,
    half_widths,
    meetings,
    pilot_of,
    prompts_needed,
)
from projections.results.ratings import DesignRow
from projections.tournament.bank import asked_prompts, is_eligible
from projections.tournament.compared import SCORES
from projections.tournament.designs import (
    BOTH,
    EntrantPair,
    Orders,
    PairDesign,
    design_of,
    orders_by,
    pairs_by,
    without_design,
)
from projections.tournament.matches import Match, complete_matches
from projections.tournament.remaining import awaited_queries
from projections.tournament.settlement import Settlement, by_dimension, settle_verdicts
from projections.tournament.state import Tournament
from projections.tournament.waves import stops_of
from projections.verdicts.queries import JudgeQuery

_POWER: Final = 0.8  # chance that is enough
_ROUNDING: Final = 0.01  # of what was asked for: it is met on a whole number of prompts
_TIE: Final = 0.5


class DesignGoal(NamedTuple):
    """What ratings are to show."""

    target: float | None  # Elo points: half of the mean interval of ratings, at most
    separate: tuple[str, str] | None  # two entrants of the roster that are to be told apart


def forecast_designs(
    state: Tournament,
    prompts: Collection[PromptId],
    judge: JudgeSettings,
    pricing: Pricing,
    retries: int,
    goal: DesignGoal,
) -> tuple[Sequence[DesignRow], Sequence[str]]:
    """Forecast each design on each dimension, from the verdicts on record.

    Returns:
        The rows of all dimensions, and what is to be said of them.
    """
    undesigned = without_design(state)  # pairs that a design leaves out were judged all the same
    settled = by_dimension(undesigned, settle_verdicts(undesigned, prompts, judge))
    rows: list[DesignRow] = []
    notes: list[str] = []
    for rubric in state.dimensions:
        evidence = _Evidence(
            undesigned,
            prompts,
            judge,
            pricing,
            retries,
            rubric,
            [
                settlement
                for settlement in settled[rubric.dimension]
                if settlement.share is not None
            ],
            design_of(state),
        )
        if evidence.pilot is None:
            notes.append(f"{rubric.dimension}: no forecast: {evidence.why_no_forecast}")
        elif goal.separate and not _gap(evidence.pilot.ratings, goal.separate).lead:
            notes.append(
                f"{rubric.dimension}: no forecast: {joined_names(goal.separate)} are rated equal so"
                " far, and no number of prompts tells equals apart"
            )
        else:
            rows += _marked([*_rows(evidence, evidence.pilot, goal)])
            notes += _notes(evidence, evidence.pilot)
    if rows and any(entrant.loader == "endpoint" for entrant in state.roster):
        notes.append("answers of the entrants are not counted")
    return rows, notes


@dataclass(frozen=True)
class _Evidence:
    """What is known of a dimension: its judged pairs, and what more queries cost."""

    state: Tournament  # without a design
    prompts: Collection[PromptId]
    judge: JudgeSettings
    pricing: Pricing
    retries: int
    rubric: Rubric
    judged: Sequence[Settlement]  # pairs with a verdict
    design: PairDesign  # as the settings name it
    _counts: dict[PairDesign, tuple[int, int]] = field(default_factory=dict)

    @cached_property
    def battles(self) -> Battles:
        """The judged pairs in columns, in the same order."""
        return battles_of(self.judged).by_verdicts("half")

    @cached_property
    def bank(self) -> tuple[PromptId, ...]:
        """The prompts on which the judge is asked on the dimension."""
        chosen = frozenset(asked_prompts(self.state, self.prompts, self.judge))
        return tuple(
            prompt.prompt_id
            for prompt in self.state.bank
            if prompt.prompt_id in chosen and is_eligible(self.rubric, prompt)
        )

    @cached_property
    def n_prompts(self) -> int:
        """How many prompts the bank has; several samples of one are one."""
        return len({self.state.same_texts[prompt_id] for prompt_id in self.bank})

    @cached_property
    def ids(self) -> list[EntrantId]:
        """The roster."""
        return [entrant.entrant_id for entrant in self.state.roster]

    @property
    def n_judged(self) -> int:
        """On how many prompts there is a verdict."""
        return len(np.unique(self.battles.cluster))

    @cached_property
    def ratings(self) -> BradleyTerryRatings:
        """By the verdicts there are."""
        return rate(self.battles, BradleyTerryParameters())

    @cached_property
    def pilot(self) -> Pilot | None:
        """What the verdicts say of other designs; None: too little."""
        is_met = {*self.ids} <= {*self.battles.entrants}
        if self.n_judged < FEWEST_PROMPTS or not is_met:
            return None
        apart = np.array([_apart(settlement) for settlement in self.judged])
        return pilot_of(self.battles, self.ratings, apart)

    @property
    def why_no_forecast(self) -> str:
        """Why nothing can be forecast, and what would help."""
        if self.n_judged >= FEWEST_PROMPTS:
            if (self.battles.score == _TIE).all():
                return "all verdicts agree: each is a tie, so no rating has an interval"
            sure = {row.entrant for row in self.ratings.rows() if row.low is not None}
            unsure = [name for name in self.ids if name not in sure] or self.ids
            return f"no interval yet of {joined_names(unsure)}; judge more prompts"
        n_queries = self.n_queries(self.design, FEWEST_PROMPTS)
        few = (
            f"it takes verdicts on {FEWEST_PROMPTS} prompts, and there are some on {self.n_judged}"
        )
        if self.n_prompts < FEWEST_PROMPTS:
            return f"{few}; add prompts to the {self.n_prompts} that can be judged"
        more = counted(n_queries, "query more", "queries more")
        return (
            f"{few}; a pilot of {FEWEST_PROMPTS} ([pilot] size, then `tourney run --mode pilot`)"
            f" asks {more}: {dollars(self.usd(n_queries))}"
        )

    def pairs(self, design: PairDesign) -> list[Sequence[EntrantPair]]:
        """Return the pairs of a design on each prompt."""
        planned = pairs_by(design, self.state)
        return [planned[prompt_id] for prompt_id in self.bank]

    def n_queries(self, design: PairDesign, n_prompts: int) -> int:
        """Return how many queries more a design asks on so many prompts, those judged included."""
        n_planned, n_known = self._counted(design)
        n_wanted = n_planned / max(1, self.n_prompts) * n_prompts
        return max(0, round(self._share_asked * (n_wanted - n_known)))

    def _counted(self, design: PairDesign) -> tuple[int, int]:
        """Return how many queries a design plans on the bank, and how many of them are known."""
        if design not in self._counts:
            orders, stops = orders_by(design, self.state), stops_of(self.state)
            dimension = self.rubric.dimension
            n_planned = n_known = 0
            for prompt_id, pairs in zip(self.bank, self.pairs(design), strict=True):
                for pair in pairs:
                    if stops.leaves_out(dimension, prompt_id, pair):
                        continue
                    planned = orders(prompt_id, *pair)
                    n_planned += len(planned)
                    n_known += sum((prompt_id, *pair, order) in self._known for order in planned)
            self._counts[design] = n_planned, n_known
        return self._counts[design]

    def usd(self, n_queries: int) -> float | None:
        """Return what queries cost, by the mean of those that are known; None: unknown."""
        return None if self._usd_of_one is None else self._usd_of_one * n_queries

    @cached_property
    def _usd_of_one(self) -> float | None:
        queries = evenly_spaced(self._queries, PRICED_OF_ALL)
        whole = self.pricing.expected_usd(queries) if queries else None
        return None if whole is None else whole / sum(query.n_verdicts for query in queries)

    @cached_property
    def _known(self) -> set[tuple[PromptId, EntrantId, EntrantId, Order]]:
        """What need not be asked: it has a verdict, or its pair tied unasked."""
        verdicts = self.state.verdicts
        return {
            (settlement.prompt_id, settlement.entrant_a, settlement.entrant_b, order)
            for settlement in self.judged
            for order in BOTH
            if len(settlement.said) != 1
            or (settlement.match and settlement.match.key_in(order) in verdicts)
        }

    @cached_property
    def _matches(self) -> list[Match]:
        """The pairs that have both responses."""
        return [
            match
            for match in complete_matches(self.state, self.prompts, self.judge)
            if match.pairing.rubric == self.rubric
        ]

    @cached_property
    def _share_asked(self) -> float:
        """The share of pairs that a judge is asked about: identical responses tie unasked."""
        if not self._matches:
            return 1.0
        return sum(not match.is_identical for match in self._matches) / len(self._matches)

    @cached_property
    def _queries(self) -> list[JudgeQuery]:
        """Queries whose mean cost stands for all; without responses, as if those were long."""
        matches = evenly_spaced(self._matches, PRICED_OF_ALL)
        return [match.forward for match in matches] or [
            query.asked
            for query in awaited_queries(self.state, self.bank, self.judge, self.retries)
            if self.rubric.dimension in {open_query.subject for open_query in query.every}
        ]


def _apart(judged: Settlement) -> float:
    """Return half of what a took more by the order that shows it first; NaN of one verdict."""
    if len(judged.said) == 1:
        return np.nan
    forward, swapped = (SCORES[outcome] for outcome in judged.said or ("tie", "tie"))
    return (forward - swapped) / 2


def _designs(evidence: _Evidence, goal: DesignGoal) -> Mapping[str, PairDesign]:
    """Return the designs that are compared, by how the settings name them."""
    ids, now = evidence.ids, evidence.design
    n = len(ids)
    n_pairs = n * (n - 1) // 2
    sizes = {now.sparse or 0, (n + 1) // 2, n, 2 * n}
    baseline = now.baseline or (goal.separate[1] if goal.separate else ids[0])
    sparse = {
        f"sparse = {size}": PairDesign(sparse=size) for size in sorted(sizes) if 0 < size < n_pairs
    }
    star = {f'baseline = "{baseline}"': PairDesign(baseline=EntrantId(baseline))}
    in_both = {"all pairs": PairDesign()} | (sparse | star if n_pairs > 1 else {})
    return {
        f"{name}{'' if orders == 'both' else f', {orders}'}": design._replace(orders=orders)
        for name, design in in_both.items()
        for orders in get_args(Orders)
    }


def _rows(evidence: _Evidence, pilot: Pilot, goal: DesignGoal) -> Iterator[DesignRow]:
    """Yield each design on the bank, and on the number of prompts that it needs."""
    for name, design in _designs(evidence, goal).items():
        planned = evidence.pairs(design)
        meets = meetings(pilot.ratings.entrants, planned if design.sparse else planned[:1])
        if pilot.shared is None and (meets.sum(axis=2) > 1).any():
            continue  # what pairs share that have an entrant in common is not known
        by_orders = pilot if design.orders == "both" else pilot.counterbalanced()
        if by_orders is None:
            continue
        n_needed = max(evidence.n_judged, _needed(by_orders, meets, goal))  # judged stays judged
        for n_prompts in sorted({evidence.n_prompts, n_needed}):
            ratings = by_orders.projected(meets, n_prompts)
            widths = half_widths(ratings)
            power = _power(ratings, goal.separate) if goal.separate else None
            n_queries = evidence.n_queries(design, n_prompts)
            yield DesignRow(
                dimension=evidence.rubric.dimension,
                design=name,
                n_prompts=n_prompts,
                n_pairs=round(sum(map(len, planned)) / evidence.n_prompts),
                n_queries=n_queries,
                usd=evidence.usd(n_queries),
                half_width=float(widths.mean()),
                widest=float(widths.max()),
                power=power,
                meets="yes" if _is_met(goal, float(widths.mean()), power) else "no",
            )


def _is_met(goal: DesignGoal, half_width: float, power: float | None) -> bool:
    """Say whether a design on a number of prompts shows what ratings are to show."""
    is_enough = goal.target is None or half_width <= goal.target * (1 + _ROUNDING)
    is_apart = power is None or power >= _POWER - _ROUNDING
    return is_enough and is_apart


def _needed(pilot: Pilot, meets: NDArray[np.bool_], goal: DesignGoal) -> int:
    """Return how many prompts a design needs for all of the goal."""
    needed = [1]
    if goal.target is not None:
        needed.append(pilot.needed(meets, goal.target))
    if goal.separate is not None:
        gap = _gap(pilot.projected(meets, pilot.n_prompts), goal.separate)
        reach = gap.reach + SURE * gap.error
        needed.append(prompts_needed(pilot.n_prompts, reach, gap.lead))
    return max(needed)


class _Gap(NamedTuple):
    """The difference of two ratings: how large, how far its interval reaches, and its error."""

    lead: float
    reach: float
    error: float


def _gap(ratings: BradleyTerryRatings, names: tuple[str, str]) -> _Gap:
    """Return the difference of two as the table of pairs tests it, with all others at once."""
    row = next(pair for pair in pairs(ratings) if {pair.entrant_a, pair.entrant_b} == {*names})
    one, other = map(ratings.entrants.index, names)
    reach = row.difference - (row.low or 0.0)
    return _Gap(row.difference, reach, float(differences(ratings).error[one, other]))


def _power(ratings: BradleyTerryRatings, names: tuple[str, str]) -> float:
    """Return the chance that the difference of two is significant, if it is as large as now."""
    gap = _gap(ratings, names)
    return NormalDist().cdf((gap.lead - gap.reach) / gap.error)


def _marked(rows: Sequence[DesignRow]) -> Iterator[DesignRow]:
    """Mark the cheapest that is enough, by dollars, or by queries where a judge is free."""
    enough = [row for row in rows if row.meets == "yes"]
    cheapest = min(enough, key=lambda row: (row.usd or 0.0, row.n_queries), default=None)
    for row in rows:
        yield row._replace(meets="cheapest") if row is cheapest else row


def _notes(evidence: _Evidence, pilot: Pilot) -> Iterator[str]:
    """Yield what the forecast rests on."""
    name = evidence.rubric.dimension
    n_judged, n_prompts = evidence.n_judged, evidence.n_prompts
    yield f"{name}: forecast from verdicts on {n_judged} prompts; {n_prompts} in all"
    if pilot.shared is None:
        yield (
            f"{name}: other designs cannot be forecast yet: no entrant met two others on one"
            " prompt. Judge all pairs on some prompts."
        )
    if pilot.of_order is None:
        yield (
            f"{name}: counterbalanced designs cannot be forecast yet: no pair has verdicts in both"
            " orders"
        )
