"""The client of the Anthropic API: its key, its errors, and when requests may go."""

import httpx2
import pytest
from anthropic import Anthropic, APIConnectionError, APIStatusError

from commands.backends.anthropic.client import failure_of, make_client, told, with_retries
from commands.errors import ConfigurationError, NoCredentials, ProviderError, SpendLimitReached
from tests.providers.anthropic.exchange import Fault
from tests.providers.anthropic.server import FakeAnthropic
from tests.support.builders.anthropic import CANARY, told_of


def answered(status: int, message: str, **error: object) -> APIStatusError:
    """Return the SDK's error of an answer."""
    request = httpx2.Request("POST", "http://host/v1/messages", headers={"x-api-key": CANARY})
    body = {"type": "error", "error": {"type": "some_error", "message": message, **error}}
    response = httpx2.Response(status, request=request, headers={"request-id": "req_1"})
    return APIStatusError("as the SDK says it", response=response, body=body)


def test_without_a_key_nothing_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """The remedy is told before minutes of work."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "")
    monkeypatch.delenv("ANTHROPIC_AUTH_TOKEN", raising=False)

    with pytest.raises(NoCredentials, match="export ANTHROPIC_API_KEY") as caught:
        make_client()

    assert caught.value.exit_code == 4


@pytest.mark.parametrize("address", ["api.anthropic.com", "http://", "ftp://host", "http://[::1"])
def test_an_address_that_is_none_is_a_fault_of_the_settings(
    monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    """The library below would end in a traceback."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", CANARY)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", address)

    with pytest.raises(ConfigurationError, match="ANTHROPIC_BASE_URL is not an address") as caught:
        make_client()

    assert CANARY not in told_of(caught.value)


def test_a_key_in_the_place_of_the_address_is_not_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The two variables are exported side by side."""
    monkeypatch.setenv("ANTHROPIC_BASE_URL", CANARY)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "another-key")

    with pytest.raises(ConfigurationError, match=r"is not an address such as .*: '\[key\]'"):
        make_client()


@pytest.mark.parametrize("flaw", ["\n", "ä"])
def test_a_key_that_no_header_may_hold_is_refused_unquoted(
    monkeypatch: pytest.MonkeyPatch, flaw: str
) -> None:
    """A file's last line break is easily exported with it; the HTTP library would quote it."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", CANARY + flaw)

    with pytest.raises(NoCredentials, match="ANTHROPIC_API_KEY contains a space") as caught:
        make_client()

    assert CANARY not in told_of(caught.value)


def test_a_token_does_as_well(
    fake_anthropic: FakeAnthropic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gateways give tokens."""
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", CANARY)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", fake_anthropic.url)

    with make_client() as client:
        assert client.models.list().data == []


POOR = "Your credit balance is too low to access the API."


@pytest.mark.parametrize(
    ("status", "words", "code", "told", "remedy"),
    [
        (401, "{} is not allowed", None, NoCredentials, ""),
        (403, "{} is not allowed", None, NoCredentials, ""),
        (429, "Enough.", "enforced_spend_limit_reached", SpendLimitReached, "raise it there"),
        (402, "Enough.", None, SpendLimitReached, "raise it there"),
        (400, POOR, None, SpendLimitReached, "raise it there"),
    ],
)
def test_what_only_the_user_can_put_right_is_told_apart(
    status: int, words: str, code: str | None, told: type[ProviderError], remedy: str
) -> None:
    """Waiting does not help; the exit code tells a script what to put right."""
    details = None if code is None else {"error_code": code}

    with pytest.raises(told, match=f"HTTP {status}.*{remedy}") as caught:
        raise failure_of(answered(status, words.format(CANARY), details=details)).of_free_call()

    assert CANARY not in told_of(caught.value)
    assert ("not allowed" in str(caught.value)) == (status == 403)  # 401 may quote half a key


def test_what_the_provider_says_is_told_in_one_line() -> None:
    """Its request id is what its support asks for; half a character the ledger could not hold."""
    error = answered(404, "model:\n  claude-\ud83d")

    assert failure_of(error).detail == "HTTP 404: some_error: model: claude-? (request req_1)"


@pytest.mark.parametrize("asked_s", [3600.0, float("inf")])
def test_what_costs_nothing_is_not_waited_for_either(
    fake_anthropic: FakeAnthropic, anthropic_client: Anthropic, asked_s: float
) -> None:
    """The SDK alone would sleep for as long as it is told to."""
    fake_anthropic.inject(Fault(endpoint="models.list", kind="rate_limited", retry_after_s=asked_s))

    with pytest.raises(ProviderError, match=r"asks to wait .* s"):
        told(with_retries(anthropic_client).models.list)

    assert len(fake_anthropic.bill().calls) == 1


def test_a_key_that_the_libraries_below_quote_is_not_passed_on(
    fake_anthropic: FakeAnthropic,
) -> None:
    """Our own check of the key comes first; this is the second line."""
    client = Anthropic(base_url=fake_anthropic.url, api_key=f"{CANARY}\n", max_retries=0)

    with client, pytest.raises(APIConnectionError) as theirs:
        client.models.list()
    with client, pytest.raises(ProviderError) as ours:
        told(client.models.list)

    assert CANARY in repr(theirs.value.__cause__)
    assert CANARY not in told_of(ours.value)
