"""Bradley-Terry ratings of battles, each with its interval, or with the reason why it has none.

Strengths are fitted within each component of entrants that scored against each other; between
components there is an order, or nothing. A prior joins all entrants into one component.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ledger.events.ratings import BradleyTerryParameters
from projections.battles.columns import Battles, CannotRate
from projections.intervals import FEWEST_CLUSTERS, Floats, known
from projections.ratings.bradley_terry.component import (
    ELO,
    FittedComponent,
    Scale,
    Uncertainty,
    fit_component,
    precision_of,
    scale_of,
)
from projections.ratings.bradley_terry.evidence import (
    Components,
    Support,
    clustered_battles,
    components_of,
    one_component,
    single_battles,
    support_of,
)
from projections.ratings.bradley_terry.likelihood import Likelihood
from projections.ratings.bradley_terry.models import (
    BradleyTerry,
    Davidson,
    PairModel,
    require_whole_outcomes,
)
from projections.results.ratings import BradleyTerryRow

Reason = Literal["undefeated", "winless", "one-way", "not comparable", "no finite fit"]

Zero: TypeAlias = tuple[frozenset[str], ...]
"""What a rating is counted from, on each dimension: the anchor alone, or the mean of some."""


@dataclass(frozen=True)
class PointRatings:
    """Ratings of n entrants without intervals; NaN where there is none.

    Attributes:
        parameters: The model.
        entrants: (n,) names, sorted.
        components: Who can be compared with whom, and which component is above which.
        rating: (n,) Elo points; the mean of a component is 1000, or the anchor is at its value.
        support: What each rating rests on, within its component.
        nu: (n_components,) Davidson's parameter of ties; 0 where no tie is an outcome.
    """

    parameters: BradleyTerryParameters
    entrants: tuple[str, ...]
    components: Components
    rating: Floats
    support: Support
    nu: Floats

    def fitted(
        self, battles: Battles, members: NDArray[np.intp]
    ) -> tuple[Likelihood, Floats, NDArray[np.bool_]]:
        """Return the likelihood of a component's single battles, its fit, and which they are.

        Args:
            battles: Those that were rated.
            members: (m,) of the component.
        """
        inside = np.isin(battles.a, members) & np.isin(battles.b, members)
        units = single_battles(battles, inside).within(members)
        fit = (self.rating[members] - self.rating[members[0]]) / ELO
        model: PairModel = BradleyTerry(len(members))
        nu = self.nu[self.components.label[members[0]]]
        if nu:
            model, fit = Davidson(len(members)), np.append(fit, np.log(nu))
        return Likelihood(model, units, precision_of(self.parameters)), fit, inside

    def with_uncertainty(
        self,
        uncertainty: Uncertainty,
        n_battles: NDArray[np.intp],
        n_without_fit: NDArray[np.intp] | None = None,
    ) -> "BradleyTerryRatings":
        """Return the ratings with their uncertainty; the others as for `BradleyTerryRatings`."""
        none = np.zeros(len(self.components), dtype=np.intp)
        return BradleyTerryRatings(
            self.parameters,
            self.entrants,
            self.components,
            self.rating,
            self.support,
            self.nu,
            uncertainty.lower,
            uncertainty.upper,
            uncertainty.covariance,
            uncertainty.freedom,
            n_battles,
            none if n_without_fit is None else n_without_fit,
        )

    def rated_groups(self) -> Iterator[NDArray[np.intp]]:
        """Yield the components of two entrants or more that have finite ratings."""
        for members in self.components:
            if len(members) > 1 and not np.isnan(self.rating[members[0]]):
                yield members

    def scale(self) -> Scale:
        """Return the scale that turned strengths into ratings."""
        zero, points = scale_of(self.entrants, self.components.label, self.support, self.parameters)
        return Scale(np.where(np.isnan(self.rating), np.nan, zero), points)


@dataclass(frozen=True)
class BradleyTerryRatings(PointRatings):
    """Ratings of n entrants with their uncertainty; the parameters say of what kind.

    Attributes:
        lower: (n,) the interval's lower bound.
        upper: (n,) its upper bound; where there is an anchor, both are about the difference.
        covariance: (n, n) of ratings, in squared Elo points; NaN between components.
        freedom: (n, n) degrees of freedom of differences, on the diagonal of ratings about a mean.
        n_battles: (n,) how often each entrant met another.
        n_without_fit: (n_components,) how many resamples had no finite fit; they count as beyond
            both bounds.
    """

    lower: Floats
    upper: Floats
    covariance: Floats
    freedom: Floats
    n_battles: NDArray[np.intp]
    n_without_fit: NDArray[np.intp]

    def widened(self, by: float) -> "BradleyTerryRatings":
        """Return the ratings with intervals, and errors of differences, so many times as wide."""
        return replace(
            self,
            lower=self.rating - by * (self.rating - self.lower),
            upper=self.rating + by * (self.upper - self.rating),
            covariance=by**2 * self.covariance,
        )

    def rows(self, dimension: str = "") -> tuple[BradleyTerryRow, ...]:
        """Return the ratings one by one, in order of name, without ranks.

        A bound has no number where too few resamples have a fit.
        """
        bounds = np.where(np.isinf((self.lower, self.upper)), np.nan, (self.lower, self.upper))
        return tuple(
            BradleyTerryRow(
                dimension,
                entrant,
                rating=known(self.rating[i]),
                low=known(bounds[0, i]),
                high=known(bounds[1, i]),
                n_battles=int(self.n_battles[i]),
                group=int(self.components.label[i]) + 1,
                reason=self._reason(i),
                no_interval=self._no_interval(i),
            )
            for i, entrant in enumerate(self.entrants)
        )

    def zeros(self) -> tuple[frozenset[str], ...]:
        """Return what each rating is measured from, (n,): the anchor, or the mean of these."""
        labels, anchor = self.components.label, self.parameters.anchor
        counts = self.support.weight > 0
        groups = [
            frozenset(self.entrants[i] for i in members if counts[i]) for members in self.components
        ]
        if anchor is not None:
            groups[labels[self.entrants.index(anchor)]] = frozenset({anchor})
        return tuple(groups[label] for label in labels)

    def _no_interval(self, i: int) -> str | None:
        if np.isnan(self.rating[i]) or np.isfinite((self.lower[i], self.upper[i])).all():
            return None
        if not np.isnan(self.lower[i]):
            return f"too many resamples of {self.parameters.unit} have no fit"
        if not self.support.is_enough[i]:
            return self._too_few(i)
        if np.isnan(self.covariance[i, i]):
            return f"all {self.parameters.unit} agree"
        anchor = self.entrants.index(str(self.parameters.anchor))
        return f"the anchor has none: {self._too_few(anchor)}"

    def _too_few(self, i: int) -> str:
        n, unit = int(self.support.n_clusters[i]), self.parameters.unit
        return f"{n} {unit if n != 1 else unit[:-1]}: at least {FEWEST_CLUSTERS} are needed"

    def _reason(self, i: int) -> Reason | None:
        if not np.isnan(self.rating[i]):
            return None
        component = self.components.label[i]
        if len(self.components.members(component)) > 1:
            return "no finite fit"
        above = self.components.above
        return _BETWEEN[bool(above[component].any()), bool(above[:, component].any())]


_BETWEEN: Final[Mapping[tuple[bool, bool], Reason]] = {
    (True, False): "undefeated",
    (False, True): "winless",
    (True, True): "one-way",
    (False, False): "not comparable",
}
"""Why an entrant that is alone has no rating, by whether it is above others, and others above."""


def rate(battles: Battles, parameters: BradleyTerryParameters) -> BradleyTerryRatings:
    """Rate entrants by their battles.

    A rating is 1000 + 400 / ln 10 times the strength of highest likelihood. Seed and number of
    resamples affect the intervals only.

    Raises:
        CannotRate: The anchor has no battle, Davidson's model does not have a score, or strengths
            are too far apart to be computed.
    """
    ratings = _assembled(battles, *_fitted(battles, parameters))
    return ratings if battles.widening == 1 else ratings.widened(battles.widening)


def rate_points(battles: Battles, parameters: BradleyTerryParameters) -> PointRatings:
    """Rate entrants without intervals, which take most of the time.

    Raises:
        CannotRate: As for `rate`.
    """
    return _fitted(battles, parameters)[0]


def _fitted(
    battles: Battles, parameters: BradleyTerryParameters
) -> tuple[PointRatings, Sequence[FittedComponent | None]]:
    """Return ratings, and the fit of each component that has one."""
    if parameters.anchor is not None and parameters.anchor not in battles.entrants:
        raise CannotRate(f"the anchor {parameters.anchor!r} has no battle", "choose one that has")
    if parameters.ties == "davidson":
        require_whole_outcomes(battles.score)
    units = clustered_battles(battles, parameters.unit)
    components = _components(battles, parameters)
    support = support_of(units, components.label)
    rating, nu = np.full(len(battles.entrants), np.nan), np.full(len(components), np.nan)
    fits: list[FittedComponent | None] = []
    for number, members in enumerate(components):
        fits.append(fit_component(units, members, battles.entrants, support, parameters))
        if (fit := fits[-1]) is not None:
            rating[members], nu[number] = fit.rating, fit.nu
    points = PointRatings(parameters, battles.entrants, components, rating, support, nu)
    return points, fits


def _components(battles: Battles, parameters: BradleyTerryParameters) -> Components:
    n = len(battles.entrants)
    if parameters.prior_sd is not None:
        return one_component(n)
    won, lost = battles.observed > 0, battles.observed < 1
    return components_of(
        n,
        source=np.concatenate((battles.a[won], battles.b[lost])),
        target=np.concatenate((battles.b[won], battles.a[lost])),
    )


def _assembled(
    battles: Battles, points: PointRatings, fits: Sequence[FittedComponent | None]
) -> BradleyTerryRatings:
    n, n_without_fit = len(battles.entrants), np.zeros(len(fits), dtype=np.intp)
    lower, upper = np.full((2, n), np.nan)
    covariance, freedom = np.full((2, n, n), np.nan)
    rng = np.random.default_rng(points.parameters.seed)
    for number, (members, fit) in enumerate(zip(points.components, fits, strict=True)):
        if fit is not None:
            uncertainty = fit.uncertainty(rng)
            lower[members], upper[members] = uncertainty.lower, uncertainty.upper
            covariance[np.ix_(members, members)] = uncertainty.covariance
            freedom[np.ix_(members, members)] = uncertainty.freedom
            n_without_fit[number] = uncertainty.n_without_fit
    uncertainty_of_all = Uncertainty(lower, upper, covariance, freedom)
    n_battles = np.bincount(np.concatenate((battles.a, battles.b)), minlength=n)
    return points.with_uncertainty(uncertainty_of_all, n_battles, n_without_fit)
