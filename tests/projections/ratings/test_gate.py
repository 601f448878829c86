"""A gate passes what is good enough, and stops what is worse, as rarely wrong as it says."""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.events.ratings import BradleyTerryParameters
from projections.battles.columns import Battles
from projections.ratings.bradley_terry.rate import rate
from projections.ratings.gate import GatePolicy, pass_or_stop
from projections.results.ratings import GateRow
from tests.support.builders.battles import draw_tournaments, truth

_FIRST_LOOK = 100  # prompts


def judged(battles: Battles, *, margin: float = 30.0, policy: GatePolicy = "not-worse") -> GateRow:
    """Judge the second entrant beside the first."""
    ratings = rate(battles, BradleyTerryParameters())
    candidate, baseline = ratings.entrants[1], ratings.entrants[0]
    return pass_or_stop(
        "d", battles, ratings, pair=(candidate, baseline), margin=margin, policy=policy
    )


def drawn(lead: float, *, n_prompts: int, n: int = 1) -> Iterator[Battles]:
    """Draw battles of two entrants, the second ahead by so many logits."""
    return draw_tournaments(n, n_prompts=n_prompts, strengths=np.array([0.0, lead]))


@pytest.mark.parametrize(
    ("lead", "n_prompts", "policy", "verdict"),
    [
        (0.0, 2_000, "not-worse", "not worse"),
        (1.0, 300, "not-worse", "not worse"),
        (1.0, 300, "better", "better"),
        (0.0, 100, "better", "not enough"),
        (-1.0, 300, "not-worse", "worse"),
        (-1.0, 300, "better", "worse"),
        (0.0, 20, "not-worse", "not enough"),
    ],
)
def test_each_verdict_is_given_where_it_is_true(
    lead: float, n_prompts: int, policy: GatePolicy, verdict: str
) -> None:
    """On many prompts equals pass; on few nobody can say."""
    (battles,) = drawn(lead, n_prompts=n_prompts)

    row = judged(battles, policy=policy)

    assert row.verdict == verdict
    is_forecast = (verdict, policy) == ("not enough", "not-worse")  # no number shows equals better
    assert (row.n_more_prompts is not None) == is_forecast


def test_a_candidate_that_is_worse_by_less_than_the_margin_passes() -> None:
    """Surely behind, and surely by little: that is what the margin allows."""
    (battles,) = drawn(-0.2, n_prompts=3_000)

    row = judged(battles, margin=100.0)

    assert row.high is not None
    assert (row.verdict, row.high < 0) == ("not worse", True)


@given(margin=st.floats(1.0, 200.0), more=st.floats(0.0, 200.0))
def test_a_wider_margin_never_stops_a_candidate(margin: float, more: float) -> None:
    """And it never asks for more prompts."""
    (battles,) = drawn(-0.1, n_prompts=60)

    narrow, wide = judged(battles, margin=margin), judged(battles, margin=margin + more)

    assert narrow.verdict != "not worse" or wide.verdict == "not worse"
    assert (wide.n_more_prompts or 0) <= (narrow.n_more_prompts or 10**9)


def test_exchanging_the_two_mirrors_the_interval() -> None:
    """Who is called the candidate changes the question, not the evidence."""
    (battles,) = drawn(0.3, n_prompts=100)
    ratings = rate(battles, BradleyTerryParameters())
    one, other = ratings.entrants

    row = pass_or_stop("d", battles, ratings, pair=(one, other), margin=30.0, policy="not-worse")
    back = pass_or_stop("d", battles, ratings, pair=(other, one), margin=30.0, policy="not-worse")

    assert row.difference is not None
    assert row.low is not None
    assert back.difference == pytest.approx(-row.difference)
    assert back.high == pytest.approx(-row.low)


def of_scores(*scores: float) -> Battles:
    """Return battles of two entrants, one a prompt, by what the first took."""
    n = len(scores)
    return Battles.by_score(
        entrants=("a", "b"),
        a=np.zeros(n, dtype=np.intp),
        b=np.ones(n, dtype=np.intp),
        cluster=np.arange(n, dtype=np.intp),
        score=np.array(scores),
        weight=np.ones(n),
    )


def test_who_lost_every_battle_is_worse_and_who_won_every_one_is_better() -> None:
    """Neither has a rating, and a gate that says "not enough" would let the worst pass."""
    lost, won = judged(of_scores(*[1.0] * 20)), judged(of_scores(*[0.0] * 20), policy="better")

    assert (lost.verdict, lost.difference, lost.low, lost.n_prompts) == ("worse", None, None, 20)
    assert (won.verdict, won.difference, won.high, won.n_prompts) == ("better", None, None, 20)
    assert lost.high is not None
    assert won.low == pytest.approx(-lost.high)
    assert "by the share of the two's own battles" in str(lost.why)


@pytest.mark.parametrize(
    ("scores", "why"),
    [([1.0] * 5, "beat all that it met"), ([1.0, 0.0, 0.5], "no interval: it takes 6 prompts")],
)
def test_what_cannot_be_known_is_told(scores: list[float], why: str) -> None:
    """It is not enough, and no number of prompts is promised."""
    row = judged(of_scores(*scores))

    assert (row.verdict, row.n_more_prompts) == ("not enough", None)
    assert row.why is not None
    assert why in row.why


def test_an_entrant_without_a_battle_is_told() -> None:
    """As before its first answers, or where all that was judged has no verdict."""
    (battles,) = drawn(0.0, n_prompts=10)
    ratings = rate(battles, BradleyTerryParameters())
    pair = ("new", ratings.entrants[0])

    row = pass_or_stop("d", battles, ratings, pair=pair, margin=30.0, policy="not-worse")

    assert (row.verdict, row.why) == ("not enough", "new has no battle")


def _shares(lead: float, *, n: int, n_prompts: int, margin: float) -> dict[str, float]:
    rows = [judged(each, margin=margin) for each in drawn(lead, n_prompts=n_prompts, n=n)]
    return {
        verdict: sum(row.verdict == verdict for row in rows) / n
        for verdict in ("not worse", "worse", "not enough")
    }


def _lead_of(points: float) -> float:
    """Return the lead in logits that gives such a difference of ratings in the long run."""
    low, high = -3.0, 3.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        ratings = truth(strengths=np.array([0.0, middle]))
        low, high = (middle, high) if ratings[1] - ratings[0] < points else (low, middle)
    return low


@pytest.mark.nightly
def test_errors_are_as_rare_as_is_said() -> None:
    """1,000 each, 500 prompts: at the margin 3.5 % pass at most, equals are worse in as few."""
    at_margin = _shares(_lead_of(-30.0), n=1_000, n_prompts=500, margin=30.0)
    equal = _shares(0.0, n=1_000, n_prompts=500, margin=30.0)
    behind = _shares(_lead_of(-60.0), n=1_000, n_prompts=500, margin=30.0)

    assert at_margin["not worse"] <= 0.035
    assert equal["worse"] <= 0.035
    assert equal["not worse"] >= 0.5
    assert behind["not worse"] <= 0.01
    assert behind["worse"] >= 0.97


@pytest.mark.nightly
def test_the_prompts_that_are_asked_for_decide_between_equals() -> None:
    """Four of five times, given a first look at 100 prompts."""
    n_decided = 0
    for whole in drawn(0.0, n_prompts=3_000, n=200):
        asked_for = judged(whole.take(whole.cluster < _FIRST_LOOK)).n_more_prompts or 0
        then = judged(whole.take(whole.cluster < _FIRST_LOOK + asked_for))
        n_decided += then.verdict != "not enough"

    assert n_decided >= 0.8 * 200
