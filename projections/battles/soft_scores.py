"""Soft scores: a probability of winning from a judge's two scores, and its calibration.

A soft score is sigma(T (score of a - score of b)); JudgeArena's preference is b's share, 1 minus
it. T, called the temperature there although a higher one is steeper, can be calibrated so that soft
scores best predict human votes, where people voted on the same prompts and pairs. Bradley-Terry
ratings of soft scores are what JudgeArena calls soft Elo.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import replace
from math import nan
from operator import attrgetter
from statistics import NormalDist
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from ledger.errors import TourneyError
from ledger.events.judging import Order
from projections.battles.columns import TIE, Battles, battles_of
from projections.intervals import Floats
from projections.tournament.matches import Match
from projections.tournament.settlement import Settlement, reply_of
from projections.tournament.state import Tournament
from projections.verdicts.parsers import SCORE_PARSER, parse_judge_scores
from projections.verdicts.policies import CONCATENATE, Rule


def sigma(log_odds: Floats) -> Floats:
    """Return 1 / (1 + exp(-x)), to full relative precision.

    1 - sigma(x) is sigma(-x), as precise.
    """
    return np.exp(np.minimum(log_odds, 0.0)) / (1.0 + np.exp(-np.abs(log_odds)))


TEMPERATURE: Final = 0.3  # JudgeArena's, for marks from 0 to 10
FEWEST_PAIRS: Final = 10  # to calibrate by, as there

_SETTLED: Final = 1e-9  # of the temperature; what is left is about the square of it
_MOST_STEPS: Final = 200  # margins of which one is 1e-17 of another settle in about 50


class CannotCalibrate(TourneyError):
    """Human votes do not determine the temperature of a judge's scores."""

    def __init__(self, why: str, remedy: str) -> None:
        super().__init__(f"cannot calibrate the temperature: {why}; {remedy}")
        self.why, self.remedy = why, remedy


class Temperature(NamedTuple):
    """A calibrated temperature; negative if people prefer what the judge scores lower.

    error: standard error, clustered by prompt, NaN for a single prompt; n_pairs: battles that
    people decided; n_ties: those that were skipped; n_prompts: of the decided ones.
    """

    value: float
    error: float
    n_pairs: int
    n_ties: int
    n_prompts: int

    def interval(self, level: float) -> tuple[float, float]:
        """Return the bounds of the confidence interval at a level."""
        margin = NormalDist().inv_cdf((1 + level) / 2) * self.error
        return self.value - margin, self.value + margin


class ScoredBattles(NamedTuple):
    """Battles, and the judge's score of a minus that of b in each, (n,)."""

    battles: Battles
    margin: Floats

    def soft(self, temperature: float) -> Battles:
        """Return the battles with soft scores, computed from the judge's scores.

        Nothing is taken off for the slot: soft scores have to lie between 0 and 1.
        """
        score = soft_scores(self.margin, 0.0, temperature=temperature)
        return replace(self.battles, score=score, slot=0)


def soft_scores(
    marks_a: Floats | float, marks_b: Floats | float, *, temperature: float = TEMPERATURE
) -> Floats:
    """Return what a took by each pair of marks, in [0, 1], in the shape of the marks."""
    return sigma(temperature * (np.asarray(marks_a, dtype=np.float64) - marks_b))


def margin_of(pref: Floats) -> Floats:
    """Return the score of a minus that of b, from which preferences were made at `TEMPERATURE`.

    Args:
        pref: Probability that b is better, in [0, 1]; 0 and 1 have infinite margins.
    """
    with np.errstate(divide="ignore"):
        log_odds: Floats = np.log1p(-pref) - np.log(pref)
    return log_odds / TEMPERATURE


def calibrate(battles: Battles, margin: Floats) -> Temperature:
    """Find the temperature at which a judge's scores best predict human votes.

    T = argmin sum of w log(1 + exp(-T (2 y - 1) margin)) over decided battles, where y is 1 if
    people preferred a. Ties are skipped: they would only make T smaller. The standard error is the
    sandwich's, valid even if the sigmoid does not fit exactly.

    Args:
        battles: The human votes.
        margin: (n,) the judge's score of a minus that of b, finite.

    Raises:
        CannotCalibrate: Fewer than 10 battles are decided; or no finite T is best, because people
            always preferred what the judge scored higher, or never did; or the fit does not
            converge, because some margins are tiny beside others.
    """
    pairs = _decided(battles, margin)
    n_pairs = len(pairs.margin)
    if n_pairs < FEWEST_PAIRS:
        raise CannotCalibrate(
            f"people decided {n_pairs} of the battles ({FEWEST_PAIRS} needed)",
            f"judge more pairs that people decided, or keep {TEMPERATURE}",
        )
    _require_finite_fit(pairs)
    value = _fit(pairs)
    n_prompts = len(np.unique(pairs.battles.cluster))
    return Temperature(value, _error(pairs, value), n_pairs, len(battles) - n_pairs, n_prompts)


def log_likelihood(battles: Battles, margin: Floats, *, temperature: float) -> float:
    """Return the log-likelihood of human votes given a judge's margins; 0 is perfect.

    The sum over decided battles of w log sigma(T (2 y - 1) margin), as in `calibrate`.
    """
    decided, margin = _decided(battles, margin)
    towards = temperature * (2 * decided.score - 1) * margin
    return -float(decided.weight @ np.logaddexp(0.0, -towards))


def _decided(battles: Battles, margin: Floats) -> ScoredBattles:
    decided = battles.score != TIE
    return ScoredBattles(battles.take(decided), margin[decided])


def _require_finite_fit(pairs: ScoredBattles) -> None:
    """Refuse battles for which the best T is infinite or undetermined."""
    score, up, down = pairs.battles.score, np.maximum(pairs.margin, 0), np.maximum(-pairs.margin, 0)
    agreed = (score * up + (1 - score) * down).any()
    differed = (score * down + (1 - score) * up).any()
    match bool(agreed), bool(differed):
        case True, False:
            why = "people always preferred what the judge scored higher, so it has no upper limit"
        case False, True:
            why = "people never preferred what the judge scored higher, so it has no lower limit"
        case False, False:
            why = "the judge gave both sides the same score in every battle that people decided"
        case _:
            return
    raise CannotCalibrate(why, f"judge more pairs that people decided, or keep {TEMPERATURE}")


def _fit(pairs: ScoredBattles) -> float:
    """Minimise by Newton's method: no step overshoots, as the second derivative falls with |T|."""
    value, widest = 0.0, float(np.abs(pairs.margin).max())
    for _ in range(_MOST_STEPS):
        step = float(_slopes(pairs, value).sum()) / _curvature(pairs, value)
        value += step
        if abs(step) * widest <= _SETTLED * (1 + abs(value) * widest):
            return value
    raise CannotCalibrate(
        f"no convergence after {_MOST_STEPS} steps: some score differences are tiny beside others",
        f"leave those battles out, or keep {TEMPERATURE}",
    )


def _error(pairs: ScoredBattles, value: float) -> float:
    _, unit = np.unique(pairs.battles.cluster, return_inverse=True)
    by_prompt = np.bincount(unit, _slopes(pairs, value))
    if len(by_prompt) == 1:
        return nan
    meat = by_prompt @ by_prompt * len(by_prompt) / (len(by_prompt) - 1)
    return float(np.sqrt(meat)) / _curvature(pairs, value)


def _slopes(pairs: ScoredBattles, value: float) -> Floats:
    """Return each pair's derivative of the log-likelihood by T, w margin (score - sigma)."""
    score, log_odds = pairs.battles.score, value * pairs.margin
    surprise = score * sigma(-log_odds) - (1 - score) * sigma(log_odds)
    return pairs.battles.weight * pairs.margin * surprise


def _curvature(pairs: ScoredBattles, value: float) -> float:
    """Return the sum over pairs of w margin^2 sigma (1 - sigma)."""
    log_odds = value * pairs.margin
    weight = pairs.battles.weight
    return float(np.sum(weight * pairs.margin**2 * sigma(log_odds) * sigma(-log_odds)))


BY_SCORES: Final = Rule(CONCATENATE, SCORE_PARSER)
"""The rule by which each order is decided by the marks in its reply."""


def scored_orders(tournament: Tournament, settlements: Iterable[Settlement]) -> ScoredBattles:
    """Return the orders that the judge's scores decided or tied.

    They are clustered by prompt id, so that votes can be matched; group by text afterwards.
    Two identical responses that the judge was not asked about have equal scores.

    Args:
        tournament: The judge's replies.
        settlements: By the rule BY_SCORES.
    """
    rated = [settlement for settlement in settlements if settlement.score is not None]
    margin = [
        _margin(tournament, settlement.match, settlement.order)
        for settlement in rated
        if settlement.match is not None
    ]
    battles = battles_of(rated, attrgetter("prompt_id"))
    return ScoredBattles(battles, np.array(margin, dtype=np.float64))


def _margin(tournament: Tournament, match: Match, order: Order | None) -> float:
    key = match.forward_key if order == "forward" else match.swapped_key
    reply = reply_of(tournament, key, SCORE_PARSER)
    marks = None if reply is None else parse_judge_scores(reply)
    if marks is None:
        return 0.0  # a tie that nobody was asked about
    lead = marks[0] - marks[1]
    return lead if order == "forward" else -lead


Meeting: TypeAlias = tuple[Hashable, frozenset[str]]
"""A prompt's name, and the two entrants."""


class JudgeCalibration(NamedTuple):
    """A calibrated temperature, and the log-likelihood of people's votes at it."""

    name: str
    found: Temperature
    log_likelihood: float  # at what was found
    log_likelihood_usual: float  # at JudgeArena's


def calibrate_judge(
    name: str,
    judged: ScoredBattles,
    votes: Battles,
    same: Mapping[Hashable, Hashable] | None = None,
) -> JudgeCalibration:
    """Calibrate a judge's scores against people's votes.

    Args:
        name: Of the dimension or set.
        judged: What the judge scored.
        votes: What people said.
        same: By a prompt's id that of the first prompt of the same text, if known.

    Raises:
        CannotCalibrate: As for `votes_with_margins` and `soft_scores.calibrate`.
    """
    shared = votes_with_margins(judged, votes)
    shared = shared._replace(battles=shared.battles.grouped(same or {}))
    temperature = calibrate(*shared)
    usual = log_likelihood(*shared, temperature=TEMPERATURE)
    return JudgeCalibration(
        name, temperature, log_likelihood(*shared, temperature=temperature.value), usual
    )


def votes_with_margins(judged: ScoredBattles, votes: Battles) -> ScoredBattles:
    """Return people's votes with the judge's margins, once for each battle that it scored.

    So both orders of a judge are compared with a vote, as each of them is a battle in its rating.
    Battles without a prompt id are left out.

    Raises:
        CannotCalibrate: No vote is on what the judge scored, or the margins are not finite.
    """
    marked: dict[Meeting, list[tuple[str, float]]] = defaultdict(list)
    for place, a, meeting in named_battles(judged.battles):
        marked[meeting].append((a, float(judged.margin[place])))
    rows = [
        (place, margin if a == first else -margin)
        for place, first, meeting in named_battles(votes)
        for a, margin in marked.get(meeting, ())
    ]
    places = np.array([place for place, _ in rows], dtype=np.intp)
    margins = np.array([margin for _, margin in rows])
    _require_some(margins)
    return ScoredBattles(votes.take(places), margins)


def named_battles(battles: Battles) -> Iterator[tuple[int, str, Meeting]]:
    """Yield the place, a, and what met where, of the battles whose prompt has an id."""
    names, prompts = battles.entrants, battles.prompts
    columns = (battles.a.tolist(), battles.b.tolist(), battles.cluster.tolist())
    for place, (a, b, prompt) in enumerate(zip(*columns, strict=True)):
        if prompt < len(prompts):
            yield place, names[a], (prompts[prompt], frozenset((names[a], names[b])))


def _require_some(margins: Floats) -> None:
    if not len(margins):
        raise CannotCalibrate(
            "no human vote has a prompt and two entrants in common with the judge's scores",
            "check that both sets use the same names for prompts and entrants",
        )
    if not np.isfinite(margins).all():
        n = int((~np.isfinite(margins)).sum())
        raise CannotCalibrate(
            f"{n} of {len(margins)} preferences are 0 or 1, which no finite scores give",
            "import battles that were judged by scores",
        )
