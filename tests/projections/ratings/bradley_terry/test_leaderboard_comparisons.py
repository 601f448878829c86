"""Which differences are sure when all pairs are compared at once, and the ranks that follow."""

import numpy as np
import pytest
from hypothesis import given

from ledger.events.ratings import BradleyTerryParameters
from projections.intervals import two_sided_p
from projections.ratings.bradley_terry.leaderboard import (
    baseline_of,
    differences,
    p_better,
    pairs,
    ranks,
)
from projections.ratings.bradley_terry.rate import BradleyTerryRatings, rate
from tests.support.builders.battles import Battle, in_columns, played, tournaments
from tests.support.builders.events import valid
from tests.support.strategies.battles import any_battles


def fought(**games: tuple[int, int]) -> BradleyTerryRatings:
    """Rate by games, given how often the first and how often the second of a pair won."""
    rows = played({(pair[0], pair[1]): (won, lost, 0) for pair, (won, lost) in games.items()})
    return rate(in_columns(rows), BradleyTerryParameters())


def test_a_rank_counts_those_who_are_surely_better() -> None:
    """Two are too near each other to tell: b and c, below a and above d."""
    ratings = fought(ab=(80, 20), ac=(80, 20), bc=(52, 48), cd=(80, 20), bd=(80, 20))

    low, high = ranks(ratings)

    assert low.tolist() == [1, 2, 2, 4]
    assert high.tolist() == [1, 3, 3, 4]


def test_a_difference_may_be_sure_where_intervals_overlap() -> None:
    """Both hang from the same others: what is unsure of those is unsure of both alike."""
    games = {("a", "b"): (66, 34, 0), ("b", "c"): (9, 9, 0), ("a", "c"): (9, 9, 0)}
    ratings = rate(in_columns(played(games)), valid(BradleyTerryParameters, {"anchor": "c"}))

    assert ratings.lower[0] < ratings.upper[1]
    assert ranks(ratings)[1][0] < ranks(ratings)[1][1]


def test_being_better_is_as_likely_as_its_deviation_is() -> None:
    """Worked by hand: log odds log(3 / 2), of variance 1 / 30 + 1 / 20, and 50 / 49 of that.

    Student's t has 49 degrees of freedom.
    """
    deviation = np.log(1.5) / ((1 / 30 + 1 / 20) * 50 / 49) ** 0.5

    p = p_better(fought(ab=(30, 20)))

    assert p[0, 1] == pytest.approx(1 - two_sided_p(deviation, np.array(49.0)) / 2)
    assert p[1, 0] == pytest.approx(1 - p[0, 1])
    assert np.isnan(p.diagonal()).all()


def test_ranks_are_those_within_a_component() -> None:
    """Who never lost is above the others, by nobody knows how much, and takes no rank from them."""
    ratings = fought(ab=(3, 0), bc=(500, 400), cd=(20, 0), xy=(5, 5))

    low, high = ranks(ratings)

    assert low.tolist() == [0, 1, 2, 0, 1, 1]
    assert high.tolist() == [0, 1, 2, 0, 2, 2]
    known = ~np.isnan(p_better(ratings))
    assert [*zip(*np.nonzero(known), strict=True)] == [(1, 2), (2, 1), (4, 5), (5, 4)]
    assert [(each.entrant_a, each.entrant_b) for each in pairs(ratings)] == [("b", "c"), ("x", "y")]


def test_equals_without_error_are_no_better_than_each_other() -> None:
    """Rounding must not rank: prompts that all say the same leave a standard error of 0."""
    rows = [(a, b, 1.0, prompt) for prompt in range(6) for a, b in ("ab", "bc", "ca")]
    ratings = rate(in_columns(rows), BradleyTerryParameters())

    assert ranks(ratings)[0].tolist() == [0, 0, 0]
    assert np.isnan(p_better(ratings)).all()
    assert {row.no_interval for row in ratings.rows()} == {"all prompts agree"}


def test_two_of_which_no_prompt_differs_are_no_better_than_each_other() -> None:
    """Each varies against a third, and they never against each other: 0.5 of each battle."""
    rows = [
        (a, "c", won, prompt)
        for prompt, won in enumerate([1.0, 0.0, 1.0, 1.0, 0.5, 0.0])
        for a in "ab"
    ]
    ratings = rate(in_columns(rows), BradleyTerryParameters())

    assert np.isnan(p_better(ratings)[0, 1])
    found = {(pair.entrant_a, pair.entrant_b): pair.p for pair in pairs(ratings)}
    assert found["a", "b"] is None
    assert found["a", "c"] is not None


@given(rows=any_battles())
def test_ranks_lie_among_those_who_can_be_compared(rows: list[Battle]) -> None:
    """And where one chance is known, the other is what is missing from 1."""
    ratings = rate(in_columns(rows), BradleyTerryParameters())

    low, high = ranks(ratings)
    p = p_better(ratings)

    assert (low <= high).all()
    assert ((low > 0) <= ratings.support.is_enough).all()
    assert p + p.T == pytest.approx(np.where(np.isnan(p), np.nan, 1.0), nan_ok=True)


def equal_boards(n: int, n_entrants: int, n_prompts: int) -> list[BradleyTerryRatings]:
    """Rate tournaments of equal entrants."""
    drawn = tournaments(n, n_prompts=n_prompts, strengths=np.zeros(n_entrants))
    return [rate(each, BradleyTerryParameters()) for each in drawn]


@pytest.mark.nightly
@pytest.mark.parametrize(("n_entrants", "n_prompts"), [(4, 40), (8, 20)])
def test_among_equals_somebody_is_ranked_in_one_board_of_twenty(
    n_entrants: int, n_prompts: int
) -> None:
    """5 % by design, to what 100 boards can tell; single intervals would rank in 19 and 53 %."""
    boards = equal_boards(100, n_entrants, n_prompts)

    ranked = np.mean([(ranks(each)[0] > 1).any() for each in boards])

    assert 0.01 <= ranked <= 0.1


@pytest.mark.no_cover
def test_a_pair_is_sure_where_its_adjusted_p_is_small() -> None:
    """The table of pairs and the ranks say the same."""
    for board in equal_boards(3, 6, 30):
        sure = sum((pair.p or 1.0) <= 0.05 for pair in pairs(board))
        beyond = sum((pair.low or 0.0) > 0 for pair in pairs(board))

        assert sure == beyond == (ranks(board)[0] - 1).sum()


def stars(n: int, n_entrants: int, n_prompts: int) -> list[BradleyTerryRatings]:
    """Rate equal entrants that met the first one alone."""
    drawn = tournaments(n, n_prompts=n_prompts, strengths=np.zeros(n_entrants))
    return [rate(each.take(each.a == 0), BradleyTerryParameters()) for each in drawn]


def test_against_a_baseline_the_planned_differences_are_tested_with_more_power() -> None:
    """The n - 1 from it, instead of all pairs; those of two others reach as far as both theirs."""
    (board,) = stars(1, 6, 60)
    reach = {
        frozenset({each.entrant_a, each.entrant_b}): each.difference - (each.low or 0.0)
        for each in pairs(board)
    }
    baseline, *others = board.entrants
    found, (low, high) = differences(board), ranks(board)

    assert baseline_of(board) == 0
    assert (low, high) == pytest.approx((1, 6))
    for i, one in enumerate(others, 1):
        critical = reach[frozenset({baseline, one})] / found.error[0, i]
        assert 2.4 < critical < 2.75  # Dunnett's of 5 is 2.57, Tukey's of 6 is 2.85
        for other in others[i:]:
            both = reach[frozenset({baseline, one})] + reach[frozenset({baseline, other})]
            assert reach[frozenset({one, other})] == pytest.approx(both)


def test_where_two_pairs_have_nobody_in_common_there_is_no_baseline() -> None:
    """Nor among two entrants, each of which is in every battle."""
    assert baseline_of(fought(ab=(9, 6), bc=(9, 6), ca=(9, 6))) is None
    assert baseline_of(fought(ab=(9, 6))) is None


@pytest.mark.nightly
@pytest.mark.parametrize("n_entrants", [4, 8, 12])
def test_among_equals_against_a_baseline_somebody_differs_in_one_table_of_twenty(
    n_entrants: int,
) -> None:
    """Of all pairs in the table, those that were not planned included; 1,000 runs, seed 2026."""
    boards = stars(1000, n_entrants, 143)

    wrong = np.mean([any((pair.low or 0.0) > 0 for pair in pairs(each)) for each in boards])

    assert 0.03 <= wrong <= 0.06 + 2 * (0.05 * 0.95 / 1000) ** 0.5


def test_the_largest_of_many_equals_is_that_of_tukey() -> None:
    """Of 10 equally sure means of many degrees of freedom, the studentized range at 5 % is 4.474.

    Harter (1960), table of the studentized range: q(0.05; 10, infinity) = 4.474; |t| is q / sqrt 2.
    """
    ratings = rate(
        tournaments(1, n_prompts=4000, strengths=np.zeros(10))[0], BradleyTerryParameters()
    )

    found = pairs(ratings)

    margins = [(pair.high or 0.0) - pair.difference for pair in found]
    errors = differences(ratings).error
    typical = np.nanmean(errors[~np.eye(10, dtype=np.bool_)])
    assert np.mean(margins) / typical == pytest.approx(4.474 / np.sqrt(2), rel=0.02)
