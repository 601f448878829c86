"""Ratings with covariates."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import nan
from types import MappingProxyType

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ledger.events.ratings import BradleyTerryParameters
from projections.battles.columns import Battles, CannotRate
from projections.battles.soft_scores import soft_scores
from projections.intervals import Floats
from projections.ratings.bradley_terry.component import ELO
from projections.ratings.bradley_terry.evidence import single_battles
from projections.ratings.bradley_terry.rate import rate
from projections.ratings.style import AdjustedLikelihood, AdjustedRatings, Design, rate_adjusted
from tests.support.builders.battles import RING, Battle, in_columns
from tests.support.builders.events import valid
from tests.support.statistics import holds
from tests.support.strategies.battles import SOFT, any_battles, comparable

Features = Mapping[str, Floats]

USUAL: Mapping[str, object] = MappingProxyType({})
SEEDS = st.integers(0, 10**6)


def adjusted(
    rows: Sequence[Battle] | Battles, features: Features, fields: Mapping[str, object] = USUAL
) -> AdjustedRatings:
    """Rate battles by parameters that are as usual but for those given."""
    parameters = valid(BradleyTerryParameters, fields)
    those = rows if isinstance(rows, Battles) else in_columns(rows)
    return rate_adjusted(those, features, parameters)


def numbers(found: AdjustedRatings) -> list[float]:
    """Return all ratings, coefficients and their intervals."""
    ratings = found.ratings
    slopes = [
        nan if number is None else number for each in found.coefficients for number in each[1:4]
    ]
    return [*ratings.rating, *ratings.lower, *ratings.upper, *slopes]


def drawn(seed: int, n: int, *names: str) -> dict[str, Floats]:
    """Draw features at random."""
    rng = np.random.default_rng(seed)
    return {name: rng.normal(size=n) for name in names}


def simulated(rng: np.random.Generator, beta: float, n_prompts: int) -> tuple[Battles, Floats]:
    """Draw battles of three equal entrants, the first of whom writes longer, as people like.

    Those of a prompt are alike in what was longer, and in the outcome.
    """
    prompt = np.repeat(np.arange(n_prompts), 3)
    a, b = np.tile([0, 1, 2], n_prompts), np.tile([1, 2, 0], n_prompts)
    habit = np.array([0.5, 0.0, 0.0])
    longer = habit[a] - habit[b] + rng.normal(size=n_prompts)[prompt]
    won = rng.random(n_prompts)[prompt] < soft_scores(beta * longer, 0.0, temperature=1.0)
    weight = np.ones(len(a))
    return Battles.by_score(("a", "b", "c"), a, b, won.astype(float), prompt, weight), longer


@given(rows=comparable(scores=SOFT), seed=SEEDS)
def test_everybody_and_every_feature_took_what_is_expected(rows: list[Battle], seed: int) -> None:
    """That is what it means to be likeliest; the penalty takes its beta off a feature."""
    those, features = in_columns(rows * 3), drawn(seed, 3 * len(rows), "length", "bold")

    found = adjusted(those, features)

    x = np.column_stack([features[each.feature] / each.deviation for each in found.coefficients])
    beta = np.array([each.beta for each in found.coefficients])
    theta = found.ratings.rating / ELO
    expected = 1 / (1 + np.exp(theta[those.b] - theta[those.a] - x @ beta))
    surprise = those.weight * (those.score - expected)
    surplus = np.bincount(those.a, surprise) - np.bincount(those.b, surprise)
    assert surplus.tolist() == pytest.approx([0.0] * len(theta), abs=1e-7)
    assert (x.T @ surprise).tolist() == pytest.approx(beta.tolist(), abs=1e-7)
    assert np.average(x**2, axis=0, weights=those.weight).tolist() == pytest.approx([1.0, 1.0])


@given(rows=comparable(scores=SOFT), seed=SEEDS)
def test_which_entrant_is_a_is_arbitrary(rows: list[Battle], seed: int) -> None:
    """Told the other way round, a battle has the opposite features, and is the same."""
    those, features = in_columns(rows * 3), drawn(seed, 3 * len(rows), "length", "bold")
    turned = np.random.default_rng(seed).random(len(those)) < 0.5
    again = replace(
        those,
        a=np.where(turned, those.b, those.a),
        b=np.where(turned, those.a, those.b),
        score=np.where(turned, 1 - those.score, those.score),
    )
    opposite = {name: np.where(turned, -x, x) for name, x in features.items()}

    assert numbers(adjusted(again, opposite)) == pytest.approx(
        numbers(adjusted(those, features)), nan_ok=True
    )


@given(rows=comparable(), seed=SEEDS, scale=st.floats(1e-3, 1e3))
def test_the_unit_of_a_feature_changes_its_deviation_alone(
    rows: list[Battle], seed: int, scale: float
) -> None:
    """Characters or kilobytes: a coefficient is for a standard deviation."""
    features = drawn(seed, 3 * len(rows), "length", "bold")
    scaled = features | {"length": scale * features["length"]}

    one, other = adjusted(rows * 3, features), adjusted(rows * 3, scaled)

    assert numbers(other) == pytest.approx(numbers(one), nan_ok=True)
    ratio = other.coefficients[0].deviation / one.coefficients[0].deviation
    assert ratio == pytest.approx(scale)


@pytest.mark.parametrize(
    "fields", [{}, {"unit": "battles", "level": 0.8}, {"prior_sd": 100.0}, {"anchor": "a"}], ids=str
)
def test_no_features_make_plain_bradley_terry(fields: dict[str, object]) -> None:
    """Two ways to the same numbers: one by counts of pairs, the other battle by battle."""
    scores = (1.0, 0.25, 0.5, 0.0, 0.75, 1.0, 0.5)
    again = [row._replace(score=score, prompt=n) for n, score in enumerate(scores) for row in RING]
    rows = [*RING, *again, Battle("a", "b", 1.0, 9, 3.0)]

    found = adjusted(rows, {}, fields)

    plain = rate(in_columns(rows), found.ratings.parameters)
    assert found.coefficients == ()
    for name in ("rating", "lower", "upper", "covariance"):
        expected = pytest.approx(getattr(plain, name), abs=1e-6, nan_ok=True)
        assert getattr(found.plain, name) == expected
        assert getattr(found.ratings, name) == expected


@given(rows=any_battles(scores=st.sampled_from((0.0, 0.25, 0.5, 1.0))))
def test_nobody_is_rated_who_would_not_be_without_features(rows: list[Battle]) -> None:
    """An undefeated entrant has no finite strength, however it writes."""
    plain = rate(in_columns(rows), BradleyTerryParameters())
    assume(not np.isnan(plain.rating).all())

    found = adjusted(rows, {}).ratings

    assert found.rating == pytest.approx(plain.rating, nan_ok=True)
    assert np.isnan(found.lower).tolist() == np.isnan(plain.lower).tolist()
    assert np.isnan(found.covariance).tolist() == np.isnan(plain.covariance).tolist()
    assert [row.reason for row in found.rows()] == [row.reason for row in plain.rows()]


@given(rows=comparable(), seed=SEEDS)
def test_islands_share_what_a_feature_wins(rows: list[Battle], seed: int) -> None:
    """Two islands where the same happened, each told half, are as one told whole."""
    one = [row._replace(prompt=(1, n)) for n, row in enumerate(rows * 3)]
    two = [row._replace(a=f"{row.a}'", b=f"{row.b}'", prompt=(2, row.prompt)) for row in one]
    halves = [row._replace(weight=row.weight / 2) for row in one + two]
    length = drawn(seed, len(one), "length")["length"]

    alone = adjusted(one, {"length": length})
    both = adjusted(halves, {"length": np.tile(length, 2)})

    assert both.coefficients[0].beta == pytest.approx(alone.coefficients[0].beta)
    assert sorted(both.ratings.rating) == pytest.approx(sorted(np.tile(alone.ratings.rating, 2)))


def test_an_entrant_that_writes_longer_is_rated_as_if_it_did_not() -> None:
    """Equals are equal once length is accounted for; without, the longest looks better."""
    those, longer = simulated(np.random.default_rng(5), beta=1.5, n_prompts=400)

    found = adjusted(those, {"length": longer})

    (coefficient,) = found.coefficients
    assert found.plain.lower[0] > 1000
    assert found.ratings.lower[0] < 1000 < found.ratings.upper[0]
    _, lower, upper, deviation = coefficient[1:5]
    assert holds(lower, 1.5 * deviation, upper)


@pytest.mark.nightly
def test_intervals_are_those_of_drawing_prompts_anew() -> None:
    """The closed form against brute force; as if battles were independent, it falls short."""
    rng = np.random.default_rng(11)
    those, longer = simulated(rng, beta=1.0, n_prompts=120)
    features = {"length": longer}
    draws = []
    for _ in range(150):
        weight = rng.standard_gamma(1.0, 120)[those.cluster]
        again = adjusted(replace(those, weight=weight), features)
        draws.append([*again.ratings.rating, again.coefficients[0].beta])

    found, apart = adjusted(those, features), adjusted(those, features, {"unit": "battles"})

    def widths(ratings: AdjustedRatings) -> Floats:
        bounds = np.array(numbers(ratings)[3:]).reshape(-1)
        lower, upper = np.append(bounds[:3], bounds[-2]), np.append(bounds[3:6], bounds[-1])
        return np.asarray(upper - lower)

    expected = 2 * 1.96 * np.std(draws, axis=0)
    assert widths(found) == pytest.approx(expected, rel=0.2)
    assert widths(apart)[-1] < 0.7 * expected[-1]


def test_a_single_prompt_has_no_interval() -> None:
    """How much prompts differ takes two of them."""
    rows = [each._replace(prompt=1) for each in RING * 2]

    found = adjusted(rows, drawn(1, 6, "length"))

    assert not np.isnan(found.ratings.rating).any()
    assert np.isnan(found.ratings.lower).all()
    assert found.coefficients[0][2:4] == (None, None)


@pytest.mark.parametrize(
    ("features", "why"),
    [
        ({"size": [1, 2, -3, 1, 2, -3]}, "feature 'size' is a linear comb"),
        ({"x": [1, 0, 0, 2, 0, 0], "y": [3, 0, 0, 6, 0, 0]}, "feature 'y' is a linear comb"),
        ({"x": [1, 2, 3, 4, 5, 6], "y": [2, 4, 0, 5, 7, 3]}, "feature 'y' is a linear comb"),
    ],
    ids=["entrants", "feature", "both"],
)
def test_a_feature_that_says_nothing_of_its_own_is_named(
    features: dict[str, list[float]], why: str
) -> None:
    """Sizes 0, -1, -3 of a, b, c make differences 1, 2, -3: what strengths could be as well."""
    with pytest.raises(CannotRate, match=why):
        adjusted(RING * 2, {name: np.array(x, dtype=float) for name, x in features.items()})


def test_a_feature_that_is_always_the_same_is_left_out() -> None:
    """No answer has headers: the others' effects are as if nobody had asked for those."""
    length = drawn(3, 6, "length")

    found = adjusted(RING * 2, {"headers": np.zeros(6), **length})

    alone = adjusted(RING * 2, length)
    assert found.left_out == ("headers",)
    assert found.coefficients == alone.coefficients
    assert found.ratings.rating.tolist() == alone.ratings.rating.tolist()
    assert alone.left_out == ()


@pytest.mark.parametrize(
    "fields", [{"ties": "davidson"}, {"interval": "bayesian"}, {"interval": "multinomial"}], ids=str
)
def test_what_covariates_do_not_go_with_is_refused(fields: dict[str, object]) -> None:
    """An interval of another kind than was asked for would be taken for it."""
    with pytest.raises(CannotRate, match="ties as half and the sandwich interval"):
        adjusted(RING, {}, fields)


def test_without_anybody_to_compare_there_is_no_coefficient() -> None:
    """Who always won, or always lost, did so whatever was longer."""
    rows = [Battle("a", "b", 1.0, 1), Battle("a", "b", 1.0, 2)]

    with pytest.raises(CannotRate, match="no two entrants can be compared"):
        adjusted(rows, {"length": np.array([1.0, 2.0])})

    found = adjusted(rows, {"length": np.array([1.0, 2.0])}, {"prior_sd": 100.0})
    assert found.ratings.rating[0] > 1000


@pytest.mark.parametrize("weights", [(1e200, 1e-200), (5e-324, 5e-324)], ids=str)
def test_strengths_out_of_reach_are_not_made_up(weights: tuple[float, float]) -> None:
    """A climb that ends because patience does would leave a number that looks like a rating."""
    rows = [Battle("a", "b", 1.0, 1, weights[0]), Battle("a", "b", 0.0, 2, weights[1])]
    units = single_battles(in_columns(rows), np.array([True, True]))
    design = Design(2, units.a, units.b, np.empty((2, 0)))
    likelihood = AdjustedLikelihood(design, units, penalty=np.zeros(2), held=np.array([0]))

    with pytest.raises(CannotRate, match="too far apart"):
        likelihood.fit()
