"""What a gateway bills is on the ledger and within the cap, whatever it answers."""

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from commands.asking.rejections import MOST_ALIKE
from commands.decisions.recorder import Recorder
from commands.errors import NoCredentials
from commands.spending.price_table import PriceTable, price_table
from ledger.events.judging import JudgeQueryFailed, VerdictReceived
from ledger.events.requests import RequestsSettled
from ledger.events.responses import ResponseFailed, ResponseGenerated
from ledger.store import Ledger
from tests.providers.billing_gateway import STATUSES, Gateway, Sent, well
from tests.providers.openai import PRICES, Json
from tests.support.builders.endpoints import errors_of, generate_at, judge_at
from tests.support.builders.events import STREAM

pytestmark = pytest.mark.usefixtures("at_once")

Answer = Callable[[int, Json], Sent]


def judge_through(
    gateway: Gateway,
    ledger: Ledger,
    *,
    n_prompts: int = 2,
    retry: int = 3,
    **options: Any,  # noqa: ANN401  # handed on
) -> list[str]:
    """Judge pairs, as often as a patient user; return the errors."""
    judge = partial(judge_at, gateway.url, ledger, n_prompts=n_prompts, **options)
    return errors_of(retry, judge)


def failures_in(ledger: Ledger) -> list[JudgeQueryFailed]:
    """Return the queries without a verdict on record."""
    return [each.event for each in ledger.read() if isinstance(each.event, JudgeQueryFailed)]


def fates_of_queries(ledger: Ledger) -> Counter[str]:
    """Count what became of queries; "answered" if a reply came."""
    events = [each.event for each in ledger.read()]
    failed = Counter(str(each.fate) for each in failures_in(ledger))
    return failed + Counter(answered=sum(isinstance(each, VerdictReceived) for each in events))


@pytest.mark.parametrize("status", STATUSES)
def test_no_status_of_a_gateway_passes_a_judges_cap(ledger: Ledger, status: int) -> None:
    """Each request may be billed at its worst, a dollar here."""
    with Gateway(lambda _, __: Sent(status, {"error": {"message": "no"}})) as gateway:
        errors = judge_through(gateway, ledger, n_prompts=8, max_usd=5.5)

    assert len(gateway.asked) <= 5
    assert fates_of_queries(ledger) == {"perhaps billed": len(gateway.asked)}
    assert errors


def test_a_server_that_is_busy_for_long_is_asked_until_it_answers(ledger: Ledger) -> None:
    """Each request may be billed; `test_pace` says that they go one at a time."""
    n_before_it_works = 10

    def answer(_: int, body: Json) -> Sent:
        n_asked = len(gateway.asked)
        is_busy = n_asked <= n_before_it_works
        return Sent((429, 503, 529)[n_asked % 3], {}) if is_busy else well(body)

    with Gateway(answer) as gateway:
        judge_through(gateway, ledger, n_prompts=2, n_at_a_time=8, retry=1)

    assert fates_of_queries(ledger) == {"answered": 4, "perhaps billed": n_before_it_works}


def failing_for(word: str, sent: Sent) -> Answer:
    """Return what fails each request with a word in it, and answers all others."""
    return lambda _, body: sent if word in str(body) else well(body)


MODERATED = {"error": {"message": "Input was flagged by moderation", "code": 403}}


@pytest.mark.parametrize("status", [403, 408, 499])
def test_one_requests_own_status_ends_no_run(ledger: Ledger, status: int) -> None:
    """It says nothing of the key, and the server's words are on record."""
    failure = Sent(status, {"error": {"message": f"not this one, says {status}"}})
    with Gateway(failing_for("p1", failure)) as gateway:
        errors = judge_through(gateway, ledger, n_prompts=3, retry=1)

    failed = failures_in(ledger)
    assert errors == []
    assert fates_of_queries(ledger)["answered"] == 4
    assert {each.detail for each in failed} == {f"HTTP {status}: not this one, says {status}"}


def test_a_403_to_everything_is_the_keys_fault(ledger: Ledger) -> None:
    """And nothing is given up for good."""
    with Gateway(lambda _, __: Sent(403, {"error": {"message": "no access"}})) as gateway:
        few = judge_through(gateway, ledger, n_prompts=2, retry=1)
        many = judge_through(gateway, ledger, n_prompts=20, retry=1)

    assert [each.partition(":")[0] for each in few + many] == [NoCredentials.__name__] * 2
    assert all("HTTP 403: no access" in each for each in few + many)
    assert len(gateway.asked) == 4 + MOST_ALIKE
    assert fates_of_queries(ledger) == {"perhaps billed": 4 + MOST_ALIKE}
    assert {each.reason for each in failures_in(ledger)} == {"errored"}


def test_an_error_in_a_success_is_read_as_the_error_that_it_is(ledger: Ledger) -> None:
    """A free plan's limit is waited for, and an upstream's fault is told in its words."""
    limit = {"error": {"message": "Rate limit exceeded: free-models-per-day", "code": 429}}
    fault = {"error": {"message": "Upstream is ill", "code": "upstream"}, "choices": None}

    def answer(n: int, body: Json) -> Sent:
        if "p1" in str(body):
            return Sent(200, fault)
        return Sent(200, limit) if n == 1 else well(body)

    with Gateway(answer) as gateway:
        errors = judge_through(gateway, ledger, retry=1)

    failed = failures_in(ledger)
    assert errors == []
    assert fates_of_queries(ledger) == {"answered": 2, "perhaps billed": 4}
    assert {each.detail for each in failed if "Upstream" in each.detail} == {
        "HTTP 500: Upstream is ill"
    }


def completed(body: Json) -> Json:
    """Return the JSON of an answer."""
    answer = well(body).body
    assert isinstance(answer, dict)
    return answer


@pytest.fixture
def prices(tmp_path_factory: pytest.TempPathFactory) -> PriceTable:
    """Give a table in which the model has a price."""
    path = tmp_path_factory.mktemp("prices") / "prices.toml"
    path.write_text(PRICES, encoding="utf-8")
    return price_table(path)


def generate_through(
    gateway: Gateway,
    ledger: Ledger,
    prices: PriceTable,
    *,
    retry: int = 3,
    told: list[str] | None = None,
    **options: Any,  # noqa: ANN401  # handed on
) -> list[str]:
    """Generate responses, as often as a patient user; return the errors."""
    tell = (list[str]() if told is None else told).append
    options |= {"n_at_a_time": 2, "prices": prices}
    return errors_of(retry, partial(generate_at, gateway.url, ledger, tell, **options))


def fates_of_requests(ledger: Ledger) -> Counter[str]:
    """Count what became of requests to an entrant."""
    settled = [each.event for each in ledger.read() if isinstance(each.event, RequestsSettled)]
    return Counter(str(charge.fate) for each in settled for charge in each.charges)


@pytest.mark.parametrize("status", STATUSES)
def test_no_status_of_a_gateway_passes_an_entrants_cap(
    ledger: Ledger, prices: PriceTable, status: int
) -> None:
    """Its bill would be as long as the outage."""
    with Gateway(lambda _, __: Sent(status, {"error": {"message": "no"}})) as gateway:
        errors = generate_through(gateway, ledger, prices, n_prompts=20, max_usd=0.01)

    known_usd = Recorder(ledger, STREAM).state.requests.at_risk_usd
    assert errors
    assert 0 < known_usd <= 0.01
    assert fates_of_requests(ledger) == {"perhaps billed": len(gateway.asked)}


@pytest.mark.parametrize("reason", ["STOP", None])
def test_an_entrants_answer_is_kept_with_whatever_ended_it(
    ledger: Ledger, prices: PriceTable, reason: str | None
) -> None:
    """It is paid for, and no list of such words is ever complete."""

    def answer(_: int, body: Json) -> Sent:
        whole = completed(body)
        choice = {**whole["choices"][0], "finish_reason": reason}  # type: ignore[index]  # JSON
        return Sent(200, {**whole, "choices": [choice]})

    with Gateway(answer) as gateway:
        errors = generate_through(gateway, ledger, prices, retry=1)

    made = [each.event for each in ledger.read() if isinstance(each.event, ResponseGenerated)]
    assert errors == []
    assert [each.finish_reason for each in made] == [reason] * 4


@pytest.mark.parametrize(
    ("usage", "said"),
    [
        *(("missing", []), ({"prompt_tokens": 7}, []), ({"prompt_tokens": "7"}, [])),
        # of 32 that were asked for
        ({"prompt_tokens": 7, "completion_tokens": 33}, ["7 tokens in and 33 out"]),
    ],
)
def test_an_entrants_answer_without_credible_usage_counts_at_its_worst(
    ledger: Ledger, prices: PriceTable, usage: object, said: list[str]
) -> None:
    """Its text is as good as any; of odd counts whoever runs such a server should hear, once."""
    told = list[str]()

    def answer(_: int, body: Json) -> Sent:
        whole = {name: value for name, value in completed(body).items() if name != "usage"}
        return Sent(200, whole if usage == "missing" else {**whole, "usage": usage})

    with Gateway(answer) as gateway:
        errors = generate_through(gateway, ledger, prices, retry=1, told=told)

    made = [each.event for each in ledger.read() if isinstance(each.event, ResponseGenerated)]
    requests = Recorder(ledger, STREAM).state.requests
    assert errors == []
    assert [(each.n_prompt_tokens, each.n_generated_tokens) for each in made] == [(None, None)] * 4
    assert (requests.usd, fates_of_requests(ledger)) == (0.0, {"perhaps billed": 4})
    assert 0 < requests.at_risk_usd < 0.02
    odd = [each for each in told if "the most that there can be" in each]
    assert [words in each for words, each in zip(said, odd, strict=True)] == [True] * len(said)


def test_a_flagged_prompt_of_an_entrant_fails_alone(ledger: Ledger, prices: PriceTable) -> None:
    """And is not asked again, at every run."""
    with Gateway(failing_for("p0", Sent(403, MODERATED))) as gateway:
        errors = generate_through(gateway, ledger, prices)

    failed = [each.event for each in ledger.read() if isinstance(each.event, ResponseFailed)]
    assert errors == []
    assert [(each.reason, each.detail) for each in failed] == [
        ("rejected", "HTTP 403: Input was flagged by moderation")
    ]
    assert len(gateway.asked) == 4


def test_an_entrants_failure_in_a_choice_is_told_in_its_words(
    ledger: Ledger, prices: PriceTable
) -> None:
    """A router's upstream broke in the middle of an answer."""
    error = {"code": 502, "message": "Upstream broke"}
    choice = {"message": {"content": "Hal"}, "finish_reason": "error", "error": error}
    with Gateway(failing_for("p0", Sent(200, {"choices": [choice]}))) as gateway:
        errors = generate_through(gateway, ledger, prices, retry=1)

    assert "HTTP 502: Upstream broke" in errors[0]
    assert fates_of_requests(ledger) == {"answered": 3, "perhaps billed": 1}
