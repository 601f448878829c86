"""Wins, losses, ties and gaps by pair of entrants."""

import pytest
from hypothesis import given

from ledger.events.registry import Event
from projections.ratings.standings import WinRate, win_rates
from tests.builders import entrant, known, opened, prompt, rubric
from tests.projections.strategies import histories
from tests.projections.worlds import cup, history, settled


def counts(*events: Event) -> list[tuple[str | int, ...]]:
    """Return the rows without their dimension."""
    return [row[1:] for row in win_rates(settled(known(*events)))]


def test_entrants_of_a_pair_are_in_the_order_of_the_alphabet() -> None:
    """The customer's table sorts them, whatever the roster says, and the wins go with them."""
    rows = counts(*history(cup(), "a", "a", "b", "a", "b", "a"))

    assert rows == [
        ("amy", "kim", 1, 1, 0, 0, 0),
        ("amy", "zoe", 0, 2, 0, 0, 0),
        ("kim", "zoe", 1, 1, 0, 0, 0),
    ]


def test_pairs_are_listed_by_their_first_name_then_the_second() -> None:
    """Line n of two runs is about the same pair, whatever order their rosters have."""
    roster = [entrant(name) for name in ("zoe", "kim", "bob", "amy")]

    rows = counts(*opened(entrants=roster))

    assert [f"{row[0]}-{row[1]}" for row in rows] == [
        *("amy-bob", "amy-kim", "amy-zoe"),
        *("bob-kim", "bob-zoe", "kim-zoe"),
    ]


def test_each_pairing_is_counted_once() -> None:
    """The customer's table counts an inconsistent pair among the ties as well."""
    rows = counts(*history(cup(), "tie", "inconsistent", "a", "inconsistent", "tie", "tie"))

    assert rows == [
        ("amy", "kim", 1, 0, 1, 0, 0),
        ("amy", "zoe", 0, 0, 1, 1, 0),
        ("kim", "zoe", 0, 0, 1, 1, 0),
    ]


def test_what_failed_or_is_pending_counts_as_missing() -> None:
    """A win rate over half of the pairs must show that the other half is not there."""
    rows = counts(*history(cup(), "refused", "truncated", "a", "b", "pending"))

    assert rows == [
        ("amy", "kim", 1, 0, 0, 0, 1),
        ("amy", "zoe", 1, 0, 0, 0, 1),
        ("kim", "zoe", 0, 0, 0, 0, 2),
    ]


@pytest.mark.parametrize("name", ["tie", "inconsistent", "pending", "refused", "no_response"])
def test_an_entrant_may_be_called_like_an_outcome(name: str) -> None:
    """Users choose the names, and a baseline called `tie` must not turn its wins into ties."""
    roster = [entrant(name), entrant("zoe")]

    rows = counts(*history(opened(entrants=roster), "a"))

    assert rows == [(name, "zoe", 1, 0, 0, 0, 0)]


def test_dimensions_stay_in_the_order_of_the_tournament() -> None:
    """Every table of a run lists them alike."""
    rubrics = [rubric("utility", needs_gold=False), rubric("factuality")]
    prompts = [prompt("p1", gold=None), prompt("p2")]

    rows = win_rates(settled(known(*opened(rubrics=rubrics, prompts=prompts))))

    assert [(row.dimension, row.missing) for row in rows] == [("utility", 2), ("factuality", 1)]


@pytest.mark.parametrize(
    ("wins", "losses", "ties", "rate"),
    [(3, 1, 0, 0.75), (0, 0, 2, 0.5), (1, 0, 1, 0.75), (0, 4, 0, 0.0), (0, 0, 0, None)],
)
def test_a_tie_is_half_a_win(wins: int, losses: int, ties: int, rate: float | None) -> None:
    """Nothing decided is no rate at all: 0 or 1/2 would pass for a result."""
    first, second = entrant("amy").entrant_id, entrant("zoe").entrant_id

    row = WinRate(rubric().dimension, first, second, wins, losses, ties, inconsistent=5, missing=5)

    assert row.win_rate == rate


def test_the_interval_counts_what_the_share_counts() -> None:
    """Worked by hand with z^2 = 3.8415: (3 / 4 + z^2 / 8 +- 0.6408) / (1 + z^2 / 4)."""
    first, second = entrant("amy").entrant_id, entrant("zoe").entrant_id
    row = WinRate(rubric().dimension, first, second, 2, 0, 2, inconsistent=5, missing=5)

    assert row.interval() == pytest.approx((0.3006, 0.9544), abs=5e-5)


def test_two_orders_of_a_pairing_are_one_trial() -> None:
    """A judge that says the same in both orders must not make the share surer."""
    first, second = entrant("amy").entrant_id, entrant("zoe").entrant_id
    once = WinRate(rubric().dimension, first, second, 3, 1, 0, inconsistent=0, missing=0)
    twice = WinRate(rubric().dimension, first, second, 6, 2, 0, inconsistent=0, missing=0)

    assert twice.interval("orders") == once.interval()


def test_a_pair_without_a_verdict_has_no_interval() -> None:
    """From 0 to 1 would be true, and pass for a result."""
    (row, *_) = win_rates(settled(known(*cup())))

    assert (row.win_rate, row.interval()) == (None, None)


@given(events=histories())
def test_the_counts_of_all_pairs_add_up_to_the_plan(events: list[Event]) -> None:
    """No pairing is lost between the columns, and none is in two."""
    found = settled(known(*events))

    rows = win_rates(found)

    assert sum(sum(row[3:]) for row in rows) == len(found)
    assert all(row.entrant_a < row.entrant_b for row in rows)
    assert len({row[:3] for row in rows}) == len(rows)
