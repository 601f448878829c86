"""How sure weighted means of ratings on several dimensions are, when prompts are on all of them.

What a prompt moved each rating by is added up over dimensions before it is squared, so that
dimensions that move together count together.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from projections.battles import Battles
from projections.bradley_terry import BradleyTerry
from projections.davidson import Davidson
from projections.influence import covariance_of, influences, one_by_one, response_of
from projections.likelihood import Likelihood
from projections.pair_model import PairModel
from projections.ratings import BradleyTerryRatings
from projections.resamples import Floats
from projections.scale import ELO, precision_of


class Part(NamedTuple):
    """A dimension, its share in the mean (all shares make 1), its battles and ratings by them."""

    dimension: str
    share: float
    battles: Battles
    ratings: BradleyTerryRatings


class _Contribution(NamedTuple):
    """What a part adds to the ratings of m entrants.

    prompts: (n_prompts,) their numbers; moved: (n_prompts, m) what each moved ratings by; of_prior:
    (m, m) the variance of the part's prior, which knows nothing of those of other parts.
    """

    prompts: NDArray[np.intp]
    moved: Floats
    of_prior: Floats


class _Fitted(NamedTuple):
    model: PairModel
    parameters: Floats


def joint_covariance(parts: Sequence[Part], members: NDArray[np.intp]) -> Floats:
    """Return the covariance of the means of m entrants, (m, m), in squared Elo points.

    Args:
        parts: The dimensions; a prompt has one number on all.
        members: (m,) entrants who are of one component on each dimension.
    """
    contributions = [_contribution(part, members) for part in parts]
    prompts = np.unique(np.concatenate([each.prompts for each in contributions]))
    moved = np.zeros((len(prompts), len(members)))
    for each in contributions:
        moved[np.searchsorted(prompts, each.prompts)] += each.moved
    return covariance_of(moved) + sum(each.of_prior for each in contributions)


def _contribution(part: Part, members: NDArray[np.intp]) -> _Contribution:
    label = part.ratings.components.label
    peers = part.ratings.components.members(label[members[0]])
    inside = np.isin(part.battles.a, peers) & np.isin(part.battles.b, peers)
    units = one_by_one(part.battles, inside).within(peers)
    model, fit = _fitted(part.ratings, peers)
    figures = np.zeros((len(members), model.n_parameters))
    figures[:, : len(peers)] = part.share * part.ratings.scale().points[np.ix_(members, peers)]
    precision = precision_of(part.ratings.parameters)
    information = Likelihood(model, units, precision).information(fit)
    response = response_of(figures, information)
    of_strengths = response[:, : len(peers)]
    return _Contribution(
        np.unique(part.battles.cluster[inside]),
        influences(response, model.scores(fit, units), units),
        of_prior=precision * of_strengths @ of_strengths.T,
    )


def _fitted(ratings: BradleyTerryRatings, peers: NDArray[np.intp]) -> _Fitted:
    """Return the model that rated a component, and its parameters."""
    strengths = (ratings.rating[peers] - ratings.rating[peers[0]]) / ELO
    nu = ratings.nu[ratings.components.label[peers[0]]]
    if nu == 0:
        return _Fitted(BradleyTerry(len(peers)), strengths)
    return _Fitted(Davidson(len(peers)), np.append(strengths, np.log(nu)))
