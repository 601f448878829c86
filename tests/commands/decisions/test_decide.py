"""The decider: what each command adds to what is known, and that repeating it adds nothing."""

from dataclasses import replace
from typing import Any, Literal, TypeAlias, get_args

import pytest
from msgspec import structs

from commands.decisions.commands import (
    Command,
    PublishRatings,
    ReceiveAnswer,
    ReconcilePair,
    RecordFact,
    RecordResponse,
    ReopenQuery,
    SubmitQuery,
)
from commands.decisions.decide import decide
from commands.ports import GeneratedText, GenerationFailure, NoReply
from ledger.errors import TourneyError
from ledger.events.judging import (
    Fate,
    JudgeQueryFailed,
    JudgeQueryReopened,
    Outcome,
    PairReconciled,
    Verdict,
    VerdictReceived,
)
from ledger.events.money import Usage
from ledger.events.ratings import ArtifactDigest, Publication, RatingsPublished
from ledger.events.registry import Event
from ledger.events.responses import ResponseFailed, ResponseGenerated
from ledger.identity import Digest
from projections.tournament.matches import planned_responses
from projections.tournament.remaining import AskingRules, open_queries
from projections.verdicts.parsers import PARSER
from projections.verdicts.policies import DEFAULT_POLICY
from tests.support.builders.batches import DEAR, USED
from tests.support.builders.commands import (
    JUDGE,
    P1,
    failed,
    open_tournament,
    reply,
    submitted,
    terms,
)
from tests.support.builders.events import (
    NOON,
    entrant,
    judge,
    key,
    opened,
    prompt,
    registrations,
    responses,
    verdict,
)
from tests.support.specification import after, given

OPENED = opened()
CELL, _ = planned_responses(after(*OPENED), [P1])
ANSWERED = (*OPENED, *responses(after(*OPENED)))
QUERY, SWAPPED = open_queries(after(*ANSWERED), [P1], JUDGE, AskingRules(retries=1))
KEY = QUERY.asked.query_key
SUBMITTED = (*ANSWERED, submitted(QUERY))
MATCH_KEY = QUERY.match.key(JUDGE.judge_id, DEFAULT_POLICY)

SAME = (
    *OPENED,
    *responses(after(*OPENED), {("base", "p1"): "aspirin", ("tuned", "p1"): "aspirin"}),
)
(TWINS_QUERY,) = open_queries(after(*SAME), [P1], JUDGE, AskingRules(retries=0))
TWINS = TWINS_QUERY.match
TWINS_KEY = TWINS.key(JUDGE.judge_id, DEFAULT_POLICY)

Unanswered: TypeAlias = Literal["errored", "rejected", "expired", "canceled"]

TEXT = GeneratedText(CELL.response_key, "aspirin", "stop", 3, 1, elapsed_s=0.5)
FAILURE = GenerationFailure(CELL.response_key, "prompt_too_long", "5000 tokens, at most 4096")
RATINGS = RatingsPublished(
    publication=Publication(
        run="headline_20260427_120000", terms=terms(), started_at=NOON, as_of=9, head=key("head")
    ),
    artifacts=(ArtifactDigest(path="manifest.json", digest=key("manifest")),),
)


def generated(result: GeneratedText = TEXT) -> ResponseGenerated:
    """Return the event that keeps a text."""
    return ResponseGenerated(
        response_key=CELL.response_key,
        entrant_id=CELL.entrant.entrant_id,
        prompt_id=CELL.prompt.prompt_id,
        seed=CELL.seed,
        sample=0,
        text=result.text,
        finish_reason=result.finish_reason,
        n_prompt_tokens=result.n_prompt_tokens,
        n_generated_tokens=result.n_generated_tokens,
        elapsed_s=result.elapsed_s,
    )


def not_generated(failure: GenerationFailure = FAILURE) -> ResponseFailed:
    """Return the event that keeps a failure."""
    return ResponseFailed(
        response_key=CELL.response_key,
        entrant_id=CELL.entrant.entrant_id,
        prompt_id=CELL.prompt.prompt_id,
        reason=failure.reason,
        detail=failure.detail,
    )


def reconciled(outcome: Outcome) -> PairReconciled:
    """Return the event that decides the match."""
    return PairReconciled(outcome=outcome, **MATCH_KEY._asdict())


def test_a_new_tournament_is_opened_with_all_it_names() -> None:
    """The ledger alone must say what was compared, long after the files are gone."""
    given().when(open_tournament(OPENED)).then(*OPENED)


def test_opening_again_under_the_same_settings_adds_nothing() -> None:
    """Every run opens first; an unchanged one must leave the ledger as it is."""
    given(*OPENED).when(open_tournament(OPENED)).then()


def test_opening_under_other_settings_is_numbered() -> None:
    """Openings are told apart by number, since the newest one holds."""
    changed = opened(entrants=[entrant("base"), entrant("other")], opening=2)

    given(*OPENED).when(open_tournament(changed)).then(
        changed[0], *registrations(entrants=[entrant("other")])
    )


def test_an_earlier_configuration_may_come_back() -> None:
    """Going back is a third opening, and what it names is known already."""
    changed = opened(entrants=[entrant("base"), entrant("other")], opening=2)
    back = opened(opening=3)

    given(*OPENED, *changed).when(open_tournament(OPENED)).then(back[0])


def test_a_corrected_prompt_is_registered_beside_the_old_one() -> None:
    """Its label stays and its content is another, so that verdicts on the old one stay apart."""
    corrected = prompt("p1", gold="ibuprofen")
    again = opened(prompts=[corrected], opening=2)

    given(*OPENED).when(open_tournament(again)).then(again[0], *registrations(prompts=[corrected]))


def test_a_response_is_kept_whole() -> None:
    """Text, seed and token counts are what a reader later needs to trust or repeat it."""
    given(*OPENED).when(RecordResponse(CELL, TEXT)).then(generated())


def test_a_response_is_recorded_once_even_if_it_differs() -> None:
    """The first one was judged; a second under the same key must not replace it."""
    second = GeneratedText(CELL.response_key, "something else", "length", 3, 2, elapsed_s=0.1)

    given(*OPENED, generated()).when(RecordResponse(CELL, second)).then()


def test_a_response_made_elsewhere_is_kept_where_there_is_none() -> None:
    """What was generated here is known to be the entrant's; a file's is only said to be."""
    imported = structs.replace(generated(), text="theirs", imported_from=key("a file"))

    given(*OPENED).when(RecordFact(imported)).then(imported)
    given(*OPENED, generated()).when(RecordFact(imported)).then()


def test_a_failure_to_answer_is_a_fact_of_its_own() -> None:
    """A prompt that is too long would fail again at each run if nobody wrote it down."""
    given(*OPENED).when(RecordResponse(CELL, FAILURE)).then(not_generated())


def test_a_failure_keeps_what_it_took() -> None:
    """A filter that keeps an answer back does so after it was generated, and billed."""
    usage = Usage(n_input=12, n_output=50)
    refused = GenerationFailure(CELL.response_key, "refused", "kept back", usage)

    kept = structs.replace(not_generated(refused), usage=usage)
    given(*OPENED).when(RecordResponse(CELL, refused)).then(kept)


def test_a_failure_is_recorded_once_for_each_reason() -> None:
    """A lack of memory may hide a failure that lasts, which then must be known."""
    memory = GenerationFailure(CELL.response_key, "out_of_memory", "16 GiB were not enough")
    lacking = not_generated(memory)

    given(*OPENED, lacking).when(RecordResponse(CELL, memory)).then()
    given(*OPENED, lacking).when(RecordResponse(CELL, FAILURE)).then(not_generated())


def test_a_response_after_a_failure_is_recorded() -> None:
    """A larger machine may answer what a small one could not."""
    given(*OPENED, not_generated()).when(RecordResponse(CELL, TEXT)).then(generated())


def test_a_failure_after_a_response_changes_nothing() -> None:
    """The response is there and can be judged."""
    given(*OPENED, generated()).when(RecordResponse(CELL, FAILURE)).then()


def test_a_query_is_submitted_before_its_answer_is_known() -> None:
    """What was put to a paid judge must be on record even if the answer never comes."""
    given(*ANSWERED).when(SubmitQuery(JUDGE.judge_id, QUERY)).then(submitted(QUERY))


def test_a_query_is_submitted_once_per_attempt() -> None:
    """After a kill the query in flight is the same attempt, not another."""
    given(*SUBMITTED).when(SubmitQuery(JUDGE.judge_id, QUERY)).then()


def test_a_failed_query_may_be_submitted_as_the_next_attempt() -> None:
    """A reply that says nothing is asked for again, and each asking is counted."""
    again = QUERY._replace(n_failed=1)

    given(*SUBMITTED, failed(KEY)).when(SubmitQuery(JUDGE.judge_id, again)).then(
        submitted(QUERY, attempt=2)
    )


def test_a_query_with_a_verdict_is_never_submitted() -> None:
    """It would be paid for twice."""
    given(*ANSWERED, verdict(KEY)).when(SubmitQuery(JUDGE.judge_id, QUERY)).then()


def read_now(query_key: Digest, said: Verdict = "A") -> VerdictReceived:
    """Return a verdict as it is read today; those on record may name an earlier rule."""
    return structs.replace(verdict(query_key, said), parser=PARSER)


@pytest.mark.parametrize("said", get_args(Verdict))
def test_a_reply_that_ends_in_a_verdict_is_a_verdict(said: Verdict) -> None:
    """It is of the slots as shown; which entrant stood there is a matter of the order."""
    given(*SUBMITTED).when(ReceiveAnswer(JUDGE, reply(KEY, f"VERDICT: {said}"))).then(
        read_now(KEY, said)
    )


@pytest.mark.parametrize(
    ("text", "stop_reason", "reason"),
    [
        ("I cannot help with that.\nVERDICT: A", "refusal", "refused"),
        ("The responses may end in\nVERDICT: B", "max_tokens", "truncated"),
        ("Both are fine.", "end_turn", "unreadable"),
        (" \n", "end_turn", "empty"),
    ],
)
def test_a_reply_without_a_verdict_is_a_failure_with_a_reason(
    text: str, stop_reason: str, reason: str
) -> None:
    """Counted as a tie it would pull ratings together; a cut reply may only look like one."""
    event = failed(KEY, reason=reason, reply=text, stop_reason=stop_reason)

    given(*SUBMITTED).when(ReceiveAnswer(JUDGE, reply(KEY, text, stop_reason))).then(event)


@pytest.mark.parametrize("reason", ["errored", "rejected", "expired", "canceled"])
@pytest.mark.parametrize("fate", ["not sent", "refused", "perhaps billed"])
def test_no_reply_is_a_failure_that_at_worst_was_paid_for(reason: Unanswered, fate: Fate) -> None:
    """The provider's own words are kept; there is no text, no token and no price."""
    silence = NoReply(KEY, reason, "overloaded_error: try later", fate)
    fields: dict[str, Any] = {"reply": "", "stop_reason": "", "model": "", "fate": fate}
    worst_usd = 0.25 if fate == "perhaps billed" else 0.0
    event = failed(KEY, reason=reason, detail=silence.detail, worst_usd=worst_usd, **fields)

    given(*SUBMITTED).when(ReceiveAnswer(JUDGE, silence, DEAR, worst_usd=0.25)).then(event)


def test_a_failure_is_reopened_once_and_its_query_is_open_again() -> None:
    """It would end the same but for what the user changed."""
    refused = failed(KEY, reason="refused")
    reopened = JudgeQueryReopened(query_key=KEY, judge=JUDGE.judge_id, attempt=1, reason="refused")

    given(*SUBMITTED, refused).when(ReopenQuery(refused)).then(reopened)
    given(*SUBMITTED, refused, reopened).when(ReopenQuery(refused)).then()
    given(*SUBMITTED, refused, verdict(KEY)).when(ReopenQuery(refused)).then()
    found = open_queries(after(*SUBMITTED, refused, reopened), [P1], JUDGE, AskingRules(0))
    assert (KEY, 1) in [(each.asked.query_key, each.n_failed) for each in found]


@pytest.mark.parametrize("said", ["VERDICT: A", "Both are fine."])
def test_what_a_reply_used_is_kept_with_its_price(said: str) -> None:
    """Useless or not it is paid for, at the price that held then."""
    answer = replace(reply(KEY, said), usage=USED)
    (event,) = decide(ReceiveAnswer(JUDGE, answer, DEAR), after(*SUBMITTED))

    assert isinstance(event, VerdictReceived | JudgeQueryFailed)
    assert (event.usage, event.price) == (USED, DEAR)
    assert after(*SUBMITTED, event).spent_usd == pytest.approx(1.0)


@pytest.mark.parametrize("said", ["VERDICT: A", "Both are fine."])
@pytest.mark.parametrize(("usage", "worst_usd"), [(None, 0.25), (USED, 0.0)])
def test_a_reply_whose_tokens_nobody_tells_is_kept_at_its_worst(
    said: str, usage: Usage | None, worst_usd: float
) -> None:
    """Else a cap would let through whatever a server leaves uncounted."""
    answer = replace(reply(KEY, said), usage=usage)
    (event,) = decide(ReceiveAnswer(JUDGE, answer, DEAR, worst_usd=0.25), after(*SUBMITTED))

    assert isinstance(event, VerdictReceived | JudgeQueryFailed)
    assert event.worst_usd == after(*SUBMITTED, event).lost_usd == worst_usd


def test_a_price_without_usage_is_not_kept() -> None:
    """A price of nothing that was counted would look like money."""
    given(*SUBMITTED).when(ReceiveAnswer(JUDGE, reply(KEY), DEAR)).then(read_now(KEY))


@pytest.mark.parametrize(
    ("text", "stop_reason", "reason"),
    [
        ('{"reasoning":"","verdict":"A"}', "refusal", "refused"),
        ('{"reasoning":"","verdict":"A"}', "max_tokens", "truncated"),
        ("VERDICT: A", "end_turn", "unreadable"),
        ("", "end_turn", "empty"),
    ],
)
def test_a_reply_that_was_asked_for_as_json_is_read_as_json(
    text: str, stop_reason: str, reason: str
) -> None:
    """The parser is named with the reply, so that an audit reads it by the same rule."""
    by_schema = judge(parameters=(("protocol", "schema"),))
    event = failed(KEY, reason=reason, reply=text, stop_reason=stop_reason, parser="json-verdict@2")

    given(*SUBMITTED).when(ReceiveAnswer(by_schema, reply(KEY, text, stop_reason))).then(event)


def test_a_verdict_that_was_asked_for_as_json_is_read_as_json() -> None:
    """The other way to ask, with the same verdicts."""
    by_schema = judge(parameters=(("protocol", "schema"),))
    text = '{"reasoning":"Both err.","verdict":"TIE"}'

    given(*SUBMITTED).when(ReceiveAnswer(by_schema, reply(KEY, text))).then(
        structs.replace(verdict(KEY, "TIE"), reply=text, parser="json-verdict@2")
    )


def test_a_reply_to_a_query_never_submitted_is_refused() -> None:
    """It belongs to somebody else's tournament, or a backend mixed up its keys."""
    given(*ANSWERED).when(ReceiveAnswer(JUDGE, reply(KEY))).then_raises(
        TourneyError, f"query {KEY}, which was never submitted"
    )


def test_a_second_reply_to_a_query_is_ignored() -> None:
    """The first one was reconciled; a judge does not vote twice."""
    late = ReceiveAnswer(JUDGE, reply(KEY, "VERDICT: B"))

    given(*SUBMITTED, verdict(KEY, "A")).when(late).then()


def test_a_reply_to_a_query_that_another_tournament_answered_is_ignored() -> None:
    """A merge brought the verdict while the query was on its way: the rest must be received."""
    given(*ANSWERED, verdict(KEY)).when(ReceiveAnswer(JUDGE, reply(KEY))).then()


def test_a_late_verdict_on_a_failed_attempt_is_kept() -> None:
    """It was paid for, in a batch of a merged ledger say; asking again would pay twice."""
    late = ReceiveAnswer(JUDGE, reply(KEY))

    given(*SUBMITTED, failed(KEY)).when(late).then(read_now(KEY))


def test_an_attempt_fails_once() -> None:
    """The same failure told again, as results are read again, is no other."""
    late = ReceiveAnswer(JUDGE, reply(KEY, "Both are fine."))

    given(*SUBMITTED, failed(KEY)).when(late).then()


def test_the_reply_to_the_next_attempt_is_read() -> None:
    """An earlier failure must not stand in the way of the verdict that was asked for again."""
    events = (*SUBMITTED, failed(KEY), submitted(QUERY, attempt=2))

    given(*events).when(ReceiveAnswer(JUDGE, reply(KEY))).then(read_now(KEY))


@pytest.mark.parametrize(
    ("forward", "swapped", "outcome"),
    [
        ("A", "B", "a"),
        ("B", "A", "b"),
        ("TIE", "TIE", "tie"),
        ("A", "A", "inconsistent"),
        ("B", "B", "inconsistent"),
        ("A", "TIE", "inconsistent"),
        ("TIE", "A", "inconsistent"),
        ("B", "TIE", "inconsistent"),
        ("TIE", "B", "inconsistent"),
    ],
)
def test_both_orders_decide_a_match_together(
    forward: Verdict, swapped: Verdict, outcome: Outcome
) -> None:
    """A judge that goes by the slot contradicts itself, and that must not count for anybody."""
    both = (verdict(KEY, forward), verdict(SWAPPED.asked.query_key, swapped))

    given(*ANSWERED, *both).when(ReconcilePair(JUDGE.judge_id, DEFAULT_POLICY, QUERY.match)).then(
        reconciled(outcome)
    )


def test_a_match_with_one_verdict_cannot_be_reconciled() -> None:
    """A missing verdict has no default."""
    command = ReconcilePair(JUDGE.judge_id, DEFAULT_POLICY, QUERY.match)

    given(*ANSWERED, verdict(KEY)).when(command).then_raises(KeyError, SWAPPED.asked.query_key)


def test_identical_responses_tie_without_a_verdict() -> None:
    """Both orders put one question, to which there is no other answer; it is marked so."""
    tie = PairReconciled(outcome="tie", basis="identical", **TWINS_KEY._asdict())

    given(*SAME).when(ReconcilePair(JUDGE.judge_id, DEFAULT_POLICY, TWINS)).then(tie)


def test_identical_responses_that_were_judged_are_reconciled_by_the_verdict() -> None:
    """What was paid for is believed: a judge that prefers one of them contradicts itself."""
    said = verdict(TWINS.forward.query_key, "A")
    inconsistent = PairReconciled(outcome="inconsistent", **TWINS_KEY._asdict())

    given(*SAME, said).when(ReconcilePair(JUDGE.judge_id, DEFAULT_POLICY, TWINS)).then(inconsistent)


def test_a_policy_that_nobody_defined_is_refused() -> None:
    """Reconciling by a default instead would record a claim that nobody made."""
    both = (verdict(KEY), verdict(SWAPPED.asked.query_key))

    given(*ANSWERED, *both).when(
        ReconcilePair(JUDGE.judge_id, "coin-toss", QUERY.match)
    ).then_raises(KeyError, "coin-toss")


def test_ratings_are_claimed_with_their_artifacts() -> None:
    """A replay is checked against what was claimed here."""
    given(*OPENED).when(PublishRatings(RATINGS)).then(RATINGS)


@pytest.mark.parametrize(
    ("known", "command"),
    [
        ((*SUBMITTED, failed(KEY)), ReceiveAnswer(JUDGE, reply(KEY, "Both are fine."))),
        (
            (*SUBMITTED, failed(KEY, reason="errored", reply="")),
            ReceiveAnswer(JUDGE, NoReply(KEY, "errored", "overloaded_error")),
        ),
        ((*ANSWERED, reconciled("a")), ReconcilePair(JUDGE.judge_id, DEFAULT_POLICY, QUERY.match)),
        ((*OPENED, RATINGS), PublishRatings(RATINGS)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_command_repeated_adds_nothing(known: tuple[Event, ...], command: Command) -> None:
    """A user runs the same command again after any trouble."""
    given(*known).when(command).then()
