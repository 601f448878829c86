"""Entrants by rating; wins, losses, ties and gaps by pair of entrants."""

import dataclasses
from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given
from msgspec.structs import replace

from ledger.events.ratings import EloParameters
from ledger.events.registry import Event
from ledger.identity import Dimension
from projections.battles.columns import Battles, battles_of
from projections.intervals import wilson
from projections.ratings.standings import Standings, standings, win_rates
from projections.results.ratings import EloRow, WinRateRow
from projections.tournament.compared import ComparedBattle
from projections.tournament.settlement import Settlement, settle
from projections.verdicts.policies import CONCATENATE, RECORDED, Rule
from tests.support.builders.events import entrant, known, opened, prompt
from tests.support.builders.worlds import (
    ELO,
    Fate,
    answered,
    become,
    cup,
    everything,
    history,
    matches_of,
    settled,
)
from tests.support.strategies.tournaments import tournament_histories


def table(*fates: Fate, elo: EloParameters = ELO, n_prompts: int = 2) -> Standings:
    """Return the cup's standings after its matches met their fates."""
    tournament = known(*history(cup(n_prompts), *fates))
    roster = [entrant.entrant_id for entrant in tournament.roster]
    return standings(
        tournament.dimensions[0].dimension, battles_of(settled(tournament)), roster, elo
    )


def test_the_best_entrant_stands_first() -> None:
    """A reader takes the first row for the winner."""
    standing = table("b", "b", "b", "b", "b", "b")  # kim beats amy beats zoe

    assert [row.entrant for row in standing.rows] == ["kim", "amy", "zoe"]
    assert [row.n_matches for row in standing.rows] == [4, 4, 4]
    best, middle, worst = (row.rating or 0.0 for row in standing.rows)
    assert best > middle > worst


def test_an_entrant_without_a_decisive_match_stands_last_and_unrated() -> None:
    """Dropping it would hide it, and 1400 would claim a rating that nobody measured."""
    standing = table("tie", "a", "inconsistent", "refused", "b", "pending")  # amy decides nothing

    assert [row.entrant for row in standing.rows] == ["kim", "zoe", "amy"]
    assert standing.rows[-1] == EloRow("factuality", "amy")
    assert standing.ratings.entrants == ("kim", "zoe")


def test_the_unrated_stand_in_the_order_of_the_roster() -> None:
    """Before the first verdict a table shows everybody who will compete."""
    standing = table()

    assert [row.entrant for row in standing.rows] == ["zoe", "amy", "kim"]
    assert {*standing.rows} == {EloRow("factuality", name) for name in ("zoe", "amy", "kim")}


def test_equal_ratings_stand_in_the_order_of_their_ids() -> None:
    """A replay must list them alike, whatever order the roster has."""
    standing = table("tie", "tie", "tie", elo=EloParameters(permutations=2, ties="half"))

    assert [row.entrant for row in standing.rows] == ["amy", "kim", "zoe"]
    assert {row.rating for row in standing.rows} == {1400.0}


@pytest.mark.no_cover
def test_an_interval_is_about_the_rating() -> None:
    """It stands in the row of the entrant that it is about, and only if it was asked for."""
    lost, won, first = list[Fate](["b"]), list[Fate](["a", "b", "b"]), list[Fate](["b", "a", "a"])
    fates = [*lost * 12, *won * 3, *first * 3]
    resampled = table(*fates, elo=replace(ELO, bootstraps=100), n_prompts=10)
    without = table(*fates, n_prompts=10)

    for row in resampled.rows:
        assert row.rating is not None
        assert ((row.ci95_low or 0) + (row.ci95_high or 0)) / 2 == pytest.approx(row.rating)
    assert {(row.ci95_low, row.ci95_high) for row in without.rows} == {(None, None)}
    assert [row.rating for row in without.rows] == [row.rating for row in resampled.rows]


@pytest.mark.no_cover
def test_prompts_whose_pairs_all_tied_are_drawn_too() -> None:
    """Another bank would have more of them, or fewer; a resample may be of nothing else.

    Where every decided prompt is decided alike, all of the spread comes from how many there are.
    """
    decided: list[Fate] = ["a", "a", "a"] * 10
    tied: list[Fate] = ["tie"]
    elo = replace(ELO, bootstraps=200)
    alone = table(*decided, elo=elo, n_prompts=10)
    beside = table(*decided, *tied * 30, elo=elo, n_prompts=20)
    few = table("a", "b", "a", "b", "a", "b", *tied * 54, elo=elo, n_prompts=20)

    assert alone.bootstrap is not None
    assert beside.bootstrap is not None
    assert few.bootstrap is not None
    assert (alone.bootstrap.n_prompts, beside.bootstrap.n_prompts) == (10, 20)
    assert [row.rating for row in beside.rows] == [row.rating for row in alone.rows]
    spread = [np.nanmax(each.standard_error) for each in (alone.bootstrap, beside.bootstrap)]
    assert spread[1] > 4 * spread[0]
    assert few.bootstrap.n_prompts == 20


@pytest.mark.no_cover
def test_above_a_fifth_of_ties_both_ratings_are_given() -> None:
    """It then matters much what a tie counts; a fifth itself is not above it."""
    many: list[Fate] = ["a", "b", "a", "tie", "tie"]
    dropped, as_half = table(*many), table(*many, elo=replace(ELO, ties="half"))

    assert table("a", "b", "a", "b", "tie").other_ties is None
    assert dropped.other_ties is not None
    assert as_half.other_ties is not None
    assert (dropped.other_ties.ties, as_half.other_ties.ties) == ("half", "drop")
    assert dropped.other_ties.ratings == {row.entrant: row.rating for row in as_half.rows}
    rated = {row.entrant: row.rating for row in dropped.rows if row.rating is not None}
    assert as_half.other_ties.ratings == rated


@pytest.mark.parametrize(
    ("fates", "note"),
    [
        (["a", "tie"], "1 tie (50% of decided and tied pairs) is dropped"),
        (["a", "tie", "tie"], "2 ties (67% of decided and tied pairs) are dropped"),
    ],
)
def test_dropped_ties_are_told(fates: list[Fate], note: str) -> None:
    """Without them ratings lie further apart, and a reader may not know."""
    said = table(*fates).ties_note

    assert said is not None
    assert said.startswith(note)
    assert said.endswith("only because the published engine drops them.")
    assert table(*fates, elo=replace(ELO, ties="half")).ties_note is None
    assert table("a").ties_note is None


def test_with_ties_alone_nothing_is_said_of_ratings() -> None:
    """There are none that could lie further apart."""
    assert table("tie", "tie").ties_note == (
        "2 ties (100% of decided and tied pairs) are dropped. Ties are dropped by default only"
        " because the published engine drops them."
    )


def test_entrants_that_never_met_are_groups_of_their_own() -> None:
    """However far apart their ratings are, nothing compares them; a chain of battles does."""
    met = [("s1", "s2"), ("w1", "w2"), ("x", "y"), ("y", "w1")]
    battles = [
        ComparedBattle("set", f"p{n}", n, a, b, "a" if n % 3 else "b")
        for n, (a, b) in enumerate(met * 8)
    ]

    found = standings(Dimension("set"), battles_of(battles), [], ELO)

    assert {*found.groups} == {("s1", "s2"), ("w1", "w2", "x", "y")}
    assert standings(Dimension("set"), battles_of([]), ["s1"], ELO).groups == ()


def in_groups(settlements: Iterable[Settlement]) -> dict[Dimension, Battles]:
    """Return settlements in columns, by dimension."""
    groups: dict[Dimension, list[Settlement]] = {}
    for each in settlements:
        groups.setdefault(each.dimension, []).append(each)
    return {dimension: battles_of(group) for dimension, group in groups.items()}


def counts(*events: Event) -> list[tuple[str | int, ...]]:
    """Return the rows without their dimension."""
    return [row[1:8] for row in win_rates(in_groups(settled(known(*events))))]


@pytest.mark.parametrize(
    ("fates", "rows"),
    [
        pytest.param(
            ["a", "a", "b", "a", "b", "a"],
            [(1, 1, 0, 0, 0), (0, 2, 0, 0, 0), (1, 1, 0, 0, 0)],
            id="wins go with the names in the order of the alphabet",
        ),
        pytest.param(
            ["tie", "inconsistent", "a", "inconsistent", "tie", "tie"],
            [(1, 0, 1, 0, 0), (0, 0, 1, 1, 0), (0, 0, 1, 1, 0)],
            id="an inconsistent pair is no tie as well",
        ),
        pytest.param(
            ["refused", "truncated", "a", "b", "pending"],
            [(1, 0, 0, 0, 1), (1, 0, 0, 0, 1), (0, 0, 0, 0, 2)],
            id="what failed or is pending is missing",
        ),
    ],
)
def test_each_pairing_is_counted_once(
    fates: list[Fate], rows: list[tuple[int, int, int, int, int]]
) -> None:
    """Whatever the roster's order; the customer's table counts some pairs twice."""
    pairs = [("amy", "kim"), ("amy", "zoe"), ("kim", "zoe")]

    found = counts(*history(cup(), *fates))

    assert found == [(*pair, *row) for pair, row in zip(pairs, rows, strict=True)]


@pytest.mark.parametrize("name", ["tie", "inconsistent", "pending", "refused", "no_response"])
def test_an_entrant_may_be_called_like_an_outcome(name: str) -> None:
    """Users choose the names, and a baseline called `tie` must not turn its wins into ties."""
    roster = [entrant(name), entrant("zoe")]

    rows = counts(*history(opened(entrants=roster), "a"))

    assert rows == [(name, "zoe", 1, 0, 0, 0, 0)]


def interval(row: WinRateRow) -> tuple[float | None, float | None]:
    """Return the bounds of a share."""
    return row.ci95_low, row.ci95_high


def duel(*fates: Fate, rule: Rule = RECORDED) -> WinRateRow:
    """Return the row of amy and zoe, who met on a prompt for each fate."""
    prompts = [prompt(f"p{n}") for n in range(len(fates))]
    opening = opened(prompts=prompts, entrants=[entrant("amy"), entrant("zoe")])
    events = answered(opening)
    fated = zip(matches_of(known(*events)), fates, strict=True)
    state = known(*events, *(event for match, fate in fated for event in become(match, fate)))
    [row] = win_rates(in_groups(settle(state, everything(state), state.panel[0], rule)))
    return row


@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("fates", "rate"),
    [
        (["a", "a", "a", "b"], 0.75),
        (["tie", "tie", "unreadable"], 0.5),
        (["a", "tie", "inconsistent"], 2 / 3),
        (["b", "b"], 0.0),
        (["inconsistent", "pending"], 0.5),
        (["a", "a", "inconsistent", "inconsistent"], 0.75),
        (["pending"], None),
    ],
)
def test_a_tie_is_half_a_win(fates: list[Fate], rate: float | None) -> None:
    """Nothing decided is no rate at all: 0 or 1/2 would pass for a result."""
    assert duel(*fates).win_rate == rate


def test_the_interval_of_wins_alone_is_wilsons() -> None:
    """Prompts that are won or lost are independent trials."""
    assert interval(duel("a", "a", "a", "b")) == pytest.approx(wilson(0.75, 4))


@pytest.mark.no_cover
def test_ties_vary_less_than_wins() -> None:
    """Of scores 1 and 1/2 the variance is 1/16, where wins have 3/16: six are as 18 trials."""
    expected = wilson(0.75, 18, z=2.570582)  # Student's t of 5 degrees of freedom

    assert interval(duel("a", "a", "a", "tie", "tie", "tie")) == pytest.approx(expected)
    assert interval(duel("a", "a", "tie", "tie")) == (None, None)


def test_two_orders_of_a_pairing_are_one_trial() -> None:
    """A judge that says the same in both orders must not make the share surer."""
    fates: list[Fate] = ["a", "a", "a", "b"]
    twice = duel(*fates, rule=Rule(CONCATENATE, None))

    assert (twice.a_wins, twice.b_wins) == (6, 2)
    assert interval(twice) == pytest.approx(interval(duel(*fates)))


def test_intervals_of_shares_are_wider_after_looks() -> None:
    """Who stopped early was ahead by luck, too; but no share is beyond 0 or 1."""
    fates: list[Fate] = ["a", "a", "b"]
    found = settled(known(*history(cup(8), *fates * 7)))
    groups = in_groups(found)
    looked_at = {name: dataclasses.replace(each, widening=1.5) for name, each in groups.items()}
    wide = {name: dataclasses.replace(each, widening=99.0) for name, each in groups.items()}

    for before, after, widest in zip(*map(win_rates, (groups, looked_at, wide)), strict=True):
        assert before.win_rate == after.win_rate == widest.win_rate
        assert before.win_rate is not None
        assert before.ci95_low is not None
        assert after.ci95_low == pytest.approx(
            max(0, before.win_rate - 1.5 * (before.win_rate - before.ci95_low))
        )
        assert widest.ci95_low == 0
        assert widest.ci95_high == 1 or before.win_rate == before.ci95_high


def test_a_share_of_one_prompt_or_of_none_has_no_interval() -> None:
    """From 0 to 1 would be true, and pass for a result."""
    assert interval(duel("a")) == (None, None)
    assert duel("pending")[-3:] == (None, None, None)


@given(events=tournament_histories())
def test_the_counts_of_all_pairs_add_up_to_the_plan(events: list[Event]) -> None:
    """No pairing is lost between the columns, and none is in two."""
    found = settled(known(*events))

    rows = win_rates(in_groups(found))

    assert sum(sum(row[3:8]) for row in rows) == len(found)
    assert all(row.entrant_a < row.entrant_b for row in rows)
    assert len({row[:3] for row in rows}) == len(rows)


@given(events=tournament_histories())
def test_a_runs_file_counts_alike_and_has_shares_of_outcomes_alone(events: list[Event]) -> None:
    """Its format is older than the rule that each verdict counts by itself."""
    found = settled(known(*events))

    by_outcome = win_rates(in_groups(found), by_outcome=True)

    assert [row[:8] for row in by_outcome] == [row[:8] for row in win_rates(in_groups(found))]
    assert by_outcome == win_rates(in_groups(each._replace(said=()) for each in found))
