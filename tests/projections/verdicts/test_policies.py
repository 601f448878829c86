"""From both orders' verdicts to one outcome, by this policy and others."""

import json
from collections.abc import Sequence
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ledger.events.judging import Outcome, PairReconciled, Verdict
from ledger.events.registration import TournamentOpened
from ledger.events.registry import Event
from projections.battles.columns import battles_of
from projections.tournament.bank import recorded_pilot
from projections.tournament.jury import settle_by_majority
from projections.tournament.matches import planned_responses
from projections.tournament.settlement import Settlement, account_of, settle
from projections.tournament.state import Tournament
from projections.verdicts.policies import RECORDED, Rule, majority, swap_consistent
from tests.support.builders.batches import planned_batch
from tests.support.builders.events import known, opened, responses, verdict
from tests.support.builders.worlds import (
    SLOT_A,
    SLOT_B,
    TIE,
    A,
    B,
    Fate,
    Said,
    answered,
    court,
    cup,
    everything,
    failure,
    heard,
    history,
    matches_for,
    matches_of,
    questions_of,
    unanswerable,
)
from tests.support.strategies.tournaments import tournament_histories

CONCATENATE, ABSTAIN = Rule("concatenate"), Rule("abstain-on-flip")
LENIENT = Rule(parser="lenient-tap@1")
READY = answered(opened())
FORWARD, SWAPPED = questions_of(known(*READY))
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
MIRRORED: dict[Outcome, Outcome] = {"a": "b", "b": "a"}


def by(tournament: Tournament, rule: Rule) -> tuple[Settlement, ...]:
    """Return what became of every pairing under a rule, for the first judge."""
    return settle(tournament, everything(tournament), tournament.panel[0], rule)


def statuses(tournament: Tournament, rule: Rule) -> list[str]:
    """Return the statuses alone."""
    return [each.status for each in by(tournament, rule)]


def jury_on(*saids: Sequence[Said | None]) -> list[str]:
    """Return what the majority makes of what each judge says of the pairings."""
    tournament = known(*heard(court(len(saids)), *saids))
    found = settle_by_majority(tournament, everything(tournament), tournament.panel)
    return [each.status for each in found]


@pytest.mark.parametrize(
    ("outcomes", "found"),
    [
        ((), "inconsistent"),
        (("a",), "inconsistent"),
        (("a", "inconsistent"), "inconsistent"),
        (("a", "a"), "a"),
        (("a", "b"), "inconsistent"),
        (("a", "tie"), "inconsistent"),
        (("tie", "tie", "a"), "tie"),
        (("b", "b", "a", "tie"), "b"),
        (("b", "b", "a", "a"), "inconsistent"),
        (("b", "b", "a", "a", "tie"), "inconsistent"),
        (("b", "b", "inconsistent", "inconsistent", "inconsistent"), "b"),
        (("a", "b", "tie"), "inconsistent"),
    ],
)
def test_a_majority_is_more_votes_than_for_anything_else(
    outcomes: tuple[Outcome, ...], found: Outcome
) -> None:
    """Two must have voted, a tie is a vote, and a judge that contradicts itself has none."""
    assert majority(outcomes) == found


@given(outcomes=st.lists(st.sampled_from(OUTCOMES), max_size=6))
def test_a_majority_knows_neither_the_order_of_judges_nor_that_of_entrants(
    outcomes: list[Outcome],
) -> None:
    """Who is asked first, or listed first in the roster, must not decide."""
    mirrored = [MIRRORED.get(outcome, outcome) for outcome in outcomes]
    found = majority(outcomes)

    assert majority(outcomes[::-1]) == found
    assert majority(mirrored) == MIRRORED.get(found, found)


@pytest.mark.parametrize("policy", ["majority", "of-a-later-tourney"])
def test_a_policy_that_reads_no_single_judge_is_refused(policy: str) -> None:
    """A majority of one would be that judge's word under another name; another is not known."""
    with pytest.raises(KeyError, match=policy):
        by(known(*history(opened(), "a")), Rule(policy))


def test_an_abstention_is_a_missing_vote() -> None:
    """The pair has no outcome, and the account says why."""
    fates: list[Fate] = ["a", "b", "tie", "inconsistent", "refused", "pending"]

    account = account_of(by(known(*history(cup(), *fates)), ABSTAIN))

    assert account.sentence() == (
        "6 pairs = 2 decided + 1 tied + 0 inconsistent + 1 refused + 1 abstained + 1 pending"
        " (3 of 6 pairs judged so far)"
    )


def test_concatenated_orders_are_games_of_their_own() -> None:
    """A judge that always prefers slot A gives each entrant a win: nothing is left out."""
    fates: list[Fate] = ["a", "inconsistent", "tie", "pending"]
    found = by(known(*history(cup(), *fates)), CONCATENATE)

    expected = [*("a", "a"), *("a", "b"), *("tie", "tie"), *("pending", "pending")]
    assert [each.status for each in found[:8]] == expected
    assert [each.order for each in found[:4]] == ["forward", "swapped"] * 2
    assert len(battles_of(found).by_verdicts("half")) == 6


def test_the_account_of_concatenated_orders_says_that_it_counts_orders() -> None:
    """Twelve pairs of six would be a riddle."""
    account = account_of(by(known(*history(cup(), "a", "inconsistent")), CONCATENATE))

    assert account.sentence() == (
        "12 orders = 4 decided + 0 tied + 0 inconsistent + 8 pending (4 of 12 orders judged so far)"
    )
    assert "counted" not in account.fields()


@pytest.mark.no_cover
def test_concatenated_orders_do_not_wait_for_one_another() -> None:
    """The other order may have failed: this one was paid for, and says something."""
    half = known(*READY, verdict(FORWARD.query_key, "B"))
    failed = known(*READY, verdict(SWAPPED.query_key, "B"), failure(FORWARD, "refused"))

    assert statuses(half, CONCATENATE) == ["b", "pending"]
    assert statuses(failed, CONCATENATE) == ["refused", "a"]


@pytest.mark.no_cover
@pytest.mark.parametrize("rule", [CONCATENATE, ABSTAIN, LENIENT])
def test_a_missing_response_leaves_its_pairs_missing_under_every_rule(rule: Rule) -> None:
    """No rule makes an outcome of nothing."""
    tournament = known(*opened())
    base, _ = planned_responses(tournament, everything(tournament))
    _, tuned = responses(tournament)

    pending = known(*opened(), tuned)
    failed = known(*opened(), tuned, unanswerable(base))

    assert set(statuses(pending, rule)) == {"pending"}
    assert set(statuses(failed, rule)) == {"no_response"}


def identical(*events: Event) -> Tournament:
    """Return a tournament whose two responses are one text, after more events."""
    opening = opened()
    same = (replace(each, text="Aspirin.") for each in responses(known(*opening)))
    return known(*opening, *same, *events)


@pytest.mark.no_cover
@pytest.mark.parametrize("rule", [RECORDED, CONCATENATE, ABSTAIN, LENIENT])
def test_identical_responses_that_were_not_asked_are_a_tie_under_every_rule(rule: Rule) -> None:
    """Nobody judged them, so no way to read verdicts can find anything else."""
    (match,) = matches_of(identical())
    key = match.key(identical().panel[0].judge_id)
    tie = PairReconciled(outcome="tie", basis="identical", **key._asdict())
    merged = verdict(match.forward.query_key, "A")  # by another tournament that did ask

    assert set(statuses(identical(tie), rule)) == {"tie"}
    assert set(statuses(identical(tie, merged), rule)) == {"tie"}


def test_replies_are_read_again_by_another_parser() -> None:
    """What was paid for once can be asked a new question for nothing."""
    told: list[Event] = [
        replace(failure(FORWARD), reply="VERDICT: A wins"),
        replace(verdict(SWAPPED.query_key, "B"), reply="**VERDICT: B**"),
    ]

    tournament = known(*READY, *told)

    assert statuses(tournament, RECORDED) == ["unreadable"]
    assert statuses(tournament, LENIENT) == ["inconsistent"]  # A, and what it calls a tie
    assert statuses(tournament, Rule("concatenate", "lenient-tap@1")) == ["a", "tie"]


def test_a_verdict_that_another_parser_cannot_read_is_unreadable() -> None:
    """It is a failure with its reason under that parser, and never a tie."""
    tournament = known(*history(opened(), "a"))

    assert statuses(tournament, RECORDED) == ["a"]
    assert statuses(tournament, Rule(parser="json-verdict@1")) == ["unreadable"]


@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("reason", "by_final_line", "leniently"),
    [("truncated", "truncated", "a"), ("refused", "refused", "a"), ("unreadable", "a", "a")],
)
def test_only_the_lenient_parser_reads_what_was_cut_short(
    reason: str, by_final_line: str, leniently: str
) -> None:
    """A verdict in the middle of a reply that was cut off is none; the old scripts took it."""
    lost = replace(failure(FORWARD), reason=reason, reply="VERDICT: A")

    tournament = known(*READY, lost, verdict(SWAPPED.query_key, "B"))

    assert statuses(tournament, Rule(parser="final-line@1")) == [by_final_line]
    assert statuses(tournament, LENIENT) == [leniently]


@pytest.mark.parametrize("rule", [ABSTAIN, LENIENT])
def test_a_query_without_a_reply_stays_failed_under_every_rule(rule: Rule) -> None:
    """There is nothing to read: even the old scripts asked again."""
    tournament = known(*READY, failure(FORWARD, "expired"), verdict(SWAPPED.query_key))

    assert statuses(tournament, rule) == ["expired"]


def test_a_jury_decides_by_the_votes_of_its_judges() -> None:
    """Two of three, one against one, all in contradiction with themselves."""
    found = jury_on([A, A, SLOT_A, TIE], [A, B, SLOT_A, TIE], [B, SLOT_A, SLOT_A, A])

    assert found == ["a", "inconsistent", "inconsistent", "tie", "pending", "pending"]


def test_a_jury_waits_while_a_judge_may_still_decide() -> None:
    """What is not decided yet is pending, and what two agree on need not wait for the third."""
    found = jury_on([A, A, A], [A, B, None], [None, None, None, A])

    assert found[:3] == ["a", "pending", "pending"]


@pytest.mark.no_cover
def test_a_jury_waits_for_no_judge_that_nobody_asked() -> None:
    """A panel holds the pilot's judge, too; where one alone was asked, another is to come."""
    everyone_asked = [A, B, SLOT_A, TIE, A, A]

    jury = jury_on([None] * 6, everyone_asked, [A, A, A, A, B, SLOT_B])
    alone = jury_on([None] * 6, everyone_asked, [None] * 6)

    assert jury == ["a", *["inconsistent"] * 5]
    assert set(alone) == {"pending"}


def piloted(*saids: Sequence[Said | None]) -> list[str]:
    """Return what a jury finds where the pilot is p1 alone, of p1 and p2."""
    configuration = json.dumps({"pilot": {"size": 1, "seed": 1, "strata": None}})
    opening, *others = court(len(saids))
    assert isinstance(opening, TournamentOpened)
    tournament = known(*heard((replace(opening, configuration=configuration), *others), *saids))
    assert recorded_pilot(tournament.bank, tournament.configuration) == {"p1"}
    found = settle_by_majority(tournament, everything(tournament), tournament.panel)
    return [each.status for each in found]


def test_a_jury_waits_for_the_pilot_s_judge_on_the_pilot_only() -> None:
    """Nobody ever asks it about the rest, which would be pending for good; there it has a vote."""
    whole = piloted([A, A, A, A, A, A], [A, B, B, A, B, B], [B, A, None])

    assert whole == ["a", "a", "pending", "a", "inconsistent", "inconsistent"]


@pytest.mark.no_cover
def test_a_jury_waits_for_a_judge_that_died_beyond_the_pilot() -> None:
    """It is in the middle of the whole bank, and may decide what is left."""
    halfway = piloted([A, A, A, A, A, A], [A, B, B, A, B, B], [B, A, A, A])

    assert halfway == ["a", "a", "a", "a", "pending", "pending"]


def test_a_jury_waits_for_a_judge_whose_batch_is_in_flight() -> None:
    """It was asked, and its first verdict is a day away."""
    events = heard(court(3), [A], [B])
    cleo = known(*events).panel[2]
    first = matches_for(known(*events), cleo)[0]

    tournament = known(*events, planned_batch(first.forward.query_key, by=cleo))
    found = settle_by_majority(tournament, everything(tournament), tournament.panel)

    assert found[0].status == "pending"


def test_a_jury_of_which_one_failed_is_undecided() -> None:
    """One judge that is left is no jury; where nobody is left the reason stands."""
    events = heard(court(2), [A, None], [None, None])
    tournament = known(*events)
    ann, bob = tournament.panel
    failures = [
        *(failure(match.forward, "refused") for match in matches_for(tournament, bob)[:2]),
        failure(matches_for(tournament, ann)[1].forward, "truncated"),
    ]

    tournament = known(*events, *failures)
    found = settle_by_majority(tournament, everything(tournament), tournament.panel)

    assert [each.status for each in found[:3]] == ["inconsistent", "truncated", "pending"]


def test_a_jury_reads_replies_again_by_the_parser_that_is_asked_for() -> None:
    """Policy and parser are chosen apart."""
    tournament = known(*heard(court(2), [A], [A]))
    everyone = everything(tournament)

    found = settle_by_majority(tournament, everyone, tournament.panel, "json-verdict@1")

    assert found[0].status == "unreadable"


@given(events=tournament_histories())
def test_every_rule_accounts_for_every_pair_and_the_same_parser_changes_none(
    events: list[Event],
) -> None:
    """So that a difference under another parser is that parser's doing."""
    tournament = known(*events)
    recorded, again = by(tournament, RECORDED), by(tournament, Rule(parser="final-line@1"))

    for rule in (RECORDED, ABSTAIN, LENIENT, CONCATENATE):
        account = account_of(by(tournament, rule))
        n_orders = sum(len(each.pairing.orders) for each in recorded)
        assert account.planned == (n_orders if rule == CONCATENATE else len(recorded))
        parts = (
            account.decided,
            account.tie,
            account.inconsistent,
            account.n_failed,
            account.pending,
        )
        assert account.planned == sum(parts)
    assert all(
        second.status == first.status
        for first, second in zip(recorded, again, strict=True)
        if first.outcome is not None
    )


TABLE: list[tuple[Verdict, Verdict, Outcome]] = [
    ("A", "B", "a"),
    ("B", "A", "b"),
    ("TIE", "TIE", "tie"),
    ("A", "A", "inconsistent"),
    ("B", "B", "inconsistent"),
    ("A", "TIE", "inconsistent"),
    ("B", "TIE", "inconsistent"),
    ("TIE", "A", "inconsistent"),
    ("TIE", "B", "inconsistent"),
]


@pytest.mark.parametrize(("forward", "swapped", "outcome"), TABLE)
def test_outcomes_equal_the_customers_table(
    forward: Verdict, swapped: Verdict, outcome: Outcome
) -> None:
    """A judge that prefers a slot, not a response, must never decide a match."""
    assert swap_consistent(forward, swapped) == outcome
