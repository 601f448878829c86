"""Bradley-Terry ratings of battles, by themselves and beside those of other programs."""

from collections.abc import Iterable
from dataclasses import replace
from importlib import import_module
from math import exp
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from ledger.events.ratings import BradleyTerryParameters, IntervalKind, IntervalUnit, TieModel
from projections.battles.columns import Battles, CannotRate
from projections.ratings.bradley_terry.component import ELO
from projections.ratings.bradley_terry.rate import BradleyTerryRatings, rate
from tests.support.builders.battles import Battle, BattleRow, in_columns
from tests.support.builders.events import valid
from tests.support.strategies.battles import NAMES, SOFT, any_battles, comparable

EXACT = 1e-6  # Elo points


def drawn(seed: int, *, n: int = 8, n_battles: int = 600) -> Battles:
    """Return random battles, a fifth of them ties."""
    rng = np.random.default_rng(seed)
    a = rng.integers(n, size=n_battles)
    b = (a + rng.integers(1, n, size=n_battles)) % n
    score = (rng.random(n_battles) < 1 / (1 + np.exp((b - a) / 4))).astype(np.float64)
    score[rng.random(n_battles) < 0.2] = 0.5
    names = tuple(f"e{i}" for i in range(n))
    return Battles.by_score(names, a, b, score, np.arange(n_battles), np.ones(n_battles))


def points(strengths: NDArray[np.float64]) -> list[float]:
    """Return strengths as Elo points with mean 1000."""
    return [*(1000 + ELO * (strengths - strengths.mean()))]


SIX = drawn(1, n=6)
EVALICA: dict[TieModel, tuple[str, float, list[float]]] = {
    "half": (
        "bradley_terry",
        0.0,
        [926.4388059, 963.9974995, 933.622823, 1005.8430565, 1068.211854, 1101.8859611],
    ),
    "davidson": (
        "newman",
        0.5714360435,
        [904.8914012, 953.4832939, 914.218605, 1007.4697306, 1088.1290459, 1131.8079233],
    ),
}
"""By model of ties: what evalica calls it, and twice its `v` and its ratings of those six."""


@pytest.mark.parametrize("ties", EVALICA)
def test_ratings_are_those_of_evalica(ties: TieModel) -> None:
    """It goes another way, fixed points; Newman's model of ties is Davidson's with nu = 2 v."""
    _, nu, theirs = EVALICA[ties]

    ratings = rate(SIX, BradleyTerryParameters(ties=ties))

    assert ratings.rating.tolist() == pytest.approx(theirs, abs=EXACT)
    assert ratings.nu.tolist() == pytest.approx([nu], abs=1e-9)


@pytest.mark.nightly
@pytest.mark.parametrize("ties", EVALICA)
def test_evalica_rates_so(ties: TieModel) -> None:
    """What is compared with by day, without the second that it takes to load."""
    evalica = import_module("evalica")
    engine, nu, ratings = EVALICA[ties]
    sides = ([SIX.entrants[i] for i in side] for side in (SIX.a, SIX.b))
    winners = [evalica.Winner(int(1 + (score == 0) - (score == 0.5))) for score in SIX.score]

    theirs = getattr(evalica, engine)(*sides, winners, tolerance=1e-13, limit=10_000)

    found = points(np.log(theirs.scores.sort_index().to_numpy()))
    assert found == pytest.approx(ratings, abs=EXACT)
    assert 2 * getattr(theirs, "v", 0) == pytest.approx(nu, abs=1e-9)


ROOT = 1e-3  # likewise, of the root of a variance that is nearly 0
UPSETS = [("a", "b", 1.0, 1), ("b", "a", 1.0, 2), ("b", "c", 1.0, 3), ("c", "a", 1.0, 4)]
MORE_UPSETS = [(a, b, 1.0, n) for n in range(6) for a, b, _, which in UPSETS if n != which]


def rated(rows: Iterable[BattleRow], **parameters: object) -> BradleyTerryRatings:
    """Rate battles by parameters that are as usual but for those given."""
    return rate(in_columns(rows), valid(BradleyTerryParameters, parameters))


def reasons(ratings: BradleyTerryRatings) -> dict[str, str | None]:
    """Return why each entrant has no rating."""
    return {row.entrant: row.reason for row in ratings.rows()}


@given(rows=comparable(scores=SOFT))
def test_everybody_took_what_is_expected(rows: list[Battle]) -> None:
    """That is what it means to be the likeliest ratings (Zermelo 1929); the mean is 1000."""
    ratings = rated(rows)

    theta = dict(zip(ratings.entrants, ratings.rating / ELO, strict=True))
    surplus = dict.fromkeys(theta, 0.0)
    for a, b, score, _, weight in rows:
        surprise = weight * (score - 1 / (1 + exp(theta[b] - theta[a])))
        surplus[a] += surprise
        surplus[b] -= surprise
    assert [*surplus.values()] == pytest.approx([0.0] * len(surplus), abs=1e-7)
    mean = np.average(ratings.rating, weights=ratings.support.weight)
    assert mean == pytest.approx(1000.0)


@pytest.mark.parametrize("ties", get_args(TieModel))
@given(rows=any_battles(), data=st.data())
def test_order_and_sides_of_battles_change_nothing(
    ties: TieModel, rows: list[Battle], data: st.DataObject
) -> None:
    """Unlike Elo, these ratings know no time; and who is called a is a matter of spelling."""
    turned = [
        Battle(row.b, row.a, 1 - row.score, row.prompt, row.weight)
        if data.draw(st.booleans())
        else row
        for row in data.draw(st.permutations(rows))
    ]

    before, after = rated(rows, ties=ties), rated(turned, ties=ties)

    assert after.entrants == before.entrants
    assert reasons(after) == reasons(before)
    assert after.rating == pytest.approx(before.rating, abs=EXACT, nan_ok=True)
    assert after.lower == pytest.approx(before.lower, abs=ROOT, nan_ok=True)
    assert after.upper == pytest.approx(before.upper, abs=ROOT, nan_ok=True)


@pytest.mark.parametrize("ties", get_args(TieModel))
@given(rows=any_battles(), data=st.data())
def test_renaming_entrants_changes_no_rating(
    ties: TieModel, rows: list[Battle], data: st.DataObject
) -> None:
    """Entrants are sorted by name for output only: a name must be worth nothing."""
    names = dict(zip(NAMES, data.draw(st.permutations(NAMES)), strict=True))

    before = rated(rows, ties=ties).rows()
    turned = [row._replace(a=names[row.a], b=names[row.b]) for row in rows]
    after = rated(turned, ties=ties).rows()

    renamed = {row.entrant: row for row in after}
    for row in before:
        twin = renamed[names[row.entrant]]
        assert (twin.n_battles, twin.reason) == (row.n_battles, row.reason)
        assert twin.rating == (row.rating and pytest.approx(row.rating, abs=EXACT))
        assert twin.low == (row.low and pytest.approx(row.low, abs=ROOT))
        assert twin.high == (row.high and pytest.approx(row.high, abs=ROOT))


@pytest.mark.parametrize("ties", get_args(TieModel))
@given(rows=comparable())
def test_twice_the_data_is_as_sure_as_the_root_of_two(ties: TieModel, rows: list[Battle]) -> None:
    """Ratings stay; of errors, at most half of the variance, as few clusters are less sure."""
    often = [row._replace(prompt=f"{n} {row.prompt}") for n in range(12) for row in rows]

    once, twice = rated(often[: 6 * len(rows)], ties=ties), rated(often, ties=ties)

    assert twice.rating == pytest.approx(once.rating, abs=EXACT, nan_ok=True)
    known = np.flatnonzero(~np.isnan(once.covariance.diagonal()))
    variances = (2 * twice.covariance.diagonal()[known], once.covariance.diagonal()[known])
    assert (variances[0] <= variances[1] * (1 + 1e-6)).all()


@pytest.mark.parametrize("interval", get_args(IntervalKind))
@pytest.mark.parametrize("unit", get_args(IntervalUnit))
def test_a_rating_does_not_depend_on_its_interval(
    interval: IntervalKind, unit: IntervalUnit
) -> None:
    """A mean over resamples, as others report, would change with the seed."""
    usual = rated(UPSETS)

    other = rated(UPSETS, interval=interval, unit=unit, resamples=7, seed=5)

    assert other.rating.tolist() == usual.rating.tolist()


@pytest.mark.parametrize("interval", ["bayesian", "multinomial"])
def test_a_bootstrap_depends_on_its_seed_alone(interval: IntervalKind) -> None:
    """The seed is recorded so that the interval can be found again."""
    rows = UPSETS * 10
    first, second, other = (
        rated(rows, interval=interval, unit="battles", resamples=50, seed=seed)
        for seed in (1, 1, 2)
    )

    assert first.lower.tolist() == second.lower.tolist()
    assert first.lower.tolist() != other.lower.tolist()


def test_a_weight_is_so_many_battles() -> None:
    """To the rating; it is one piece of evidence still, and its error is larger."""
    lost = [("b", "a", 1.0, 10 + n) for n in range(4)]
    apart = rated([*(("a", "b", 1.0, n) for n in range(8)), *lost])

    weighted = rated([*(("a", "b", 1.0, n, 2.0) for n in range(4)), *lost])

    assert weighted.rating.tolist() == pytest.approx(apart.rating.tolist())
    assert weighted.covariance[0, 0] > apart.covariance[0, 0]


def test_an_anchor_keeps_its_rating() -> None:
    """Ratings of another time compare only if both hang from the same entrant."""
    free, held = rated(MORE_UPSETS), rated(MORE_UPSETS, anchor="b", anchor_rating=1200.0)

    assert held.rating - free.rating == pytest.approx([1200 - free.rating[1]] * 3)
    assert (held.lower[1], held.rating[1], held.upper[1]) == (1200.0, 1200.0, 1200.0)
    difference = free.covariance[0, 0] + free.covariance[1, 1] - 2 * free.covariance[0, 1]
    assert held.covariance[0, 0] == pytest.approx(difference)


def test_an_anchor_moves_its_own_component_only() -> None:
    """What cannot be compared cannot hang from it either."""
    rows = [*UPSETS, ("x", "y", 1.0, 5), ("y", "x", 1.0, 6)]

    ratings = rated(rows, anchor="b", anchor_rating=1200.0)

    assert ratings.rating[[1, 3, 4]].tolist() == pytest.approx([1200.0, 1000.0, 1000.0])


def test_an_anchor_that_fought_nobody_is_refused() -> None:
    """Without it the scale would hang from nothing, and nobody would be told."""
    with pytest.raises(CannotRate, match=r"the anchor 'z' .*; choose "):
        rated(UPSETS, anchor="z")


def test_who_is_undefeated_or_winless_has_no_number() -> None:
    """The likeliest rating is infinite; any number would come from where a solver stopped."""
    ratings = rated([*UPSETS, ("top", "a", 1.0, 5), ("c", "zero", 1.0, 6)])

    expected = {"a": None, "b": None, "c": None, "top": "undefeated", "zero": "winless"}
    assert reasons(ratings) == expected
    top, zero = ratings.rows()[3:]
    assert (top.rating, top.low, top.high, top.n_battles) == (None, None, None, 1)
    assert (top.group, ratings.rows()[0].group, zero.group) == (1, 2, 3)
    assert ratings.rating[:3].tolist() == rated(UPSETS).rating.tolist()


def test_two_islands_are_rated_apart() -> None:
    """Nobody met anybody of the other; one list would compare what nobody compared."""
    island = [("x", "y", 1.0, 5), ("y", "x", 1.0, 6), ("x", "y", 1.0, 7)]

    ratings = rated([*UPSETS, *island])

    assert not ratings.components.above.any()
    assert ratings.rating[:3].tolist() == rated(UPSETS).rating.tolist()
    assert ratings.rating[3:].tolist() == rated(island).rating.tolist()
    assert np.isnan(ratings.covariance[:3, 3:]).all()


def test_a_one_way_bridge_orders_two_components() -> None:
    """Each is rated by itself; between them there is an order and no distance."""
    island = [("x", "y", 1.0, 5), ("y", "x", 1.0, 6)]

    ratings = rated([*UPSETS, *island, ("y", "a", 1.0, 7)])

    assert ratings.components.label.tolist() == [1, 1, 1, 0, 0]
    assert ratings.components.above.tolist() == [[False, True], [False, False]]
    assert ratings.rating[:3].tolist() == rated(UPSETS).rating.tolist()


def test_a_chain_of_wins_orders_and_rates_nobody() -> None:
    """Who lost all with some and won all with others is between them, wherever that is."""
    ratings = rated([("a", "b", 1.0, 1), ("b", "c", 1.0, 2)])

    assert reasons(ratings) == {"a": "undefeated", "b": "one-way", "c": "winless"}


def test_who_fought_nobody_cannot_be_compared() -> None:
    """Columns may name an entrant of whom there is no battle yet."""
    fought = in_columns([("a", "b", 1.0, 1), ("b", "a", 1.0, 2)])
    named = replace(fought, entrants=("a", "b", "c"))

    ratings = rate(named, BradleyTerryParameters())

    assert reasons(ratings) == {"a": None, "b": None, "c": "not comparable"}


@pytest.mark.parametrize("interval", get_args(IntervalKind))
def test_a_prior_rates_even_the_undefeated_and_is_not_sure_of_it(interval: IntervalKind) -> None:
    """Stated by the user, it joins everything; where data say little, its width must remain."""
    rows = [(a, b, 1.0, n) for n in range(6) for a, b in ("ab", "xy")]

    ratings = rated(rows, prior_sd=200.0, interval=interval, resamples=400)

    assert set(reasons(ratings).values()) == {None}
    assert len(ratings.components) == 1
    assert 1000 < ratings.rating[0] < 1200
    assert 300 < ratings.upper[0] - ratings.lower[0] < 784


@pytest.mark.parametrize("interval", get_args(IntervalKind))
@pytest.mark.parametrize(
    "rows",
    [
        [(a, b, 1.0, prompt) for prompt in "pqrstu" for a, b in ("ab", "ba")],
        [("a", "b", 0.7, prompt) for prompt in "pqrstu"],
    ],
)
def test_prompts_that_do_not_differ_give_ratings_and_no_interval(
    rows: list[BattleRow], interval: IntervalKind
) -> None:
    """A spread of 0 among few is no sign that others lie there; the anchor does by decree."""
    free = rated(rows, interval=interval, resamples=50)
    anchored = rated(rows, interval=interval, resamples=50, anchor="a", anchor_rating=500.0)

    assert [(row.low, row.high) for row in free.rows()] == [(None, None)] * 2
    assert np.isnan(free.covariance).all()
    assert anchored.rows()[0][3:5] == pytest.approx((500.0, 500.0))
    assert anchored.rows()[1][3:5] == (None, None)


@pytest.mark.parametrize("prior_sd", [None, 200.0])
def test_without_battles_there_is_nobody_to_rate(prior_sd: float | None) -> None:
    """A tournament is looked at before its first verdict, and that is no error."""
    ratings = rated([], prior_sd=prior_sd)

    assert (ratings.rows(), len(ratings.components)) == ((), 0)


@pytest.mark.parametrize(
    "rows",
    [
        [("a", "b", 1.0, 1), ("b", "a", 1.0, 2, 1e-200)],
        [("a", "b", 1.0, 1, 1e200), ("b", "a", 1.0, 2, 1e-200)],
        [*UPSETS, ("0", "a", 1.0, 5, 1e-300), ("a", "0", 1.0, 6, 1e-300)],
    ],
)
def test_strengths_too_far_apart_are_refused(rows: list[tuple[str, str, float, int]]) -> None:
    """The computer's numbers end somewhere, and what comes out then must not look like a rating."""
    with pytest.raises(CannotRate, match=r"too far apart .*; set a prior"):
        rated(rows)


def test_an_anchor_of_few_prompts_leaves_no_interval_and_all_ranks() -> None:
    """All ratings hang from it, so they are as unsure as it is; differences of others are not."""
    rows = [*MORE_UPSETS, ("new", "a", 1.0, 1), ("new", "a", 0.0, 2)]

    ratings = rated(rows, anchor="new", anchor_rating=1200.0)

    found = {row.entrant: row for row in ratings.rows()}
    assert (found["new"].low, found["new"].high) == (1200.0, 1200.0)
    assert found["a"].no_interval == "the anchor has none: 2 prompts: at least 6 are needed"
    assert np.isfinite(ratings.covariance[:3, :3]).all()


@pytest.mark.parametrize(("unit", "why"), [("prompts", "1 prompt"), ("battles", "3 battles")])
def test_few_clusters_give_the_reason_instead_of_an_interval(unit: IntervalUnit, why: str) -> None:
    """Three battles on one prompt said 924.5 (917.7 to 931.4); how prompts differ is unknown."""
    rows = [*MORE_UPSETS, *(("new", "a", score, 1) for score in (1.0, 1.0, 0.0))]

    new = rated(rows, unit=unit).rows()[-1]

    assert (new.low, new.high) == (None, None)
    assert new.no_interval == f"{why}: at least 6 are needed"
