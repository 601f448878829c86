"""A candidate beside a baseline: not worse, better, worse, or not enough evidence.

Not worse: the lower bound of the candidate's lead is above -margin (non-inferiority, as in trials:
Piaggio et al. 2012). Worse: the upper bound is below 0. Where both hold, the candidate is worse by
less than the margin, and passes. With a margin of 0 it must be ahead: then the verdict is "better".

The verdicts are looked at after every 20 prompts, in the order in which prompts are judged, and the
first look that decides stands. Each look's interval is so wide that either end is wrong at some
look in at most 2.5 % of cases (`boundaries.levels`). So prompts may be judged until the verdict is
known, and it is the same however many more are judged by then.

One that won or lost every battle has no rating. Then the bounds are those of the share that the
candidate took of the two's own battles (Wilson's), as Elo points.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from math import inf, isfinite, log, nan
from typing import Final, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ledger.events.money import cost_usd
from ledger.events.ratings import BradleyTerryParameters
from ledger.events.registration import JudgeSettings
from ledger.identity import PromptId
from projections.battles.columns import CODES, TIE, Battles, battles_of, without_slot_effect
from projections.intervals import (
    FEWEST_CLUSTERS,
    RatioTerms,
    critical_value,
    estimate_ratio,
    known,
    wilson,
)
from projections.ratings.boundaries import levels
from projections.ratings.bradley_terry.component import ELO
from projections.ratings.bradley_terry.leaderboard import differences
from projections.ratings.bradley_terry.rate import rate
from projections.ratings.forecast import SURE, prompts_needed
from projections.results.ratings import GateRow, GateVerdict
from projections.tournament.compared import FAILURES, IDENTICAL
from projections.tournament.designs import PairDesign, design_of
from projections.tournament.settlement import Settlement, by_dimension, settle_verdicts
from projections.tournament.state import Tournament
from projections.tournament.waves import judging_order

GatePolicy: TypeAlias = Literal["not-worse", "better"]
MARGIN: Final = 30.0  # Elo points: at 30, 54 of 100 verdicts name the better
_AT_A_LOOK: Final = 20  # prompts more
_MOST_LOOKS: Final = 25
_ALL_LOOKS: Final = tuple((look + 1) / _MOST_LOOKS for look in range(_MOST_LOOKS))
_ROUNDING: Final = 1e-12  # of a share
_ALL_IDENTICAL: Final = "the two gave the same response to every prompt"
_STILL_ASKED: Final = frozenset({"pending", "errored", "expired", "canceled"})
_OPEN: Final = [CODES[status] for status in sorted(_STILL_ASKED)]
_FOR_GOOD: Final = frozenset(FAILURES) - _STILL_ASKED


class GateQuestion(NamedTuple):
    """Whether a candidate is good enough beside a baseline."""

    candidate: str
    baseline: str
    margin: float = MARGIN  # Elo points that the candidate may be behind; 0: it must be ahead

    @property
    def policy(self) -> GatePolicy:
        """What lets the candidate pass."""
        return "not-worse" if self.margin else "better"

    @property
    def pair(self) -> tuple[str, str]:
        """Both entrants."""
        return self.candidate, self.baseline


class GateLook(NamedTuple):
    """What is known on a dimension, and the prompts on which the next look needs more verdicts."""

    row: GateRow
    wanted: tuple[PromptId, ...] = ()


def gate_looks(
    tournament: Tournament, judge: JudgeSettings, question: GateQuestion
) -> Iterator[GateLook]:
    """Yield what the verdicts of a judge say on each dimension.

    Raises:
        CannotRate: The battles of a dimension cannot be rated.
    """
    bank = frozenset(prompt.prompt_id for prompt in tournament.bank)
    order, same_texts = judging_order(tournament), tournament.same_texts
    design = design_of(tournament)
    groups = by_dimension(tournament, settle_verdicts(tournament, bank, judge))
    for dimension, group in groups.items():
        own = [
            settlement
            for settlement in group
            if {settlement.entrant_a, settlement.entrant_b} == {*question.pair}
        ]
        # others' battles on the same prompts may be judged later, and would change an early look
        row, first_wanted = look_in_turn(dimension, battles_of(own or group), order, question)
        if not own and (design.baseline or design.sparse):
            row = row._replace(why=_never_meeting(row.why, design))
        texts = {same_texts[prompt_id] for prompt_id in first_wanted}
        wanted = (
            PromptId(str(prompt_id)) for prompt_id, text in same_texts.items() if text in texts
        )
        yield GateLook(_told_more(row, tournament, own), tuple(wanted))


def _told_more(row: GateRow, tournament: Tournament, own: Sequence[Settlement]) -> GateRow:
    """Add how many pairs of the two failed, and what more prompts would cost."""
    why, usd_more = row.why, None
    if n_failed := sum(settlement.status in _FOR_GOOD for settlement in own):
        failed = f"{n_failed} of {len(own)} pairs of the two failed, and count for neither"
        why = failed if why is None else f"{why}; {failed}"
    if row.n_more_prompts is not None and (usd := _usd_a_prompt(tournament, own)) is not None:
        usd_more = usd * row.n_more_prompts
    return row._replace(why=why, usd_more=usd_more)


def _never_meeting(why: str | None, design: PairDesign) -> str:
    """Add which setting leaves the pairs of the two out, so that nobody waits for them."""
    key = "sparse" if design.sparse else "baseline"
    left_out = f"[judging] {key} plans no pair of the two, so `tourney gate --run` asks none"
    return left_out if why is None else f"{why}; {left_out}"


def _usd_a_prompt(tournament: Tournament, own: Iterable[Settlement]) -> float | None:
    """Return what the verdicts on the two cost a prompt; None if that is not known."""
    matches = [settlement.match for settlement in own if settlement.match]
    given = {
        match.pairing.prompt.prompt_id: [tournament.verdicts.get(key) for _, key in match.keys]
        for match in matches
    }
    replies = [verdict.event for verdicts in given.values() for verdict in verdicts if verdict]
    costs = [cost_usd(reply.usage, reply.price) for reply in replies if reply.usage and reply.price]
    n_prompts = sum(any(verdicts) for verdicts in given.values())
    return sum(costs) / n_prompts if costs and len(costs) == len(replies) else None


def look_in_turn(
    dimension: str,
    planned: Battles,
    order: Sequence[Collection[PromptId]],
    question: GateQuestion,
) -> GateLook:
    """Look after every few prompts, until one look decides or lacks verdicts.

    Args:
        dimension: What is compared.
        planned: The two's own pairs, judged or not; those of all, if the two are to meet nowhere.
            Their clusters are prompts.
        order: The prompts as they are judged; what stands together is one step.
        question: What is to be known.
    """
    step_of, n_steps = _steps(planned, order)
    sizes = _sizes(n_steps)
    row = _unknown(dimension, question, "nothing is planned")
    for size, level in zip(sizes, levels(tuple(size / n_steps for size in sizes)), strict=True):
        seen = without_slot_effect(planned.take(step_of < size))  # not by what came later
        row = pass_or_stop(dimension, seen.by_verdicts("half"), question, level=level)
        is_open = seen.between(question.pair) & np.isin(seen.status, _OPEN)
        if n_open := int(np.count_nonzero(is_open)):
            wanted = tuple(str(planned.prompt_of(cluster)) for cluster in np.unique(seen.cluster))
            pairs = "pair of the two is" if n_open == 1 else "pairs of the two are"
            why = f"{n_open} {pairs} not judged yet: `tourney gate --run` goes on"
            held_back = row._replace(verdict="not enough", n_more_prompts=None, why=why)
            return GateLook(held_back, tuple(map(PromptId, wanted)))
        if row.verdict != "not enough":
            return GateLook(row)
    is_same = len(planned) > 0 and (planned.status == CODES[IDENTICAL]).all()
    if is_same and question.policy == "not-worse":
        row = row._replace(verdict="not worse", n_more_prompts=None, why=_ALL_IDENTICAL)
    return GateLook(row)


def _steps(planned: Battles, order: Sequence[Collection[PromptId]]) -> tuple[NDArray[np.intp], int]:
    """Return the step at which each battle is judged, and the number of steps with battles."""
    place = {name: number for number, names in enumerate(order) for name in names}
    of_cluster = np.array([place[PromptId(str(name))] for name in planned.prompts], dtype=np.intp)
    steps, numbered = np.unique(of_cluster, return_inverse=True)
    return numbered[planned.cluster], len(steps)


def _sizes(n_steps: int) -> Sequence[int]:
    """Return how many prompts each look has."""
    size = max(_AT_A_LOOK, -(-n_steps // _MOST_LOOKS))
    return [*range(size, n_steps, size), n_steps] if n_steps else []


def pass_or_stop(
    dimension: str, battles: Battles, question: GateQuestion, *, level: float
) -> GateRow:
    """Judge a candidate and a baseline by battles on a dimension.

    Args:
        dimension: What was compared.
        battles: Their clusters are prompts.
        question: What is to be known.
        level: Of the interval.
    """
    ratings = rate(battles, BradleyTerryParameters())
    if not set(question.pair) <= set(ratings.entrants):
        unmet = sorted({*question.pair} - {*ratings.entrants})
        has = "has" if len(unmet) == 1 else "have"
        return _unknown(dimension, question, f"{' and '.join(unmet)} {has} no battle")
    candidate, baseline = (ratings.entrants.index(name) for name in question.pair)
    gaps = differences(ratings)
    lead, error = gaps.points[candidate, baseline], gaps.error[candidate, baseline]
    reach, last = (
        float(critical_value(at, gaps.freedom[candidate, baseline]) * error)
        for at in (level, levels(_ALL_LOOKS)[-1])
    )
    bounds = _Bounds(lead - reach, lead + reach, int(ratings.support.n_clusters[candidate]))
    if np.isnan(reach):
        bounds = _by_share(battles, question.pair, level)
        bounds = bounds._replace(why=_why_unknown(lead, has_bounds=not np.isnan(bounds.low)))
    elif not battles.between(question.pair).any():
        bounds = bounds._replace(why="the two never met, and are compared through others")
    n_more = _more(len(np.unique(battles.cluster)), last, error, question.margin)
    return _row(dimension, question, lead, bounds, n_more)


class _Bounds(NamedTuple):
    """Of the lead; on how many prompts the two are compared, and what is to be said of it."""

    low: float
    high: float
    n_prompts: int
    why: str | None = None


def _row(
    dimension: str, question: GateQuestion, lead: float, bounds: _Bounds, n_more: int | None
) -> GateRow:
    verdict = _verdict(bounds.low, bounds.high, question)
    return GateRow(
        dimension,
        verdict,
        *question.pair,
        difference=known(lead),
        low=bounds.low if isfinite(bounds.low) else None,
        high=bounds.high if isfinite(bounds.high) else None,
        margin=question.margin,
        n_prompts=bounds.n_prompts,
        n_more_prompts=n_more if verdict == "not enough" else None,
        usd_more=None,
        why=bounds.why,
    )


def _unknown(dimension: str, question: GateQuestion, why: str) -> GateRow:
    margin, pair = question.margin, question.pair
    return GateRow(dimension, "not enough", *pair, None, None, None, margin, 0, None, None, why)


def _by_share(battles: Battles, pair: tuple[str, str], level: float) -> _Bounds:
    """Return the bounds of the lead by the two's own battles, and on how many prompts they met."""
    is_first = battles.a == battles.entrants.index(pair[0])
    places = np.flatnonzero(battles.between(pair) & ~np.isnan(battles.score))
    taken = np.where(is_first, battles.observed, 1.0 - battles.observed)[places]
    weight, clusters = battles.weight[places], battles.cluster[places]
    n_prompts = len(np.unique(clusters))
    share = estimate_ratio(RatioTerms(weight * taken, weight), clusters.tolist(), "share")
    if n_prompts < FEWEST_CLUSTERS or share.value is None:
        return _Bounds(nan, nan, n_prompts)
    z = float(critical_value(level, np.array(n_prompts - 1.0)))
    low, high = (ELO * _log_odds(bound) for bound in wilson(share.value, n_prompts, z))
    return _Bounds(low, high, n_prompts)


def _log_odds(share: float) -> float:
    if min(share, 1.0 - share) < _ROUNDING:
        return inf if share > TIE else -inf
    return log(share / (1.0 - share))


def _verdict(low: float, high: float, question: GateQuestion) -> GateVerdict:
    if low > -question.margin:
        return "not worse" if question.margin else "better"
    return "worse" if high < 0 else "not enough"


def _more(n_prompts: int, reach: float, error: float, margin: float) -> int | None:
    """Return how many more prompts show in 4 of 5 that equals are within the margin.

    The error falls with the root of their number, and the last look has its reach. A forecast by
    the lead so far would err by it. No number shows that equals are ahead, as margin 0 demands.
    """
    if np.isnan(reach) or not margin:
        return None
    return max(0, prompts_needed(n_prompts, reach + SURE * error, margin) - n_prompts)


def _why_unknown(lead: float, *, has_bounds: bool) -> str:
    if has_bounds:
        return "no interval of a rating: bounded by the share of the two's own battles"
    if np.isnan(lead):
        return "one of them beat all that it met, or lost to all, or they met nobody in common"
    return f"no interval: it takes {FEWEST_CLUSTERS} prompts, on which the two differ"
