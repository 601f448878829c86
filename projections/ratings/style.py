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

from ledger.events.ratings import BradleyTerryParameters
from projections.battles.columns import Battles, CannotRate
from projections.intervals import FEWEST_CLUSTERS, Floats, known
from projections.ratings.bradley_terry.component import precision_of
from projections.ratings.bradley_terry.evidence import single_battles
from projections.ratings.bradley_terry.rate import (
    BradleyTerryRatings,
    PointRatings,
    rate,
    rate_points,
)
from projections.ratings.bradley_terry.sandwich import Sandwich
from projections.ratings.bradley_terry.uncertainty import (
    anchored,
    freedom_of_ratings,
    t_interval,
)
from projections.ratings.style_features import Features, require_independent, standardised
from projections.ratings.style_fit import AdjustedLikelihood, Design

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
    found = _fitted(battles, features, plain)
    adjusted = _with_intervals(found, plain).widened(battles.widening)
    return AdjustedRatings(plain, adjusted, found.coefficients, found.columns.left_out)


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


def _with_intervals(found: AdjustedFit, plain: BradleyTerryRatings) -> BradleyTerryRatings:
    """Return the adjusted ratings; they have intervals where plain ones do."""
    points, rating = plain.scale().points, found.rating
    figures = np.block([points, np.zeros((len(points), len(found.columns.names)))])
    covariance = found.sandwich.spread_of(figures).covariance
    covariance[np.isnan(plain.covariance)] = np.nan  # unknown there for reasons that stay
    is_anchor = anchored(plain.entrants, plain.parameters.anchor)
    freedom = freedom_of_ratings(plain.freedom, is_anchor)
    lower, upper = t_interval(rating, covariance, freedom, plain.parameters.level)
    unknown = np.isnan(plain.lower)
    lower[unknown] = upper[unknown] = np.nan
    lower[is_anchor] = upper[is_anchor] = rating[is_anchor]
    return replace(plain, rating=rating, lower=lower, upper=upper, covariance=covariance)
