"""Entrants by Bradley-Terry rating: who stands where, how surely, and who has no number."""

from math import isfinite

import pytest
from hypothesis import given
from msgspec.structs import replace

from ledger.events.ratings import BradleyTerryParameters
from projections.ratings.bradley_terry.leaderboard import Leaderboard, leaderboard
from projections.results.ratings import BradleyTerryRow
from tests.support.builders.battles import Battle, in_columns, played
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
    return leaderboard("factuality", in_columns([*AMONG, *more]), parameters, ["dan", "ann"])


def places(found: Leaderboard) -> dict[str, BradleyTerryRow]:
    """Return the places by entrant."""
    return {place.entrant: place for place in found.rows}


def test_the_best_stands_first_and_who_fought_nothing_last() -> None:
    """A reader takes the first row for the winner, and a missing row for an oversight."""
    found = board()

    assert [place.entrant for place in found.rows] == ["ann", "bob", "cleo", "dan"]
    best, middle, worst, idle = found.rows
    assert (best.rating or 0) > (middle.rating or 0) > (worst.rating or 0) > 0
    assert idle == BradleyTerryRow(found.name, "dan", reason="no battle")


def test_who_cannot_be_rated_stands_where_the_order_says_and_has_no_number() -> None:
    """An undefeated entrant is above all that it beat, by more than anybody knows."""
    found = board(Battle("zoe", "ann", 1.0, 8), Battle("cleo", "eve", 1.0, 9))

    assert [place.entrant for place in found.rows] == ["zoe", "ann", "bob", "cleo", "eve", "dan"]
    zoe, eve = places(found)["zoe"], places(found)["eve"]
    assert (zoe.rating, zoe.reason, zoe.rank) == (None, "undefeated", None)
    assert (eve.rating, eve.reason, eve.rank) == (None, "winless", None)
    assert found.groups == (("zoe",), ("ann", "bob", "cleo"), ("eve",))


def test_an_anchor_that_fought_nothing_leaves_the_mean_at_1000() -> None:
    """One dimension without a verdict on the anchor yet must not stop the others."""
    one_more = Battle("bob", "ann", 1.0, 8)
    found = board(one_more, parameters=replace(PLAIN, anchor="dan", anchor_rating=500.0))

    in_mean = [places(found)[name].rating or 0.0 for name in ("ann", "bob")]  # cleo: 4 prompts
    assert sum(in_mean) == pytest.approx(2000)
    assert found.ratings.parameters.anchor is None


def test_a_bound_that_is_beyond_all_numbers_is_no_number() -> None:
    """JSON has no infinity, and a reader no use for it."""
    few = [Battle("ann", "bob", 1.0, n) for n in range(5)] + [Battle("bob", "ann", 1.0, 6)]
    parameters = replace(PLAIN, interval="multinomial", resamples=50)

    found = leaderboard("factuality", in_columns(few), parameters)

    assert found.ratings.n_without_fit.tolist() > [5]
    assert {place.no_interval for place in found.rows} == {
        "too many resamples of prompts have no fit"
    }
    assert not any(map(isfinite, found.ratings.lower))
    assert {(place.low, place.high) for place in found.rows} == {(None, None)}


@given(any_battles())
def test_every_entrant_stands_once_with_a_number_or_the_reason(rows: list[Battle]) -> None:
    """Nobody is dropped, and nobody is without a word."""
    found = leaderboard("factuality", in_columns(rows), PLAIN, ["nobody"])

    names = {name for row in rows for name in (row.a, row.b)} | {"nobody"}
    assert sorted(place.entrant for place in found.rows) == sorted(names)
    assert all((place.rating is None) == (place.reason is not None) for place in found.rows)


MANY = dict.fromkeys((("ann", "bob"), ("bob", "cleo"), ("ann", "cleo")), (30, 20, 5))


def test_a_newcomer_of_few_prompts_has_a_rating_and_moves_nobody() -> None:
    """Three wins and two losses on five prompts are a rating without an interval, off the mean."""
    old = played(MANY)
    scores = [1.0, 1.0, 1.0, 0.0, 0.0]
    games = [Battle("zoe", "ann", score, 1_000 + n) for n, score in enumerate(scores)]

    before = places(leaderboard("factuality", in_columns(old), PLAIN))
    after = places(leaderboard("factuality", in_columns([*old, *games]), PLAIN))

    zoe = after.pop("zoe")
    assert zoe.rating is not None
    assert (zoe.low, zoe.high, zoe.rank) == (None, None, None)
    assert zoe.no_interval == "5 prompts: at least 6 are needed"
    assert {name: each.rank for name, each in after.items()} == {
        name: each.rank for name, each in before.items()
    }
    ratings = {name: each.rating for name, each in after.items()}
    assert ratings == pytest.approx({name: each.rating for name, each in before.items()}, abs=1e-6)
