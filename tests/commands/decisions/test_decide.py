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
from ledger.events.registration import JudgeSettings
from ledger.events.registry import Event
from ledger.events.responses import ResponseFailed, ResponseGenerated
from ledger.identity import Digest
from projections.tournament.matches import complete_matches, planned_responses
from projections.tournament.remaining import open_queries
from projections.verdicts.parsers import PARSER, PARSER_OF
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
QUERY, SWAPPED = open_queries(after(*ANSWERED), [P1], JUDGE, retries=1)
KEY = QUERY.asked.query_key
SUBMITTED = (*ANSWERED, submitted(QUERY))
MATCH_KEY = QUERY.match.key(JUDGE.judge_id)

SAME = (
    *OPENED,
    *responses(after(*OPENED), {("base", "p1"): "aspirin", ("tuned", "p1"): "aspirin"}),
)
(TWINS,) = complete_matches(after(*SAME), [P1], JUDGE)
TWINS_KEY = TWINS.key(JUDGE.judge_id)

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
    return CELL.made(
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


IMPORTED = structs.replace(generated(), text="theirs", imported_from=key("a file"))
MEMORY = GenerationFailure(CELL.response_key, "out_of_memory", "16 GiB were not enough")
BILLED = Usage(n_input=12, n_output=50)
WITHHELD = GenerationFailure(CELL.response_key, "refused", "kept back", BILLED)


@pytest.mark.parametrize(
    ("known", "command", "news"),
    [
        pytest.param(*each[1:], id=each[0])
        for each in (
            ("a response is kept whole", (), RecordResponse(CELL, TEXT), (generated(),)),
            (
                "a second one under its key does not replace the one that was judged",
                (generated(),),
                RecordResponse(CELL, replace(TEXT, text="something else")),
                (),
            ),
            (
                "one from elsewhere is kept in want of one",
                (),
                RecordFact(IMPORTED),
                (IMPORTED,),
            ),
            ("what was generated here goes before it", (generated(),), RecordFact(IMPORTED), ()),
            ("a failure is a fact", (), RecordResponse(CELL, FAILURE), (not_generated(),)),
            (
                "a failure keeps what was billed for it",
                (),
                RecordResponse(CELL, WITHHELD),
                (structs.replace(not_generated(WITHHELD), usage=BILLED),),
            ),
            (
                "a failure is recorded once",
                (not_generated(MEMORY),),
                RecordResponse(CELL, MEMORY),
                (),
            ),
            (
                "a lack of memory hides no failure that lasts",
                (not_generated(MEMORY),),
                RecordResponse(CELL, FAILURE),
                (not_generated(),),
            ),
            (
                "a larger machine may answer what a small one could not",
                (not_generated(),),
                RecordResponse(CELL, TEXT),
                (generated(),),
            ),
            (
                "a failure after a response changes nothing",
                (generated(),),
                RecordResponse(CELL, FAILURE),
                (),
            ),
        )
    ],
)
def test_a_response_or_the_reason_for_none_is_recorded_once(
    known: tuple[Event, ...], command: Command, news: tuple[Event, ...]
) -> None:
    """Text, seed and token counts are what a reader later needs to trust or repeat it."""
    given(*OPENED, *known).when(command).then(*news)


def read_now(query_key: Digest, said: Verdict = "A") -> VerdictReceived:
    """Return a verdict as it is read today; those on record may name an earlier rule."""
    return structs.replace(verdict(query_key, said), parser=PARSER)


LATE = ReceiveAnswer(JUDGE, reply(KEY))


@pytest.mark.parametrize(
    ("known", "command", "news"),
    [
        pytest.param(*each[1:], id=each[0])
        for each in (
            (
                "a query is submitted before its answer is known",
                (),
                SubmitQuery(JUDGE.judge_id, QUERY),
                (submitted(QUERY),),
            ),
            (
                "after a kill it is the same attempt, not another",
                (submitted(QUERY),),
                SubmitQuery(JUDGE.judge_id, QUERY),
                (),
            ),
            (
                "one that failed may be submitted as the next attempt",
                (submitted(QUERY), failed(KEY)),
                SubmitQuery(JUDGE.judge_id, QUERY._replace(n_failed=1)),
                (submitted(QUERY, attempt=2),),
            ),
            (
                "one with a verdict is never submitted",
                (verdict(KEY),),
                SubmitQuery(JUDGE.judge_id, QUERY),
                (),
            ),
            (
                "a judge does not vote twice",
                (submitted(QUERY), verdict(KEY, "A")),
                ReceiveAnswer(JUDGE, reply(KEY, "VERDICT: B")),
                (),
            ),
            ("what a merge answered meanwhile is no news", (verdict(KEY),), LATE, ()),
            (
                "a late verdict on a failed attempt was paid for, and is kept",
                (submitted(QUERY), failed(KEY)),
                LATE,
                (read_now(KEY),),
            ),
            (
                "the reply to the next attempt is read",
                (submitted(QUERY), failed(KEY), submitted(QUERY, attempt=2)),
                LATE,
                (read_now(KEY),),
            ),
        )
    ],
)
def test_a_query_is_asked_and_answered_once_an_attempt(
    known: tuple[Event, ...], command: Command, news: tuple[Event, ...]
) -> None:
    """What was put to a paid judge is on record even if the answer never comes."""
    given(*ANSWERED, *known).when(command).then(*news)


@pytest.mark.parametrize("said", get_args(Verdict))
def test_a_reply_that_ends_in_a_verdict_is_a_verdict(said: Verdict) -> None:
    """It is of the slots as shown; which entrant stood there is a matter of the order."""
    given(*SUBMITTED).when(ReceiveAnswer(JUDGE, reply(KEY, f"VERDICT: {said}"))).then(
        read_now(KEY, said)
    )


BY_SCHEMA = judge(parameters=(("protocol", "schema"),))


@pytest.mark.parametrize(
    ("by", "text", "stop_reason", "reason"),
    [
        (JUDGE, "I cannot help with that.\nVERDICT: A", "refusal", "refused"),
        (JUDGE, "The responses may end in\nVERDICT: B", "max_tokens", "truncated"),
        (JUDGE, "Both are fine.", "end_turn", "unreadable"),
        (JUDGE, " \n", "end_turn", "empty"),
        (BY_SCHEMA, '{"reasoning":"","verdict":"A"}', "max_tokens", "truncated"),
        (BY_SCHEMA, "VERDICT: A", "end_turn", "unreadable"),
    ],
)
def test_a_reply_without_a_verdict_is_a_failure_with_a_reason(
    by: JudgeSettings, text: str, stop_reason: str, reason: str
) -> None:
    """Counted as a tie it would pull ratings together; a cut reply may only look like one.

    The parser is named with the reply, so that an audit reads it by the same rule.
    """
    parser = PARSER_OF[by.protocol]
    event = failed(KEY, reason=reason, reply=text, stop_reason=stop_reason, parser=parser)

    given(*SUBMITTED).when(ReceiveAnswer(by, reply(KEY, text, stop_reason))).then(event)


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
    found = open_queries(after(*SUBMITTED, refused, reopened), [P1], JUDGE, retries=0)
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


def test_a_verdict_that_was_asked_for_as_json_is_read_as_json() -> None:
    """The other way to ask, with the same verdicts."""
    text = '{"reasoning":"Both err.","verdict":"TIE"}'

    given(*SUBMITTED).when(ReceiveAnswer(BY_SCHEMA, reply(KEY, text))).then(
        structs.replace(verdict(KEY, "TIE"), reply=text, parser="json-verdict@2")
    )


def test_a_reply_to_a_query_never_submitted_is_refused() -> None:
    """It belongs to somebody else's tournament, or a backend mixed up its keys."""
    given(*ANSWERED).when(ReceiveAnswer(JUDGE, reply(KEY))).then_raises(
        TourneyError, f"query {KEY}, which was never submitted"
    )


@pytest.mark.parametrize(("swapped", "outcome"), [("B", "a"), ("A", "inconsistent")])
def test_both_orders_decide_a_match_together(swapped: Verdict, outcome: Outcome) -> None:
    """A judge that goes by the slot contradicts itself, and that must not count for anybody."""
    both = (verdict(KEY, "A"), verdict(SWAPPED.asked.query_key, swapped))

    given(*ANSWERED, *both).when(ReconcilePair(JUDGE.judge_id, QUERY.match)).then(
        reconciled(outcome)
    )


def test_a_match_with_one_verdict_cannot_be_reconciled() -> None:
    """A missing verdict has no default."""
    command = ReconcilePair(JUDGE.judge_id, QUERY.match)

    given(*ANSWERED, verdict(KEY)).when(command).then_raises(KeyError, SWAPPED.asked.query_key)


def test_identical_responses_tie_without_a_verdict() -> None:
    """Both orders put one question, to which there is no other answer; it is marked so."""
    tie = PairReconciled(outcome="tie", basis="identical", **TWINS_KEY._asdict())

    given(*SAME).when(ReconcilePair(JUDGE.judge_id, TWINS)).then(tie)


def test_identical_responses_that_were_judged_are_reconciled_by_the_verdict() -> None:
    """What was paid for is believed: a judge that prefers one of them contradicts itself."""
    said = verdict(TWINS.forward.query_key, "A")
    inconsistent = PairReconciled(outcome="inconsistent", **TWINS_KEY._asdict())

    given(*SAME, said).when(ReconcilePair(JUDGE.judge_id, TWINS)).then(inconsistent)


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
        ((*ANSWERED, reconciled("a")), ReconcilePair(JUDGE.judge_id, QUERY.match)),
        ((*OPENED, RATINGS), PublishRatings(RATINGS)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_command_repeated_adds_nothing(known: tuple[Event, ...], command: Command) -> None:
    """A user runs the same command again after any trouble."""
    given(*known).when(command).then()
