"""Dimensions that a judge is asked about in one request: each has a query of its own."""

import json
from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from commands.decisions.commands import ReceiveAnswer, SubmitQuery
from commands.decisions.decide import decide
from commands.ports import Answer, NoReply, Reply
from ledger.events.judging import JudgeQueryFailed, JudgeQuerySubmitted, VerdictReceived, part_key
from ledger.events.money import Usage
from ledger.events.registration import TOGETHER, Prompt, Rubric
from ledger.events.registry import Event
from ledger.identity import Digest, Dimension
from projections.event_consistency import ConsistencyCheck
from projections.tournament.estimate import asked_queries, token_model
from projections.tournament.matches import keys_of
from projections.tournament.remaining import (
    ENDLESS_RETRIES,
    OpenQuery,
    WhichPairs,
    one_request,
    open_queries,
    open_repeats,
    refreshed_query,
    repeats_of,
)
from projections.tournament.rewording import Rewording, edited_answers, rewordings
from projections.tournament.settlement import settle
from projections.tournament.state import Tournament
from projections.tournament.waves import judge_reference
from projections.verdicts.queries import VERDICT_SCHEMA
from tests.support.builders.batches import planned_batch
from tests.support.builders.events import STREAM, judge, known, opened, prompt, rubric
from tests.support.builders.worlds import answered, everything

FACTS = rubric("facts", needs_gold=True)
STYLE = rubric("style", needs_gold=False)
BOTH = replace(judge(), parameters=(TOGETHER,))
APART = judge()
RULES = 1
USED = Usage(n_input=101, n_output=20)
P1, P2 = prompt("p1"), prompt("p2", gold=None)


def world(
    by: object = BOTH,
    *,
    prompts: tuple[Prompt, ...] = (P1, P2),
    rubrics: tuple[Rubric, ...] = (FACTS, STYLE),
    number: int = 1,
) -> tuple[Event, ...]:
    """Return a tournament of two entrants that have answered two prompts, one of them with gold."""
    events = opened(prompts=prompts, rubrics=rubrics, judges=[by], opening=number)  # type: ignore[list-item]
    return answered(events)


def asked_in(state: Tournament, only: WhichPairs = None) -> tuple[OpenQuery, ...]:
    """Return the requests that are open."""
    return open_queries(state, everything(state), state.panel[0], RULES, only=only)


def sent(state: Tournament, query: OpenQuery) -> tuple[Event, ...]:
    """Return the submission of a request."""
    return decide(SubmitQuery(state.panel[0].judge_id, query, 0.3), state)


def told(state: Tournament, answer: Answer) -> tuple[Event, ...]:
    """Return what an answer says."""
    return decide(ReceiveAnswer(state.panel[0], answer, worst_usd=0.3), state)


def said(query: OpenQuery, verdicts: Mapping[str, str], usage: Usage | None = USED) -> Reply:
    """Return a reply with a verdict on each dimension that is named."""
    text = {name: {"reasoning": "Read.", "verdict": letter} for name, letter in verdicts.items()}
    return Reply(query.asked.query_key, json.dumps(text), "end_turn", "m", usage)


def first_sent() -> tuple[OpenQuery, tuple[Event, ...]]:
    """Return a tournament's first request, and the tournament after it was sent."""
    events = world()
    first = asked_in(known(*events))[0]
    return first, (*events, *sent(known(*events), first))


def after_first(verdicts: Mapping[str, str], usage: Usage | None = USED) -> tuple[Event, ...]:
    """Return a tournament whose first request has a reply."""
    first, events = first_sent()
    return (*events, *told(known(*events), said(first, verdicts, usage)))


def test_a_request_asks_about_all_dimensions_that_a_prompt_can_be_judged_on() -> None:
    """A prompt without gold is asked about alone what needs none, as if nothing were together."""
    together, apart = known(*world()), known(*world(APART))

    forward, swapped, *of_p2 = asked_in(together)

    assert [each.subject for each in forward.every] == ["facts", "style"]
    assert forward.asked.together == ("facts", "style")
    assert forward.asked.n_verdicts == 2
    assert forward.asked.reply_schema["properties"] == {
        "facts": VERDICT_SCHEMA,
        "style": VERDICT_SCHEMA,
    }
    assert forward.asked.gold_answer == "aspirin"
    for text in (FACTS.guidance, STYLE.guidance, '{"facts": {"reasoning"'):
        assert text in forward.asked.system
    assert {each.key for each in forward.every} == {
        part_key(forward.asked.query_key, Dimension(name)) for name in ("facts", "style")
    }
    assert swapped.asked.query_key != forward.asked.query_key
    assert {each.asked for each in of_p2} <= {each.asked for each in asked_in(apart)}
    assert BOTH.digest == APART.digest


@pytest.mark.no_cover
def test_each_dimension_has_its_own_part_of_the_reply() -> None:
    """And the tokens are shared, to the last one."""
    events = after_first({"facts": "A", "style": "TIE"})

    asked = [each for each in events if isinstance(each, JudgeQuerySubmitted)]
    given = [each for each in events if isinstance(each, VerdictReceived)]

    assert [(each.dimension, each.worst_usd) for each in asked] == [
        ("facts", 0.15),
        ("style", 0.15),
    ]
    assert [(each.verdict, json.loads(each.reply)["verdict"]) for each in given] == [
        ("A", "A"),
        ("TIE", "TIE"),
    ]
    assert [each.usage for each in given] == [Usage(50, 10), Usage(51, 10)]
    check = ConsistencyCheck()
    assert not [x for each in events for x in check.faults_of(each, STREAM, is_redacted=False)]
    state = known(*events)
    assert [len(each.every) for each in asked_in(state)] == [2, 1, 1]
    assert state.is_answered(given[0].query_key)
    assert state.was_asked(given[0].query_key)
    assert told(state, said(asked_in(known(*world()))[0], {"facts": "B", "style": "B"})) == ()


@pytest.mark.no_cover
@pytest.mark.parametrize(
    "text",
    [
        '{"facts": {"reasoning": "Read.", "verdict": "A"}}',
        '{"facts": {"reasoning": "Read.", "verdict": "A"}, "style": "B"}',
        '{"facts": {"verdict": "A"}, "style": {"verdict": "A or B"}}',
        '{"facts": {"verdict": "A"}, "style": {"verdict": "A"}} {"style": {"verdict": "B"}}',
        '{"facts": {"verdict": "A"}, "verdict": "B"}',
    ],
)
def test_what_says_nothing_of_a_dimension_fails_on_it_alone(text: str) -> None:
    """It is asked again, in the same request, whose whole price it then bears."""
    first, events = first_sent()
    reply = Reply(first.asked.query_key, text, "end_turn", "m", USED)

    news = told(known(*events), reply)

    verdict, failed = news
    assert isinstance(verdict, VerdictReceived)
    assert isinstance(failed, JudgeQueryFailed)
    assert (verdict.verdict, failed.reason) == ("A", "unreadable")
    state = known(*events, *news)
    again = refreshed_query(state, first, RULES)
    assert again is not None
    assert [(each.key, each.n_failed) for each in again.every] == [(failed.query_key, 1)]
    assert again.asked == first.asked
    assert isinstance(again, OpenQuery)
    (resent,) = sent(state, again)
    assert isinstance(resent, JudgeQuerySubmitted)
    assert (resent.attempt, resent.worst_usd) == (2, 0.3)
    (second,) = told(known(*events, *news, resent), said(first, {"facts": "B", "style": "B"}))
    assert isinstance(second, VerdictReceived)
    assert (second.query_key, second.verdict, second.usage) == (failed.query_key, "B", USED)


def test_a_request_without_an_answer_fails_on_all_its_dimensions() -> None:
    """Each bears a part of what it may have cost, and it is asked again as one."""
    first, events = first_sent()
    lost = NoReply(first.asked.query_key, "errored", "it broke", "perhaps billed")

    news = told(known(*events), lost)

    assert [each.worst_usd for each in news if isinstance(each, JudgeQueryFailed)] == [0.15, 0.15]
    state = known(*events, *news)
    assert state.lost_usd == pytest.approx(0.3)
    assert not state.under_way
    assert len(asked_in(state)[0].every) == 2


def test_a_planned_batch_holds_requests() -> None:
    """What is in it is in flight on all dimensions, also before it is known to exist."""
    events = world()
    state = known(*events)
    first, *others = asked_in(state)

    plan = planned_batch(first.asked.query_key, by=BOTH)
    state = known(*events, plan)
    assert asked_in(state) == tuple(others)
    assert refreshed_query(state, first, RULES) is None
    assert state.was_asked(first.asked.query_key)
    assert state.in_flight == {first.asked.query_key}
    assert known(*events, *sent(known(*events), first), plan).in_flight == {
        each.key for each in first.every
    }


def test_a_request_is_sent_whole_if_any_of_it_is_wanted() -> None:
    """To ask for the rest later would be paid for again."""
    state = known(*world())

    requests = asked_in(state, lambda pairing: pairing.rubric.dimension == "facts")

    assert [len(each.every) for each in requests] == [2, 2]
    assert one_request([]) is None


def test_repeats_repeat_the_request() -> None:
    """Each verdict has its repeat, under a key of its own."""
    state = known(*after_first({"facts": "A", "style": "B"}))

    (repeat,) = repeats_of(state, everything(state), BOTH)
    (again,) = open_repeats(state, [repeat], RULES)

    assert [each.key for each in again.every] == [each.key for each in repeat.every]
    assert again.repeats in state.verdicts
    submitted = sent(state, again)
    news = told(
        known(*after_first({"facts": "A", "style": "B"}), *submitted),
        said(again, {"facts": "B", "style": "B"}),
    )
    check = ConsistencyCheck()
    whole = (*after_first({"facts": "A", "style": "B"}), *submitted, *news)
    assert not [x for each in whole for x in check.faults_of(each, STREAM, is_redacted=False)]
    assert [each.verdict for each in news if isinstance(each, VerdictReceived)] == ["B", "B"]


def test_a_key_that_is_not_of_its_request_is_a_fault() -> None:
    """So nobody can put another pair's verdict on record as this one's."""
    events = world()
    submitted, *_ = sent(known(*events), asked_in(known(*events))[0])
    assert isinstance(submitted, JudgeQuerySubmitted)
    moved = replace(submitted, dimension=Dimension("style"))

    (fault,) = ConsistencyCheck().faults_of(moved, STREAM, is_redacted=False)

    assert fault.startswith("its key is not that of style in request")


def test_pairs_settle_by_the_verdicts_on_their_dimension() -> None:
    """As if each had been asked alone."""
    events = world(prompts=(P1,))
    for letters in ({"facts": "A", "style": "B"}, {"facts": "B", "style": "B"}):
        state = known(*events)
        first = asked_in(state)[0]
        events = (*events, *sent(state, first))
        events = (*events, *told(known(*events), said(first, letters)))
    state = known(*events)

    assert asked_in(state) == ()
    assert [each.said for each in settle(state, everything(state), BOTH)] == [
        ("a", "a"),
        ("b", "a"),
    ]
    assert set(keys_of(state, everything(state), BOTH)) == set(state.verdicts)
    unanswered = known(*opened(judges=[BOTH]))
    assert [*keys_of(unanswered, everything(unanswered), BOTH)] == []


def test_tokens_are_estimated_from_whole_requests() -> None:
    """Those that were sent again are left out: their verdicts are of several replies."""
    state = known(*after_first({"facts": "A", "style": "B"}))
    failing = known(*after_first({"facts": "A"}))
    uncounted = known(*after_first({"facts": "A", "style": "B"}, usage=None))
    request = asked_in(known(*world()))[0].asked

    (sample,) = asked_queries(state, BOTH)
    (failed,) = asked_queries(failing, BOTH)
    expected = token_model(state, BOTH).expected(request)

    assert (sample.query, sample.usage, sample.failure) == (request, USED, None)
    assert failed.failure == "unreadable"
    assert asked_queries(uncounted, BOTH) == ()
    second = asked_in(uncounted)[0]
    more = (*after_first({"facts": "A", "style": "B"}, usage=None), *sent(uncounted, second))
    more = (*more, *told(known(*more), said(second, {"facts": "A", "style": "B"})))
    assert [each.query for each in asked_queries(known(*more), BOTH)] == [second.asked]
    assert (expected.n_input, expected.n_output) == (101, 20)
    lacking = next(each for each in asked_in(failing) if each.n_failed)
    again = sent(failing, lacking)
    assert asked_queries(known(*after_first({"facts": "A"}), *again), BOTH) == ()


def reworded(*events: Event) -> tuple[Rewording, ...]:
    """Return why queries are open that were asked before."""
    state = known(*events)
    return rewordings(state, asked_in(state), state.panel[0])


def test_switching_asks_anew_and_says_so() -> None:
    """Whichever way; the first request was asked, and both of its queries are."""
    before = after_first({"facts": "A", "style": "B"})

    (switched,) = reworded(*before, *world(APART, number=2)[: -len(responses_in(before))])

    assert switched.changed_settings == ("together",)
    assert switched.sentence == "[judging] together changed: 2 queries are asked again"


def responses_in(events: tuple[Event, ...]) -> list[Event]:
    """Return the responses among events."""
    return [each for each in events if type(each).__name__ == "ResponseGenerated"]


@pytest.mark.no_cover
def test_a_changed_rubric_asks_all_dimensions_again() -> None:
    """They stand in one request; so does what else a prompt has."""
    before = after_first({"facts": "A", "style": "B"})
    stricter = rubric("style", needs_gold=False, text="Judge style, not content.")
    n_said = len(responses_in(before))

    (changed,) = reworded(*before, *world(rubrics=(FACTS, stricter), number=2)[:-n_said])

    assert changed.changed_rubric == "style"
    assert changed.n_queries == 2
    corrected = world(prompts=(prompt("p1", gold="ibuprofen"), P2), number=2)[:-n_said]
    state = known(*before, *corrected)
    queries = open_queries(state, everything(state), BOTH, ENDLESS_RETRIES)
    assert edited_answers(state, queries, BOTH) == {"p1": 2}


def test_looks_at_verdicts_given_together_are_others() -> None:
    """What was decided by verdicts given apart may not hold of these."""
    apart: Digest = judge_reference(known(*world(APART))).digest

    assert judge_reference(known(*world())).digest != apart
