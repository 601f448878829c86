"""Judges' habits, and how far judges agree."""

from collections.abc import Hashable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ledger.events.judging import PairReconciled
from ledger.events.registry import Event
from ledger.identity import Dimension
from projections.reliability.agreement import (
    ADVANTAGE,
    VotesByAnnotator,
    agreement,
    figures_of,
    judge_tests,
)
from projections.tournament.compared import ComparedBattle
from projections.tournament.state import Tournament
from projections.verdicts.policies import RECORDED, Rule
from tests.support.builders.events import entrant, known, opened, prompt, responses, verdict
from tests.support.builders.worlds import (
    JURORS,
    SLOT_A,
    SLOT_B,
    TIE,
    A,
    B,
    Said,
    court,
    everything,
    failure,
    heard,
    history,
    matches_for,
)

SAIDS = st.lists(st.sampled_from([A, B, TIE, SLOT_A, SLOT_B, None]), min_size=6, max_size=6)
Figures = dict[tuple[str, str], tuple[float | None, int]]


def figures(tournament: Tournament, rule: Rule = RECORDED) -> Figures:
    """Return every figure and on how much it rests, by judges and name."""
    found = agreement(tournament, everything(tournament), tournament.panel, rule)
    return {(" ".join(each.judges), each.name): (each.value, each.n) for each in found}


def of_court(*saids: Sequence[Said | None], rule: Rule = RECORDED) -> Figures:
    """Return the figures of judges who say this of the six pairings."""
    return figures(known(*heard(court(len(saids)), *saids)), rule)


def test_a_judges_habits_are_counted() -> None:
    """Six pairs: two winners, a tie, two for slot A and one for slot B."""
    found = of_court([A, B, TIE, SLOT_A, SLOT_A, SLOT_B])

    assert found["ann", "order consistency"] == (3 / 6, 6)
    assert found["ann", "share of A"] == (6 / 10, 10)
    assert found["ann", "tie rate"] == (2 / 12, 12)
    assert found["ann", "unreadable rate"] == (0.0, 12)


def test_failures_are_rates_of_what_was_answered() -> None:
    """What was never asked dilutes nothing, and a query that was answered later did not fail."""
    events = heard(court(1), [A, TIE])
    *_, third, fourth, fifth, _sixth = matches_for(known(*events), JURORS[0])
    told: list[Event] = [
        failure(third.forward, "refused"),
        failure(third.swapped, "unreadable"),
        failure(fourth.forward, "truncated"),
        failure(fourth.swapped, "expired"),
        failure(fifth.forward, "unreadable"),
        verdict(fifth.forward.query_key, "A"),
    ]

    found = figures(known(*events, *told))

    assert found["ann", "unreadable rate"] == (1 / 8, 8)
    assert found["ann", "refused rate"] == (1 / 8, 8)
    assert found["ann", "truncated rate"] == (1 / 8, 8)
    assert found["ann", "tie rate"] == (2 / 5, 5)
    assert found["ann", "order consistency"] == (1.0, 2)


def test_what_nobody_judged_has_no_figures() -> None:
    """Null, not 0: a judge that was not asked is not one that never agrees."""
    found = of_court([], [])

    assert {value for value, _ in found.values()} == {None}
    assert {n for _, n in found.values()} == {0}
    assert ("ann bob", "Fleiss' kappa") not in found


def test_two_judges_are_compared_on_what_both_judged() -> None:
    """Four pairs: of 16 chance gives 2 * 3 + 1 * 1, so kappa is (12 - 7) / (16 - 7)."""
    found = of_court([A, A, B, TIE, A], [A, A, B, A, None])

    assert found["ann bob", "agreement"] == (3 / 4, 4)
    assert found["ann bob", "agreement by chance"] == (7 / 16, 4)
    assert found["ann bob", "Cohen's kappa"] == pytest.approx((5 / 9, 4))


@pytest.mark.no_cover
def test_a_roster_in_reverse_changes_no_agreement() -> None:
    """Who is named first is an accident: kappa does not depend on what categories are called."""
    flipped = {A: B, B: A, TIE: TIE}
    said = [[A, A, B, TIE], [A, A, A, A], [A, B, B, TIE]]

    one = of_court(*said)
    other = of_court(*([flipped[each] for each in row] for row in said))

    shared = [name for name in one if "agreement" in name[1] or "kappa" in name[1]]
    assert len(shared) == 12
    assert {name: one[name] for name in shared} == {name: other[name] for name in shared}


def test_the_entrants_orders_are_compared() -> None:
    """Ann finds zoe before amy before kim, bob amy before zoe before kim: one pair of three."""
    found = of_court([A, A, A], [B, A, A])

    assert found["ann bob", "Spearman's rho"] == (0.5, 3)
    assert found["ann bob", "Kendall's tau-b"] == pytest.approx((1 / 3, 3))


def test_a_judge_that_contradicts_itself_ranks_entrants_alike() -> None:
    """Zoe takes 3/4, kim 1/2, amy 1/4: each verdict counts by itself."""
    found = of_court([A, SLOT_A, SLOT_A], [A, A, A])

    assert found["ann bob", "Spearman's rho"] == (0.5, 3)


def test_opposite_winners_are_told_from_a_tie_beside_a_win() -> None:
    """To name the other response is worse than to be unsure of a difference."""
    found = of_court([A, TIE, SLOT_A, ("A", "TIE"), ("TIE", "A")])

    assert found["ann", "order consistency"] == (2 / 5, 5)
    assert found["ann", "opposite winners"] == (1 / 5, 5)
    assert found["ann", "a tie beside a win"] == (2 / 5, 5)


def test_alpha_counts_pairs_that_not_all_judged() -> None:
    """Kappa of all three rests on one pair; of 7 votes, 2 pairs of 42 differ, where 12 would."""
    found = of_court([A, A, B], [A, None, None], [A, A, A])

    assert found["ann bob cleo", "Fleiss' kappa"][1] == 1
    value, n = found["ann bob cleo", "Krippendorff's alpha"]
    assert value == pytest.approx(1 - (7 - 1) * 2 / 12)
    assert n == 3


def test_all_judges_are_compared_on_what_all_judged() -> None:
    """Two pairs are judged by three: all for a, and two for a and one for b."""
    found = of_court([A, A, B], [A, A, None], [A, B, A])

    observed, by_chance = (1 + 1 / 3) / 2, (5 / 6) ** 2 + (1 / 6) ** 2
    kappa = (observed - by_chance) / (1 - by_chance)
    assert found["ann bob cleo", "agreement of all"] == pytest.approx((observed, 2))
    assert found["ann bob cleo", "agreement of all by chance"] == pytest.approx((by_chance, 2))
    assert found["ann bob cleo", "Fleiss' kappa"] == pytest.approx((kappa, 2))


def test_a_judge_that_judged_nothing_is_left_out_of_the_jury() -> None:
    """A pilot's judge beside a headline's would leave no pair that all judged."""
    found = of_court([A, B], [A, B], [])

    assert found["ann bob", "Fleiss' kappa"] == (1.0, 2)
    assert found["ann cleo", "Cohen's kappa"] == (None, 0)


@pytest.mark.no_cover
def test_the_policy_says_what_is_compared() -> None:
    """A contradiction is an outcome by one policy, no vote by another, two games by a third."""
    saids: tuple[Sequence[Said | None], ...] = ([A, SLOT_A], [A, A])

    n = {
        policy: of_court(*saids, rule=Rule(policy))["ann bob", "agreement"]
        for policy in ("swap-consistent", "abstain-on-flip", "concatenate")
    }

    assert n == {
        "swap-consistent": (1 / 2, 2),
        "abstain-on-flip": (1.0, 1),
        "concatenate": (3 / 4, 4),
    }


def test_the_parser_says_what_judges_said() -> None:
    """How often a judge is unreadable is a matter of who reads."""
    found = of_court([A], rule=Rule(parser="json-verdict@1"))

    assert found["ann", "unreadable rate"] == (1.0, 2)
    assert found["ann", "order consistency"] == (None, 0)


def test_identical_responses_tell_nothing_of_judges() -> None:
    """A tie that nobody was asked for would look like agreement."""
    opening = opened(judges=JURORS[:2])
    same: list[Event] = [replace(each, text="Aspirin.") for each in responses(known(*opening))]
    ties = [
        PairReconciled(outcome="tie", basis="identical", **match.key(juror.judge_id)._asdict())
        for juror in JURORS[:2]
        for match in matches_for(known(*opening, *same), juror)
    ]

    found = figures(known(*opening, *same, *ties))

    assert {n for _, n in found.values()} == {0}


def test_a_question_that_two_pairs_put_is_counted_once() -> None:
    """Two entrants that answer alike share their questions: it was asked, and paid for, once."""
    events = court(1)
    zoe, amy, kim, *others = (each for each in events if hasattr(each, "text"))
    alike = (replace(kim, text=amy.text),)
    opening = tuple(each for each in events if each not in {zoe, amy, kim, *others})

    tournament = known(*opening, zoe, amy, *alike)
    told = {
        event.query_key: event
        for match in matches_for(tournament, JURORS[0])
        for event in (verdict(match.forward.query_key), verdict(match.swapped.query_key, "B"))
        if not match.is_identical
    }
    found = figures(known(*opening, zoe, amy, *alike, *told.values()))

    assert found["ann", "order consistency"] == (1.0, 2)
    assert found["ann", "tie rate"] == (0.0, 2)


@given(ann=SAIDS, bob=SAIDS, cleo=SAIDS)
def test_a_judge_beside_itself_agrees(
    ann: list[Said | None], bob: list[Said | None], cleo: list[Said | None]
) -> None:
    """And shares are shares, whoever judged what."""
    found = of_court(ann, ann, bob)
    others = of_court(ann, bob, cleo)

    assert found["ann bob", "agreement"][0] in {1.0, None}
    assert found["ann bob", "Cohen's kappa"][0] in {1.0, None}
    assert all(-1 <= value <= 1 for value, _ in others.values() if value is not None)


@given(saids=st.tuples(SAIDS, SAIDS, SAIDS))
def test_the_order_of_judges_does_not_count(saids: tuple[list[Said | None], ...]) -> None:
    """A panel is a set of judges; its first is not the reference."""
    jury = [
        {
            value
            for (judges, name), value in of_court(*order).items()
            if name == "Fleiss' kappa" and judges == "ann bob cleo"
        }
        for order in (saids, saids[::-1], (*saids[1:], saids[0]))
    ]

    assert all(each == jury[0] for each in jury)


def test_whoever_voted_is_compared_as_one_more_judge() -> None:
    """Votes name the entrants in an order of their own; kappa needs one for all."""
    tournament = known(*heard(court(1), [A, B, TIE, A]))
    kim_won = ComparedBattle("votes", "p1", 0, "kim", "zoe", "a")
    votes: dict[tuple[Hashable, frozenset[str]], ComparedBattle] = {
        ("p1", frozenset(("zoe", "amy"))): ComparedBattle("votes", "p1", 0, "amy", "zoe", "b"),
        ("p1", frozenset(("zoe", "kim"))): kim_won,
        ("p1", frozenset(("amy", "kim"))): ComparedBattle("votes", "p1", 0, "amy", "kim", "a"),
        ("p2", frozenset(("amy", "kim"))): kim_won,
    }
    on, other = Dimension("factuality"), Dimension("utility")

    found, without = (
        agreement(
            tournament,
            everything(tournament),
            tournament.panel,
            votes={dimension: {"maria": votes}},
        )
        for dimension in (on, other)
    )

    measured = {each.name: (each.value, each.n) for each in found if "maria" in each.judges}
    assert measured["agreement"] == (2 / 3, 3)
    assert measured["agreement of all"] == (2 / 3, 3)
    assert not [each for each in without if "maria" in each.judges]


def test_a_judge_is_tested_against_those_who_voted() -> None:
    """Forty pairs: the judge says what ann, bob and cy say, and contradicts itself on one."""
    opening = opened(
        prompts=[prompt(f"p{n}") for n in range(40)], entrants=[entrant("zoe"), entrant("amy")]
    )
    tournament = known(*history(opening, *(("a",) * 39), "inconsistent"))
    battle = ComparedBattle("votes", None, 0, "amy", "zoe", "b")
    both = frozenset(("zoe", "amy"))
    said: dict[tuple[Hashable, frozenset[str]], ComparedBattle]
    said = {(f"p{n}", both): battle for n in range(40)}
    twice = said | {("p0", both): battle._replace(status="inconsistent")}
    people: VotesByAnnotator = {"ann": said, "bob": said, "cy": twice, "gold": said}

    on_votes, on_nothing = (
        judge_tests(
            tournament,
            everything(tournament),
            tournament.panel,
            RECORDED,
            votes={Dimension(dimension): people},
        )
        for dimension in ("factuality", "utility")
    )

    ((dimension, judged, test, alone),) = on_votes
    assert (dimension, judged, alone) == ("factuality", tournament.panel[0].judge_id, None)
    assert [each.annotator for each in test.annotators] == ["ann", "bob", "cy"]  # gold is the truth
    assert [each.n for each in test.annotators] == [40, 40, 39]
    assert test.annotators[0].judge_advantage == 39 / 40
    assert test.smallest_margin == 0.1
    assert on_nothing == ()
    advantage, *_ = figures_of(on_votes)
    assert (advantage.name, advantage.value, advantage.n) == (ADVANTAGE, test.advantage, 3)
    assert len([*figures_of(on_votes)]) == 1 + 2 * 3 + 3


@pytest.mark.parametrize("name", ["ann", "gold"])
def test_labels_of_one_annotator_have_no_figures_but_tell_how_often_a_judge_agrees(
    name: str,
) -> None:
    """What is lacking is said in words; a rate of nobody is none."""
    tournament = known(*heard(court(1), [A, B, TIE, A]))
    battle = ComparedBattle("votes", "p1", 0, "amy", "zoe", "b")
    both = frozenset(("zoe", "amy"))
    on: VotesByAnnotator = {name: {("p1", both): battle, ("p2", both): battle._replace(status="a")}}

    found = judge_tests(
        tournament,
        everything(tournament),
        tournament.panel,
        RECORDED,
        votes={Dimension("factuality"): on},
    )

    assert [each.test.n_lacking for each in found] == [90]
    assert [each.alone for each in found] == [(name, 2, 1)]
    assert [*figures_of(found)] == []
