"""An entrant's probability of being right, held against being right."""

from collections.abc import Iterable
from math import nextafter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.identity import EntrantId
from projections.reliability.calibration import (
    N_BINS,
    Calibration,
    Case,
    against_gold,
    against_verdicts,
)
from projections.tournament.settlement import by_dimension
from projections.tournament.state import Tournament
from tests.support.builders.events import entrant, known, opened, prompt, responses, rubric
from tests.support.builders.worlds import cup, history, settled, sure

SHARES = st.floats(min_value=0, max_value=1)
CASES = st.lists(st.builds(Case, SHARES, SHARES), max_size=30)


def calibration(cases: Iterable[tuple[float, float]]) -> Calibration:
    """Return what is measured on pairs of confidence and correctness."""
    return Calibration(EntrantId("poe"), None, tuple(Case(*each) for each in cases))


def judged(tournament: Tournament) -> tuple[Calibration, ...]:
    """Return the calibrations against the first judge's verdicts."""
    return against_verdicts(tournament, by_dimension(tournament, settled(tournament)))


def test_a_worked_example() -> None:
    """Bin 3 lacks |1 - 0.98| = 0.02 and bin 9 |1 - 1.87| = 0.87 of five; Brier is 1.5499 / 5."""
    found = calibration([(0.95, 1), (0.92, 0), (0.35, 0), (0.31, 1), (0.32, 0)])

    three, nine = found.bins[3], found.bins[9]
    assert (three.n, three.confidence, three.correctness) == pytest.approx((3, 0.98 / 3, 1 / 3))
    assert (nine.n, nine.confidence, nine.correctness) == pytest.approx((2, 0.935, 0.5))
    assert found.ece == pytest.approx(0.89 / 5)
    assert found.brier == pytest.approx(0.30998)


@pytest.mark.parametrize(
    ("confidence", "expected"),
    [(0.0, 0), (0.1, 1), (0.3, 3), (nextafter(0.3, 0), 2), (0.7, 7), (0.99, 9), (1.0, 9)],
)
def test_a_bin_holds_its_lower_edge_and_the_last_one_both(confidence: float, expected: int) -> None:
    """Ten half-open bins would lose the response that is held for certain."""
    bins = calibration([(confidence, 1.0)]).bins

    assert [i for i, each in enumerate(bins) if each.n] == [expected]
    assert bins[expected].low <= confidence <= bins[expected].high


def test_an_empty_bin_has_no_means() -> None:
    """A zero would be read as entrants that were sure and wrong."""
    empty = calibration([(0.95, 1)]).bins[0]

    assert (empty.n, empty.confidence, empty.correctness) == (0, None, None)


def test_nothing_is_measured_on_no_case() -> None:
    """An ECE of 0 would be perfection."""
    found = calibration([])

    assert (found.ece, found.brier) == (None, None)
    assert len(found.bins) == N_BINS


@given(cases=CASES, data=st.data())
def test_every_case_is_in_one_bin_in_any_order_and_errors_are_shares(
    cases: list[Case], data: st.DataObject
) -> None:
    """The bank's order is an accident; both errors lie from 0 to 1, and ECE is what bins show."""
    found, other = calibration(cases), calibration(data.draw(st.permutations(cases)))

    assert (found.bins, found.ece, found.brier) == (other.bins, other.ece, other.brier)
    assert sum(each.n for each in found.bins) == len(cases)
    assert all(each.low <= each.confidence <= each.high for each in found.bins if each.confidence)
    gaps = [
        each.n * abs(each.correctness - each.confidence)
        for each in found.bins
        if each.confidence is not None and each.correctness is not None
    ]
    if cases:
        assert 0 <= (found.ece or 0.0) <= 1
        assert 0 <= (found.brier or 0.0) <= 1
        assert found.ece == pytest.approx(sum(gaps) / len(cases), abs=1e-12)


@given(
    groups=st.lists(
        st.integers(min_value=1, max_value=9).flatmap(
            lambda n: st.tuples(st.just(n), st.integers(min_value=0, max_value=n))
        ),
        min_size=1,
        max_size=8,
    )
)
def test_who_is_right_as_often_as_it_says_has_no_error(groups: list[tuple[int, int]]) -> None:
    """Groups of n responses, each held for k/n likely, of which k are right."""
    cases = [(k / n, float(i < k)) for n, k in groups for i in range(n)]

    assert calibration(cases).ece == pytest.approx(0, abs=1e-12)


def test_gold_answers_make_right_and_wrong() -> None:
    """A prompt without a gold answer tells nothing, and neither do entrants without p_correct."""
    opening = opened(
        prompts=[prompt("p1"), prompt("p2"), prompt("p3", gold=None), prompt("p4")],
        entrants=[entrant("base"), entrant("poe")],
    )
    texts = {("base", "p1"): "Aspirin.", ("poe", "p1"): "Aspirin.", ("poe", "p2"): "Heparin."}
    given_ = responses(known(*opening), texts | {("poe", "p3"): "Aspirin."})

    (found,) = against_gold(known(*opening, *sure(given_, {"poe": 0.7})))

    assert (found.entrant_id, found.dimension) == ("poe", None)
    assert found.cases == ((0.7, 1.0), (0.7, 0.0))
    assert found.n_left_out == 1


def test_verdicts_make_shares_of_wins() -> None:
    """On p1 zoe beats amy, amy ties with kim, zoe and kim win once; on p2 kim beats amy."""
    fates = history(cup(), "a", "inconsistent", "tie", "pending", "refused", "b")

    zoe, amy, kim = judged(known(*sure(fates, {"zoe": 0.8, "amy": 0.7, "kim": 0.6})))

    assert (zoe.entrant_id, zoe.dimension) == ("zoe", "factuality")
    assert (zoe.cases, zoe.n_left_out) == (((0.8, 0.75),), 1)
    assert (amy.cases, amy.n_left_out) == (((0.7, 0.25), (0.7, 0.0)), 0)
    assert (kim.cases, kim.n_left_out) == (((0.6, 0.5), (0.6, 1.0)), 0)


def test_each_dimension_is_held_against_its_own_verdicts() -> None:
    """Who wins on one may lose on another; a dimension without a verdict is shown as such."""
    rubrics = [rubric("factuality"), rubric("utility", needs_gold=False)]
    events = history(opened(rubrics=rubrics), "a")

    first, second = judged(known(*sure(events, {"base": 0.9})))

    assert (first.dimension, first.cases) == ("factuality", ((0.9, 1.0),))
    assert (second.dimension, second.cases, second.n_left_out) == ("utility", (), 1)
