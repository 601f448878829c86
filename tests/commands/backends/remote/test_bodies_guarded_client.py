"""No key is passed on that a server's error repeats, whatever its status and whoever asked."""

import json
import ssl
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from commands.backends.anthropic.batches import judge_batches
from commands.backends.anthropic.client import make_client
from commands.backends.anthropic.messages import AnthropicJudge
from commands.backends.endpoint.askers import EndpointJudge
from commands.backends.endpoint.batches import OpenAIBatches
from commands.backends.endpoint.server import Endpoint
from commands.backends.remote.bodies import decode_json
from commands.decisions.recorder import Recorder
from commands.entrants.endpoint_generator import EndpointGenerator
from commands.judging.judge import JudgeTask, judge_open
from commands.ports import GenerationTask, Judge, no_progress
from commands.settings.api_keys import key_in
from ledger.errors import TourneyError
from ledger.events.judging import JudgeQueryFailed
from ledger.events.registration import JudgeSettings
from ledger.exchange import export_lines
from ledger.identity import EntrantId, JudgeId
from ledger.store import Ledger
from tests.providers.loopback import Handler, LoopbackFake
from tests.support.builders.anthropic import judge_settings, queries, told_of
from tests.support.builders.commands import record_answers
from tests.support.builders.endpoints import responder_of, unlimited
from tests.support.builders.events import STREAM, entrant, key, opened, prompt
from tests.support.builders.events import judge as registered_judge
from tests.support.scripted import answered

OURS = "plain-canary-9c1f"  # only its value tells that it is a key
FOREIGN = "foreign-canary-77"  # never ours: only its surroundings tell
STATUSES = range(400, 600)
TOLD_APART = frozenset({400, 401, 404, 413, 429, 500})
Ask = Callable[[], object]


class Echo(LoopbackFake):
    """A server that fails with one status after the other, and repeats all that it was sent."""

    def __init__(self) -> None:
        self.status, self.n_asked = 400, 0
        super().__init__(_Handler, echo=self)


class _Handler(Handler):
    echo: Echo

    def serve(self) -> None:
        """Fail."""
        self.echo.n_asked += 1
        self.received()
        message = (
            f"{self.headers} {OURS}: Authorization: Bearer {FOREIGN}, x-api-key: {FOREIGN},"
            f" sk-{FOREIGN}, https://me:{FOREIGN}@host/v1?key={FOREIGN}"
        )
        told = {"type": "some_error", "message": message, "code": OURS}
        headers = {
            "request-id": OURS,
            "x-request-id": f"Bearer {FOREIGN}",
            "location": f"https://host/?key={FOREIGN}",
            "retry-after": "99999999",
            "x-should-retry": "false",
        }
        body = json.dumps({"type": "error", "error": told}).encode()
        self.send(self.echo.status, body, headers)


@pytest.fixture
def echo(monkeypatch: pytest.MonkeyPatch) -> Iterator[Echo]:
    """Give the server that all requests of this process reach."""
    shared = ssl.create_default_context()  # it takes long to make
    monkeypatch.setattr(ssl, "create_default_context", lambda **_: shared)
    for variable in ("ANTHROPIC_API_KEY", "OUR_SERVER"):
        monkeypatch.setenv(variable, OURS)
    monkeypatch.delenv("ANTHROPIC_AUTH_TOKEN", raising=False)
    with Echo() as echo:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", echo.url)
        yield echo


def server(echo: Echo) -> Endpoint:
    """Return a server with OpenAI's API, as the settings name it."""
    return Endpoint(echo.url, "judge", key_in("OUR_SERVER"), "OUR_SERVER")


def chat_judge(echo: Echo) -> Judge:
    """Return a judge that is asked directly."""
    settings = JudgeSettings(JudgeId("m"), "endpoint", "m", (("max_tokens", 64.0),))
    return EndpointJudge(settings, server(echo))


@pytest.fixture
def asks(echo: Echo) -> Iterator[Mapping[str, Ask]]:
    """Give all ways to ask a server, by both clients: judges, batches, the maker of responses."""
    (query,) = queries(1)
    settings = JudgeSettings(JudgeId("m"), "openai-batch", "m", (("max_tokens", 64.0),))
    served = responder_of({EntrantId("base"): server(echo)})
    task = GenerationTask(key("1"), entrant("base", loader="endpoint"), "Why?", seed=1)
    with closing(make_client()) as client:
        direct = AnthropicJudge(client, judge_settings(), cache="off", n_at_a_time=1)
        batches = judge_batches(client, judge_settings(), cache="off")
        of_openai = OpenAIBatches(settings, server(echo))
        yield {
            "messages": lambda: [*answered(direct, [query])],
            "message batches": lambda: batches.create([query]),
            "the state of a message batch": lambda: batches.retrieve("b"),
            "chats": lambda: [*answered(chat_judge(echo), [query])],
            "batches of chats": lambda: of_openai.create([query]),
            "the state of a batch of chats": lambda: of_openai.retrieve("b"),
            "responses": lambda: [*EndpointGenerator(served, unlimited()).generate([task])],
        }


def holds_a_key(text: str) -> bool:
    """Return whether a text holds one of the keys."""
    return OURS in text or FOREIGN in text


def shown_by(ask: Ask) -> str:
    """Return all that is known of a request afterwards, locals in tracebacks included."""
    try:
        return repr(ask())
    except TourneyError as error:
        return told_of(error)


@pytest.mark.parametrize(
    "all_of",
    [pytest.param(STATUSES, marks=pytest.mark.nightly), TOLD_APART],
    ids=["all", "told apart"],
)
def test_no_status_of_a_failure_tells_a_key(
    echo: Echo, asks: Mapping[str, Ask], all_of: Collection[int]
) -> None:
    """A traceback is pasted into an issue before anyone reads it; a detail is kept for ever."""
    telling, unheard = [], []
    for echo.status in all_of:
        for name in asks:
            n_before = echo.n_asked
            telling += [(echo.status, name)] if holds_a_key(shown_by(asks[name])) else []
            unheard += [(echo.status, name)] if echo.n_asked == n_before else []

    assert not telling
    assert not unheard


def test_no_file_tells_a_key(echo: Echo, tmp_path: Path) -> None:
    """A ledger and its exports are shown to others."""
    echo.status = 422
    asked = registered_judge("m", provider="endpoint", model="m")
    with Ledger.open(tmp_path / "t.db") as ledger:
        recorder = record_answers(Recorder(ledger, STREAM), opened(judges=[asked]))
        task = JudgeTask(asked, [prompt().prompt_id], retries=1)
        judge_open(recorder, task, lambda *_: chat_judge(echo), on_progress=no_progress)
        failures = [each.event for each in ledger.read(types=["JudgeQueryFailed"])]
        exported = b"".join(export_lines(ledger.rows()))

    kept = exported + b"".join(each.read_bytes() for each in tmp_path.iterdir())
    told = [each.detail for each in failures if isinstance(each, JudgeQueryFailed)]
    assert told
    assert all("[key]" in detail for detail in told)
    assert not holds_a_key(kept.decode("latin-1"))


@pytest.mark.parametrize(
    "body", [f"<html>Bearer {FOREIGN}", f'{{"detail": "{OURS}"}}', '{"a": ' * 99_999]
)
def test_what_is_no_answer_is_told_without_keys(monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    """A proxy that says 200 to everything, too."""
    monkeypatch.setenv("OPENAI_API_KEY", OURS)

    with pytest.raises(msgspec.DecodeError) as caught:
        decode_json(body.encode(), msgspec.json.Decoder(int))

    assert not holds_a_key(str(caught.value))


def test_a_reply_loses_our_keys_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """What looks like a key may be what the model was asked for; an escape hides none."""
    monkeypatch.setenv("HF_TOKEN", OURS)
    body = json.dumps({"said": f"api_key={FOREIGN} {OURS}"}).replace("p", r"\u0070")

    said = decode_json(body.encode(), msgspec.json.Decoder(dict[str, str]))

    assert said == {"said": f"api_key={FOREIGN} [key]"}
