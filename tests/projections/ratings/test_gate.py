"""A gate passes what is good enough, and stops what is worse, as rarely wrong as it says."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.events.judging import FailureReason, Outcome, VerdictReceived
from ledger.events.money import Price, Usage
from ledger.events.ratings import BradleyTerryParameters
from ledger.identity import PromptId
from projections.battles.columns import CODES, Battles, without_slot_effect
from projections.intervals import Floats
from projections.ratings.bradley_terry.rate import rate_points
from projections.ratings.gate import MARGIN, GateLook, GateQuestion, gate_looks, look_in_turn
from projections.results.ratings import GateRow
from projections.tournament.designs import planned_pairs
from tests.support.builders.battles import all_met, draw_tournaments
from tests.support.builders.events import entrant, known, opened, prompt
from tests.support.builders.worlds import history, with_judging

PRICE = Price(input=3.0, output=15.0, cache_write_5m=0, cache_write_1h=0, cache_read=0, table="own")
_PILOT = 100  # prompts
_OWN, _PAIR, _SLOT, _TIE = 0.75, 0.5, 0.3, 0.35  # logits: of an answer, a pair, a slot, ties


def looked_at(battles: Battles, *, margin: float = MARGIN) -> GateLook:
    """Judge the second entrant beside the first, prompt by prompt in order of number."""
    order = [[PromptId(f"p{n}")] for n in range(int(battles.cluster.max(initial=-1)) + 1)]
    named = replace(battles, prompts=tuple(names[0] for names in order))
    question = GateQuestion(battles.entrants[1], battles.entrants[0], margin)
    return look_in_turn("d", named, order, question)


def judged(battles: Battles, *, margin: float = MARGIN) -> GateRow:
    """Return what the looks find."""
    return looked_at(battles, margin=margin).row


def drawn(lead: float, *, n_prompts: int, n: int = 1) -> Iterator[Battles]:
    """Draw battles of two entrants, the second ahead by so many logits."""
    return draw_tournaments(n, n_prompts=n_prompts, strengths=np.array([0.0, lead]))


@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("lead", "n_prompts", "margin", "verdict"),
    [
        (0.0, 1_500, MARGIN, "not worse"),
        (1.0, 300, 0.0, "better"),
        (0.0, 100, 0.0, "not enough"),
        (-1.0, 300, MARGIN, "worse"),
        (-1.0, 300, 0.0, "worse"),
        (0.0, 20, MARGIN, "not enough"),
    ],
)
def test_each_verdict_is_given_where_it_is_true(
    lead: float, n_prompts: int, margin: float, verdict: str
) -> None:
    """On many prompts equals pass; on few nobody can say; without a margin they must be ahead."""
    (battles,) = drawn(lead, n_prompts=n_prompts)

    row = judged(battles, margin=margin)

    assert row.verdict == verdict
    is_forecast = (verdict, margin) == ("not enough", MARGIN)  # no number shows equals ahead
    assert (row.n_more_prompts is not None) == is_forecast


def test_a_candidate_that_is_worse_by_less_than_the_margin_passes() -> None:
    """Surely behind, and surely by little: that is what the margin allows."""
    row = judged(of_scores(*[0.53, 0.55] * 10), margin=100.0)

    assert row.high is not None
    assert row.verdict == "not worse"
    assert row.high < 0


@pytest.mark.no_cover
def test_a_look_takes_off_what_the_slot_gave_by_then() -> None:
    """Prompts that are judged later change no verdict, where pairs are asked in one order, too."""
    (battles,) = drawn(-1.0, n_prompts=300)
    slot = np.where(np.arange(len(battles)) % 2 == 0, -1, 1).astype(np.int8)
    whole = replace(battles, slot=slot)
    later = np.where(battles.cluster < 240, battles.score, (1 + slot) / 2)
    status = np.where(later == 1, CODES["a"], np.where(later == 0, CODES["b"], CODES["tie"]))
    other = replace(whole, score=later, status=status.astype(np.uint8))

    found, again = (judged(without_slot_effect(each)) for each in (whole, other))

    assert (found.verdict, found.n_prompts) == ("worse", 240)
    assert again == found


@given(margin=st.floats(1.0, 200.0), more=st.floats(0.0, 200.0))
def test_a_wider_margin_never_stops_a_candidate(margin: float, more: float) -> None:
    """And it never asks for more prompts."""
    (battles,) = drawn(-0.1, n_prompts=60)

    narrow, wide = judged(battles, margin=margin), judged(battles, margin=margin + more)

    assert narrow.verdict != "not worse" or wide.verdict == "not worse"
    assert (wide.n_more_prompts or 0) <= (narrow.n_more_prompts or 10**9)


@pytest.mark.no_cover
def test_the_first_look_that_decides_stands() -> None:
    """However many more prompts are judged by then, and whatever they say."""
    (battles,) = drawn(2.0, n_prompts=200)
    late = battles.cluster >= _PILOT
    turned = replace(battles, score=np.where(late, 1.0 - battles.score, battles.score))

    row, then = judged(battles), judged(turned)

    assert row.verdict == "not worse"
    assert row.n_prompts < _PILOT
    assert then == row


def test_a_look_waits_for_its_prompts_alone() -> None:
    """What comes later need not be judged; the prompts that lack a verdict are named."""
    (battles,) = drawn(0.0, n_prompts=60)
    status = np.where(battles.cluster == 25, CODES["pending"], battles.status)
    is_open = replace(
        battles,
        status=status.astype(np.uint8),
        score=np.where(battles.cluster == 25, np.nan, battles.score),
    )

    look = looked_at(is_open)

    assert (look.row.verdict, look.row.n_more_prompts) == ("not enough", None)
    assert "1 pair of the two is not judged yet: `tourney gate --run`" in str(look.row.why)
    assert look.wanted == tuple(f"p{n}" for n in range(40))
    assert looked_at(battles).wanted == ()


def of_scores(*scores: float) -> Battles:
    """Return battles of two entrants, one a prompt, by what the first took."""
    return all_met(("a", "b"), np.array(scores).reshape(-1, 1))


def test_who_lost_every_battle_is_worse_and_who_won_every_one_is_better() -> None:
    """Neither has a rating, and a gate that says "not enough" would let the worst pass."""
    lost, won = judged(of_scores(*[1.0] * 20)), judged(of_scores(*[0.0] * 20), margin=0.0)

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
    """As where all that it said failed."""
    lost = of_scores(*[1.0] * 20)
    failed = replace(
        lost, score=np.full(20, np.nan), status=np.full(20, CODES["refused"], dtype=np.uint8)
    )

    row = judged(failed)

    assert (row.verdict, row.why) == ("not enough", "a and b have no battle")


def test_the_same_responses_are_not_worse_and_not_better() -> None:
    """No judge has to read them; they are known to be alike only when all are there."""
    same = replace(of_scores(*[0.5] * 30), status=np.full(30, CODES["identical"], dtype=np.uint8))

    row, better = judged(same), judged(same, margin=0.0)

    assert (row.verdict, row.n_more_prompts) == ("not worse", None)
    assert row.why == "the two gave the same response to every prompt"
    assert better.verdict == "not enough"


def test_without_a_prompt_nothing_is_known() -> None:
    """As before the first opening."""
    row = judged(of_scores())

    assert (row.verdict, row.why) == ("not enough", "nothing is planned")


def test_two_that_never_met_are_compared_through_a_third() -> None:
    """And the row says so."""
    n = 120
    rng = np.random.default_rng(1)
    battles = Battles.by_score(
        entrants=("a", "b", "c"),
        a=np.tile(np.array([0, 1], dtype=np.intp), n),
        b=np.full(2 * n, 2, dtype=np.intp),
        cluster=np.repeat(np.arange(n, dtype=np.intp), 2),
        score=rng.integers(0, 2, 2 * n).astype(np.float64),
        weight=np.ones(2 * n),
    )

    row = judged(battles)

    assert row.why == "the two never met, and are compared through others"
    assert row.low is not None


@pytest.mark.parametrize(
    ("design", "key"), [('{"baseline": "old"}', "baseline"), ('{"sparse": 2}', "sparse")]
)
def test_a_design_by_which_the_two_never_meet_is_named(design: str, key: str) -> None:
    """Else `gate --run` asks nothing, and nobody knows why."""
    opening = opened(
        prompts=[prompt("p1")], entrants=[entrant(name) for name in ("old", "new", "other")]
    )
    tournament = known(*with_judging(opening, design))
    met = {frozenset(pair) for pair in planned_pairs(tournament)[PromptId("p1")]}
    apart = next(pair for pair in combinations(("new", "other", "old"), 2) if {*pair} not in met)

    (look,) = gate_looks(tournament, tournament.panel[0], GateQuestion(*apart))

    assert f"[judging] {key} plans no pair of the two" in str(look.row.why)


def of_a_tournament(*fates: Outcome | FailureReason, price: Price | None = PRICE) -> GateLook:
    """Return what the gate sees of two entrants on eight prompts, each verdict at a price."""
    opening = opened(
        prompts=[prompt(f"p{n}") for n in range(8)], entrants=[entrant("old"), entrant("new")]
    )
    events = [
        msgspec.structs.replace(event, usage=Usage(n_input=1_000, n_output=0), price=price)
        if isinstance(event, VerdictReceived)
        else event
        for event in history(opening, *fates)
    ]
    tournament = known(*events)
    (look,) = gate_looks(tournament, tournament.panel[0], GateQuestion("new", "old"))
    return look


def test_pairs_that_failed_are_told() -> None:
    """They count for neither, and a candidate that seldom answers could hide behind that."""
    fates: list[Outcome | FailureReason] = ["a", "b", "tie", "inconsistent", "a", "b"]

    row = of_a_tournament(*fates, "refused", "refused").row
    won = of_a_tournament("b", "b", "b", "b", "b", "b", "refused", "refused").row

    assert row.why == "2 of 8 pairs of the two failed, and count for neither"
    assert str(won.why).endswith("; 2 of 8 pairs of the two failed, and count for neither")


@pytest.mark.no_cover
def test_what_more_prompts_would_cost_is_what_those_so_far_did() -> None:
    """Two verdicts a prompt, of a thousand tokens each; and nobody guesses an unknown price."""
    fates: list[Outcome] = ["a", "b", "tie", "inconsistent"] * 2
    row = of_a_tournament(*fates).row

    assert (row.dimension, row.verdict, row.n_prompts) == ("factuality", "not enough", 8)
    assert row.n_more_prompts is not None
    assert row.usd_more == pytest.approx(row.n_more_prompts * 2 * 1_000 * 3.0 / 1e6)
    assert of_a_tournament(*fates, price=None).row.usd_more is None
    assert (
        of_a_tournament("a", "a", "a", "a", "a", "a", "a", "a").row.usd_more is None
    )  # it is known


def both_orders(lead: float, *, n_prompts: int, n: int) -> Iterator[Battles]:
    """Draw battles of two entrants as a judge gives them: twice each, with a favoured slot."""
    rng = np.random.default_rng(2026)
    for _ in range(n):
        own = rng.normal(scale=_OWN, size=(2, n_prompts))
        ahead = own[0] - own[1] - lead + rng.normal(scale=_PAIR, size=n_prompts)
        score = (_verdicts(rng, ahead + _SLOT) + _verdicts(rng, ahead - _SLOT)) / 2
        yield all_met(("a", "b"), score[:, None])


def _verdicts(rng: np.random.Generator, ahead: Floats) -> Floats:
    drawn = rng.random(len(ahead))
    win, loss = 1 / (1 + np.exp(_TIE - ahead)), 1 / (1 + np.exp(_TIE + ahead))
    return np.where(drawn < win, 1.0, np.where(drawn < 1 - loss, 0.5, 0.0))


def _shares(lead: float, *, n: int, margin: float = MARGIN) -> dict[str, float]:
    rows = [judged(each, margin=margin) for each in both_orders(lead, n_prompts=500, n=n)]
    return {verdict: sum(row.verdict == verdict for row in rows) / n for verdict in _VERDICTS}


_VERDICTS = ("not worse", "worse", "not enough")


def _points_of(lead: float) -> float:
    """Return the difference of ratings that a lead in logits gives in the long run."""
    (battles,) = both_orders(lead, n_prompts=400_000, n=1)
    ratings = rate_points(battles, BradleyTerryParameters()).rating
    return float(ratings[1] - ratings[0])


def _lead_of(points: float) -> float:
    """Return the lead in logits that gives a difference of ratings in the long run."""
    low, high = -3.0, 0.0
    for _ in range(12):
        middle = (low + high) / 2
        low, high = (middle, high) if _points_of(middle) < points else (low, middle)
    return low


@pytest.mark.nightly
def test_errors_are_as_rare_as_is_said() -> None:
    """1,000 each, at most 500 prompts, looked at 25 times."""
    at_margin, equal = _shares(_lead_of(-30.0), n=1_000), _shares(0.0, n=1_000)
    behind, narrow = _shares(_lead_of(-60.0), n=1_000), _shares(0.0, n=1_000, margin=20.0)

    assert at_margin["not worse"] <= 0.035
    assert equal["worse"] <= 0.035
    assert equal["not worse"] >= 0.7
    assert narrow["not worse"] >= 0.4
    assert behind["not worse"] <= 0.01
    assert behind["worse"] >= 0.97


@pytest.mark.nightly
def test_the_prompts_that_are_asked_for_decide_between_equals() -> None:
    """Four of five times, given the looks at 100 prompts."""
    n_decided = n_open = 0
    for whole in both_orders(0.0, n_prompts=4_000, n=200):
        row = judged(whole.take(whole.cluster < _PILOT))
        if row.n_more_prompts is not None:
            n_open += 1
            then = judged(whole.take(whole.cluster < _PILOT + row.n_more_prompts))
            n_decided += then.verdict != "not enough"

    assert n_decided >= 0.8 * n_open
