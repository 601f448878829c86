"""Battles and ratings in the shape of JudgeArena's."""

from itertools import product

from msgspec.structs import replace

from ledger.events.imports import CodedColumn, JurorVote
from ledger.events.ratings import BradleyTerryParameters
from ledger.identity import Dimension, Fields
from projections.artifacts.judgearena import (
    of_dimensions,
    of_imported,
    of_settlements,
    rating_records,
)
from projections.ratings.bradley_terry.leaderboard import leaderboard
from projections.tournament.settlement import settle
from projections.verdicts.policies import CONCATENATE, RECORDED, Rule
from tests.support.builders.battles import Battle, Pair, imported_battles, in_columns, played
from tests.support.builders.events import entrant, judge, known, opened, prompt
from tests.support.builders.worlds import Fate, cup, history


def cup_records(*fates: Fate, rule: Rule = RECORDED) -> list[Fields]:
    """Return the battles of a cup whose matches met fates."""
    tournament = known(*history(cup(), *fates))
    prompts = [prompt.prompt_id for prompt in tournament.bank]
    return [*of_settlements(settle(tournament, prompts, judge(), rule), "chrF2")]


def test_each_order_may_be_a_battle_that_names_the_pair_alike() -> None:
    """JudgeArena's swap mode `both`: twice the rows, the first model the same in both."""
    records = cup_records("inconsistent", "b", rule=Rule(CONCATENATE))

    expected = [("zoe", "model_a"), ("zoe", "model_b"), ("zoe", "model_b"), ("zoe", "model_b")]
    assert [(each["model_a"], each["winner"]) for each in records] == expected


def test_a_battle_is_told_with_its_dimension_and_the_category_of_its_prompt() -> None:
    """So that who reads a table can select by them; a prompt without a category says none."""
    tournament = known(
        *history(
            opened(
                prompts=[prompt("p1", category="math"), prompt("p2")],
                entrants=[entrant("zoe"), entrant("amy")],
            ),
            "a",
            "b",
        )
    )
    settled = settle(tournament, [each.prompt_id for each in tournament.bank], judge(), RECORDED)

    records = [*of_dimensions({Dimension("factuality"): [*settled]}, "chrF2")]

    said = [(each["question_id"], each["dimension"], each.get("category")) for each in records]
    assert said == [("p1", "factuality", ["math"]), ("p2", "factuality", None)]


def test_an_imported_battle_is_told_as_it_was() -> None:
    """And an unread reply as JudgeArena tells it; people who gave no verdict it has no word for."""
    imported = imported_battles(
        ("x", "y", "x", "x"),
        ("y", "z", "z", "y"),
        winners=CodedColumn.of(["model_b", "no verdict", "tie (bothbad)", "no verdict"]),
        prefs=CodedColumn.of([0.75, None, None, None]),
        prompts=CodedColumn.of(["q1", None, "q1", None]),
        sources=CodedColumn.of(["llm-judge", "llm-judge", "human", "human"]),
        judges=CodedColumn.of(["m", "m", None, None]),
        weights=CodedColumn.of([3.0, 1.0, 1.0, 1.0]),
    )

    records = [*of_imported([imported])]

    assert records == [
        {
            "model_a": "x",
            "model_b": "y",
            "winner": "model_b",
            "pref": 0.75,
            "source": "llm-judge",
            "judge_model": "m",
            "question_id": "q1",
            "weight": 3.0,
        },
        {
            "model_a": "y",
            "model_b": "z",
            "winner": "tie",
            "pref": None,
            "source": "llm-judge",
            "judge_model": "m",
        },
        {
            "model_a": "x",
            "model_b": "z",
            "winner": "tie (bothbad)",
            "source": "human",
            "question_id": "q1",
        },
        {"model_a": "x", "model_b": "y", "winner": "no verdict", "source": "human"},
    ]


def test_what_is_known_of_a_battle_is_told_beside_it() -> None:
    """In fields that JudgeArena passes over, and only where something is known."""
    imported = imported_battles(
        ("x", "x"),
        ("y", "y"),
        votes=CodedColumn.of([(JurorVote("j1", "model_a"), JurorVote("j2", "tie")), ()]),
        categories=CodedColumn.of([("math", "code"), ()]),
        languages=CodedColumn.of(["en", None]),
        lengths_a=CodedColumn.of([0, None]),
        lengths_b=CodedColumn.of([7, None]),
    )

    full, bare = of_imported([imported])

    assert bare == {"model_a": "x", "model_b": "y", "winner": "model_a", "source": "human"}
    assert full == bare | {
        "votes": [["j1", "model_a"], ["j2", "tie"]],
        "category": ["math", "code"],
        "language": "en",
        "length_a": 0,
        "length_b": 7,
    }


PLAIN = BradleyTerryParameters()
FOUGHT = [
    Battle("ann", "bob", 1.0, 1),
    Battle("bob", "ann", 1.0, 2),
    Battle("ann", "bob", 1.0, 3),
    Battle("zoe", "ann", 1.0, 4),
    *(Battle("ann", "bob", float(n % 3 > 0), 10 + n) for n in range(6)),
]


def records(parameters: BradleyTerryParameters = PLAIN) -> Fields:
    """Return what is said of two entrants, of one undefeated, and of one that fought nothing."""
    board = leaderboard("factuality", in_columns(FOUGHT), parameters, ["dan"])
    return rating_records(
        [board], parameters, arena="main", judge_model=None, sources={"bob": "human"}
    )


def test_ratings_are_from_the_highest_down_each_with_its_interval() -> None:
    """In JudgeArena's fields, and with its dimension."""
    rows = records()["ratings"]

    assert isinstance(rows, list)
    assert [(row["model"], row["source"], row["n_battles"]) for row in rows] == [
        ("ann", "evaluated", 10),
        ("bob", "human", 9),
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
    fought = in_columns(played({strong: (2, 2, 0), weak: (3, 1, 0), **games}))
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
