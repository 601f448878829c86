"""What both models of paired comparisons promise: derivatives that are those of their chances."""

from collections.abc import Sequence
from math import exp, inf, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.events.ratings import BradleyTerryParameters, IntervalKind
from projections.battles.columns import CannotRate
from projections.intervals import Floats
from projections.ratings.bradley_terry.component import ELO
from projections.ratings.bradley_terry.evidence import ClusteredBattles, clustered_battles
from projections.ratings.bradley_terry.likelihood import Likelihood
from projections.ratings.bradley_terry.models import BradleyTerry, Davidson, PairModel
from projections.ratings.bradley_terry.rate import BradleyTerryRatings, rate
from tests.support.builders.battles import Battle, in_columns, played
from tests.support.strategies.battles import any_battles, comparable

STEP = 1e-4
STRENGTHS = st.lists(st.floats(-2, 2), min_size=6, max_size=6).map(np.array)


def log_chance(model: PairModel, battle: tuple[int, int, float], at: Floats) -> float:
    """Return the logarithm of the chance of a battle, as the papers have it."""
    a, b, score = battle
    pi, other, nu = exp(at[a]), exp(at[b]), exp(at[-1]) if isinstance(model, Davidson) else 0.0
    total = pi + other + nu * (pi * other) ** 0.5
    if isinstance(model, Davidson) and score == 0.5:
        return log(nu * (pi * other) ** 0.5 / total)
    return score * log(pi / total) + (1 - score) * log(other / total)


def counted(model: PairModel, units: ClusteredBattles) -> Floats:
    """Return the counts of all battles, (1, *shape)."""
    return Likelihood(model, units).counts(units.count.astype(np.float64)[None, :])


def log_likelihood(model: PairModel, units: ClusteredBattles, at: Floats) -> float:
    """Return the logarithm of the chance of all battles."""
    rows = zip(units.a, units.b, units.score, units.weight, units.unit, strict=True)
    return sum(
        float(units.count[unit] * weight) * log_chance(model, (a, b, score), at)
        for a, b, score, weight, unit in rows
    )


@pytest.mark.parametrize("kind", [BradleyTerry, Davidson])
@given(rows=comparable(), drawn=STRENGTHS)
def test_derivatives_are_those_of_the_log_likelihood(
    kind: type[BradleyTerry] | type[Davidson], rows: list[Battle], drawn: Floats
) -> None:
    """A wrong gradient rates wrongly; a wrong second derivative gives wrong intervals only."""
    units = clustered_battles(in_columns(rows), "battles")
    model = kind(units.n_entrants)
    at = drawn[-model.n_parameters :]
    differentiate = model.derivatives(counted(model, units))
    steps = np.eye(model.n_parameters) * STEP

    gradient, information = (each[0] for each in differentiate(at[None, :]))

    slope = [
        log_likelihood(model, units, at + step) - log_likelihood(model, units, at - step)
        for step in steps
    ]
    bend = differentiate(at - steps)[0] - differentiate(at + steps)[0]
    assert gradient == pytest.approx(np.array(slope) / (2 * STEP), abs=1e-5)
    assert information == pytest.approx(bend / (2 * STEP), abs=1e-5)


@pytest.mark.parametrize("kind", [BradleyTerry, Davidson])
@given(rows=comparable(), drawn=STRENGTHS)
def test_the_scores_of_battles_add_up_to_the_gradient(
    kind: type[BradleyTerry] | type[Davidson], rows: list[Battle], drawn: Floats
) -> None:
    """Intervals are made of single battles' scores, ratings of counts: both must be one model."""
    units = clustered_battles(in_columns(rows), "battles")
    model = kind(units.n_entrants)
    at = drawn[-model.n_parameters :]
    counts = counted(model, units)

    slope, of_battles = model.scores(at, units)

    number, k = units.count[units.unit], model.n_parameters
    columns = np.zeros((len(number), slope.shape[1], k))  # how a battle's columns are parameters
    every = np.arange(len(number))
    columns[every, 0, units.a], columns[every, 0, units.b] = 1.0, -1.0
    columns[:, 1:, units.n_entrants :] = np.eye(k - units.n_entrants)
    gradient = (number[:, None] * (slope[:, None, :] @ columns)[:, 0]).sum(axis=0)
    information = (number[:, None, None] * (columns.swapaxes(1, 2) @ of_battles @ columns)).sum(
        axis=0
    )
    expected = model.derivatives(counts)(at[None, :])
    assert gradient == pytest.approx(expected[0][0], abs=1e-9)
    assert information == pytest.approx(expected[1][0], abs=1e-9)


@pytest.mark.parametrize("kind", [BradleyTerry, Davidson])
@pytest.mark.parametrize("prior", [False, True])
@given(rows=any_battles(min_size=1), data=st.data())
def test_several_counts_have_fits_or_not_each_by_itself(
    kind: type[BradleyTerry] | type[Davidson],
    rows: list[Battle],
    data: st.DataObject,
    *,
    prior: bool,
) -> None:
    """Resamples are tried many at a time, and one without a fit must not spoil its neighbours."""
    units = clustered_battles(in_columns(rows), "battles")
    numbers = st.lists(st.integers(0, 1), min_size=len(units.count), max_size=len(units.count))
    drawn = np.array(data.draw(st.lists(numbers, min_size=1, max_size=5)), dtype=np.float64)
    model = kind(units.n_entrants)
    counts = Likelihood(model, units).counts(drawn)

    together = model.has_fit(counts, prior=prior)

    assert together.tolist() == [model.has_fit(each[None], prior=prior)[0] for each in counts]


def davidson(rows: Sequence[Battle], *, prior_sd: float | None = None) -> BradleyTerryRatings:
    """Rate with ties as an outcome of their own."""
    return rate(in_columns(rows), BradleyTerryParameters(ties="davidson", prior_sd=prior_sd))


def test_without_ties_it_is_bradley_and_terrys_model() -> None:
    """Its likelihood is highest where ties are impossible, which no finite log nu says."""
    games = played({("a", "b"): (5, 2, 0), ("b", "c"): (3, 3, 0)})

    ratings = davidson(games)

    half = rate(in_columns(games), BradleyTerryParameters())
    assert ratings.rating.tolist() == half.rating.tolist()
    assert ratings.nu.tolist() == [0.0]


@pytest.mark.parametrize(
    ("games", "finite"),
    [
        ({("a", "b"): (1, 1, 1)}, True),
        ({("a", "b"): (2, 0, 1)}, False),  # a beats b or ties; why should it ever lose
        ({("a", "b"): (0, 0, 3)}, False),  # ties come of equality, or always
        ({("a", "b"): (1, 0, 0), ("b", "c"): (1, 0, 0), ("a", "c"): (0, 0, 1)}, True),
        ({("a", "b"): (1, 0, 0), ("b", "c"): (0, 0, 1), ("a", "c"): (0, 0, 1)}, False),
    ],
)
def test_a_fit_is_finite_only_with_a_round_of_more_wins_than_ties(
    games: dict[tuple[str, str], tuple[int, int, int]], *, finite: bool
) -> None:
    """Else strengths drift apart while ties grow likelier, and any number would be made up."""
    ratings = davidson(played(games))

    expected = {None} if finite else {"no finite fit"}
    assert {row.reason for row in ratings.rows()} == expected


def test_a_prior_makes_a_fit_finite_unless_all_are_ties() -> None:
    """Strengths cannot drift apart then; how likely a tie is has no prior."""
    decided = davidson(played({("a", "b"): (2, 0, 1)}), prior_sd=200.0)
    tied = davidson(played({("a", "b"): (0, 0, 3)}), prior_sd=200.0)

    assert 1000 < decided.rating[0] < inf
    assert {row.reason for row in tied.rows()} == {"no finite fit"}


@pytest.mark.parametrize("interval", ["bayesian", "multinomial"])
def test_resamples_without_a_finite_fit_are_found_out(interval: IntervalKind) -> None:
    """With its one loss drawn out, a never loses; a solver would climb until numbers end."""
    rows = played({("a", "b"): (10, 1, 5)})
    parameters = BradleyTerryParameters(ties="davidson", interval=interval, resamples=200)

    ratings = rate(in_columns(rows), parameters)

    some = interval == "multinomial"
    assert (bool(ratings.n_without_fit.all()), bool(ratings.upper[0] == inf)) == (some, some)


def test_a_score_between_is_refused() -> None:
    """The model has three outcomes; to take 0.7 for one of them would be to make it up."""
    with pytest.raises(CannotRate, match=r"not a score of 0\.7; count ties as half"):
        davidson([Battle("a", "b", 0.7, 1), Battle("b", "a", 1.0, 2)])


@given(rows=comparable())
def test_as_many_ties_are_expected_as_there_were(rows: list[Battle]) -> None:
    """At the highest place expectation and outcome are the same, for ties and for each entrant."""
    ratings = davidson(rows)
    if ratings.rows()[0].reason == "no finite fit":
        return
    theta = dict(zip(ratings.entrants, ratings.rating / ELO, strict=True))
    surplus, expected_ties = dict.fromkeys(theta, 0.0), 0.0
    for a, b, score, _, weight in rows:
        tie = ratings.nu[0] * exp((theta[b] - theta[a]) / 2)
        win, tie = (
            1 / (1 + exp(theta[b] - theta[a]) + tie),
            tie / (1 + exp(theta[b] - theta[a]) + tie),
        )
        surplus[a] += weight * (score - win - tie / 2)
        surplus[b] -= weight * (score - win - tie / 2)
        expected_ties += weight * tie

    assert [*surplus.values()] == pytest.approx([0.0] * len(surplus), abs=1e-6)
    assert expected_ties == pytest.approx(
        sum(row.weight for row in rows if row.score == 0.5), abs=1e-6
    )
