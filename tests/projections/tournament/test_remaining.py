"""What is owed to a tournament, and what is asked again, never, or needlessly."""

import dataclasses
from itertools import islice

import pytest
from hypothesis import given
from msgspec.structs import replace

from ledger.events.judging import FailureReason, JudgeQueryReopened, PairReconciled, repeat_key
from ledger.events.registration import Entrant
from ledger.events.registry import Event
from ledger.identity import Digest, PromptId, StreamId
from projections.fold import fold
from projections.tournament.estimate import BYTES_PER_TOKEN
from projections.tournament.folding import tournament_of
from projections.tournament.matches import Match, planned_responses
from projections.tournament.remaining import (
    AskingRules,
    OpenQuery,
    ResponseCount,
    awaited_queries,
    missing_responses,
    n_waiting_pairs,
    open_queries,
    open_repeats,
    open_scores,
    refreshed_query,
    repeats_of,
    response_counts,
    unreconciled,
    without_gold,
)
from projections.tournament.settlement import accounts_of
from projections.tournament.state import Tournament
from projections.verdicts.scoring import ScoreQuestion, score_query
from tests.support.builders.batches import ended, not_created, planned_batch, sent
from tests.support.builders.events import (
    STREAM,
    entrant,
    judge,
    key,
    known,
    opened,
    prompt,
    recorded,
    registrations,
    responses,
    verdict,
)
from tests.support.builders.scores import JUDGE as SCORER
from tests.support.builders.scores import (
    QUESTION,
    names_of,
    put_answer,
    score,
    scored_plan,
    scoring_of,
    scoring_rubric,
)
from tests.support.builders.worlds import (
    RUBRICS,
    Fate,
    answered,
    cup,
    everything,
    failure,
    failure_of,
    history,
    matches_of,
    planned_pairings,
    questions_of,
    settled,
    unanswerable,
)
from tests.support.strategies.tournaments import tournament_histories


def waiting(tournament: Tournament) -> tuple[Match, ...]:
    """Return what can be reconciled on the whole bank."""
    prompts, judge = everything(tournament), tournament.panel[0]
    return unreconciled(tournament, prompts, judge, skip_identical=False)


def test_what_is_there_or_known_to_fail_is_not_owed() -> None:
    """Generation is deterministic: a prompt that was too long will be too long again."""
    tournament = known(*cup())
    there, failed, *rest = planned_responses(tournament, everything(tournament))
    first = responses(tournament)[0]
    assert first.response_key == there.response_key

    tournament = known(*cup(), first, unanswerable(failed))

    assert missing_responses(tournament, everything(tournament)) == tuple(rest)


def test_running_out_of_memory_is_tried_again() -> None:
    """Another machine, or a smaller batch, may have the memory that was lacking."""
    tournament = known(*opened())
    base, tuned = planned_responses(tournament, everything(tournament))

    tournament = known(
        *opened(), unanswerable(base, "out_of_memory"), unanswerable(tuned, "not_finite")
    )

    assert missing_responses(tournament, everything(tournament)) == (base,)


def test_responses_are_counted_by_entrant() -> None:
    """A table of an unfinished generation says whose responses are missing, and why."""
    tournament = known(*cup())
    zoe_1, amy_1, *_ = planned_responses(tournament, everything(tournament))
    said = responses(tournament)

    tournament = known(*cup(), unanswerable(zoe_1), said[0], unanswerable(amy_1), said[3], said[4])

    assert response_counts(tournament, everything(tournament)) == (
        ResponseCount(entrant("zoe").entrant_id, generated=2, failed=0, missing=0),
        ResponseCount(entrant("amy").entrant_id, generated=1, failed=1, missing=0),
        ResponseCount(entrant("kim").entrant_id, generated=0, failed=0, missing=2),
    )


def test_prompts_without_gold_are_left_out_and_counted() -> None:
    """A reader who sees fewer pairs than the bank suggests must find out why."""
    prompts = [prompt("p1", gold=None), prompt("p2"), prompt("p3", gold=None)]
    tournament = known(*opened(prompts=prompts, rubrics=RUBRICS))

    whole, some = everything(tournament), {PromptId("p1"), PromptId("p2")}
    accounts = accounts_of(tournament, whole, tournament.panel[0])

    assert without_gold(tournament, whole) == (("factuality", 2, 3), ("utility", 0, 3))
    assert [account.planned for account in accounts.values()] == [1, 3]
    assert without_gold(tournament, some) == (("factuality", 1, 2), ("utility", 0, 2))


def test_a_match_with_both_verdicts_waits_for_its_outcome() -> None:
    """A run killed between a verdict and its outcome reconciles when it goes on."""
    events = answered(cup())
    first, second, *_ = matches_of(known(*events))
    told = [verdict(first.forward.query_key), verdict(first.swapped.query_key)]

    tournament = known(*events, *told, verdict(second.forward.query_key))

    assert waiting(tournament) == (first,)


@given(events=tournament_histories())
def test_responses_are_there_or_failed_or_owed(events: list[Event]) -> None:
    """No cell of the plan is lost between the three counts."""
    tournament = known(*events)

    found = response_counts(tournament, everything(tournament))

    owed = missing_responses(tournament, everything(tournament))
    assert sum(row.missing for row in found) == len(owed)
    for row in found:
        assert row.generated + row.failed + row.missing == len(tournament.bank)


READY = answered(opened())
(MATCH,) = matches_of(known(*READY))
FORWARD, SWAPPED = MATCH.forward.query_key, MATCH.swapped.query_key
PLAN = planned_batch(FORWARD)
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
    return unreconciled(tournament, prompts, judge, skip_identical=skips)


TWICE: list[tuple[FailureReason, ...]] = [("unreadable",) * 2, ("empty",) * 2]


@pytest.mark.parametrize(
    ("reasons", "retries", "is_asked"),
    [
        # the same request meets the same refusal, limit or error, and is paid for again
        *(((reason,), 9, False) for reason in ("refused", "truncated", "rejected")),
        # another reply may be readable, but a judge that never says a verdict has its end
        *((twice, n, n == 2) for twice in TWICE for n in (0, 1, 2)),
        # nothing was paid, so no number of retries stands against it, nor is any used up
        *(((reason,) * 5, 0, True) for reason in ("errored", "expired", "canceled")),
        *((("errored", "errored", "errored", "unreadable"), n, n == 1) for n in (0, 1)),
        # who refused the second time will refuse the third
        (("unreadable", "refused"), 9, False),
    ],
)
def test_what_failed_is_asked_again_where_that_may_help(
    reasons: tuple[FailureReason, ...], retries: int, *, is_asked: bool
) -> None:
    """And as often as the settings say."""
    failures = [failure(MATCH.forward, why, attempt=n) for n, why in enumerate(reasons, start=1)]

    assert forward_is_asked(retries, *failures) is is_asked


def test_a_query_in_hand_is_asked_again_only_while_it_is_open() -> None:
    """Another process may have asked it meanwhile, and failed or not."""
    before = known(*READY)
    query = open_queries(before, everything(before), before.panel[0], ASKING)[0]

    failed, done = (
        refreshed_query(known(*READY, event), query, AskingRules(retries=1))
        for event in (failure(MATCH.forward, attempt=1), verdict(FORWARD))
    )

    assert failed == query._replace(n_failed=1)
    assert done is None


@pytest.mark.parametrize("reason", ["refused", "truncated", "rejected", "unreadable", "empty"])
def test_what_was_reopened_is_asked_once_more(reason: FailureReason) -> None:
    """The user changed something that the ledger cannot see; retries count from there."""
    failed = failure(MATCH.forward, reason)
    reopened = JudgeQueryReopened(query_key=FORWARD, judge=failed.judge, attempt=1, reason=reason)
    again = failure(MATCH.forward, reason, attempt=2)
    may_change = reason in {"unreadable", "empty"}

    assert forward_is_asked(0, failed, reopened)
    assert not forward_is_asked(0, failed, reopened, again)
    assert forward_is_asked(1, failed, reopened, again) is may_change


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


def test_a_tie_that_was_made_unasked_is_not_asked_about_later() -> None:
    """With `skip_identical` switched off the outcome stays: a verdict would change nothing."""
    twins = matches_of(known(*SAME))[0]
    tie = PairReconciled(
        outcome="tie", basis="identical", **twins.key(known(*SAME).panel[0].judge_id)._asdict()
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


def still_open(tournament: Tournament, retries: int = 0) -> tuple[OpenQuery, ...]:
    """Return the open queries on the whole bank."""
    rules = AskingRules(retries)
    return open_queries(tournament, everything(tournament), tournament.panel[0], rules)


def all_judged(*, roster: list[Entrant]) -> tuple[Event, ...]:
    """Return a tournament of two prompts and two dimensions with every verdict."""
    opening = opened(entrants=roster, prompts=[prompt("p1"), prompt("p2")], rubrics=RUBRICS)
    decided: list[Fate] = ["a"]
    return history(opening, *decided * len(planned_pairings(known(*opening))))


def test_queries_of_awaited_responses_are_told_at_their_longest() -> None:
    """What is open already is not among them; of what failed for good, nothing is to come."""
    state = known(*answered(cup())[:-1])
    (absent,) = missing_responses(state, everything(state))

    awaited = awaited_queries(state, everything(state), judge(), ASKING)

    assert len(awaited) == 4
    assert {absent.entrant.entrant_id in each.match.pairing.entrants for each in awaited} == {True}
    n_bytes = round(absent.entrant.max_new_tokens * BYTES_PER_TOKEN)
    assert min(len(each.asked.user) for each in awaited) > n_bytes
    whole = known(*answered(cup()))
    assert awaited_queries(whole, everything(whole), judge(), ASKING) == ()


def test_queries_of_awaited_responses_are_told_at_their_shortest() -> None:
    """What judging costs at least is known before anything is generated."""
    state = known(*answered(cup())[:-1])

    short, long = (
        awaited_queries(state, everything(state), judge(), ASKING, longest=longest)
        for longest in (False, True)
    )

    assert len(short) == len(long)
    pairs = zip(short, long, strict=True)
    assert all(len(one.asked.user) < len(other.asked.user) for one, other in pairs)


def test_pairs_that_lack_a_response_are_counted() -> None:
    """They wait as long as it may come; what failed for good is not waited for."""
    opening, whole = known(*cup()), known(*answered(cup()))
    partly = known(*answered(cup())[:-1])

    n_waiting = [
        n_waiting_pairs(each, everything(each), judge()) for each in (opening, partly, whole)
    ]

    assert n_waiting == [6, 2, 0]


def test_renaming_an_entrant_opens_no_query() -> None:
    """A better name for the paper must not buy every verdict again."""
    before = all_judged(roster=[entrant("base"), entrant("tuned")])
    renamed = replace(
        entrant("ours"), weights_digest=entrant("tuned").weights_digest, weights="moved/elsewhere"
    )
    roster = [entrant("base"), renamed]
    reopened = opened(
        entrants=roster, prompts=[prompt("p1"), prompt("p2")], rubrics=RUBRICS, opening=2
    )

    tournament = known(*before, reopened[0], *registrations(entrants=[renamed]))

    assert tournament.roster == tuple(roster)
    assert missing_responses(tournament, everything(tournament)) == ()
    assert still_open(tournament) == ()


def test_entrants_with_the_same_settings_share_their_responses() -> None:
    """A control entrant under two names is generated once, and compared once with each other."""
    twin = replace(entrant("twin"), weights_digest=entrant("base").weights_digest)
    opening = opened(entrants=[entrant("base"), twin, entrant("tuned")])
    base, _, tuned = responses(known(*opening))

    tournament = known(*opening, base, tuned)

    assert missing_responses(tournament, everything(tournament)) == ()
    assert len(questions_of(tournament)) == 6
    assert len(still_open(tournament)) == 3  # one for the twins, both orders of the rest


@given(events=tournament_histories())
def test_open_queries_are_just_those_that_may_still_get_a_verdict(events: list[Event]) -> None:
    """Nothing that could be judged is forgotten, and nothing is asked twice or in vain."""
    tournament = known(*events)

    keys = [each.asked.query_key for each in still_open(tournament, retries=2)]

    wanted = {question.query_key for question in questions_of(tournament)}
    assert len(keys) == len(set(keys))
    hopeless = {
        key
        for key, failure in tournament.query_failures.items()
        if failure.reason in {"refused", "truncated", "rejected"}
    }
    assert set(keys) == wanted - set(tournament.verdicts) - tournament.in_flight - hopeless


def test_an_answer_is_open_until_it_has_a_score() -> None:
    """Two rubrics that put the same query ask it once."""
    planned = scored_plan()
    query = score_query(SCORER, scoring_rubric(), QUESTION, "Aspirin.")
    question = ScoreQuestion(query, SCORER, "recall", scoring_of(planned), names_of(planned, 0))
    twin = question._replace(scoring=key("another rubric"))
    put = put_answer(query.query_key, planned, 0)
    failure = failure_of(query.query_key)

    before = open_scores(known(put, failure), [question, twin], AskingRules(retries=1))
    after = open_scores(known(put, score(query.query_key)), [question], AskingRules(retries=1))

    assert [(each.question, each.n_failed) for each in before] == [(question, 1)]
    assert before[0].subject == "recall"
    (pair, *_) = open_queries(known(*READY), [PromptId("p1")], judge(), ASKING)
    assert pair.subject == "factuality"
    assert refreshed_query(known(put), before[0], ASKING) == before[0]._replace(n_failed=0)
    assert after == ()


@pytest.mark.no_cover
def test_repeats_are_a_random_sample_of_the_queries_with_a_verdict() -> None:
    """Which a larger number adds to; another seed draws another."""
    fates: list[Fate] = ["a"] * 9
    events = history(cup(4), *fates)
    tournament, bank = known(*events), everything(known(*events))
    opening = tournament.opening
    assert opening is not None
    reseeded = dataclasses.replace(tournament, opening=replace(opening, generation_seed=1))

    found = [*repeats_of(tournament, bank, judge())]
    others = [*repeats_of(reseeded, bank, judge())]

    assert len(found) == 18
    assert {each.key for each in found} == {repeat_key(query) for query in tournament.verdicts}
    assert [each.key for each in found[:9]] != [each.key for each in others[:9]]
    assert [each.key for each in repeats_of(known(*events), bank, judge())] == [
        each.key for each in found
    ]
    assert [*repeats_of(Tournament(STREAM), (), judge())] == []


@pytest.mark.no_cover
def test_a_sample_of_repeats_stays_as_further_queries_get_verdicts() -> None:
    """The same number asks nothing more, wherever the seed would put the new ones."""
    fates: list[Fate] = ["a"] * 12
    few, many = history(cup(4), *fates[:6]), history(cup(4), *fates)
    bank = everything(known(*few))
    sample = {each.key for each in islice(repeats_of(known(*few), bank, judge()), 6)}
    drawn = {each.key for each in islice(repeats_of(known(*many), bank, judge()), 6)}
    after = known(*many, *(verdict(key, "A") for key in sample))

    found = [*repeats_of(after, bank, judge())]

    assert drawn != sample
    assert {each.key for each in found[:6]} == sample
    assert open_repeats(after, found[:6], AskingRules(0)) == ()
    assert len(open_repeats(after, found[:8], AskingRules(0))) == 2


def test_a_repeat_is_open_until_it_has_a_verdict_of_its_own() -> None:
    """That of the query that it repeats is none, and it changes no outcome."""
    events = history(cup(1), "a", "b", "pending")
    tournament = known(*events)
    repeats = [*repeats_of(tournament, everything(tournament), judge())]
    first, *_ = open_ones = open_repeats(tournament, repeats, AskingRules(0))
    after = known(*events, verdict(repeats[0].key, "TIE"))

    assert len(open_ones) == 4
    assert first.repeats in tournament.verdicts
    assert first.asked.user == first.match.query(first.asked.order).user
    assert repeats[0].key not in {
        each.asked.query_key for each in open_repeats(after, repeats, AskingRules(0))
    }
    assert refreshed_query(after, first, AskingRules(0)) is None
    assert [each.status for each in settled(after)] == [each.status for each in settled(tournament)]
    assert len([*repeats_of(after, everything(after), judge())]) == 4
    (open_now, *_) = open_queries(tournament, everything(tournament), judge(), AskingRules(0))
    assert open_now.repeats is None
