"""Counterbalanced, most pairs are asked once: balanced, and what is not planned is not missing."""

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.events.judging import Order
from ledger.events.registration import Prompt
from ledger.events.registry import Event
from ledger.identity import PromptId, digest_of
from projections.tournament.compared import kind_of
from projections.tournament.designs import BOTH, drawn_orders, not_planned, without_design
from projections.tournament.matches import queries_to
from projections.tournament.remaining import ENDLESS_RETRIES, open_queries
from projections.tournament.settlement import account_of
from tests.support.builders.events import entrant, known, opened, prompt
from tests.support.builders.worlds import (
    COUNTERBALANCED,
    RUBRICS,
    answered,
    everything,
    judged,
    planned_pairings,
    settled,
    with_judging,
)

NAMES = ("zoe", "amy", "kim", "bob", "eve", "dan")
N_PROMPTS = 143

Asked = dict[tuple[PromptId, frozenset[str]], tuple[str, ...]]
"""Who was shown first, in each query about a pair."""


def tournament(
    names: Iterable[str] = NAMES,
    n_prompts: int = 5,
    judging: str = COUNTERBALANCED,
    prompts: Sequence[Prompt] | None = None,
) -> tuple[Event, ...]:
    """Return the opening of a tournament with a design."""
    prompts = prompts or [prompt(f"p{n}") for n in range(n_prompts)]
    entrants = [entrant(name) for name in names]
    return with_judging(opened(prompts=prompts, entrants=entrants, rubrics=RUBRICS), judging)


def asked_first(events: Sequence[Event]) -> Asked:
    """Return who is to be shown first, by prompt and pair."""
    return {
        (each.prompt.prompt_id, each.entrants): tuple(
            each.a.entrant.entrant_id if order == "forward" else each.b.entrant.entrant_id
            for order in each.orders
        )
        for each in planned_pairings(known(*events))
    }


def test_a_pair_is_drawn_by_who_it_is_and_not_by_who_is_named_first() -> None:
    """Else another order of the roster would owe each pair anew."""
    turned: dict[Order, Order] = {"forward": "swapped", "swapped": "forward"}
    for number in range(60):
        one, other = (
            drawn_orders(*pair, digest_of(number), 0) for pair in (("a", "b"), ("b", "a"))
        )
        assert {turned[order] for order in one} == {*other}


def test_an_order_stays_as_it_is_drawn() -> None:
    """Another would be owed anew in every counterbalanced tournament."""
    drawn = (drawn_orders("a", "b", digest_of(f"Question {n}?"), 7) for n in range(40))

    assert "".join(orders[0][0] if len(orders) == 1 else "B" for orders in drawn) == (
        "fffsfsffssBsfsfffBfffsBfssssfBBsfssfsssf"
    )


@pytest.mark.no_cover
def test_each_pair_has_either_order_on_about_half_of_the_prompts() -> None:
    """To within 4 standard deviations of a coin, and a tenth in both; so has each entrant."""
    first = asked_first(tournament(n_prompts=N_PROMPTS))
    in_one = {place: shown for place, shown in first.items() if len(shown) == 1}

    n_pairs = Counter(pair for _, pair in in_one)
    shown_first = Counter((pair, *shown) for (_, pair), shown in in_one.items())

    assert len(n_pairs) == 15
    assert len(first) - len(in_one) == pytest.approx(len(first) / 10, abs=4 * 14)
    for pair, n in n_pairs.items():
        for name in pair:
            assert shown_first[pair, name] == pytest.approx(n / 2, abs=2 * n**0.5)
            assert 0 <= N_PROMPTS - n <= 30
    by_entrant = Counter(shown for (shown,) in in_one.values())
    assert max(by_entrant.values()) - min(by_entrant.values()) < 0.1 * 5 * N_PROMPTS


@cache
def every_question() -> Asked:
    """Return who is to be shown first on all prompts that the examples are of."""
    return asked_first(tournament(n_prompts=31))


@given(
    names=st.permutations(NAMES).map(lambda names: names[:4]),
    numbers=st.lists(st.integers(0, 30), min_size=1, max_size=6, unique=True),
    judging=st.sampled_from(
        [
            COUNTERBALANCED,
            '{"orders": "counterbalanced", "sparse": 3}',
            '{"orders": "counterbalanced", "baseline": "zoe"}',
        ]
    ),
)
def test_whatever_else_is_asked_a_pair_keeps_its_orders(
    names: Sequence[str], numbers: Sequence[int], judging: str
) -> None:
    """Other entrants, prompts, pairs, labels of prompts and their order owe nothing anew."""
    prompts = [prompt(f"q{place}", text=f"Question p{n}?") for place, n in enumerate(numbers)]
    whole = every_question()

    part = asked_first(tournament(names, judging=judging, prompts=prompts))

    for (prompt_id, pair), shown in part.items():
        of_whole = whole[PromptId(f"p{numbers[int(prompt_id[1:])]}"), pair]
        assert {*shown} == {*of_whole}


def test_a_further_sample_of_a_prompt_is_asked_in_the_other_order() -> None:
    """So samples of one prompt, which are no independent evidence, balance each other."""
    samples = [prompt(f"p{n}", text="What is aspirin?") for n in range(3)]

    first = asked_first(tournament(prompts=samples))

    for pair in {pair for _, pair in first}:
        one, other, third = (first[PromptId(f"p{n}"), pair] for n in range(3))
        assert {*one} == {*third}
        assert len(one) == 2 or {*one} | {*other} == pair


def open_under(events: Sequence[Event], judging: str) -> set[str]:
    """Return the queries that a design still owes."""
    state = known(*with_judging(events, judging))
    queries = open_queries(state, everything(state), state.panel[0], ENDLESS_RETRIES)
    return {each.asked.query_key for each in queries}


@pytest.mark.no_cover
@pytest.mark.parametrize("design", ["", ', "sparse": 3', ', "baseline": "kim"'])
def test_nothing_that_was_planned_is_missing_once_it_was_asked(design: str) -> None:
    """A pair of one order is decided by its one verdict; it needs no outcome of its own."""
    judging = f'{{"orders": "counterbalanced"{design}}}'
    events = answered(tournament(NAMES[:4], 8, judging))
    state = known(*judged(events, lambda _: "A"))
    orders = Counter(len(each.orders) for each in planned_pairings(state))

    account = account_of(settled(state))

    assert len(open_under(events, judging)) == orders[1] + 2 * orders[2]
    assert account.planned == orders.total() == len(settled(state))
    assert (account.pending, account.n_failed) == (0, 0)
    assert account.decided == account.in_one_order == orders[1] > 0
    assert account.inconsistent == account.n_in_both_orders == orders[2] == len(state.outcomes) > 0
    assert not open_under(judged(events, lambda _: "A"), judging)
    asked = [*queries_to(state, everything(state), state.panel[0])]
    assert len(asked) == orders[1] + 2 * orders[2]
    for each in settled(state):
        assert each.weight == (0.5 if each.slot else 1.0)
        assert each.slot == 0 or each.status == ("a" if each.slot == 1 else "b")
        assert kind_of(each.status) == ("decided" if each.slot else "inconsistent")


@pytest.mark.no_cover
def test_a_change_of_orders_owes_the_difference_and_asks_nothing_twice() -> None:
    """To both orders, the others; back, nothing, and what is not planned is not rated."""
    events = answered(tournament(NAMES[:4]))
    everything_owed = open_under(events, "{}")
    few = open_under(events, COUNTERBALANCED)
    once = judged(events, lambda _: "A")
    owed_by_both = open_under(once, "{}")
    both = judged(with_judging(once, "{}"), lambda _: "A")
    back = known(*with_judging(both, COUNTERBALANCED))

    assert few < everything_owed
    assert owed_by_both == everything_owed - few
    assert not open_under(both, COUNTERBALANCED)
    assert [each.status for each in settled(back)] == [
        each.status for each in settled(known(*once))
    ]
    assert {each.status for each in settled(known(*both))} == {"inconsistent"}


def test_a_note_says_that_most_pairs_are_asked_once() -> None:
    """Whoever changed the design learns why an outcome is another."""
    sparse = known(*tournament(judging='{"orders": "counterbalanced", "sparse": 2}'))

    assert not_planned(sparse) == (
        "sparse: 2 of 15 pairs are planned on each prompt; verdicts on others are not rated",
        "counterbalanced: 9 of 10 pairs are planned in one order; the other order is not rated",
    )
    assert not_planned(known(*tournament(judging='{"orders": "both"}'))) == ()


def test_without_a_design_both_orders_count() -> None:
    """So a forecast knows whatever was asked."""
    whole = without_design(known(*tournament()))

    assert {each.orders for each in planned_pairings(whole)} == {BOTH}
