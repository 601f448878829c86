"""What each judge said of pairs of responses, as arrays."""

import numpy as np
import pytest

from projections.ratings.judge_bias.pairs import JudgedPairs, judged_pairs
from tests.support.builders.events import entrant, known, opened, prompt, responses, verdict
from tests.support.builders.juries import Juror, judged
from tests.support.builders.worlds import (
    JURORS,
    SLOT_A,
    TIE,
    A,
    B,
    Said,
    answered,
    court,
    failure,
    heard,
    matches_for,
)


def of_court(*saids: list[Said | None]) -> JudgedPairs:
    """Return what judges said of zoe-amy, zoe-kim, amy-kim, and the same on another prompt."""
    tournament = known(*heard(court(len(saids)), *saids))
    return judged_pairs(tournament, tournament.panel)["factuality"]  # type: ignore[index]


def test_each_judge_says_something_of_a_pair_in_both_orders() -> None:
    """The first is shown first, then second; a judge that says A twice gives it one of two."""
    pairs = of_court([A, B, TIE, SLOT_A], [B])

    assert pairs.entrants == ("amy", "kim", "zoe")
    assert pairs.judges == ("ann", "bob")
    assert pairs.judge.tolist() == [0, 0, 0, 0, 1]
    assert pairs.a.tolist() == [2, 2, 0, 2, 2]
    assert pairs.b.tolist() == [0, 1, 1, 0, 0]
    assert pairs.prompt.tolist() == [0, 0, 0, 1, 0]
    assert pairs.forward.tolist() == [1, 0, 0.5, 1, 0]
    assert pairs.swapped.tolist() == [1, 0, 0.5, 0, 0]
    assert pairs.is_inconsistent.tolist() == [False, False, False, True, False]


def test_a_pair_counts_once_both_orders_have_a_verdict() -> None:
    """One alone cannot tell a slot from a response."""
    events = court(1)
    first, second, *_ = matches_for(known(*events), JURORS[0])
    half = (verdict(first.forward.query_key, "A"), failure(first.swapped))
    other = (failure(second.forward), verdict(second.swapped.query_key, "A"))
    tournament = known(*events, *half, *other)

    for pairs in judged_pairs(tournament, tournament.panel).values():
        assert len(pairs) == 0
        assert pairs.entrants == ()


def test_style_is_that_of_the_responses_and_equal_texts_do_not_count() -> None:
    """Nobody was asked about them."""
    opening = opened(prompts=[prompt("p1")], entrants=[entrant(n) for n in ("amy", "kim", "zoe")])
    texts = {("amy", "p1"): "three", ("kim", "p1"): "three", ("zoe", "p1"): "**nine** chars"}
    events = (*opening, *responses(known(*opening), texts))
    tournament = known(*heard(events, [TIE, A, A]))

    [pairs] = judged_pairs(tournament, tournament.panel).values()

    assert len(pairs) == 2
    assert pairs.style["length"].tolist() == pytest.approx([-9 / 19] * 2)
    assert (pairs.style["bold"] < 0).all()
    assert not pairs.style["headers"].any()


@pytest.mark.no_cover
def test_pairs_are_shared_that_two_judged() -> None:
    """Whoever judged none of them is not named, and the others are numbered anew."""
    pairs = of_court([None, None, A], [A, B, None], [A, A, None, B])

    shared = pairs.shared()

    assert shared.judges == ("bob", "cleo")
    assert shared.judge.tolist() == [0, 0, 1, 1]
    assert shared.prompt.tolist() == [0] * 4
    assert pairs.by("ann").shared().judges == ()


def test_pairs_on_prompts_of_one_text_are_two_on_one_prompt() -> None:
    """One judge that judged both does not share them with itself."""
    prompts = [prompt("p1", text="Why?"), prompt("p2", text="Why?")]
    entrants = [entrant("amy", temperature=0.7), entrant("kim", temperature=0.7)]
    events = answered(opened(prompts=prompts, entrants=entrants, judges=JURORS[:2]))
    tournament = known(*heard(events, [A, A], [None, B]))

    [pairs] = judged_pairs(tournament, tournament.panel).values()

    assert pairs.prompt.tolist() == [0, 0, 0]
    assert pairs.pair.tolist() == [0, 1, 1]
    assert len(pairs.shared()) == 2


def test_each_order_is_a_battle() -> None:
    """Of one prompt still, with the style of the pair."""
    pairs = judged(np.random.default_rng(1), [Juror(), Juror("human")], n_prompts=2)

    orders = pairs.orders()

    assert len(orders) == 2 * len(pairs) == 80
    assert orders.score.tolist() == [*pairs.forward, *pairs.swapped]
    assert np.array_equal(orders.cluster[:40], orders.cluster[40:])
    assert len(pairs.by("human").style["length"]) == 20
