"""Features of battles, by how much the response of a exceeds that of b, made fit for a model."""

from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from projections.design import Design
from projections.errors import CannotRate
from projections.resamples import Floats

_COLLINEAR: Final = 1e-9  # of a feature's square: what is left of it is rounding


class Features(NamedTuple):
    """Standardised features.

    names: (k,); values: (n, k) in standard deviations; deviations: (k,) what was divided by.
    """

    names: tuple[str, ...]
    values: Floats
    deviations: Floats


def standardised(
    features: Mapping[str, Floats], chosen: NDArray[np.bool_], weight: Floats
) -> Features:
    """Divide features by their standard deviations among some battles.

    These are about 0, which is the mean once each battle is told both ways: which entrant is a is
    arbitrary.

    Args:
        features: By name, (n,) each.
        chosen: (n,) which battles.
        weight: (n,) how often each battle counts.

    Raises:
        CannotRate: A feature is not finite, or constant.
        ValueError: There is not one value of each feature for each battle.
    """
    for name, column in features.items():
        if column.shape != chosen.shape:
            raise ValueError(f"feature {name!r} has not one value for each battle")
        if not np.isfinite(column).all():
            number = int(np.isfinite(column).argmin())
            raise CannotRate(
                f"feature {name!r} of battle {number}, counted from 0, is {column[number]}",
                "correct it or leave the battle out",
            )
        if np.ptp(column[chosen]) == 0:
            raise CannotRate(
                f"feature {name!r} is the same in all battles of comparable entrants",
                "leave it out, and name the other features",
            )
    columns = [column[chosen] for column in features.values()]
    values = np.array(columns, dtype=np.float64).reshape(len(columns), chosen.sum()).T
    deviations = np.sqrt(np.average(values**2, axis=0, weights=weight[chosen]))
    return Features(tuple(features), values / deviations, deviations)


def require_independent(names: tuple[str, ...], design: Design, weight: Floats) -> None:
    """Refuse a feature that says nothing which entrants and the features before it do not.

    Then infinitely many betas would fit as well.

    Args:
        names: (k,) of the features.
        design: Who met, and the features.
        weight: (n,) of the battles.

    Raises:
        CannotRate: A feature is a linear function of what was named.
    """
    gram = design.gram(weight)
    for place, name in enumerate(names, start=design.n_entrants):
        before, column = gram[:place, :place], gram[:place, place]
        explained = column @ np.linalg.lstsq(before, column)[0]
        if gram[place, place] - explained <= _COLLINEAR * gram[place, place]:
            raise CannotRate(
                f"feature {name!r} follows from who met and from the features before it",
                "leave it out, and name the other features",
            )
