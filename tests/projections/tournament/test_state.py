"""What a tournament is made of: what it takes from its own stream and others, and what it spent."""

from dataclasses import replace as replace_fields
from typing import get_args

import pytest
from msgspec.structs import replace

from ledger.events.judging import (
    FailureReason,
    JudgeQueryFailed,
    JudgeQuerySubmitted,
    PairReconciled,
    VerdictReceived,
)
from ledger.events.ratings import RatingsPublished
from ledger.events.registry import Event
from ledger.events.requests import ParameterRefused
from ledger.events.responses import ResponseFailed, ResponseGenerated
from ledger.identity import Digest, JudgeId, PromptId, StreamId
from projections.fold import fold
from projections.tournament.folding import tournament_of, with_answers
from projections.tournament.matches import planned_responses
from projections.tournament.requests import NO_REQUESTS
from projections.tournament.state import Tournament
from tests.support.builders.batches import DEAR, USED, ended, planned_batch, sent
from tests.support.builders.battles import imported_battles
from tests.support.builders.events import (
    STREAM,
    entrant,
    instructions,
    judge,
    key,
    known,
    opened,
    prompt,
    recorded,
    registrations,
    responses,
    rubric,
    verdict,
)
from tests.support.builders.money import OPUS, put, requests_of
from tests.support.builders.scores import paid_score, put_answer, scored_plan
from tests.support.builders.worlds import (
    answered,
    become,
    cup,
    failure_of,
    history,
    matches_of,
    publication,
    unanswerable,
)
from tests.support.goldens.events import SAMPLES


def names(tournament: Tournament) -> list[str]:
    """Return the roster's names."""
    return [each.entrant_id for each in tournament.roster]


ASKED = matches_of(known(*answered(opened())))[0]


def submitted(query_key: Digest, *, attempt: int = 1) -> JudgeQuerySubmitted:
    """Return the event that a query was sent."""
    return replace(put(ASKED, ASKED.forward, attempt=attempt), query_key=query_key)


def test_a_tournament_that_was_never_opened_is_empty() -> None:
    """`status` on a new ledger shows nothing rather than failing."""
    tournament = known()

    assert (tournament.roster, tournament.bank, tournament.dimensions) == ((), (), ())
    assert tournament.panel == ()
    assert (tournament.version, tournament.newest) == (0, None)


def test_an_opening_fixes_the_order_of_everything() -> None:
    """Pairs are named, listed and judged in the order that the user wrote down."""
    roster = [entrant("zoe"), entrant("amy")]
    prompts = [prompt("p2"), prompt("p1")]
    rubrics = [rubric("utility"), rubric("factuality")]
    panel = [judge("second"), judge("first")]

    tournament = known(*opened(entrants=roster, prompts=prompts, rubrics=rubrics, judges=panel))

    assert tournament.roster == tuple(roster)
    assert tournament.bank == tuple(prompts)
    assert tournament.dimensions == tuple(rubrics)
    assert tournament.panel == tuple(panel)


def test_openings_that_were_replaced_are_kept_in_order() -> None:
    """A plan says what changed since a query was asked, however often it changed."""
    openings = [opened(told=instructions(f"Version {n}."), opening=n) for n in (1, 2, 3)]

    tournament = known(*(event for events in openings for event in events))

    assert [each.opening for each in tournament.replaced_openings] == [1, 2]
    assert tournament.opening == openings[2][0]


def test_a_query_was_asked_once_it_is_sent_here_or_answered_or_in_flight_anywhere() -> None:
    """Words that changed since then are why it is asked again."""
    elsewhere = StreamId("elsewhere")
    batch = planned_batch(key("planned"))

    tournament = fold(
        tournament_of(STREAM),
        [
            *recorded([submitted(key("sent"))]),
            *recorded([batch, submitted(key("other"))], stream=elsewhere),
            *recorded([verdict(key("answered"))], stream=elsewhere),
        ],
    )

    assert all(tournament.was_asked(key(name)) for name in ("sent", "planned", "answered"))
    assert not tournament.was_asked(key("other"))


def test_a_query_is_unanswered_until_its_attempt_has_an_answer_or_a_failure() -> None:
    """A batch is given up only for queries that it has no result for."""
    one, other = (submitted(key("query"), attempt=n) for n in (1, 2))
    failed = failure_of(key("query"))

    def after(*events: Event) -> Tournament:
        return fold(tournament_of(STREAM), recorded(events))

    assert not after().is_unanswered(key("query"))
    assert after(one).is_unanswered(key("query"))
    assert not after(one, failed).is_unanswered(key("query"))
    assert after(one, failed, other).is_unanswered(key("query"))
    assert not after(one, failed, other, verdict(key("query"))).is_unanswered(key("query"))


def test_an_opening_before_its_registrations_names_what_is_there() -> None:
    """A run killed between an opening and its registrations can still be looked at."""
    opening, *registered = opened(prompts=[prompt("p1"), prompt("p2")])

    tournament = known(opening, registered[1])

    assert tournament.bank == (prompt("p2"),)
    assert tournament.roster == ()


def test_going_back_to_an_earlier_configuration_registers_nothing() -> None:
    """A bank never holds a prompt twice, and what was known once stays known."""
    old, new = prompt(gold="asprin"), prompt(gold="aspirin")
    first = opened(prompts=[old])
    changed = opened(prompts=[new], entrants=[entrant("base"), entrant("poe")], opening=2)
    back = opened(prompts=[old], opening=3)

    second = known(*first, changed[0], *registrations([new], entrants=[entrant("poe")]))
    third = fold(tournament_of(STREAM), recorded([back[0]]), second)

    assert (second.bank, names(second)) == ((new,), ["base", "poe"])
    assert (third.bank, names(third)) == ((old,), ["base", "tuned"])


def test_what_is_registered_but_not_referenced_is_ignored() -> None:
    """Registrations may come early, or from a configuration that was given up."""
    strays = registrations(
        [prompt("stray")], [rubric("stray")], [entrant("stray")], [judge("stray")]
    )

    tournament = known(*strays, *opened(), imported_battles())

    assert names(tournament) == ["base", "tuned"]
    assert [each.prompt_id for each in tournament.bank] == ["p1"]
    assert [each.dimension for each in tournament.dimensions] == ["factuality"]
    assert [each.judge_id for each in tournament.panel] == ["reference"]


def test_a_judge_is_found_by_its_name_on_the_panel() -> None:
    """A run names its judge; taking another silently would rate by other verdicts."""
    tournament = known(*opened(judges=[judge("first"), judge("second", model="other")]))

    assert tournament.judge(JudgeId("second")).model == "other"
    with pytest.raises(KeyError, match="third"):
        tournament.judge(JudgeId("third"))


KEY = key("query")
PAID = replace(verdict(KEY), usage=USED, price=DEAR)
WASTED = replace(failure_of(KEY), usage=USED, price=DEAR)


def test_what_another_tournament_was_told_is_used_and_not_paid_for() -> None:
    """Its verdicts and scores serve here; what it asked, spent and lost is its own."""
    lost = replace(failure_of(key("lost"), "errored"), fate="perhaps billed", worst_usd=1.0)
    scored = put_answer(key("s"), scored_plan(), 0), paid_score(key("s"), USED, OPUS)
    elsewhere = recorded([WASTED, PAID, lost, *scored], stream=StreamId("other"))

    tournament = fold(tournament_of(STREAM), elsewhere)

    assert KEY in tournament.verdicts
    assert tournament.is_answered(key("s"))
    assert (tournament.spent_usd, tournament.lost_usd) == (0.0, 0.0)
    assert (dict(tournament.scales), dict(tournament.attempts)) == ({}, {})


@pytest.mark.parametrize("reason", get_args(FailureReason))
def test_only_replies_count_as_useless_replies(reason: FailureReason) -> None:
    """An error or an expiry is no reply, and takes none of the retries away."""
    tournament = known(failure_of(KEY, reason), failure_of(KEY, reason, attempt=2))

    is_reply = reason in {"refused", "truncated", "unreadable", "empty"}
    assert dict(tournament.useless_replies) == ({KEY: 2} if is_reply else {})


def test_a_request_is_at_risk_until_it_is_answered() -> None:
    """One that was perhaps billed stays lost, at its worst; a batch has a price of its own."""
    sent_alone = replace(submitted(key("q")), worst_usd=0.5)
    lost = replace(failure_of(key("q"), "errored"), fate="perhaps billed", worst_usd=0.5)
    unpriced = replace(failure_of(key("r"), "errored"), fate="perhaps billed", worst_usd=None)
    refused = replace(failure_of(key("q"), "errored"), fate="refused")

    under_way = known(sent_alone, replace(submitted(key("b")), batch_key=key("batch")))

    assert dict(under_way.under_way) == {key("q"): sent_alone}
    assert under_way.lost_usd == 0.0
    uncounted = replace(verdict(key("q")), worst_usd=0.25)  # the server told no tokens
    ends: list[tuple[Event, float]] = [(verdict(key("q")), 0.0), (lost, 0.5), (refused, 0.0)]
    ends += [(uncounted, 0.25), (replace(uncounted, worst_usd=None), 0.0)]
    for answer, lost_usd in ends:
        state = known(sent_alone, answer)
        assert (dict(state.under_way), state.lost_usd) == ({}, lost_usd)
    assert known(lost, unpriced, replace(lost, attempt=2)).lost_usd == 1.0


def test_a_request_that_costs_nothing_is_not_at_risk() -> None:
    """A judge on this machine is asked again after a kill as if it had not been."""
    assert not known(submitted(key("q"))).under_way


def test_publishing_counts_as_an_event_but_not_as_news() -> None:
    """Publishing the same results twice must find that nothing happened in between."""
    events = history(opened(), "a")
    before = known(*events)
    ratings = RatingsPublished(publication=publication(before), artifacts=())

    after = known(*events, ratings)

    assert after.newest == before.newest
    assert after.version == before.version + 1
    assert after.publications == (ratings,)


def test_the_version_counts_this_tournament_only() -> None:
    """Writers state the version they decided on; another tournament must not move it."""
    here = recorded(opened())
    there = recorded([verdict(key("query"))], stream=StreamId("other"))

    tournament = fold(tournament_of(STREAM), [*here, *there])

    assert tournament.version == len(here)
    assert tournament.newest == there[0]


def test_another_tournaments_answers_are_not_bought_again() -> None:
    """Two tournaments in one ledger that ask the same pay once: content names the answer."""
    events = answered(opened())
    (match,) = matches_of(known(*events))
    paid_elsewhere = [*responses(known(*opened())), *become(match, "a")[:2]]

    tournament = fold(
        tournament_of(STREAM),
        [*recorded(opened()), *recorded(paid_elsewhere, stream=StreamId("other"))],
    )

    assert matches_of(tournament) == (match,)
    assert {match.forward.query_key, match.swapped.query_key} == set(tournament.verdicts)


@pytest.mark.no_cover
@pytest.mark.parametrize("theirs_come_first", [False, True])
def test_what_a_tournament_was_answered_itself_outlives_a_merge(*, theirs_come_first: bool) -> None:
    """Sampled elsewhere, texts differ; with theirs in our place all would be asked anew."""
    events = answered(opened())
    (match,) = matches_of(known(*events))
    ours = recorded([*events, *become(match, "a")])
    texts = [replace(each, text="Otherwise.") for each in responses(known(*opened()))]
    theirs = recorded([*texts, *become(match, "b")[:2]], stream=StreamId("other"))

    tournament = fold(
        tournament_of(STREAM), [*theirs, *ours] if theirs_come_first else [*ours, *theirs]
    )

    assert matches_of(tournament) == (match,)
    said = [tournament.verdicts[key].event.verdict for _, key in match.keys]
    assert said == ["A", "B"]


def test_of_what_two_others_were_answered_the_first_serves() -> None:
    """What was decided by it still follows when the ledger of a third is merged."""
    query = key("query")
    first = recorded([verdict(query, "A")], stream=StreamId("second"))
    later = recorded([verdict(query, "B")], stream=StreamId("third"))

    tournament = fold(tournament_of(STREAM), [*first, *later])

    assert tournament.verdicts[query].event.verdict == "A"


def test_what_another_tournament_was_refused_is_not_asked_again() -> None:
    """The same question would be refused, and paid for, again."""
    events = history(opened())
    (match,) = matches_of(known(*events))
    elsewhere = recorded([*events, *become(match, "refused")], stream=StreamId("other"))

    tournament = fold(tournament_of(STREAM), elsewhere)

    assert {each.reason for each in tournament.query_failures.values()} == {"refused"}


def test_a_tournaments_own_failure_stands_beside_anothers() -> None:
    """Its attempts are counted by its own; the other's are not among them."""
    events = history(opened())
    (match,) = matches_of(known(*events))
    own = recorded([*events, failure_of(match.forward.query_key, "unreadable")])
    elsewhere = recorded([failure_of(match.forward.query_key, "refused")], stream=StreamId("other"))

    tournament = fold(tournament_of(STREAM), [*own, *elsewhere])

    assert tournament.query_failures[match.forward.query_key].reason == "unreadable"


def test_batches_of_its_own_are_known_in_order_and_while_they_are_open() -> None:
    """What another tournament sent is not this one's to wait for."""
    first, second = planned_batch(key("a")), planned_batch(key("b"), number=2)
    others = planned_batch(key("c"), number=3)
    here = recorded([*opened(), second, first, sent(first.batch_key), ended(first.batch_key)])
    there = recorded([others], stream=StreamId("other"))

    tournament = fold(tournament_of(STREAM), [*here, *there])

    assert [batch.planned for batch in tournament.own_batches] == [first, second]
    assert [batch.planned for batch in tournament.open_batches] == [second]


def test_requests_to_entrants_are_of_the_tournament_that_sent_them() -> None:
    """Another one has a purse of its own; ratings know nothing of either."""
    before = known(*opened())
    submitted, settled = requests_of("base", 0.25)

    under_way, after = known(*opened(), submitted), known(*opened(), submitted, settled)
    other = fold(tournament_of(StreamId("other")), recorded([*opened(), submitted], stream=STREAM))

    assert under_way.requests.at_risk_usd == 1.0
    assert (after.requests.usd, after.requests.at_risk_usd) == (0.25, 0.0)
    assert after.newest == before.newest
    assert other.requests == NO_REQUESTS


def test_a_score_is_money_and_no_rating() -> None:
    """It answers its query, counts in the spend, and leaves the ratings' newest event alone."""
    planned = scored_plan()
    put = put_answer(KEY, planned, 0, worst_usd=0.5)

    asked, given = known(put), known(put, paid_score(KEY, USED, OPUS))

    assert (asked.was_asked(KEY), asked.is_answered(KEY)) == (True, False)
    assert dict(asked.under_way) == {KEY: put}
    assert (given.is_answered(KEY), given.scales[KEY]) == (True, put.scale)
    assert given.spent_usd > 0
    assert not given.under_way
    assert given.newest is None


@pytest.mark.parametrize("n_known", [0, 9, 12, 20])
def test_answers_are_added_without_what_they_cost(n_known: int) -> None:
    """A section of a run is folded from them again; the ledger's spend is told elsewhere."""
    (cell, *_) = planned_responses(known(*cup()), {PromptId("p2")})
    judged = history(cup(), "a", "tie", "refused")
    told = recorded([*judged, unanswerable(cell), replace(WASTED, worst_usd=1.0)])
    before, after = (fold(tournament_of(STREAM), some) for some in (told[:n_known], told))

    found = with_answers(before, (each for each in told[n_known:] if is_answer(each.event)))

    assert (found.responses, found.verdicts) == (after.responses, after.verdicts)
    assert (found.query_failures, found.outcomes) == (after.query_failures, after.outcomes)
    assert (found.spent_usd, found.lost_usd) == (before.spent_usd, before.lost_usd)
    assert (found.newest, found.version) == (before.newest, before.version)


def is_answer(event: Event) -> bool:
    """Say whether an event is a response, a verdict, a failure of either, or an outcome."""
    return isinstance(
        event,
        ResponseGenerated | ResponseFailed | VerdictReceived | JudgeQueryFailed | PairReconciled,
    )


def test_what_a_server_does_not_take_holds_for_every_tournament_of_a_ledger() -> None:
    """It is the server's way, whoever found it out; and no rating changes by it."""
    refused = ParameterRefused(
        base_url="http://localhost:8000/v1",
        model="org/judge",
        parameter="temperature",
        instead=None,
        detail="HTTP 400",
    )

    own = known(refused)
    foreign = fold(tournament_of(StreamId("another")), recorded([refused]))

    assert own.refused_parameters == foreign.refused_parameters == (refused,)
    assert own.newest is None


OF_OTHERS = {  # what imported sets, evaluations, audits and redactions are made of
    "BattlesImported",
    "EvaluationCompleted",
    "EvaluationPlanned",
    "EventRedacted",
    "ItemRegistered",
    "LedgerMerged",
    "RatingsImported",
    "SampleObserved",
    "SampleUnscorable",
    "ScoreShared",
}


def test_an_event_changes_a_tournament_unless_it_is_of_something_else() -> None:
    """One that was added to the registry and forgotten here would be paid for, and asked again."""
    batch = SAMPLES["JudgeBatchPlanned.v1.json"]
    before = known(batch)
    unheard = {
        type(event).__name__
        for event in SAMPLES.values()
        if event != batch
        and replace_fields(known(batch, event), version=before.version, newest=before.newest)
        == before
    }

    assert unheard == OF_OTHERS
