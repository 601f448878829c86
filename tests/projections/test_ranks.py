"""Ranks, and how likely one entrant is better than another."""

from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given

from ledger.events.ratings import BradleyTerryParameters
from projections.battles.columns import Battle, battles_of
from projections.ratings.bradley_terry.leaderboard import p_better, ranks
from projections.ratings.bradley_terry.rate import BradleyTerryRatings, rate
from tests.projections.battle_strategies import battles
from tests.projections.fought import played


def fought(**games: tuple[int, int]) -> BradleyTerryRatings:
    """Rate by games, given how often the first and how often the second of a pair won."""
    rows = played({(pair[0], pair[1]): (won, lost, 0) for pair, (won, lost) in games.items()})
    return rate(battles_of(rows), BradleyTerryParameters())


def test_a_rank_counts_those_who_are_surely_better() -> None:
    """Two are too near each other to tell: b and c, below a and above d."""
    ratings = fought(ab=(80, 20), ac=(80, 20), bc=(52, 48), cd=(80, 20), bd=(80, 20))

    found = ranks(ratings)

    assert found.best.tolist() == [1, 2, 2, 4]
    assert found.worst.tolist() == [1, 3, 3, 4]
    assert found.among.tolist() == [4, 4, 4, 4]


def test_a_difference_may_be_sure_where_intervals_overlap() -> None:
    """Both hang from the same others: what is unsure of those is unsure of both alike."""
    ratings = fought(ab=(64, 36), bc=(9, 9), ac=(9, 9))

    assert ratings.lower[0] < ratings.upper[1]
    assert ranks(ratings).best.tolist()[:2] == [1, 2]


def test_being_better_is_as_likely_as_its_deviation_is_normal() -> None:
    """Worked by hand: log odds log(3 / 2), of variance 1 / 30 + 1 / 20, and 50 / 49 of that."""
    deviation = np.log(1.5) / ((1 / 30 + 1 / 20) * 50 / 49) ** 0.5

    p = p_better(fought(ab=(30, 20)))

    assert p[0, 1] == pytest.approx(NormalDist().cdf(deviation))
    assert p[1, 0] == pytest.approx(1 - p[0, 1])
    assert np.isnan(p.diagonal()).all()


def test_between_components_their_order_ranks_and_no_chance_is_known() -> None:
    """Who never lost is first; how likely that is the truth, battles alone do not say."""
    ratings = fought(ab=(3, 0), bc=(5, 4), cd=(2, 0), xy=(2, 2))

    found = ranks(ratings)

    assert found.best.tolist() == [1, 2, 2, 4, 1, 1]
    assert found.worst.tolist() == [1, 3, 3, 4, 2, 2]
    assert found.among.tolist() == [4, 4, 4, 4, 2, 2]
    known = ~np.isnan(p_better(ratings))
    assert [*zip(*np.nonzero(known), strict=True)] == [(1, 2), (2, 1), (4, 5), (5, 4)]


def test_equals_without_error_are_no_better_than_each_other() -> None:
    """Rounding must not rank: prompts that all say the same leave a standard error of 0."""
    rows = [(a, b, 1.0, prompt) for prompt in "pq" for a, b in ("ab", "bc", "ca")]
    ratings = rate(battles_of(rows), BradleyTerryParameters())

    assert ranks(ratings).best.tolist() == [1, 1, 1]
    assert ranks(ratings).worst.tolist() == [3, 3, 3]
    assert np.isnan(p_better(ratings)).all()


def test_three_prompts_that_say_the_same_make_nobody_surely_better() -> None:
    """0.7 three times over is a rating; what a fourth prompt would say, they do not tell."""
    rows = [("a", "b", 0.7, prompt) for prompt in range(3)]
    ratings = rate(battles_of(rows), BradleyTerryParameters())

    assert ranks(ratings).best.tolist() == [1, 1]
    assert np.isnan(p_better(ratings)).all()


@given(rows=battles())
def test_ranks_lie_among_those_who_can_be_compared(rows: list[Battle]) -> None:
    """And where one chance is known, the other is what is missing from 1."""
    ratings = rate(battles_of(rows), BradleyTerryParameters())

    best, worst, among = ranks(ratings)
    p = p_better(ratings)

    assert (best >= 1).all()
    assert (best <= worst).all()
    assert (worst <= among).all()
    assert p + p.T == pytest.approx(np.where(np.isnan(p), np.nan, 1.0), nan_ok=True)
