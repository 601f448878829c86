"""A judge on a server of one's own, through the real client and a server on loopback."""

import json
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from threading import Barrier

import httpx2
import openai
import pytest

from commands.backends.endpoint.judge import EndpointJudge
from commands.backends.endpoint.server import Endpoint
from commands.decisions.recorder import Recorder
from commands.errors import ConfigurationError, NoCredentials, ProviderError, SpendLimitReached
from commands.judging.judge import JudgeTask, begun_again, judge_open
from commands.ports import Answer, Judge, NoReply, Reply, no_progress
from commands.settings import api_keys
from commands.spending.budget import BudgetReached, PriceUnknown, at_risk_usd
from ledger.events.judging import JudgeQueryFailed
from ledger.events.money import Usage
from ledger.events.registration import JudgeSettings
from ledger.identity import JudgeId
from ledger.store import Ledger
from projections.tournament.remaining import AskingRules
from projections.verdicts.queries import JudgeQuery
from tests.providers.openai import MODEL, FakeOpenAI, Fault, Json, Said
from tests.support.builders.commands import record_answers
from tests.support.builders.events import STREAM, key, opened, prompt
from tests.support.builders.events import judge as judge_settings
from tests.support.builders.money import FlatRate
from tests.support.contracts import QUERIES, JudgeContract
from tests.support.patience import PATIENCE_S
from tests.support.scripted import answered

CANARY = "sk-canary-9c1f"
QUERY = QUERIES[0]


@pytest.fixture
def fake() -> Iterator[FakeOpenAI]:
    """Give a server on which nothing goes wrong."""
    with FakeOpenAI() as fake:
        yield fake


def served(
    url: str,
    *,
    model: str = MODEL,
    protocol: str = "line",
    n_at_a_time: int = 1,
    **fields: object,
) -> Judge:
    """Return a judge on a server that sends nothing again."""
    parameters = (("max_tokens", 64.0), ("protocol", protocol))
    judge = JudgeSettings(JudgeId("steady"), "endpoint", model, parameters)
    given = {"api_key": None, "model": f"judge {model!r}", "n_at_a_time": n_at_a_time, **fields}
    server = Endpoint(url, **given)  # type: ignore[arg-type]  # as each test needs
    return EndpointJudge(judge, server)


def answers_of(judge: Judge, queries: Sequence[JudgeQuery] = (QUERY,)) -> list[Answer]:
    """Return what a judge answers."""
    return list(answered(judge, queries))


def numbered(n: int) -> list[JudgeQuery]:
    """Return different queries."""
    return [QUERY._replace(query_key=key(str(each)), user=f"Question {each}") for each in range(n)]


class TestEndpointJudge(JudgeContract):
    """The judge on a server that answers every query, several at a time."""

    @pytest.fixture(autouse=True)
    def _server(self, fake: FakeOpenAI) -> None:
        self._url = fake.url

    def make(self) -> Judge:
        """Return a judge that asks three queries at a time."""
        return served(self._url, n_at_a_time=3)


def test_a_query_is_sent_whole_and_greedily(fake: FakeOpenAI) -> None:
    """The query's key names this request: what is sent beside it would change unseen."""
    answers_of(served(fake.url))

    assert fake.traffic.asked == [
        {
            "model": MODEL,
            "messages": [
                {"role": "system", "content": QUERY.system},
                {"role": "user", "content": QUERY.user},
            ],
            "max_tokens": 64,
            "temperature": 0.0,
        }
    ]


def test_a_reply_is_kept_with_its_tokens_and_the_name_that_the_server_gave() -> None:
    """What was read from the server's cache is not input a second time."""
    with FakeOpenAI(lambda _: Said("VERDICT: B", n_cached=5)) as fake:
        (reply,) = answers_of(served(fake.url))

    n_prompt = len(json.dumps(fake.traffic.asked[0]["messages"])) // 4
    usage = Usage(n_input=n_prompt - 5, n_output=2, n_cache_read=5)
    assert reply == Reply(QUERY.query_key, "VERDICT: B", "end_turn", MODEL, usage)


@pytest.mark.parametrize(
    ("said", "stop_reason", "text"),
    [
        (Said("VERDICT: A"), "end_turn", "VERDICT: A"),
        (Said("Both", finish_reason="length"), "max_tokens", "Both"),
        (Said("", finish_reason="content_filter"), "refusal", ""),
        (Said(None, refusal="I cannot."), "refusal", "I cannot."),
        (Said(None, finish_reason="abort"), "abort", ""),
    ],
)
def test_the_end_of_a_reply_is_told_in_one_language(
    said: Said, stop_reason: str, text: str
) -> None:
    """Truncated, refused and unreadable replies are counted apart, whoever judges."""
    with FakeOpenAI(lambda _: said) as fake:
        (reply,) = answers_of(served(fake.url))

    assert isinstance(reply, Reply)
    assert (reply.stop_reason, reply.text) == (stop_reason, text)


def test_queries_are_put_so_many_at_a_time() -> None:
    """A server that batches what waits is only quick when several wait; too many swamp it."""
    together = Barrier(4, timeout=PATIENCE_S)

    def say(_: Json) -> Said:
        together.wait()
        return Said()

    with FakeOpenAI(say) as fake:
        answers = answers_of(served(fake.url, n_at_a_time=4), numbered(12))

    assert len(answers) == 12
    assert fake.traffic.n_most == 4


def test_what_passes_is_asked_again(fake: FakeOpenAI) -> None:
    """A server that is full for a second should cost nobody an evening."""
    fake.inject(Fault("rate_limited"))

    (answer,) = answers_of(served(fake.url))

    assert isinstance(answer, Reply)
    assert len(fake.traffic.asked) == 2


@pytest.mark.parametrize(
    ("kind", "reason", "detail", "fate"),
    [
        ("bad_request", "rejected", "HTTP 400: told to fail: bad_request", "refused"),
        ("too_large", "rejected", "HTTP 413: told to fail: too_large", "refused"),
        ("server_error", "errored", "HTTP 500: told to fail: server_error", "perhaps billed"),
    ],
)
def test_a_query_that_fails_leaves_the_others_alone(
    fake: FakeOpenAI, kind: str, reason: str, detail: str, fate: str
) -> None:
    """One response that is too long for the server's context must not end the evening's run."""
    fake.inject(Fault(kind))  # type: ignore[arg-type]  # the kinds above
    queries = numbered(3)

    answers = answers_of(served(fake.url), queries)

    failure = NoReply(queries[0].query_key, reason, detail, fate)  # type: ignore[arg-type]  # as above
    assert [each for each in answers if not isinstance(each, Reply)] == [failure]
    assert len(answers) == 3


def test_a_server_that_is_set_up_wrongly_has_nothing_recorded(
    fake: FakeOpenAI, ledger: Ledger
) -> None:
    """Without a chat template it rejects every query; once it has one, every query is open."""
    asked = judge_settings("steady", provider="endpoint", model=MODEL)
    prompts = [prompt(f"p{each}") for each in range(4)]
    recorder = record_answers(Recorder(ledger, STREAM), opened(prompts=prompts, judges=[asked]))
    task = JudgeTask(asked, [each.prompt_id for each in prompts], AskingRules(1))
    fake.inject(*[Fault("bad_request")] * 8)

    with pytest.raises(
        ProviderError, match=r"rejected 8 requests in a row .*HTTP 400: told to fail"
    ):
        judge_open(recorder, task, lambda *_: served(fake.url), on_progress=no_progress)
    done = judge_open(recorder, task, lambda *_: served(fake.url), on_progress=no_progress)

    assert done.n_open == done.n_verdicts == 8
    assert {each.reason for each in failures_in(ledger)} == {"errored"}


def test_what_the_server_finds_wrong_is_told(fake: FakeOpenAI) -> None:
    """The words are all that a user can put right a setting by."""
    parameters = (("max_tokens", 0.0),)
    judge = JudgeSettings(JudgeId("steady"), "endpoint", MODEL, parameters)

    server = Endpoint(fake.url, "judge", api_key=None)
    answers = answered(EndpointJudge(judge, server), [QUERY])

    detail = "HTTP 400: max_tokens must be at least 1"
    assert list(answers) == [NoReply(QUERY.query_key, "rejected", detail)]


@pytest.mark.usefixtures("impatient")
def test_a_query_that_takes_too_long_is_left_for_later(fake: FakeOpenAI) -> None:
    """A judge that talks without end holds up its own query only."""
    fake.inject(Fault("too_late"))

    late, soon = answers_of(served(fake.url), numbered(2))

    assert isinstance(late, NoReply)
    assert (late.detail, late.fate) == ("the server took too long to answer", "perhaps billed")
    assert isinstance(soon, Reply)


def test_a_server_has_as_long_as_its_settings_say() -> None:
    """For each part of an answer; some judges think for minutes."""
    with Endpoint("http://localhost", "judge", None, timeout_s=7.0).client() as client:
        assert client.timeout == openai.Timeout(7.0, connect=7.0)


def failing(status: int) -> bytes:
    """Fail as the client does when a server answers with a status."""
    response = httpx2.Response(status, request=httpx2.Request("POST", "http://localhost"))
    raise openai.InternalServerError("no", response=response, body=None)


def by(send: Callable[[], bytes]) -> NoReply:
    """Return what becomes of a request that fails."""
    answer = Endpoint("http://localhost", "judge", None).answer(QUERY.query_key, send, len)
    assert isinstance(answer, NoReply)
    return answer


@pytest.mark.parametrize("status", [500, 502])
def test_a_server_that_broke_may_send_a_bill(status: int) -> None:
    """It had taken the request."""
    answer = by(lambda: failing(status))

    assert (answer.then, answer.fate) == ("go on", "perhaps billed")


@pytest.mark.parametrize("cause", [httpx2.ConnectTimeout("no"), httpx2.ConnectError("no")])
def test_a_request_that_never_left_is_not_billed(cause: Exception) -> None:
    """The client calls a connection that takes too long a timeout, too."""

    def send() -> bytes:
        error = openai.APITimeoutError(httpx2.Request("POST", "http://localhost"))
        raise error from cause

    answer = by(send)

    assert (answer.then, answer.fate) == ("ask again", "not sent")


@pytest.mark.parametrize("status", [503, 529])
def test_a_server_that_turns_a_request_away_may_send_a_bill(status: int) -> None:
    """A gateway before it may have given up on it only."""
    answer = by(lambda: failing(status))

    assert (answer.then, answer.fate) == ("wait", "perhaps billed")


def failures_in(ledger: Ledger) -> list[JudgeQueryFailed]:
    """Return the failures on record."""
    return [each.event for each in ledger.read() if isinstance(each.event, JudgeQueryFailed)]


def recorder_of(ledger: Ledger, n_prompts: int) -> tuple[Recorder, JudgeTask]:
    """Open a tournament with two queries about each prompt, a dollar each."""
    asked = judge_settings("steady", provider="endpoint", model=MODEL)
    prompts = [prompt(f"p{each}") for each in range(n_prompts)]
    recorder = record_answers(Recorder(ledger, STREAM), opened(prompts=prompts, judges=[asked]))
    wanted = [each.prompt_id for each in prompts]
    return recorder, JudgeTask(asked, wanted, AskingRules(0), lambda _: FlatRate(1.0))


def test_an_answer_that_did_not_come_in_time_counts_against_the_cap(
    fake: FakeOpenAI, ledger: Ledger
) -> None:
    """The server went on talking, and sends a bill for that."""
    recorder, task = recorder_of(ledger, 4)
    capped = replace(task, max_usd=3.5)
    fake.inject(*[Fault("server_error")] * 8)

    with pytest.raises(BudgetReached):
        judge_open(recorder, capped, lambda *_: served(fake.url), on_progress=no_progress)

    assert len(fake.traffic.asked) == 3
    assert at_risk_usd(recorder.state) == 3.0


def test_a_server_without_a_price_goes_on_without_a_cap_only(
    fake: FakeOpenAI, ledger: Ledger
) -> None:
    """One of your own is free, whatever it fails on; a cap on it could not be kept."""
    recorder, task = recorder_of(ledger, 4)
    free = replace(task, pricing_of=lambda _: FlatRate(None))
    fake.inject(Fault("server_error"))

    done = judge_open(recorder, free, lambda *_: served(fake.url), on_progress=no_progress)
    capped = begun_again(recorder, replace(free, max_usd=1.0))
    with pytest.raises(PriceUnknown):
        judge_open(recorder, capped, lambda *_: served(fake.url), on_progress=no_progress)

    assert (done.n_verdicts, done.n_failed) == (7, 1)
    assert at_risk_usd(recorder.state) == 0.0


@pytest.mark.usefixtures("at_once")
def test_a_server_that_is_not_there_is_named() -> None:
    """Most often it was not started, or listens on another port."""
    with FakeOpenAI() as gone:
        url = gone.url

    with pytest.raises(ProviderError, match="start the server or correct base_url") as refusal:
        answers_of(served(url))
    assert url in str(refusal.value)
    assert "refused" in str(refusal.value)


@pytest.mark.parametrize("kind", ["no_credit", "no_quota", "unpaid"])
def test_a_server_that_is_to_be_paid_first_ends_the_run(fake: FakeOpenAI, kind: str) -> None:
    """None of the queries is at fault: each is asked when there is money again."""
    fake.inject(*[Fault(kind)] * 3)  # type: ignore[arg-type]  # the kinds above

    with pytest.raises(SpendLimitReached, match="HTTP 4"):
        answers_of(served(fake.url), numbered(3))

    assert len(fake.traffic.asked) == 1


def test_half_a_character_is_replaced() -> None:
    """JSON can hold it and no ledger can; the rest of the reply may be paid for."""
    with FakeOpenAI(lambda _: Said("\ud83d \U0001f600 VERDICT: A")) as fake:
        (reply,) = answers_of(served(fake.url))

    assert isinstance(reply, Reply)
    assert reply.text == "? \U0001f600 VERDICT: A"


@pytest.mark.parametrize("kind", ["page", "half_json", "no_choices", "no_utf8"])
def test_something_else_at_that_address_is_found_out(fake: FakeOpenAI, kind: str) -> None:
    """A proxy's welcome page is no reply, and no empty one either."""
    fake.inject(Fault(kind))  # type: ignore[arg-type]  # the kinds above

    with pytest.raises(ProviderError, match="does not reply like OpenAI's API"):
        answers_of(served(fake.url))


def test_a_model_that_is_not_served_is_a_fault_of_the_settings(fake: FakeOpenAI) -> None:
    """Every query would fail alike."""
    with pytest.raises(
        ConfigurationError, match=r"does not have judge 'other' \(.*The model `other`"
    ):
        answers_of(served(fake.url, model="other"))


def test_an_address_without_its_version_is_a_fault_of_the_settings(fake: FakeOpenAI) -> None:
    """The most common slip of all."""
    with pytest.raises(ConfigurationError, match=r"correct .* base_url, which often ends in /v1"):
        answers_of(served(fake.url.removesuffix("/v1")))


def test_a_key_is_sent_and_never_told(caplog: pytest.LogCaptureFixture) -> None:
    """Logs and errors are what users paste into issues."""
    caplog.set_level(logging.DEBUG)
    with FakeOpenAI(api_key=CANARY) as fake:
        (reply,) = answers_of(served(fake.url, api_key=CANARY))

    assert isinstance(reply, Reply)
    assert fake.traffic.keys == [CANARY]
    assert CANARY not in caplog.text


def test_a_key_that_is_refused_is_not_quoted() -> None:
    """The server's own words do quote it."""
    with FakeOpenAI(api_key="another") as fake, pytest.raises(NoCredentials) as refusal:
        answers_of(served(fake.url, api_key=CANARY))

    assert "export OPENAI_API_KEY" in str(refusal.value)
    assert CANARY not in str(refusal.value)
    assert refusal.value.__cause__ is refusal.value.__context__ is None


def test_a_key_that_the_server_repeats_is_not_recorded(
    fake: FakeOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it says about a rejected query is kept on the ledger for ever."""
    monkeypatch.setattr(api_keys, "_remembered", set())
    judge = served(fake.url, api_key="bad_request")

    fake.inject(Fault("bad_request"))
    (answer,) = answers_of(judge)

    detail = "HTTP 400: told to fail: [key]"
    assert answer == NoReply(QUERY.query_key, "rejected", detail)
