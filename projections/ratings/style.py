"""Style control: Bradley-Terry ratings as if all responses were alike in style.

The log odds that a beats b are theta_a - theta_b + x . beta, where x is the difference between the
responses in some features (style control of Chatbot Arena: Li, Angelopoulos and Chiang 2024). The
effect of a feature goes to its beta, not to the entrants that have much of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ledger.events.ratings import BradleyTerryParameters
from projections.battles.columns import Battles, CannotRate
from projections.battles.soft_scores import sigma
from projections.intervals import FEWEST_CLUSTERS, Floats, known
from projections.ratings.bradley_terry.component import (
    anchored,
    freedom_of_ratings,
    precision_of,
    t_interval,
)
from projections.ratings.bradley_terry.evidence import ClusteredBattles, single_battles
from projections.ratings.bradley_terry.likelihood import maximise
from projections.ratings.bradley_terry.models import TOO_FAR, Scores, Slopes
from projections.ratings.bradley_terry.rate import (
    BradleyTerryRatings,
    PointRatings,
    rate,
    rate_points,
)
from projections.ratings.bradley_terry.sandwich import Sandwich, sandwich
from projections.ratings.style_features import Features, standardised


@dataclass(frozen=True)
class Design:
    """A sparse matrix of K = n_entrants + n_features columns: 1 at a, -1 at b, then the features.

    a, b: (n,) numbers of each battle's entrants; features: (n, n_features); factor: (n,) stands in
    place of 1, where a difference of strengths counts more in some battles than in others.
    """

    n_entrants: int
    a: NDArray[np.intp]
    b: NDArray[np.intp]
    features: Floats
    factor: Floats | float = 1.0

    def log_odds(self, parameters: Floats) -> Floats:
        """Return the matrix times parameters, (K,): the log odds of a against b, (n,)."""
        strengths, slopes = np.split(parameters, [self.n_entrants])
        return self.factor * (strengths[self.a] - strengths[self.b]) + self.features @ slopes

    def transposed(self, values: Floats) -> Floats:
        """Return the transposed matrix times values, (n,): a gradient, (K,)."""
        return np.concatenate((self._net(values), self.features.T @ values))

    def gram(self, weights: Floats) -> Floats:
        """Return the sum over battles of w row' row, (K, K), given w, (n,)."""
        n, weighted = self.n_entrants, self.features * weights[:, None]
        of_strengths = weights * self.factor**2
        met = np.bincount(self.a * n + self.b, of_strengths, minlength=n * n).reshape(n, n)
        met = met + met.T
        crosswise = np.array([self._net(column) for column in weighted.T]).reshape(-1, n)
        return np.block(
            [
                [np.diag(met.sum(axis=1)) - met, crosswise.T],
                [crosswise, self.features.T @ weighted],
            ]
        )

    def scores(self, surprise: Floats, variance: Floats) -> Scores:
        """Return the derivatives of each battle's log-likelihood, by strength and features.

        surprise: (n,) score minus the expected one, times the weight; variance: (n,) of the score,
        times the weight.
        """
        factor = np.broadcast_to(self.factor, len(self.a))
        rows = np.column_stack((factor, self.features))
        products = rows[:, :, None] * rows[:, None, :]
        return Scores(surprise[:, None] * rows, variance[:, None, None] * products)

    def _net(self, values: Floats) -> Floats:
        n, values = self.n_entrants, self.factor * values
        net = np.bincount(self.a, values, minlength=n) - np.bincount(self.b, values, minlength=n)
        return np.asarray(net, dtype=np.float64)


@dataclass(frozen=True)
class AdjustedLikelihood:
    """The log-likelihood of battles, less penalty / 2 times the square of each parameter.

    penalty: (K,) 0 or more; more than 0 for betas. held: strengths that stay 0, one of each
    component, where there is no penalty on them and only differences are determined.
    """

    design: Design
    units: ClusteredBattles
    penalty: Floats
    held: NDArray[np.intp]

    def fit(self) -> Floats:
        """Return the parameters of highest likelihood, (K,)."""
        start = np.zeros((1, len(self.penalty)))
        try:
            [parameters] = maximise(lambda at: self._slopes(at[0]), start, self._span)
        except np.linalg.LinAlgError as error:
            raise CannotRate(*TOO_FAR) from error
        if np.isnan(parameters).any():
            raise CannotRate(*TOO_FAR)
        return np.asarray(parameters)

    def sandwich(self, parameters: Floats) -> Sandwich:
        """Return the fit as the covariance of figures needs it."""
        log_odds = self.design.log_odds(parameters)
        return sandwich(
            self.units,
            self.design.scores(self._surprise(log_odds), self._variance(log_odds)),
            self._information(log_odds),
            self.penalty,
        )

    def _span(self, step: Floats) -> Floats:
        return np.asarray(np.abs(self.design.log_odds(step[0])).max(keepdims=True))

    def _slopes(self, parameters: Floats) -> Slopes:
        log_odds = self.design.log_odds(parameters)
        gradient = self.design.transposed(self._surprise(log_odds)) - self.penalty * parameters
        return gradient[None], self._information(log_odds)[None]

    def _surprise(self, log_odds: Floats) -> Floats:
        """Return a's score minus the expected one, times the weight, (n,)."""
        score = self.units.score
        return self.units.weight * (score * sigma(-log_odds) - (1.0 - score) * sigma(log_odds))

    def _variance(self, log_odds: Floats) -> Floats:
        """Return the variance of a's score, times the weight, (n,)."""
        return self.units.weight * sigma(log_odds) * sigma(-log_odds)

    def _information(self, log_odds: Floats) -> Floats:
        """Return the negative second derivatives, (K, K).

        The term added for held strengths makes the matrix invertible, and keeps their step 0.
        """
        information = self.design.gram(self._variance(log_odds)) + np.diag(self.penalty)
        information[self.held, self.held] += information.diagonal().mean()
        return information


_COLLINEAR: Final = 1e-9  # of a feature's square: what is left of it is rounding
MOST_BETWEEN: Final = 0.9
"""The share that makes a variance inflation factor of 10."""

_RIDGE: Final = 1.0  # a beta is some tenths: against hundreds of battles this is nothing


class Coefficient(NamedTuple):
    """A feature's effect: log odds per standard deviation, with its interval."""

    feature: str
    beta: float
    lower: float | None  # None: of too few clusters
    upper: float | None
    deviation: float  # the feature's standard deviation: beta / deviation is for 1 more of it
    between_entrants: float  # the share of its variation that who wrote the responses explains

    @property
    def is_confounded(self) -> bool:
        """Whether the feature's effect can hardly be told from strengths."""
        return self.between_entrants > MOST_BETWEEN


@dataclass(frozen=True)
class AdjustedFit:
    """Strengths and the effects of features, fitted together; ratings have no intervals yet.

    Attributes:
        plain: The ratings of n entrants without style control.
        columns: The k features that were fitted.
        likelihood: Of strengths and betas.
        fit: (n + k,) where it is highest.
    """

    plain: PointRatings
    columns: Features
    likelihood: AdjustedLikelihood
    fit: Floats

    @property
    def rating(self) -> Floats:
        """The ratings as if all responses were alike in the features, (n,)."""
        return self.plain.scale().rating(self.fit[: self.likelihood.units.n_entrants])

    @property
    def coefficients(self) -> tuple[Coefficient, ...]:
        """The effects, in the order of the features."""
        n, k = self.likelihood.units.n_entrants, len(self.columns.names)
        if not k:
            return ()
        betas, figures = self.fit[n:], np.eye(n + k)[n:]
        spread = self.sandwich.spread_of(figures)
        bounds = np.array(t_interval(betas, *spread, self.plain.parameters.level))
        if len(self.likelihood.units.count) < FEWEST_CLUSTERS:
            bounds[:] = np.nan
        of_columns = self.columns.deviations.tolist(), self.between_entrants.tolist()
        effects = (betas.tolist(), *bounds.tolist(), *of_columns)
        return tuple(
            Coefficient(name, beta, known(low), known(high), *of_column)
            for name, beta, low, high, *of_column in zip(self.columns.names, *effects, strict=True)
        )

    @property
    def between_entrants(self) -> Floats:
        """The share of each feature's variation that who wrote the responses explains, (k,)."""
        n = self.likelihood.units.n_entrants
        gram = self.likelihood.design.gram(self.likelihood.units.weight)
        explained = gram[n:, :n] @ np.linalg.lstsq(gram[:n, :n], gram[:n, n:])[0]
        return np.asarray(explained.diagonal() / gram.diagonal()[n:])

    @cached_property
    def sandwich(self) -> Sandwich:
        """The fit as the covariance of figures needs it."""
        return self.likelihood.sandwich(self.fit)


@dataclass(frozen=True)
class AdjustedRatings:
    """Ratings with and without style control.

    Attributes:
        plain: Without it.
        ratings: As if all responses were alike in the features.
        coefficients: In the order of the features.
        left_out: Features that are the same in all battles, and have no coefficient.
    """

    plain: BradleyTerryRatings
    ratings: BradleyTerryRatings
    coefficients: tuple[Coefficient, ...]
    left_out: tuple[str, ...]


def rate_adjusted(
    battles: Battles,
    features: Mapping[str, Floats],
    parameters: BradleyTerryParameters,
) -> AdjustedRatings:
    """Rate entrants by their battles, adjusted for features, with intervals.

    Intervals come from the sandwich covariance of strengths and betas together.

    Raises:
        CannotRate: As for `fit_adjusted`.
    """
    _require_sandwich(parameters)
    plain = rate(battles, parameters)
    fitted = _fitted(battles, features, plain)
    adjusted = _with_intervals(fitted, plain).widened(battles.widening)
    return AdjustedRatings(plain, adjusted, fitted.coefficients, fitted.columns.left_out)


def fit_adjusted(
    battles: Battles,
    features: Mapping[str, Floats],
    parameters: BradleyTerryParameters,
) -> AdjustedFit:
    """Fit strengths and the effects of features.

    Strengths and betas are fitted together; all components have the same betas. The likelihood is
    penalised by half the sum of beta^2, betas being per standard deviation, and strengths only by a
    prior if the parameters have one: so there is a fit wherever there is one without features.

    Args:
        battles: The battles.
        features: By name, (n,) the feature of a's response minus that of b's: exchanging a and b
            changes its sign.
        parameters: As for plain ratings, with ties as half and the sandwich interval.

    Raises:
        CannotRate: A feature is a linear combination of the others and the entrants; no two
            entrants can be compared; the parameters have other ties or intervals; or as in plain
            ratings.
    """
    _require_sandwich(parameters)
    return _fitted(battles, features, rate_points(battles, parameters))


def _require_sandwich(parameters: BradleyTerryParameters) -> None:
    if (parameters.ties, parameters.interval) != ("half", "sandwich"):
        raise CannotRate(
            "style control needs ties as half and the sandwich interval", "choose these"
        )


def _fitted(battles: Battles, features: Mapping[str, Floats], plain: PointRatings) -> AdjustedFit:
    label, parameters = plain.components.label, plain.parameters
    comparable = label[battles.a] == label[battles.b]
    if not comparable.any():
        raise CannotRate("no two entrants can be compared", "add battles, or set a prior")
    if parameters.unit == "battles":
        battles = replace(battles, cluster=np.arange(len(battles)), prompts=())
    units, precision = single_battles(battles, comparable), precision_of(parameters)
    columns = standardised(features, comparable, battles.weight)
    first_of_components = np.unique(label, return_index=True)[1]
    likelihood = AdjustedLikelihood(
        Design(units.n_entrants, units.a, units.b, columns.values),
        units,
        penalty=np.repeat((precision, _RIDGE), (units.n_entrants, len(columns.names))),
        held=first_of_components[:0] if precision else first_of_components,
    )
    require_independent(columns.names, likelihood.design, units.weight)
    return AdjustedFit(plain, columns, likelihood, likelihood.fit())


def _with_intervals(fitted: AdjustedFit, plain: BradleyTerryRatings) -> BradleyTerryRatings:
    """Return the adjusted ratings; they have intervals where plain ones do."""
    points, rating = plain.scale().points, fitted.rating
    figures = np.block([points, np.zeros((len(points), len(fitted.columns.names)))])
    covariance, _ = fitted.sandwich.spread_of(figures)
    covariance[np.isnan(plain.covariance)] = np.nan  # unknown there for reasons that stay
    is_anchor = anchored(plain.entrants, plain.parameters.anchor)
    freedom = freedom_of_ratings(plain.freedom, is_anchor)
    lower, upper = t_interval(rating, covariance, freedom, plain.parameters.level)
    unknown = np.isnan(plain.lower)
    lower[unknown] = upper[unknown] = np.nan
    lower[is_anchor] = upper[is_anchor] = rating[is_anchor]
    return replace(plain, rating=rating, lower=lower, upper=upper, covariance=covariance)


def require_independent(names: tuple[str, ...], design: Design, weight: Floats) -> None:
    """Refuse a linear combination of entrants and earlier features: any beta would fit it."""
    gram = design.gram(weight)
    for place, name in enumerate(names, start=design.n_entrants):
        before, column = gram[:place, :place], gram[:place, place]
        explained = column @ np.linalg.lstsq(before, column)[0]
        if gram[place, place] - explained <= _COLLINEAR * gram[place, place]:
            raise CannotRate(
                f"feature {name!r} is a linear combination of entrants and the features before it",
                "leave it out, and name the other features",
            )
