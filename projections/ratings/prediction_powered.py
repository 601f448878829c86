"""Prediction-powered Bradley-Terry: a judge's verdicts on all battles, corrected by human votes.

Or a cheap judge's, corrected by those of a strong one on a random share of the prompts (a cascade).

A judge that favours one entrant makes narrow intervals about a wrong rating; votes alone make wide
ones about the right rating. With both, strengths theta solve

    sum over all battles of   l x (judge - p) / N
  + sum over those voted on of  x ((human - l judge) - (1 - l) p) / n  =  0,

where x is +1 for one entrant and -1 for the other, p = P(the one beats the other), and N and n are
the sums of weights. Whatever the judge's bias, the votes take it out; l, from 0 (votes alone) to 1,
is how far the judge is used, chosen for the least variance (Angelopoulos et al. 2023, Science 382;
PPI++: arXiv 2311.01453). The battles voted on must be a random sample of all.
"""

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from math import sqrt
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ledger.events.ratings import BradleyTerryParameters
from projections.battles.columns import Battles, CannotRate
from projections.battles.soft_scores import sigma
from projections.battles.voted import VotedBattles
from projections.intervals import Floats
from projections.ratings.bradley_terry.component import scale_of, student_uncertainty
from projections.ratings.bradley_terry.evidence import Support, one_component
from projections.ratings.bradley_terry.likelihood import maximise
from projections.ratings.bradley_terry.models import Slopes
from projections.ratings.bradley_terry.rate import BradleyTerryRatings, PointRatings
from projections.ratings.style import Design

FEWEST_PROMPTS: Final = 10  # with a vote: with fewer no interval would hold
BUDGET: Final = 1 / 3  # of what asking the strong judge of a cascade on all prompts costs
LEAST_GAIN: Final = 0.15  # of the standard error, for a cascade to be worth it
_ROUNDS: Final = 3  # the share of the judge hardly changes after the first


def fit(battles: VotedBattles) -> tuple[Floats, Floats, float]:
    """Fit strengths to a judge's verdicts and people's votes.

    Returns:
        (n,) strengths in log odds, the first 0; (n, n) their covariance, of which differences
        matter; and how far the judge is used, from 0 to 1.

    Raises:
        CannotRate: There are too few votes, or the strengths are not finite.
    """
    if battles.n_prompts < FEWEST_PROMPTS:
        raise CannotRate(
            f"the truth is known on {battles.n_prompts} of the prompts that the judge judged",
            f"it takes at least {FEWEST_PROMPTS}, drawn at random",
        )
    equation = _Equation.of(battles)
    share = 0.5
    for _ in range(_ROUNDS):
        share = equation.influences(equation.solved(share), share).best_share()
    strengths = equation.solved(share)
    return strengths, equation.influences(strengths, share).covariance(share), share


class CorrectedRatings(NamedTuple):
    """Ratings by a judge that votes correct.

    least_correlation: of judge and people, below which the judge is no help (Mani et al. 2026).
    """

    ratings: BradleyTerryRatings
    battles: VotedBattles
    share: float
    least_correlation: float


def rate_with_votes(battles: VotedBattles, parameters: BradleyTerryParameters) -> CorrectedRatings:
    """Rate entrants by a judge's verdicts and people's votes.

    Args:
        battles: Those that the judge judged, with votes on a random sample.
        parameters: The anchor, and the level of intervals; their degrees of freedom are the number
            of prompts voted on minus one.

    Raises:
        CannotRate: As for `fit`, or the parameters ask for another model or interval.
    """
    asked = (parameters.ties, parameters.prior_sd, parameters.interval, parameters.unit)
    if asked != ("half", None, "sandwich", "prompts"):
        raise CannotRate(
            "human votes correct ratings with ties as half, no prior, and sandwich intervals by"
            " prompts",
            "leave out the options for others",
        )
    strengths, covariance, share = fit(battles)
    entrants, n = battles.judged.entrants, len(battles.judged.entrants)
    support, one = Support(battles.prompts_voted_on(), np.ones(n)), one_component(n)
    scale = scale_of(entrants, one.label, support, parameters)
    rating, freedom = scale.rating(strengths), np.full((n, n), battles.n_prompts - 1.0)
    spread = scale.points @ covariance @ scale.points.T
    points = PointRatings(parameters, entrants, one, rating, support, nu=np.zeros(1))
    met = np.bincount(np.concatenate((battles.judged.a, battles.judged.b)), minlength=n)
    uncertainty = student_uncertainty(entrants, rating, spread, freedom, support, parameters)
    ratings = points.with_uncertainty(uncertainty, met)
    n_voted = int(battles.has_vote.sum())
    return CorrectedRatings(ratings, battles, share, 1 / sqrt(n_voted - 2))


class CascadeForecast(NamedTuple):
    """What asking a strong judge on a share of the prompts would gain, beside a cheap one on all.

    correlation: of both judges' outcomes of pairs; prompt_correlation: of what each prompt says of
    the ratings by either judge. The gain depends on it; entrants far apart raise the first alone.
    """

    correlation: float
    prompt_correlation: float
    n_pairs: int
    n_prompts: int
    share: float  # of the prompts, that the budget buys beside the cheap judge; may be negative
    gain: float | None  # how much lower the standard error is; None: the budget buys no share

    @property
    def is_worth_it(self) -> bool:
        """Say whether the gain is worth a second judge."""
        return self.gain is not None and self.gain >= LEAST_GAIN


def forecast_cascade(battles: VotedBattles, price_ratio: float) -> CascadeForecast:
    """Forecast a cascade that costs a third of what asking the strong judge everywhere does.

    Its variance is (1 - rho^2) / share + rho^2 of that of asking the strong judge everywhere, and
    that of the strong judge alone, on as many prompts as the same money buys, is 1 / budget.

    Args:
        battles: By the cheap judge, with the outcomes of the strong one on some prompts.
        price_ratio: The price of a query to the cheap judge, over that of the strong one.

    Raises:
        CannotRate: There are too few prompts that both judged, or no finite strengths.
    """
    both = battles.judged.take(battles.has_vote)
    strong = replace(both, score=battles.human[battles.has_vote])
    rho, share, gain = _correlation_of_prompts(both, strong), BUDGET - price_ratio, None
    if share > 0:
        gain = 1 - sqrt(BUDGET * ((1 - rho**2) / share + rho**2))
    return CascadeForecast(battles.correlation, rho, len(both), battles.n_prompts, share, gain)


def _correlation_of_prompts(one: Battles, other: Battles) -> float:
    """Return how alike two judges' verdicts on the same battles move the strengths, by prompt."""
    moved = []
    for judged in (one, other):
        equation = _Equation.of(VotedBattles(judged, judged.score, len(judged), n_unmatched=0))
        moved.append(equation.influences(equation.solved(0.0), 0.0).votes)
    a, b = moved
    spread = sqrt(float((a**2).sum() * (b**2).sum()))
    return max(0.0, float((a * b).sum()) / spread) if spread else 0.0


class _Influences(NamedTuple):
    """The influences of prompts on centred strengths, (n_prompts, n): of votes, of the judge.

    They add up as votes + share * judge.
    """

    votes: Floats
    judge: Floats

    def best_share(self) -> float:
        """Return the share of least total variance, in [0, 1]."""
        spread = float((self.judge**2).sum())
        return float(np.clip(-(self.votes * self.judge).sum() / spread, 0, 1)) if spread else 0.0

    def covariance(self, share: float) -> Floats:
        """Return the covariance of strengths at a share, (n, n)."""
        moved = self.votes + share * self.judge
        return np.asarray(moved.T @ moved)


@dataclass(frozen=True)
class _Equation:
    """The estimating equation; weight and weight_voted: (n_battles,), each of sum 1."""

    battles: Battles
    human: Floats
    weight: Floats
    weight_voted: Floats

    @classmethod
    def of(cls, battles: VotedBattles) -> "_Equation":
        weight, has_vote = battles.judged.weight, battles.has_vote
        human = np.where(has_vote, battles.human, 0.0)
        voted = np.where(has_vote, weight, 0.0)
        return cls(battles.judged, human, weight / weight.sum(), voted / voted.sum())

    def solved(self, share: float) -> Floats:
        """Return the strengths at a share of the judge, (n,), the first 0.

        The equation is that of a concave function, as 0 <= share <= 1.

        Raises:
            CannotRate: The strengths are not finite.
        """
        strengths = np.full((1, len(self.battles.entrants)), np.nan)
        with suppress(np.linalg.LinAlgError), np.errstate(all="ignore"):  # then it diverges
            strengths = maximise(
                lambda at: self._slopes(at[0], share),
                np.zeros_like(strengths),
                lambda step: np.ptp(step, axis=1),
            )
        if np.isnan(strengths).any():
            raise CannotRate(
                "the votes and verdicts together give no finite strengths",
                "collect votes on more battles, of every entrant",
            )
        return np.asarray(strengths[0])

    def influences(self, strengths: Floats, share: float) -> _Influences:
        """Return what each prompt moves.

        The prompts voted on are a sample of their own, so each sum is centred within its prompts.
        """
        chance = self._chance(strengths)
        judge = self._by_prompt(self.weight * (self.battles.score - chance))
        of_voted = self._by_prompt(self.weight_voted * (self.battles.score - chance))
        votes = self._by_prompt(self.weight_voted * (self.human - chance))
        is_voted = np.bincount(self.battles.cluster, self.weight_voted) > 0
        is_judged = np.bincount(self.battles.cluster) > 0
        response = np.linalg.pinv(self._information(chance, share))
        return _Influences(
            votes=_centred(votes, is_voted) @ response,
            judge=(_centred(judge, is_judged) - _centred(of_voted, is_voted)) @ response,
        )

    def _slopes(self, strengths: Floats, share: float) -> Slopes:
        chance = self._chance(strengths)
        gradient = self._design.transposed(
            share * self.weight * (self.battles.score - chance)
            + self.weight_voted * (self.human - share * self.battles.score - (1 - share) * chance)
        )
        information = self._information(chance, share)
        information[0, 0] *= 2  # holds the first strength where it is
        return gradient[None, :], information[None, :, :]

    @cached_property
    def _design(self) -> Design:
        battles, no_features = self.battles, np.empty((len(self.battles), 0))
        return Design(len(battles.entrants), battles.a, battles.b, no_features)

    def _information(self, chance: Floats, share: float) -> Floats:
        weight = share * self.weight + (1 - share) * self.weight_voted
        return self._design.gram(weight * chance * (1 - chance))

    def _chance(self, strengths: Floats) -> Floats:
        return sigma(self._design.log_odds(strengths))

    def _by_prompt(self, residual: Floats) -> Floats:
        """Return the sum of x times residuals, (n_prompts, n_entrants)."""
        n, cluster = len(self.battles.entrants), self.battles.cluster
        size = (int(cluster.max()) + 1) * n
        forth = np.bincount(cluster * n + self.battles.a, residual, minlength=size)
        back = np.bincount(cluster * n + self.battles.b, residual, minlength=size)
        return np.asarray((forth - back).reshape(-1, n))


def _centred(sums: Floats, chosen: NDArray[np.bool_]) -> Floats:
    """Subtract the mean of some prompts from them, scaled for the mean that was estimated."""
    n = chosen.sum()
    centred = np.where(chosen[:, None], sums - sums[chosen].mean(axis=0), 0.0)
    return np.asarray(centred * np.sqrt(n / max(n - 1, 1)))
