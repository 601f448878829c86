"""Agreement of judges of imported battles, from each juror's vote or each judge's battles."""

from collections.abc import Sequence

import pytest

from ledger.events.imports import ImportedBattle, JurorSaid, JurorVote, Source, Winner
from projections.reliability.agreement import JudgeTest
from projections.reliability.jurors import (
    AS_RECORDED,
    WITH_MAJORITY,
    jury_agreement,
    jury_tests,
    votes_by_annotator,
)
from tests.support.builders.battles import of_file

Figures = dict[tuple[str, str], tuple[float | None, int]]


def battle(
    winner: Winner, *said: JurorSaid, prompt: str | None = None, judge: str | None = None
) -> ImportedBattle:
    """Return a battle of x and y, with the votes of ann, bob and cy."""
    votes = tuple(map(JurorVote, ("ann", "bob", "cy"), said))
    return ImportedBattle("x", "y", winner, None, prompt, "llm-judge", judge, votes=votes)


def swapped(found: ImportedBattle) -> ImportedBattle:
    """Return a battle with the entrants in the other slots."""
    return found._replace(model_a=found.model_b, model_b=found.model_a)


def figures(battles: Sequence[ImportedBattle]) -> Figures:
    """Return every figure and on how much it rests, by judges and name."""
    found = jury_agreement("arena", [of_file(battles)])
    assert {each.dimension for each in found} <= {"arena"}
    return {(" ".join(each.judges), each.name): (each.value, each.n) for each in found}


OTHER: dict[Winner, Winner] = {"model_a": "model_b", "model_b": "model_a"}
JURY = (
    battle("model_a", "model_a", "model_a", "model_b"),
    battle("model_a", "model_a", "model_a", "tie"),
    battle("no verdict", "model_b", "model_a", "inconsistent"),
    battle("model_b", "tie", "tie", "no verdict"),
)


def test_kappa_is_of_the_jurors_votes() -> None:
    """Ann a a b t, bob a a a t: of 16 chance gives 2 * 3 + 1, so kappa is (12 - 7) / (16 - 7)."""
    found = figures(JURY)

    assert found["ann bob", "agreement"] == (3 / 4, 4)
    assert found["ann bob", "agreement by chance"] == (7 / 16, 4)
    assert found["ann bob", "Cohen's kappa"] == pytest.approx((5 / 9, 4))
    assert found["ann cy", "agreement"] == (0.0, 3)
    assert found["ann bob cy", "agreement of all"] == pytest.approx((2 / 9, 3))
    assert found["cy", "inconsistent share"] == (1 / 3, 3)
    assert found["bob", "tied share"] == (1 / 4, 4)


def test_the_majority_is_computed_and_compared_with_the_record() -> None:
    """The last row says model_b where two of two found a tie; an even vote is none."""
    found = figures(JURY)

    assert found["ann bob cy", AS_RECORDED] == (3 / 4, 4)
    assert found["ann", WITH_MAJORITY] == (1.0, 3)
    assert found["bob", WITH_MAJORITY] == (1.0, 3)
    assert found["cy", WITH_MAJORITY] == (0.0, 2)


def test_who_always_contradicts_himself_agrees_with_no_majority() -> None:
    """Where the others differ there is none, and he has no vote to agree with."""
    rows = [
        battle("no verdict", "model_a", "model_b", "inconsistent"),
        battle("model_a", "model_a", "model_a", "inconsistent"),
    ]

    found = figures(rows)

    assert found["ann", WITH_MAJORITY] == (1.0, 1)
    assert found["cy", WITH_MAJORITY] == (None, 0)


def test_the_turns_of_a_question_are_games_of_their_own() -> None:
    """As MT-bench has them: model_1 wins the first turn of each question, model_2 the second."""
    rows = [
        game
        for number in range(14)
        for winner in ("model_a", "model_b")
        for first in [battle(winner, prompt=f"q{number}", judge="gpt-4")]
        for game in (first, swapped(battle(OTHER[winner], prompt=f"q{number}", judge="gpt-4")))
    ]

    found = figures(rows)

    assert found["gpt-4", "order consistency"] == (1.0, 28)
    assert found["gpt-4", "inconsistent share"] == (0.0, 28)


def test_votes_repeated_in_one_order_are_not_the_two_orders_of_a_game() -> None:
    """Nothing is known of what happens when the responses change places."""
    rows = [
        battle(winner, prompt=f"q{number}", judge="gpt-4")
        for number in range(12)
        for winner in ("model_a", "model_b")
    ]

    found = figures(rows)

    assert found["gpt-4", "order consistency"] == (None, 0)
    assert found["gpt-4", "inconsistent share"] == (0.0, 24)


def test_a_lost_order_leaves_the_turns_in_step() -> None:
    """The first turn's second order failed; the second turn is compared with itself."""
    rows = [
        battle("model_a", prompt="q1", judge="gpt-4"),
        swapped(battle("no verdict", prompt="q1", judge="gpt-4")),
        battle("model_b", prompt="q1", judge="gpt-4"),
        swapped(battle("model_a", prompt="q1", judge="gpt-4")),
    ]

    assert figures(rows)["gpt-4", "order consistency"] == (1.0, 1)


def test_what_a_jury_said_twice_of_a_pair_are_two_games() -> None:
    """Each vote is on both orders already, in whatever slots the entrants stand."""
    first = battle("model_a", "model_a", "model_a", prompt="q1")
    again = swapped(battle("model_a", "model_a", "model_a", prompt="q1"))

    found = figures([first, again])

    assert found["ann", "order consistency"] == (None, 0)
    assert found["ann", "tied share"] == (0.0, 2)


def test_a_single_vote_is_no_majority() -> None:
    """The others failed."""
    found = figures([battle("model_a", "model_a", "no verdict", "no verdict")])

    assert {name for _, name in found} == {"order consistency", "tied share", "inconsistent share"}


def test_judges_with_battles_of_their_own_are_joined_by_prompt_and_entrants() -> None:
    """Both orders of a judge are one outcome, in whatever slots the entrants stood."""
    rows = [
        battle("model_a", prompt="q1", judge="opus"),
        swapped(battle("model_b", prompt="q1", judge="opus")),
        battle("model_a", prompt="q2", judge="opus"),
        swapped(battle("model_a", prompt="q2", judge="opus")),
        swapped(battle("tie (bothbad)", prompt="q3", judge="opus")),
        swapped(battle("model_b", prompt="q1", judge="gpt")),
        battle("model_a", prompt="q2", judge="gpt"),
        battle("tie", prompt="q3", judge="gpt"),
        battle("no verdict", prompt="q4", judge="gpt"),
        battle("model_a", judge="gpt"),
        battle("model_a", prompt="q1"),
    ]

    found = figures(rows)

    assert found["opus", "order consistency"] == (1 / 2, 2)
    assert found["gpt", "order consistency"] == (None, 0)
    assert found["gpt", "tied share"] == (1 / 4, 4)
    assert found["gpt opus", "agreement"] == (2 / 3, 3)
    assert ("gpt opus", AS_RECORDED) not in found


def test_battles_by_people_alone_name_no_judge() -> None:
    """Nobody can be compared with anybody."""
    assert figures([battle("model_a", prompt="q1")]) == {}


def test_votes_are_taken_by_who_voted() -> None:
    """Judges' battles in the same set are no votes, and a skipped pair has none."""
    said = [
        battle("model_a", prompt="p1", judge="bob"),
        swapped(battle("model_a", prompt="p2", judge="bob")),
        battle("tie", prompt="p1", judge="ann"),
        battle("no verdict", prompt="p2", judge="ann"),
    ]
    people = [each._replace(source="human") for each in said]
    event = of_file([*people, battle("model_b", prompt="p3", judge="gpt")])

    found = votes_by_annotator("votes", [event])

    both = frozenset(("x", "y"))
    assert {
        who: {item: vote.status for item, vote in votes.items()} for who, votes in found.items()
    } == {"ann": {("p1", both): "tie"}, "bob": {("p1", both): "a", ("p2", both): "b"}}
    assert {vote.entrant_a for votes in found.values() for vote in votes.values()} == {"x"}


def test_the_judge_of_a_set_is_tested_against_its_people() -> None:
    """Who is a person follows from the source of the battles; a set of one kind has no test."""
    said: dict[str, Source] = {"ann": "human", "bob": "human", "cy": "human", "gpt-4": "llm-judge"}
    rows = [
        battle("model_a", prompt=f"q{number}", judge=who)._replace(source=source)
        for who, source in said.items()
        for number in range(30)
    ]

    def tested(battles: Sequence[ImportedBattle]) -> tuple[JudgeTest, ...]:
        return jury_tests("arena", [of_file(battles)])

    ((name, judge, test, _),) = tested(rows)
    assert (name, judge, test.smallest_margin) == ("arena", "gpt-4", 0.1)
    assert [each.annotator for each in test.annotators] == ["ann", "bob", "cy"]
    assert tested(rows[:90]) == tested(rows[90:]) == ()
