"""Style control: Bradley-Terry ratings as if all responses were alike in style.

The log odds that a beats b are theta_a - theta_b + x . beta, where x is the difference between the
responses in some features (style control of Chatbot Arena: Li, Angelopoulos and Chiang 2024). The
effect of a feature goes to its beta, not to the entrants that have much of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np

from ledger.events.ratings import BradleyTerryParameters
from projections.battles.columns import Battles, CannotRate
from projections.intervals import FEWEST_CLUSTERS, Floats, known
from projections.ratings._style_features import Features, require_independent, standardised
from projections.ratings._style_fit import AdjustedLikelihood, Design
from projections.ratings.bradley_terry.component import precision_of
from projections.ratings.bradley_terry.evidence import ClusteredBattles
from projections.ratings.bradley_terry.rate import BradleyTerryRatings, rate
from projections.ratings.bradley_terry.uncertainty import (
    anchored,
    freedom_of_ratings,
    single_battles,
    t_interval,
)

_RIDGE: Final = 1.0  # a beta is some tenths: against hundreds of battles this is nothing


class Coefficient(NamedTuple):
    """A feature's effect: log odds per standard deviation, with its interval."""

    feature: str
    beta: float
    lower: float | None  # None: of too few clusters
    upper: float | None
    deviation: float  # the feature's standard deviation: beta / deviation is for 1 more of it


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
    """Rate entrants by their battles, adjusted for features.

    Strengths and betas are fitted together; all components have the same betas. The likelihood is
    penalised by half the sum of beta^2, betas being per standard deviation, and strengths only by a
    prior if the parameters have one: so there is a fit wherever there is one without features.
    Intervals come from the sandwich covariance of strengths and betas together.

    Args:
        battles: The battles.
        features: By name, (n,) the feature of a's response minus that of b's: exchanging a and b
            changes its sign.
        parameters: As for plain ratings, with ties as half and the sandwich interval.

    Raises:
        CannotRate: A feature is not finite, or a linear combination of the others and the
            entrants; no two entrants can be compared; the parameters have other ties or intervals;
            or as in plain ratings.
        ValueError: A feature has not one value for each battle.
    """
    if (parameters.ties, parameters.interval) != ("half", "sandwich"):
        raise CannotRate(
            "style control needs ties as half and the sandwich interval", "choose these"
        )
    plain = rate(battles, parameters)
    comparable = plain.components.label[battles.a] == plain.components.label[battles.b]
    if not comparable.any():
        raise CannotRate("no two entrants can be compared", "add battles, or set a prior")
    if parameters.unit == "battles":
        battles = replace(battles, cluster=np.arange(len(battles)), prompts=())
    units = single_battles(battles, comparable)
    columns = standardised(features, comparable, battles.weight)
    likelihood = _likelihood(units, columns, plain)
    require_independent(columns.names, likelihood.design, units.weight)
    return _adjusted(likelihood, columns, plain)


def _likelihood(
    units: ClusteredBattles, columns: Features, plain: BradleyTerryRatings
) -> AdjustedLikelihood:
    n, precision = units.n_entrants, precision_of(plain.parameters)
    _, first_of_components = np.unique(plain.components.label, return_index=True)
    return AdjustedLikelihood(
        Design(n, units.a, units.b, columns.values),
        units,
        penalty=np.repeat((precision, _RIDGE), (n, len(columns.names))),
        held=np.empty(0, dtype=np.intp) if precision else first_of_components,
    )


def _adjusted(
    likelihood: AdjustedLikelihood, columns: Features, plain: BradleyTerryRatings
) -> AdjustedRatings:
    n, k = likelihood.units.n_entrants, len(columns.names)
    zero, points = plain.scale()
    figures = np.block([[points, np.zeros((n, k))], [np.zeros((k, n)), np.eye(k)]])
    fit = likelihood.fit()
    values, (covariance, freedom) = figures @ fit.parameters, likelihood.covariance(fit, figures)
    covariance[:n, :n][np.isnan(plain.covariance)] = np.nan  # unknown there for reasons that stay
    values[:n] += zero
    is_anchor = anchored(plain.entrants, plain.parameters.anchor)
    freedom[:n] = freedom_of_ratings(plain.freedom, is_anchor)
    lower, upper = t_interval(values, covariance, freedom, plain.parameters.level)
    unknown = np.append(
        np.isnan(plain.lower), np.full(k, len(likelihood.units.count) < FEWEST_CLUSTERS)
    )
    lower[unknown] = upper[unknown] = np.nan
    lower[:n][is_anchor] = upper[:n][is_anchor] = values[:n][is_anchor]
    bounds = np.column_stack((values, lower, upper))
    rating, low, high = bounds[:n].T
    ratings = replace(plain, rating=rating, lower=low, upper=high, covariance=covariance[:n, :n])
    effects = zip(columns.names, bounds[n:], columns.deviations.tolist(), strict=True)
    return AdjustedRatings(
        plain,
        ratings,
        tuple(
            Coefficient(name, float(beta), known(low), known(high), deviation)
            for name, (beta, low, high), deviation in effects
        ),
        columns.left_out,
    )
