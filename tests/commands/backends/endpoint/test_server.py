"""What comes of a request is bounded, and goes nowhere else unasked."""

import gzip
import json
import zlib
from collections.abc import Callable, Mapping

import httpx2
import openai
import pytest

from commands.backends.endpoint.requests import PATH
from commands.backends.endpoint.server import Asker, Endpoint
from commands.ports import NoReply
from ledger.identity import Digest, Json
from tests.providers.billing_gateway import Gateway, Sent
from tests.providers.loopback import Handler, LoopbackFake
from tests.providers.openai import MODEL, FakeOpenAI
from tests.support.patience import PATIENCE_S

BODY: Mapping[str, Json] = {
    "model": MODEL,
    "max_tokens": 3,
    "messages": ({"role": "user", "content": "Wie heiß?"},),
}
NOBODY = "http://127.0.0.1:1/v1"  # where nobody listens


def posted(url: str) -> bytes:
    """Return the body of an answer."""
    with Endpoint(url, "m", None, timeout_s=PATIENCE_S).client() as client:
        return client.post(PATH, body=BODY, cast_to=httpx2.Response).content


@pytest.mark.parametrize(
    ("encoding", "compress"), [("gzip", gzip.compress), ("deflate", zlib.compress)]
)
def test_an_answer_that_is_compressed_all_the_same_is_read(
    encoding: str, compress: Callable[[bytes], bytes]
) -> None:
    """Nobody asked for it, and some gateways do it."""
    headers = {"content-encoding": encoding}
    for status in (200, 400):
        with Gateway(lambda _, __: Sent(status, compress(b'{"a": "x"}'), headers)) as gateway:  # noqa: B023  # called at once
            if status == 200:
                assert posted(gateway.url) == b'{"a": "x"}'
            else:
                with pytest.raises(openai.APIStatusError) as refused:
                    posted(gateway.url)
                assert refused.value.body == {"a": "x"}


@pytest.mark.parametrize(
    ("content", "headers", "why"),
    [
        (b"no gzip", {"content-encoding": "gzip"}, ""),
        (gzip.compress(b"x" * 9_000_000), {"content-encoding": "gzip"}, ""),
        (b"x" * 9_000_000, {}, "more than 8,000,000 bytes"),
    ],
    ids=["none", "too large once it is read", "too large"],
)
def test_an_answer_that_cannot_be_read_or_kept_is_none(
    content: bytes, headers: Mapping[str, str], why: str
) -> None:
    """It is something else, or would fill the memory: two at a time took gigabytes."""
    answer = Sent(200, content, headers)
    with (
        Gateway(lambda _, __: answer) as gateway,
        pytest.raises(openai.APIConnectionError) as caught,
    ):
        posted(gateway.url)

    assert why in str(caught.value.__cause__)


def test_an_answer_that_never_ends_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each byte comes in time, and the whole would take for ever."""
    monkeypatch.setattr("commands.backends.remote.bodies._PARTS", 1e-4)
    dripping = Sent(200, None)
    with (
        Gateway(lambda _, __: dripping) as gateway,
        pytest.raises(openai.APITimeoutError) as caught,
    ):
        posted(gateway.url)

    assert "the answer does not end" in str(caught.value.__cause__)


class _Moved(Handler):
    """Says that it is to be said elsewhere."""

    def serve(self) -> None:
        """Name the place."""
        self.received()
        self.send(307, b"{}", {"location": "https://elsewhere/v1/chat/completions"})


def test_a_server_that_moved_says_where_to() -> None:
    """A key is not carried there unasked; base_url can be corrected."""
    with LoopbackFake(_Moved) as fake:
        asker = Asker(Endpoint(fake.url, "m", None), "m", ())
        answer = asker.ask(Digest("1"), PATH, BODY, json.loads)

    assert isinstance(answer, NoReply)
    assert answer.then == "stop"
    assert "HTTP 307: moved to https://elsewhere/v1" in answer.detail


@pytest.mark.parametrize(("bypassed", "n_asked"), [("", 1), ("127.0.0.1", 0)])
def test_a_proxy_is_asked_instead(
    bypassed: str, n_asked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the environment says, and for which hosts."""
    with FakeOpenAI() as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        monkeypatch.setenv("no_proxy", bypassed)
        with pytest.raises(openai.APIError):
            posted(NOBODY)

    assert len(proxy.traffic.asked) == n_asked
