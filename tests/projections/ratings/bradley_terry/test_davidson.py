"""Ties as an outcome of their own."""

from collections.abc import Sequence
from math import exp, inf

import pytest
from hypothesis import given

from ledger.events.ratings import BradleyTerryParameters, IntervalKind
from projections.battles.columns import CannotRate
from projections.ratings.bradley_terry.component import ELO
from projections.ratings.bradley_terry.rate import BradleyTerryRatings, rate
from tests.support.builders.battles import Battle, in_columns, played
from tests.support.strategies.battles import comparable


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
