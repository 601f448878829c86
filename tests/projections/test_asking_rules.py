"""What is asked again, what is asked never, and what need not be asked."""

import pytest

from ledger.events.judging import FailureReason, PairReconciled
from ledger.events.registry import Event
from ledger.identity import Digest, StreamId
from projections.fold import fold
from projections.tournament.matches import Match
from projections.tournament.progress import AskingRules, open_queries, unreconciled
from projections.tournament.state import Tournament, tournament_of
from projections.verdicts.policies import DEFAULT_POLICY
from tests.batches import ended, not_created, planned, sent
from tests.builders import STREAM, entrant, known, opened, recorded, responses, verdict
from tests.projections.worlds import answered, everything, failure, matches_of

READY = answered(opened())
(MATCH,) = matches_of(known(*READY))
FORWARD, SWAPPED = MATCH.forward.query_key, MATCH.swapped.query_key
PLAN = planned(FORWARD)
TWINS = opened(entrants=[entrant("base"), entrant("tuned"), entrant("poe")])
TEXTS = {("base", "p1"): "Yes.", ("tuned", "p1"): "Yes.", ("poe", "p1"): "No."}
SAME = (*TWINS, *responses(known(*TWINS), TEXTS))
SKIPPING = AskingRules(retries=0, skip_identical=True)
ASKING = AskingRules(retries=0, skip_identical=False)


def asked(tournament: Tournament, rules: AskingRules = ASKING) -> list[Digest]:
    """Return the keys of what is asked now."""
    found = open_queries(tournament, everything(tournament), tournament.panel[0], rules)
    return [each.asked.query_key for each in found]


def forward_is_asked(retries: int, *events: Event) -> bool:
    """Say whether the forward question is open after events."""
    return FORWARD in asked(known(*READY, *events), AskingRules(retries))


def to_reconcile(tournament: Tournament, rules: AskingRules) -> tuple[Match, ...]:
    """Return what can be decided now."""
    skips = rules.skip_identical
    prompts, judge = everything(tournament), tournament.panel[0]
    return unreconciled(tournament, prompts, judge, DEFAULT_POLICY, skip_identical=skips)


@pytest.mark.parametrize("reason", ["refused", "truncated", "rejected"])
def test_what_would_only_fail_again_is_asked_once(reason: FailureReason) -> None:
    """The same request meets the same refusal, limit or error, and is paid for again."""
    assert not forward_is_asked(9, failure(MATCH.forward, reason))


@pytest.mark.parametrize("reason", ["unreadable", "empty"])
def test_a_reply_that_says_nothing_is_asked_for_again_so_often(reason: FailureReason) -> None:
    """Another reply may be readable, but a judge that never says a verdict has its end."""
    twice = [failure(MATCH.forward, reason, attempt=n) for n in (1, 2)]

    assert [forward_is_asked(n, *twice) for n in (0, 1, 2)] == [False, False, True]


@pytest.mark.parametrize("reason", ["errored", "expired", "canceled"])
def test_what_was_not_answered_is_always_open(reason: FailureReason) -> None:
    """Nothing was paid, so no number of retries stands against it."""
    often = [failure(MATCH.forward, reason, attempt=n) for n in range(1, 6)]

    assert forward_is_asked(0, *often)


def test_errors_use_up_no_retry() -> None:
    """A bad night at the provider must not end the hope of a readable reply."""
    errors = [failure(MATCH.forward, "errored", attempt=n) for n in (1, 2, 3)]
    unreadable = failure(MATCH.forward, "unreadable", attempt=4)

    assert forward_is_asked(1, *errors, unreadable)
    assert not forward_is_asked(0, *errors, unreadable)


def test_the_newest_failure_decides() -> None:
    """A judge that refused the second time will refuse the third."""
    events = (failure(MATCH.forward), failure(MATCH.forward, "refused", attempt=2))

    assert not forward_is_asked(9, *events)


def test_what_is_in_flight_is_not_asked() -> None:
    """It may be paid for already: its batch is looked for, or waited for."""
    states = [known(*READY, PLAN), known(*READY, PLAN, sent(PLAN.batch_key))]

    assert [asked(state) for state in states] == [[SWAPPED], [SWAPPED]]


def test_what_another_tournament_has_in_flight_is_not_asked() -> None:
    """The answer will serve both, and be paid for once."""
    there = recorded([PLAN, sent(PLAN.batch_key)], stream=StreamId("other"))

    tournament = fold(tournament_of(STREAM), [*recorded(READY), *there])

    assert asked(tournament) == [SWAPPED]


def test_what_a_batch_did_not_answer_is_asked_again() -> None:
    """A batch that was refused or ended holds nothing back."""
    key = PLAN.batch_key

    refused = known(*READY, PLAN, not_created(key))
    ended_in_vain = known(
        *READY, PLAN, sent(key), failure(MATCH.forward, "expired"), ended(key, n_succeeded=0)
    )

    assert asked(refused) == asked(ended_in_vain) == [FORWARD, SWAPPED]


def test_identical_responses_are_one_text() -> None:
    """The match says so itself; a space more makes them differ."""
    flags = [match.is_identical for match in matches_of(known(*SAME))]

    assert flags == [True, False, False]


def test_identical_responses_need_not_be_asked_about() -> None:
    """Greedy entrants agree often; each such pair is a query, and a tie that is sure, saved."""
    tournament = known(*SAME)

    assert len(asked(tournament, ASKING)) == 3
    assert len(asked(tournament, SKIPPING)) == 2


def test_a_tie_that_was_made_unasked_is_not_asked_about_later() -> None:
    """With `skip_identical` switched off the outcome stays: a verdict would change nothing."""
    twins = matches_of(known(*SAME))[0]
    tie = PairReconciled(
        outcome="tie",
        basis="identical",
        **twins.key(known(*SAME).panel[0].judge_id, DEFAULT_POLICY)._asdict(),
    )

    assert asked(known(*SAME, tie), ASKING) == asked(known(*SAME), SKIPPING)


def test_identical_responses_can_be_reconciled_at_once() -> None:
    """Nothing is awaited for them, unless the rules want the judge's word."""
    tournament = known(*SAME)
    twins = matches_of(tournament)[0]

    assert to_reconcile(tournament, SKIPPING) == (twins,)
    assert to_reconcile(tournament, ASKING) == ()


def test_identical_responses_with_a_verdict_are_reconciled_by_it() -> None:
    """Whoever asked has the judge's word, whatever the rules say now."""
    twins = matches_of(known(*SAME))[0]
    tournament = known(*SAME, verdict(twins.forward.query_key, "TIE"))

    assert to_reconcile(tournament, ASKING) == to_reconcile(tournament, SKIPPING) == (twins,)
