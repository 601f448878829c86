"""What the report shows of ratings."""

import dataclasses
from collections.abc import Mapping

import numpy as np
import pytest
from msgspec.structs import replace

from commands.report.drawings.panels import HeatCell
from commands.report.ratings import Ratings, order_by_k, ratings_of
from commands.report.subject import Subject
from ledger.events.ratings import EloParameters
from ledger.events.registry import Event
from ledger.identity import Dimension
from projections.artifacts.results import results_of
from projections.battles.columns import battles_of
from projections.evaluations.samples import ITEMS
from projections.ratings.elo.rate import EloRatings
from projections.ratings.standings import standings
from projections.tournament.spend import Spend
from tests.support.builders.events import STREAM, known
from tests.support.builders.worlds import ELO, Fate, cup, history, publication

N_PROMPTS = 8
ZOE_AMY: tuple[Fate, ...] = ("a", "a", "a", "a", "a", "b", "a", "tie")
ZOE_KIM: tuple[Fate, ...] = ("tie", "a", "tie", "a", "tie", "tie", "b", "a")
AMY_KIM: tuple[Fate, ...] = ("a", "b", "a", "a", "b", "a", "tie", "a")
FATES: list[Fate] = [fate for row in zip(ZOE_AMY, ZOE_KIM, AMY_KIM, strict=True) for fate in row]


def ratings(*events: Event, elo: EloParameters = ELO) -> Ratings:
    """Return what a report on events shows of the only dimension."""
    tournament = known(*events)
    results = results_of(tournament, publication(tournament, elo))
    (dimension,) = Subject(results, Spend(STREAM), (), ITEMS.initial, is_run=True).dimensions
    return ratings_of(dimension)


def test_who_has_no_rating_is_listed_with_the_reason() -> None:
    """An empty cell would leave a reader to guess."""
    found = ratings(*history(cup(), "a"))

    rows = {row.place.entrant: row for row in found.rows}
    assert (rows["zoe"].place.rating, rows["zoe"].place.reason) == (None, "undefeated")
    assert (rows["kim"].place.rating, rows["kim"].place.reason) == (None, "no battle")
    assert (rows["kim"].elo, rows["kim"].bar, rows["kim"].place.low) == (None, None, None)
    assert found.axis is None


def test_groups_that_do_not_compare_are_named() -> None:
    """Two groups have a mean of 1000 each, which says nothing of both."""
    found = ratings(*history(cup(), "a"))

    assert found.groups == (
        "Ratings compare within a group only. Group 1: zoe; 2: amy. Group 2 won nothing"
        " against 1, which alone shows no order."
    )


def test_it_is_said_why_elo_differs() -> None:
    """Two columns of other numbers, unexplained, are two findings."""
    dropped = ratings(*history(cup(N_PROMPTS), *FATES))
    halved = ratings(*history(cup(N_PROMPTS), *FATES), elo=replace(ELO, ties="half"))

    assert dropped.elo == (
        "Elo leaves out ties, and so spreads entrants further apart: compare its order, not its"
        " numbers."
    )
    assert halved.elo.startswith("Elo also counts ties as half a win")
    assert "Elo: K = 16, mean over 4 orders of play." in dropped.engines
    assert "The order is the same." in dropped.engines


def test_a_pair_that_was_never_judged_has_no_share() -> None:
    """Nothing is not a half."""
    grid = ratings(*history(cup(), "a")).grid

    zoe = dict(zip(grid.columns, grid.cells[0], strict=True))
    assert zoe["kim"] == HeatCell("–", 0, "0–0–0")  # noqa: RUF001


@pytest.mark.parametrize(
    ("kim_by_k", "said"),
    [
        ({1.0: 1300.0, 32.0: 1399.0}, "The order is the same with every K."),
        ({1.0: 1300.0, 32.0: 1400.4}, "The order is the same with every K."),
        (
            {1.0: 1401.0, 8.0: 1300.0, 32.0: 1402.0},
            (
                "With K = 1 and 32 the order differs from that with K = 16: there it depends on K"
                " rather than on the battles."
            ),
        ),
    ],
    ids=["same", "level", "other"],
)
def test_it_is_said_whether_another_k_orders_the_entrants_otherwise(
    kim_by_k: Mapping[float, float], said: str
) -> None:
    """Nobody compares five columns of twenty rows by eye."""

    def rated(kim: float) -> EloRatings:
        return EloRatings(("amy", "kim"), 1, np.array([[1400.0, kim]]))

    nobody = battles_of([])
    found = dataclasses.replace(
        standings(Dimension("utility"), nobody, (), ELO),
        k=16.0,
        ratings=rated(1350.0),
        sweep=tuple((k, rated(kim)) for k, kim in kim_by_k.items()),
    )

    assert order_by_k(found) == said
