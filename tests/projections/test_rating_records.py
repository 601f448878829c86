"""Ratings in the shape of JudgeArena's."""

from itertools import product

from msgspec.structs import replace

from ledger.events.ratings import BradleyTerryParameters
from projections.artifacts.judgearena import Fields, rating_records
from projections.battles.columns import Battle, battles_of
from projections.ratings.bradley_terry.leaderboard import leaderboard
from tests.projections.fought import Pair, played

PLAIN = BradleyTerryParameters()
FOUGHT = [
    Battle("ann", "bob", 1.0, 1),
    Battle("bob", "ann", 1.0, 2),
    Battle("ann", "bob", 1.0, 3),
    Battle("zoe", "ann", 1.0, 4),
]


def records(parameters: BradleyTerryParameters = PLAIN) -> Fields:
    """Return what is said of two entrants, of one undefeated, and of one that fought nothing."""
    board = leaderboard("factuality", battles_of(FOUGHT), parameters, ["dan"])
    return rating_records(
        [board], parameters, arena="main", judge_model=None, sources={"bob": "human"}
    )


def test_ratings_are_from_the_highest_down_each_with_its_interval() -> None:
    """In JudgeArena's fields, and with its dimension."""
    rows = records()["ratings"]

    assert isinstance(rows, list)
    assert [(row["model"], row["source"], row["n_battles"]) for row in rows] == [
        ("ann", "evaluated", 4),
        ("bob", "human", 3),
    ]
    assert set(rows[0]) == {
        *("model", "rating", "ci_low", "ci_high", "n_battles", "source", "dimension", "group")
    }
    assert all(row["ci_low"] < row["rating"] < row["ci_high"] for row in rows)


def test_who_has_no_rating_stands_apart_with_the_reason() -> None:
    """A reader of JudgeArena's list takes every entry's rating for a number."""
    assert records()["unrated"] == [
        {"model": "zoe", "dimension": "factuality", "group": 1, "reason": "undefeated"},
        {"model": "dan", "dimension": "factuality", "group": None, "reason": "no battle"},
    ]


def test_who_lost_every_battle_to_a_group_stands_below_it() -> None:
    """Its rating is about another mean: the higher number would make the loser the winner."""
    strong, weak = ("ann", "bob"), ("kim", "zoe")
    games: dict[Pair, tuple[int, int, int]] = dict.fromkeys(product(strong, weak), (1, 0, 0))
    fought = battles_of(played({strong: (2, 2, 0), weak: (3, 1, 0), **games}))
    board = leaderboard("factuality", fought, PLAIN)

    found = rating_records([board], PLAIN, arena="main", judge_model=None)

    rows = found["ratings"]
    assert isinstance(rows, list)
    assert [(row["model"], row["group"]) for row in rows] == [
        *(("ann", 1), ("bob", 1), ("kim", 2), ("zoe", 2))
    ]
    assert rows[2]["rating"] > rows[0]["rating"]
    assert found["fits"] == {
        "factuality": {"groups": [["ann", "bob"], ["kim", "zoe"]], "above": [[1, 2]]}
    }


def test_numbers_are_told_to_a_thousandth() -> None:
    """The last bits differ between processors, and a replay elsewhere must find the same bytes."""
    rows = records()["ratings"]

    assert isinstance(rows, list)
    for row in rows:
        for name in ("rating", "ci_low", "ci_high"):
            assert row[name] == round(row[name], 3)


def test_what_the_interval_is_of_is_said_beside() -> None:
    """JudgeArena's are bootstraps of battles; ours need not be."""
    sandwich = records()
    drawn = replace(PLAIN, interval="bayesian", unit="battles", resamples=30)
    bootstrap = records(drawn)

    named = ("n_bootstraps", "interval", "unit", "level", "method", "seed")
    assert [sandwich[name] for name in named] == [
        *(0, "sandwich", "prompts", 0.95, "bradley-terry", PLAIN.seed)
    ]
    assert [bootstrap[name] for name in named[:3]] == [30, "bayesian", "battles"]
    assert bootstrap["parameters"] == drawn.fields


def test_a_single_prompt_has_a_rating_and_no_interval() -> None:
    """One piece of evidence says nothing of how far the next would be off."""
    fought = [Battle("ann", "bob", 1.0, 1), Battle("bob", "ann", 1.0, 1)]
    board = leaderboard("factuality", battles_of(fought), PLAIN)

    rows = rating_records([board], PLAIN, arena="main", judge_model="m")["ratings"]

    assert isinstance(rows, list)
    assert [(row["rating"], row["ci_low"], row["ci_high"]) for row in rows] == [
        (1000.0, None, None),
        (1000.0, None, None),
    ]
