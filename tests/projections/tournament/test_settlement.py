"""What became of every planned pairing, in parts that add up to what was planned."""

import pytest
from hypothesis import given
from msgspec.structs import replace

from ledger.events.judging import FailureReason, Outcome, PairReconciled
from ledger.events.registry import Event
from projections.tournament.compared import Account, kind_of
from projections.tournament.matches import planned_responses
from projections.tournament.settlement import account_of, by_dimension, settle_verdicts
from projections.tournament.state import Tournament
from tests.support.builders.events import known, opened, prompt, responses, verdict
from tests.support.builders.worlds import (
    Fate,
    answered,
    become,
    cup,
    everything,
    failure,
    history,
    matches_of,
    planned_pairings,
    questions_of,
    reconciled,
    settled,
    unanswerable,
)
from tests.support.strategies.tournaments import tournament_histories


def statuses(tournament: Tournament) -> list[str]:
    """Return what became of each pairing."""
    return [settlement.status for settlement in settled(tournament)]


def test_each_outcome_is_what_became_of_its_match() -> None:
    """Everything that is rated or counted starts from these."""
    fates: list[Fate] = ["a", "b", "tie", "inconsistent", "refused", "pending"]

    found = settled(known(*history(cup(), *fates)))

    assert [settlement.status for settlement in found] == fates
    assert [settlement.winner for settlement in found] == ["zoe", "kim", None, None, None, None]
    expected = ["decided", "decided", "tie", "inconsistent", "failed", "pending"]
    assert [kind_of(settlement.status) for settlement in found] == expected


def test_a_missing_response_leaves_its_own_pairs_pending() -> None:
    """One slow entrant must not hold up, or drop, the matches of the others."""
    *said, _ = responses(known(*cup()))  # kim's second is missing
    events = [*cup(), *said]
    judged = [event for match in matches_of(known(*events)) for event in become(match, "a")]

    found = settled(known(*events, *judged))

    assert [settlement.status for settlement in found] == ["a", "a", "a", "a", "pending", "pending"]
    assert [settlement.match is None for settlement in found] == [False] * 4 + [True] * 2


def test_a_response_that_came_after_a_failure_counts() -> None:
    """Out of memory on one machine is no reason to drop what another has answered."""
    tournament = known(*opened())
    base, _ = planned_responses(tournament, everything(tournament))

    tournament = known(*opened(), unanswerable(base), *responses(tournament))

    assert statuses(tournament) == ["pending"]
    assert len(questions_of(tournament)) == 2


@pytest.mark.parametrize(
    ("order", "reason"), [(0, None), (1, None), (0, "refused"), (1, "expired")]
)
def test_a_pair_waits_for_both_orders_or_has_the_reason_of_a_failure(
    order: int, reason: FailureReason | None
) -> None:
    """Half an answer may be the slot speaking; neither a refusal nor a lost network is a tie."""
    events = answered(opened())
    question = questions_of(known(*events))[order]
    event = verdict(question.query_key) if reason is None else failure(question, reason)

    assert statuses(known(*events, event)) == [reason or "pending"]


def test_a_verdict_after_a_retry_is_no_failure() -> None:
    """A pair whose second attempt was read must not count as failed for ever."""
    events = answered(opened())
    forward, swapped = questions_of(known(*events))
    tried: list[Event] = [failure(forward), verdict(forward.query_key, "A")]

    half, whole = known(*events, *tried), known(*events, *tried, verdict(swapped.query_key, "B"))
    (match,) = matches_of(whole)
    done = known(*events, *tried, verdict(swapped.query_key, "B"), reconciled(match, "a"))

    expected = [["pending"], ["pending"], ["a"]]
    assert [statuses(tournament) for tournament in (half, whole, done)] == expected


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


def test_an_account_is_written_as_json_with_its_reasons() -> None:
    """Machines read the same account as people do."""
    account = account_of(settled(known(*history(cup(), "truncated", "refused", "truncated"))))

    assert account == Account(6, 0, 0, 0, (("refused", 1), ("truncated", 2)), 3)
    assert account.fields() == {
        "planned": 6,
        "decided": 0,
        "tie": 0,
        "inconsistent": 0,
        "failed": {"refused": 1, "truncated": 2},
        "pending": 3,
    }


@given(events=tournament_histories())
def test_every_planned_pairing_is_accounted_for(events: list[Event]) -> None:
    """Planned = decided + tie + inconsistent + failed + pending, whatever happened."""
    tournament = known(*events)
    found = settled(tournament)

    account, groups = account_of(found), by_dimension(tournament, found)

    assert [settlement.pairing for settlement in found] == list(planned_pairings(tournament))
    assert account.planned == len(found)
    assert account.planned == (
        account.decided + account.tie + account.inconsistent + account.n_failed + account.pending
    )
    assert sum(account_of(group).planned for group in groups.values()) == len(found)
    for dimension, group in groups.items():
        assert {each.pairing.rubric.dimension for each in group} <= {dimension}


@pytest.mark.no_cover
def test_verdicts_settle_a_pair_before_it_is_reconciled() -> None:
    """In the middle of judging it is as it will be at the end."""
    events = history(cup(), "a", "b", "tie", "inconsistent", "refused")
    early = [each for each in events if not isinstance(each, PairReconciled)]

    before, after = (
        settle_verdicts(known(*each), everything(known(*each)), known(*each).panel[0])
        for each in (early, events)
    )

    expected = ["a", "b", "tie", "inconsistent", "refused", "pending"]
    assert [each.status for each in before] == expected
    assert after == before == settled(known(*events))


@pytest.mark.no_cover
@pytest.mark.parametrize("said", [("a",), ("a", "a"), ("tie",)])
def test_how_a_pair_is_inconsistent_takes_two_verdicts(said: tuple[Outcome, ...]) -> None:
    """One of them may be redacted or of another ledger."""
    [pair] = settled(known(*history(opened(), "inconsistent")))

    assert pair._replace(said=said).exact_status == "inconsistent"
