"""What became of every planned pairing."""

from typing import get_args

import pytest
from msgspec.structs import replace

from ledger.events.judging import FailureReason
from ledger.events.registry import Event
from projections.tournament.matches import planned_responses
from projections.tournament.state import Tournament
from tests.builders import known, opened, prompt, responses, verdict
from tests.projections.worlds import (
    Fate,
    answered,
    become,
    cup,
    everything,
    failure,
    history,
    matches_of,
    questions_of,
    reconciled,
    settled,
    unanswerable,
)


def statuses(tournament: Tournament) -> list[str]:
    """Return what became of each pairing."""
    return [settlement.status for settlement in settled(tournament)]


def test_each_outcome_is_what_became_of_its_match() -> None:
    """Everything that is rated or counted starts from these."""
    fates: list[Fate] = ["a", "b", "tie", "inconsistent", "refused", "pending"]

    found = settled(known(*history(cup(), *fates)))

    assert [settlement.status for settlement in found] == fates
    assert [settlement.winner for settlement in found] == ["zoe", "kim", None, None, None, None]


def test_a_missing_response_leaves_its_own_pairs_pending() -> None:
    """One slow entrant must not hold up, or drop, the matches of the others."""
    *said, _ = responses(known(*cup()))  # kim's second is missing
    events = [*cup(), *said]
    judged = [event for match in matches_of(known(*events)) for event in become(match, "a")]

    found = settled(known(*events, *judged))

    assert [settlement.status for settlement in found] == ["a", "a", "a", "a", "pending", "pending"]
    assert [settlement.match is None for settlement in found] == [False] * 4 + [True] * 2


def test_a_failed_response_settles_its_pairs_as_no_response() -> None:
    """Pairs that can never be judged must not look as if they still will be."""
    tournament = known(*cup())
    zoe_1, *_ = planned_responses(tournament, everything(tournament))
    _, *said = responses(tournament)

    tournament = known(*cup(), *said, unanswerable(zoe_1))

    assert statuses(tournament) == ["no_response"] * 2 + ["pending"] * 4


def test_a_response_that_came_after_a_failure_counts() -> None:
    """Out of memory on one machine is no reason to drop what another has answered."""
    tournament = known(*opened())
    base, _ = planned_responses(tournament, everything(tournament))

    tournament = known(*opened(), unanswerable(base), *responses(tournament))

    assert statuses(tournament) == ["pending"]
    assert len(questions_of(tournament)) == 2


@pytest.mark.parametrize("order", [0, 1])
def test_a_verdict_in_one_order_alone_decides_nothing(order: int) -> None:
    """Half an answer may be the slot speaking, so the pair waits for the other order."""
    events = answered(opened())
    question = questions_of(known(*events))[order]

    tournament = known(*events, verdict(question.query_key))

    assert statuses(tournament) == ["pending"]


@pytest.mark.parametrize("reason", get_args(FailureReason))
@pytest.mark.parametrize("order", [0, 1])
def test_a_failed_query_settles_its_pair_with_the_reason(reason: FailureReason, order: int) -> None:
    """A judge that refuses is another finding than a network that drops; neither is a tie."""
    events = answered(opened())
    question = questions_of(known(*events))[order]

    tournament = known(*events, failure(question, reason))

    assert statuses(tournament) == [reason]


def test_the_newest_failure_names_the_reason() -> None:
    """A retry may fail for another reason than the first attempt."""
    events = answered(opened())
    forward, _ = questions_of(known(*events))

    tournament = known(
        *events, failure(forward, "unreadable"), failure(forward, "refused", attempt=2)
    )

    assert statuses(tournament) == ["refused"]


def test_a_verdict_after_a_retry_is_no_failure() -> None:
    """A pair whose second attempt was read must not count as failed for ever."""
    events = answered(opened())
    forward, swapped = questions_of(known(*events))
    tried: list[Event] = [failure(forward), verdict(forward.query_key, "A")]

    half, whole = known(*events, *tried), known(*events, *tried, verdict(swapped.query_key, "B"))
    (match,) = matches_of(whole)
    done = known(*events, *tried, verdict(swapped.query_key, "B"), reconciled(match, "a"))

    assert [statuses(tournament) for tournament in (half, whole, done)] == [
        ["pending"],
        ["pending"],
        ["a"],
    ]


def test_an_outcome_under_another_policy_does_not_count() -> None:
    """Two policies over the same verdicts must not be mixed in one table."""
    events = answered(opened())
    (match,) = matches_of(known(*events))
    lenient = replace(reconciled(match, "a"), policy="lenient")

    tournament = known(*events, lenient)

    assert statuses(tournament) == ["pending"]


def test_an_outcome_of_other_questions_does_not_count() -> None:
    """Correct a gold answer, and what was decided on the wrong one is undecided again."""
    before = history(opened(), "a")
    corrected = opened(prompts=[prompt(gold="ibuprofen")], opening=2)

    tournament = known(*before, corrected[0], corrected[1])

    assert statuses(tournament) == ["pending"]
