"""How far judges agree beyond chance, and how far two orderings do."""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from itertools import permutations, product
from math import isclose, sqrt
from statistics import mean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from projections.reliability.concordance import (
    Agreement,
    cohen,
    cohen_interval,
    fleiss,
    interval_of_all,
    kendall,
    krippendorff,
    spearman,
)

CATEGORIES = "abti"
Ratings = list[tuple[str, str]]
RATINGS = st.lists(st.tuples(st.sampled_from(CATEGORIES), st.sampled_from(CATEGORIES)), max_size=12)

# Fleiss's own table in its usual reprint: 10 subjects, 14 raters, 5 categories; kappa = 0.210.
FOURTEEN_RATERS = [
    (0, 0, 0, 0, 14),
    (0, 2, 6, 4, 2),
    (0, 0, 3, 5, 6),
    (0, 3, 9, 2, 0),
    (2, 2, 8, 1, 1),
    (7, 7, 0, 0, 0),
    (3, 2, 6, 3, 0),
    (2, 5, 3, 2, 2),
    (6, 5, 2, 1, 0),
    (0, 2, 2, 3, 7),
]


def sides(table: dict[str, int]) -> tuple[str, str]:
    """Return two judges' categories from a table of how often they gave which together."""
    pairs = [pair for pair, n in table.items() for _ in range(n)]
    return "".join(pair[0] for pair in pairs), "".join(pair[1] for pair in pairs)


@pytest.mark.parametrize(
    ("table", "observed", "by_chance", "kappa"),
    [
        ({"yy": 20, "yn": 5, "ny": 10, "nn": 15}, 0.7, 0.5, 0.4),
        ({"yy": 45, "yn": 15, "ny": 25, "nn": 15}, 0.6, 0.54, 3 / 23),
        ({"yy": 25, "yn": 35, "ny": 5, "nn": 35}, 0.6, 0.46, 7 / 27),
        ({"yn": 1, "ny": 1}, 0.0, 0.5, -1.0),
    ],
)
def test_cohens_kappa_is_that_of_worked_examples(
    table: dict[str, int], observed: float, by_chance: float, kappa: float
) -> None:
    """Grants read by two reviewers: they agree on 35 of 50, chance gives 25, kappa is 0.4."""
    found = cohen(*sides(table))

    assert found == pytest.approx(Agreement(observed, by_chance, kappa, sum(table.values())))


def test_fleiss_kappa_is_that_of_the_known_table() -> None:
    """P = 0.378, P_e = 0.213, kappa = 0.210: a slip in either sum would show."""
    rows = [
        "".join(category * n for category, n in zip("12345", row, strict=True))
        for row in FOURTEEN_RATERS
    ]

    found = fleiss(rows)

    assert found.n == 10
    assert found.observed == pytest.approx(0.378, abs=5e-4)
    assert found.by_chance == pytest.approx(0.213, abs=5e-4)
    assert found.kappa == pytest.approx(0.210, abs=5e-4)


@pytest.mark.parametrize("category", ["a", "t"])
def test_kappa_of_judges_who_say_one_thing_only_is_not_defined(category: str) -> None:
    """Chance explains all of it; 0 would say that they agree no better, and 1 that they do."""
    assert cohen([category] * 3, [category] * 3) == Agreement(1.0, 1.0, None, 3)
    assert fleiss([category * 3] * 3) == Agreement(1.0, 1.0, None, 3)


def test_of_nothing_nothing_is_said() -> None:
    """Null, not 0: nobody has judged yet."""
    nothing = Agreement(None, None, None, 0)

    assert cohen([], []) == fleiss([]) == krippendorff([]) == nothing


def test_one_judge_agrees_with_nobody() -> None:
    """A jury of one has no pair of judges."""
    assert fleiss(["a", "b"]) == Agreement(None, None, None, 2)


@pytest.mark.nightly  # which takes a second to load; by day, published numbers are found
@given(ratings=RATINGS)
def test_cohens_kappa_is_that_of_scikit_learn(ratings: list[tuple[str, str]]) -> None:
    """Whoever computes it from the exported outcomes must find the number of the table."""
    metrics = import_module("sklearn.metrics")
    first, second = columns(ratings)

    found = cohen(first, second).kappa

    assert found is None or found == pytest.approx(metrics.cohen_kappa_score(first, second))


@given(ratings=RATINGS)
def test_cohens_kappa_with_oneself_is_one_where_it_is_defined(
    ratings: list[tuple[str, str]],
) -> None:
    """Exactly: a rounded 0.999 would look like a disagreement somewhere."""
    own = [first for first, _ in ratings]

    assert cohen(own, own).kappa == (1.0 if len(set(own)) > 1 else None)


@given(ratings=RATINGS)
def test_fleiss_kappa_of_two_judges_is_scotts_pi(ratings: list[tuple[str, str]]) -> None:
    """Of two judges it takes chance from both together, where Cohen takes it from each."""
    found = fleiss(ratings)

    pi = scotts_pi(ratings)

    assert (found.kappa is None) == (pi is None)
    assert pi is None or found.kappa is None or isclose(found.kappa, pi, abs_tol=1e-12)
    assert found.observed == pytest.approx(cohen(*columns(ratings)).observed)


def scotts_pi(ratings: list[tuple[str, str]]) -> float | None:
    """Return (p_o - p_e) / (1 - p_e), p_e from the categories' shares among all ratings."""
    said = [category for pair in ratings for category in pair]
    if len(set(said)) < 2:
        return None
    observed = sum(a == b for a, b in ratings) / len(ratings)
    by_chance = sum((said.count(category) / len(said)) ** 2 for category in set(said))
    return (observed - by_chance) / (1 - by_chance)


def columns(ratings: list[tuple[str, str]]) -> tuple[list[str], list[str]]:
    """Return each judge's ratings."""
    return [a for a, _ in ratings], [b for _, b in ratings]


SAID = [*"aabtbaabttabbaaabt"]
REPLIED = [*"aabtbbabtaabbtaabb"]
PROMPTS = [place // 2 for place in range(18)]


@pytest.mark.parametrize(
    ("interval", "kappa"),
    [
        (lambda rows, on: cohen_interval(*columns(rows), on), lambda rows: cohen(*columns(rows))),
        (partial(interval_of_all, is_alpha=False), fleiss),
        (partial(interval_of_all, is_alpha=True), krippendorff),
    ],
)
def test_the_interval_of_kappa_is_the_jackknife_over_prompts(
    interval: Callable[[Ratings, list[int]], tuple[float, float]],
    kappa: Callable[[Ratings], Agreement],
) -> None:
    """Nine prompts with two pairs each: 8 degrees of freedom, t is 2.306."""
    rows = [*zip(SAID, REPLIED, strict=True)]
    without = [
        kappa([row for row, on in zip(rows, PROMPTS, strict=True) if on != left_out]).kappa or 0.0
        for left_out in range(9)
    ]
    half = 2.306004 * sqrt(8 / 9 * sum((each - mean(without)) ** 2 for each in without))
    whole = kappa(rows).kappa or 0.0

    found = interval(rows, PROMPTS)

    assert found == pytest.approx((whole - half, min(1.0, whole + half)), abs=1e-6)


def test_alpha_has_an_interval_where_some_judged_alone() -> None:
    """What one judge alone was asked tells nothing of agreement."""
    rows = [*zip(SAID, REPLIED, strict=True)]

    found = interval_of_all([*rows, ("a",)], [*PROMPTS, 9], is_alpha=True)

    assert found == interval_of_all(rows, PROMPTS, is_alpha=True)


@pytest.mark.parametrize("is_alpha", [False, True])
def test_kappa_that_is_not_defined_has_no_interval(*, is_alpha: bool) -> None:
    """Both judges say one thing only, or nothing."""
    assert interval_of_all([("a", "a")] * 18, PROMPTS, is_alpha=is_alpha) == (None, None)
    assert interval_of_all([], [], is_alpha=is_alpha) == (None, None)
    assert cohen_interval(["a"] * 18, ["a"] * 18, PROMPTS) == (None, None)
    assert cohen_interval([], [], []) == (None, None)


SCORES = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=7)

# A textbook's ten people: intelligence quotient, and hours of television in a week.
QUOTIENTS = [106, 100, 86, 101, 99, 103, 97, 113, 112, 110]
HOURS = [7, 27, 2, 50, 28, 29, 20, 12, 6, 17]


def test_spearmans_rho_is_that_of_a_worked_example() -> None:
    """Squared differences of rank sum to 194, so rho = 1 - 6 * 194 / 990 = -29 / 165."""
    assert spearman(QUOTIENTS, HOURS) == pytest.approx(-29 / 165)


def test_ties_have_their_mean_rank() -> None:
    """Ranks 1.5 1.5 3 and 1 2 3: covariance 1.5, variances 1.5 and 2."""
    assert spearman([1, 1, 2], [1, 2, 3]) == pytest.approx(1.5 / 3**0.5)


def test_kendalls_tau_allows_for_ties() -> None:
    """Of 10 pairs 2 agree and 6 do not; 2 are tied on one side and 1 on the other."""
    assert kendall([12, 2, 1, 12, 2], [1, 4, 7, 1, 0]) == pytest.approx(-4 / (8 * 9) ** 0.5)


@pytest.mark.parametrize("correlation", [spearman, kendall])
@pytest.mark.parametrize("sides", [([], []), ([1], [2]), ([1, 1], [1, 2]), ([1, 2], [3, 3])])
def test_what_orders_nothing_correlates_with_nothing(
    correlation: object, sides: tuple[list[float], list[float]]
) -> None:
    """Null, not 0: nothing is known of how the judges would order them."""
    assert callable(correlation)
    assert correlation(*sides) is None


@given(scores=SCORES)
def test_an_ordering_agrees_with_itself_and_not_with_its_reverse(
    scores: list[tuple[int, int]],
) -> None:
    """1 and -1 are the ends of the scale, reached exactly."""
    own = [first for first, _ in scores]
    reverse = [-score for score in own]
    ends = (1.0, -1.0) if len(set(own)) > 1 else (None, None)

    assert (spearman(own, own), spearman(own, reverse)) == ends
    assert (kendall(own, own), kendall(own, reverse)) == ends


FOUR_OBSERVERS = ("123321412   ", "1233224125 3", " 3332342251 ", "12332441251 ")
"""Krippendorff's nominal example (2011): 12 units, of which some observers said nothing."""


def items_of(observers: tuple[str, ...]) -> list[str]:
    """Return what was said of each unit; a blank is nothing."""
    return ["".join(said).replace(" ", "") for said in zip(*observers, strict=True)]


def test_krippendorffs_alpha_is_that_of_his_example() -> None:
    """Of 40 values in units with two or more; the last unit has one."""
    found = krippendorff(items_of(FOUR_OBSERVERS))

    assert found.kappa == pytest.approx(0.743, abs=5e-4)
    assert found.n == 11


def by_coincidences(items: list[str]) -> float | None:
    """Return alpha by its definition: a matrix of coincidences, and one less its ratio."""
    matrix = dict.fromkeys(product(CATEGORIES, repeat=2), 0.0)
    for item in items:
        for one, other in permutations(item, 2):
            matrix[one, other] += 1 / (len(item) - 1)
    totals = {each: sum(matrix[each, other] for other in CATEGORIES) for each in CATEGORIES}
    n = sum(totals.values())
    expected = sum(totals[a] * totals[b] for a, b in permutations(CATEGORIES, 2))
    disagreed = sum(matrix[pair] for pair in permutations(CATEGORIES, 2))
    return None if not expected else 1 - (n - 1) * disagreed / expected


@given(items=st.lists(st.text(CATEGORIES, max_size=4), max_size=12))
def test_krippendorffs_alpha_is_that_of_its_coincidences(items: list[str]) -> None:
    """With any votes missing."""
    found, expected = krippendorff(items).kappa, by_coincidences(items)

    assert (found is None) == (expected is None)
    assert found == (None if expected is None else pytest.approx(expected))
