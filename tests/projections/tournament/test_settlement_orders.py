"""A pair that is asked in one order: its one verdict is its outcome, for whoever reads it."""

import json
from collections import Counter
from typing import Final

import pytest

from ledger.events.judging import Order
from projections.artifacts.files import line_files
from projections.battles.details import battle_details
from projections.ratings.judge_bias.pairs import judged_pairs
from projections.reliability.agreement import agreement
from projections.tournament.jury import settle_by_majority
from projections.tournament.settlement import settle
from projections.verdicts.policies import ABSTAIN_ON_FLIP, CONCATENATE, Rule
from tests.support.builders.events import entrant, known, opened, prompt
from tests.support.builders.worlds import (
    COUNTERBALANCED,
    JURORS,
    answered,
    everything,
    failure,
    judged,
    matches_of,
    planned_pairings,
    results,
    settled,
    with_judging,
)

EVENTS: Final = answered(
    with_judging(
        opened(
            prompts=[prompt(f"p{n}") for n in range(9)],
            entrants=[entrant(name) for name in ("zoe", "amy", "kim")],
            judges=JURORS,
        ),
        COUNTERBALANCED,
    )
)


STATE: Final = known(*judged(EVENTS, lambda _: "A"))
N_ORDERS: Final = Counter(len(each.orders) for each in planned_pairings(STATE))
assert min(N_ORDERS[1], N_ORDERS[2]) > 0, "else the tests here would show nothing"
WINNER: Final[dict[tuple[Order, ...], str]] = {("forward",): "a", ("swapped",): "b"}


@pytest.mark.parametrize(
    "rule", [Rule(), Rule(ABSTAIN_ON_FLIP), Rule(CONCATENATE), Rule(parser="final-line@1")], ids=str
)
def test_every_policy_takes_the_one_verdict(rule: Rule) -> None:
    """Nothing agrees with it, and nothing contradicts it."""
    found = settle(STATE, everything(STATE), STATE.panel[0], rule)

    once = [each for each in found if each.slot]
    assert len(once) == N_ORDERS[1]
    assert [each.status for each in once] == [WINNER[each.pairing.orders] for each in once]
    assert {each.weight for each in once} == {1.0 if rule.policy == CONCATENATE else 0.5}


def test_a_jury_is_asked_in_the_same_order() -> None:
    """All of its judges say of the same slots who is better."""
    found = settle_by_majority(STATE, everything(STATE), STATE.panel)

    for each in found:
        assert each.status == WINNER.get(each.pairing.orders, "inconsistent")


def test_only_pairs_in_both_orders_tell_whether_a_judge_contradicts_itself() -> None:
    """And how it is biased; its verdicts on all tell which slot it prefers."""
    figures = {
        each.name: (each.value, each.n)
        for each in agreement(STATE, everything(STATE), STATE.panel[:1])
    }

    assert figures["order consistency"] == (0.0, N_ORDERS[2])
    assert figures["share of A"] == (1.0, N_ORDERS[1] + 2 * N_ORDERS[2])
    (pairs,) = judged_pairs(STATE, STATE.panel[:1]).values()
    assert len(pairs) == N_ORDERS[2]


def test_a_battle_shows_the_orders_that_are_asked() -> None:
    """What is not planned is not shown as missing."""
    for pairing in planned_pairings(STATE):
        (shown,) = battle_details(STATE, [pairing], STATE.panel[0]).dimensions

        assert tuple(each.order for each in shown.orders) == pairing.orders
        assert {each.status for each in shown.orders} == {"answered"}


@pytest.mark.no_cover
def test_a_run_holds_the_replies_in_the_orders_that_were_asked() -> None:
    """One reply, or two, each with who was shown first."""
    opening = opened(
        prompts=[prompt(f"p{n}") for n in range(9)],
        entrants=[entrant(name) for name in ("zoe", "amy", "kim")],
    )
    told = judged(answered(with_judging(opening, COUNTERBALANCED)), lambda _: "A")
    lines = line_files(results(*told).pairs)
    rows = [*map(json.loads, lines[f"verdicts/{STATE.dimensions[0].dimension}.jsonl"])]

    assert Counter(len(row["raw"]) for row in rows) == N_ORDERS
    for row, pairing in zip(rows, planned_pairings(STATE), strict=True):
        swaps = [reply["position_swap"] for reply in row["raw"]]
        assert swaps == [order == "swapped" for order in pairing.orders]


def test_a_reply_without_a_verdict_is_a_failure_of_the_pair() -> None:
    """Its other order is not asked instead."""
    match = next(each for each in matches_of(known(*EVENTS)) if each.pairing.slot)
    ((order, _),) = match.keys
    refused = failure(match.query(order), "refused")

    found = next(each for each in settled(known(*EVENTS, refused)) if each.pairing == match.pairing)

    assert (found.status, found.share, found.said) == ("refused", None, ())
