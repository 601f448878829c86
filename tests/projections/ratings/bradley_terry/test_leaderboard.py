"""Entrants by Bradley-Terry rating: who stands where, how surely, and who has no number."""

from math import isfinite
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from msgspec.structs import replace

from ledger.events.ratings import BradleyTerryParameters
from projections.battles.columns import Battle, battles_of
from projections.ratings.bradley_terry.leaderboard import (
    Leaderboard,
    LeaderboardRow,
    leaderboard,
    p_better,
    ranks,
)
from projections.ratings.bradley_terry.rate import BradleyTerryRatings, rate
from tests.support.builders.battles import played
from tests.support.strategies.battles import any_battles

PLAIN = BradleyTerryParameters()
AMONG = [  # each of ann, bob and cleo took something off each
    Battle("ann", "bob", 1.0, 1),
    Battle("ann", "bob", 1.0, 2),
    Battle("bob", "ann", 1.0, 3),
    Battle("bob", "cleo", 1.0, 4),
    Battle("cleo", "bob", 0.5, 5),
    Battle("cleo", "ann", 1.0, 6),
    Battle("ann", "cleo", 1.0, 7),
]


def board(*more: Battle, parameters: BradleyTerryParameters = PLAIN) -> Leaderboard:
    """Return a leaderboard of three entrants, of more battles, and of dan, who fought none."""
    return leaderboard("factuality", battles_of([*AMONG, *more]), parameters, ["dan", "ann"])


def places(found: Leaderboard) -> dict[str, LeaderboardRow]:
    """Return the places by entrant."""
    return {place.entrant: place for place in found.rows}


def test_the_best_stands_first_and_who_fought_nothing_last() -> None:
    """A reader takes the first row for the winner, and a missing row for an oversight."""
    found = board()

    assert [place.entrant for place in found.rows] == ["ann", "bob", "cleo", "dan"]
    best, middle, worst, idle = found.rows
    assert (best.rating or 0) > (middle.rating or 0) > (worst.rating or 0) > 0
    assert idle == LeaderboardRow("dan", None, None, None, None, None, 0, None, "no battle")


def test_who_cannot_be_rated_stands_where_the_order_says_and_has_no_number() -> None:
    """An undefeated entrant is above all that it beat, by more than anybody knows."""
    found = board(Battle("zoe", "ann", 1.0, 8), Battle("cleo", "eve", 1.0, 9))

    assert [place.entrant for place in found.rows] == ["zoe", "ann", "bob", "cleo", "eve", "dan"]
    zoe, eve = places(found)["zoe"], places(found)["eve"]
    assert (zoe.rating, zoe.reason, zoe.rank, zoe.worst_rank) == (None, "undefeated", 1, 1)
    assert (eve.rating, eve.reason, eve.rank, eve.worst_rank) == (None, "winless", 5, 5)
    assert found.groups == (("zoe",), ("ann", "bob", "cleo"), ("eve",))


def test_a_prior_gives_everybody_a_number() -> None:
    """Whoever states what is known beforehand gets an answer, and the table says so."""
    found = board(Battle("zoe", "ann", 1.0, 8), parameters=replace(PLAIN, prior_sd=200.0))

    assert places(found)["zoe"].rating is not None
    assert found.groups == (("zoe", "ann", "bob", "cleo"),)


def test_an_anchor_that_fought_nothing_leaves_the_mean_at_1000() -> None:
    """One dimension without a verdict on the anchor yet must not stop the others."""
    found = board(parameters=replace(PLAIN, anchor="dan", anchor_rating=500.0))

    rated = [place.rating for place in found.rows if place.rating is not None]
    assert sum(rated) == pytest.approx(3000)
    assert found.ratings.parameters.anchor is None


def test_an_anchor_is_at_its_rating() -> None:
    """It is what the scale hangs from."""
    found = board(parameters=replace(PLAIN, anchor="bob", anchor_rating=500.0))

    assert places(found)["bob"].rating == pytest.approx(500)


def test_a_bound_that_is_beyond_all_numbers_is_no_number() -> None:
    """JSON has no infinity, and a reader no use for it."""
    few = [Battle("ann", "bob", 1.0, 1), Battle("bob", "ann", 1.0, 2)]
    parameters = replace(PLAIN, interval="multinomial", resamples=50)

    found = leaderboard("factuality", battles_of(few), parameters)

    assert found.ratings.n_without_fit > 5
    assert not any(map(isfinite, found.ratings.lower))
    assert {(place.lower, place.upper) for place in found.rows} == {(None, None)}


@given(any_battles())
def test_every_entrant_stands_once_with_a_number_or_the_reason(rows: list[Battle]) -> None:
    """Nobody is dropped, and nobody is without a word."""
    found = leaderboard("factuality", battles_of(rows), PLAIN, ["nobody"])

    names = {name for row in rows for name in (row.a, row.b)} | {"nobody"}
    assert sorted(place.entrant for place in found.rows) == sorted(names)
    assert all((place.rating is None) == (place.reason is not None) for place in found.rows)


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


@given(rows=any_battles())
def test_ranks_lie_among_those_who_can_be_compared(rows: list[Battle]) -> None:
    """And where one chance is known, the other is what is missing from 1."""
    ratings = rate(battles_of(rows), BradleyTerryParameters())

    best, worst, among = ranks(ratings)
    p = p_better(ratings)

    assert (best >= 1).all()
    assert (best <= worst).all()
    assert (worst <= among).all()
    assert p + p.T == pytest.approx(np.where(np.isnan(p), np.nan, 1.0), nan_ok=True)
