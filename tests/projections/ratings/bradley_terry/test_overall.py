"""Ratings across dimensions."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.events.ratings import BradleyTerryParameters
from projections.battles.columns import Battles, CannotRate
from projections.intervals import Floats
from projections.ratings.bradley_terry.leaderboard import ranks
from projections.ratings.bradley_terry.overall import Missing, OverallRatings, rate_overall
from projections.ratings.bradley_terry.rate import rate
from tests.support.builders.battles import RING, Battle, in_columns
from tests.support.builders.events import valid
from tests.support.strategies.battles import any_battles, comparable


def overall(
    rows: Mapping[str, Sequence[Battle]], weights: Mapping[str, float], **fields: object
) -> OverallRatings:
    """Rate battles, by dimension, by parameters that are as usual but for those given."""
    return rate_overall(
        in_columns(row for group in rows.values() for row in group),
        [dimension for dimension, group in rows.items() for _ in group],
        weights,
        valid(BradleyTerryParameters, fields),
    )


def renamed(rows: Sequence[Battle], prefix: str) -> list[Battle]:
    """Return the same battles over other prompts."""
    return [row._replace(prompt=(prefix, row.prompt)) for row in rows]


def simulated(rng: np.random.Generator, n_prompts: int) -> tuple[Battles, list[str]]:
    """Draw a tournament of three entrants on two dimensions.

    A prompt suits some entrants more than others, and that shows on both dimensions.
    """
    skill = np.array([0.5, 0.0, -0.5])
    suits = skill + 2 * rng.normal(size=(n_prompts, 3))
    prompt, a = (each.ravel() for each in np.indices((n_prompts, 3)))
    b = (a + 1) % 3
    chance = 1 / (1 + np.exp(suits[prompt, b] - suits[prompt, a]))
    score = (rng.random((2, len(a))) < chance).astype(float).ravel()
    a, b, prompt = (np.tile(each, 2) for each in (a, b, prompt))
    battled = Battles.by_score(("a", "b", "c"), a, b, score, prompt, weight=np.ones(len(score)))
    return battled, np.repeat(["style", "truth"], len(a) // 2).tolist()


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"ties": "davidson", "level": 0.8},
        {"unit": "battles"},
        {"prior_sd": 100.0},
        {"prior_sd": 100.0, "ties": "davidson", "anchor": "a", "anchor_rating": 1200.0},
        {"anchor": "c"},
    ],
    ids=str,
)
def test_a_single_dimension_is_rated_as_it_is(fields: dict[str, object]) -> None:
    """Two ways to the same intervals; whatever the parameters, they are kept to."""
    ties = [Battle("a", "c", 0.5, 2), Battle("b", "c", 0.5, 4), Battle("a", "b", 0.5, 1)]
    rows = [*RING, *ties, *renamed(RING, "again"), *renamed(RING, "once more")]

    found = overall({"truth": rows}, {"truth": 3.0}, **fields).ratings

    plain = rate(in_columns(rows), found.parameters)
    for name in ("rating", "lower", "upper", "covariance", "n_battles"):
        assert getattr(found, name) == pytest.approx(getattr(plain, name))
    assert ranks(found)[0].tolist() == ranks(plain)[0].tolist()


@given(rows=any_battles(), weight=st.floats(0.1, 10))
def test_dimensions_that_always_agree_are_as_one(rows: list[Battle], weight: float) -> None:
    """Asking the same twice tells nothing new; counted as independent, it would seem to."""
    one = overall({"truth": [*RING, *rows]}, {"truth": 1.0}).ratings
    two = overall(
        {"truth": [*RING, *rows], "style": [*RING, *rows]}, {"truth": 1.0, "style": weight}
    ).ratings

    for name in ("rating", "lower", "upper"):
        assert getattr(two, name) == pytest.approx(getattr(one, name), nan_ok=True)
    assert two.components.label.tolist() == one.components.label.tolist()
    assert two.components.above.tolist() == one.components.above.tolist()


def copied(rows: list[Battle]) -> list[Battle]:
    """Return battles six times, each time on prompts of their own: enough for an interval."""
    return [row._replace(prompt=f"{n} {row.prompt}") for n in range(6) for row in rows]


@given(rows=comparable(), others=comparable())
def test_dimensions_without_a_common_prompt_are_independent(
    rows: list[Battle], others: list[Battle]
) -> None:
    """Variances add up, by squared shares."""
    rows, others = copied(rows), copied(others)
    names = {name for row in (*rows, *others) for name in row[:2]}
    ring = [
        Battle(a, b, 1.0, f"all {a}")
        for a, b in zip(sorted(names), [*sorted(names)[1:], min(names)], strict=True)
    ]
    groups = {"truth": [*ring, *rows], "style": renamed([*ring, *others], "style")}

    found = overall(groups, {"truth": 1.0, "style": 3.0})

    truth, style = (part.ratings for part in found.parts)
    assert [part.share for part in found.parts] == [0.25, 0.75]
    assert found.ratings.rating == pytest.approx(0.25 * truth.rating + 0.75 * style.rating)
    assert found.ratings.covariance == pytest.approx(
        truth.covariance / 16 + 9 * style.covariance / 16, abs=1e-6, nan_ok=True
    )


@pytest.mark.nightly
def test_the_interval_is_that_of_drawing_prompts_anew() -> None:
    """The closed form against brute force; as if dimensions were independent, it falls short."""
    rng = np.random.default_rng(3)
    those, dimensions = simulated(rng, n_prompts=143)
    weights = {"truth": 2.0, "style": 1.0}
    draws = []
    for _ in range(200):
        weight = rng.standard_gamma(1.0, 143)[those.cluster]
        again = rate_overall(
            replace(those, weight=weight), dimensions, weights, BradleyTerryParameters()
        )
        draws.append(again.ratings.rating)

    found = rate_overall(those, dimensions, weights, BradleyTerryParameters())

    drawn: Floats = np.std(draws, axis=0)
    apart = sum(part.share**2 * part.ratings.covariance.diagonal() for part in found.parts)
    assert np.sqrt(found.ratings.covariance.diagonal()) == pytest.approx(drawn, rel=0.15)
    assert (np.sqrt(apart) < 0.88 * drawn).all()


def test_a_dimension_without_a_weight_does_not_count() -> None:
    """Its battles neither rate anybody nor keep anybody from being rated."""
    groups = {"truth": RING, "style": [Battle("a", "d", 1.0, 1)]}

    found = overall(groups, {"style": 0.0, "truth": 2.0})

    assert [(part.dimension, part.share) for part in found.parts] == [("truth", 1.0)]
    assert found.ratings.n_battles.tolist() == [2, 2, 2, 0]
    assert found.ratings.rating.tolist()[:3] == pytest.approx([1000.0] * 3)


def test_an_entrant_that_a_dimension_cannot_rate_has_no_rating_overall() -> None:
    """A mean of what is there would favour who was never compared where it is weak."""
    groups = {
        "truth": [*RING, Battle("d", "a", 1.0, 1), Battle("e", "a", 1.0, 1)],
        "style": [*RING, Battle("d", "a", 1.0, 2), Battle("a", "d", 1.0, 3)],
    }

    found = overall(groups, {"truth": 1.0, "style": 1.0})

    assert [row.rating is None for row in found.ratings.rows()] == [False] * 3 + [True] * 2
    assert found.missing("a") == ()
    assert found.missing("d") == (Missing("truth", "undefeated"),)
    assert found.missing("e") == (Missing("truth", "undefeated"), Missing("style", "no battle"))


def test_a_rating_hangs_from_something_on_each_dimension() -> None:
    """Who joins on one of them moves the mean there, and so what the rating is counted from."""
    pair = [Battle("a", "b", 1.0, 1), Battle("b", "a", 1.0, 2)]
    several = overall({"truth": RING, "style": pair}, {"truth": 1.0, "style": 1.0})
    anchored = overall({"truth": RING, "style": pair}, {"truth": 1.0, "style": 1.0}, anchor="c")

    all_three, two = frozenset("abc"), frozenset("ab")
    assert several.zeros() == ((all_three, two), (all_three, two), (all_three, frozenset("c")))
    assert anchored.zeros()[0] == (frozenset("c"), two)


def test_who_is_above_on_one_dimension_and_nowhere_below_is_above() -> None:
    """Better beyond measure outweighs any number; above here and below there is no order."""
    above = [Battle(name, "a", 1.0, 9) for name in ("d", "e")]
    below = [Battle("a", "e", 1.0, 9), Battle("d", "a", 0.5, 8)]

    found = overall(
        {"truth": [*RING, *above], "style": [*RING, *below]}, {"truth": 1.0, "style": 1.0}
    ).ratings

    label, is_above = found.components.label, found.components.above
    assert is_above[label[3], label].tolist() == [True, True, True, False, False]
    assert not is_above[label[4]].any()
    assert not is_above[:, label[4]].any()


@pytest.mark.parametrize(
    ("weights", "why"),
    [
        ({}, "dimension 'truth' has no weight"),
        ({"truth": -1.0}, "dimension 'truth' has the weight -1.0"),
        ({"truth": float("nan")}, "dimension 'truth' has the weight nan"),
        ({"truth": float("inf")}, "dimension 'truth' has the weight inf"),
        ({"truth": 1.0, "style": 1.0}, "dimension 'style' has no battle"),
        ({"truth": 0.0}, "no dimension has a weight above 0"),
    ],
    ids=str,
)
def test_weights_are_stated_for_every_dimension(weights: dict[str, float], why: str) -> None:
    """What is left out, is left out by intention."""
    with pytest.raises(CannotRate, match=why):
        overall({"truth": RING}, weights)


def test_resamples_are_refused() -> None:
    """An interval of another kind than was asked for would be taken for it."""
    with pytest.raises(CannotRate, match="need the sandwich"):
        overall({"truth": RING}, {"truth": 1.0}, interval="bayesian")
