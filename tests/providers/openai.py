"""A fake of an OpenAI-compatible server on loopback: `with FakeOpenAI() as fake: ... fake.url ...`.

The real client talks to it. It refuses what vLLM and SGLang refuse, and fails on demand.
"""

import json
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import fsum
from threading import Lock
from typing import Final, TypeAlias

from tests.providers.anthropic.exchange import USAGE_LIMIT
from tests.providers.loopback import TOO_LATE, Handler, LoopbackFake

Json: TypeAlias = dict[str, object]

MODEL: Final = "judges/steady-7b"
_N_CHARS_PER_TOKEN: Final = 4
_PATHS: Final = {"/chat/completions": "messages", "/completions": "prompt"}


def _failure(status: int, code: str, message: str) -> tuple[int, Json]:
    return status, {"error": {"message": message, "code": code}}


_FAILURES: Final[Mapping[str, tuple[int, Json]]] = {
    "bad_request": _failure(400, "invalid_request_error", "told to fail: bad_request"),
    "too long": _failure(400, "invalid_request_error", "told to fail: too long"),
    "too_large": _failure(413, "request_too_large", "told to fail: too_large"),
    "rate_limited": _failure(429, "rate_limit_exceeded", "told to fail: rate_limited"),
    "server_error": _failure(500, "server_error", "told to fail: server_error"),
    "no_credit": (400, {"error": {"message": "Your credit balance is too low"}}),  # Anthropic's
    "usage_limit": (400, {"error": {"message": USAGE_LIMIT}}),  # likewise
    "no_quota": _failure(429, "insufficient_quota", "No more."),  # OpenAI's
    "unpaid": (402, {"error": {"message": "Please pay.", "code": 402}}),
}


@dataclass(frozen=True)
class Said:
    """What the model says, and how that ends."""

    content: str | None = "Both are plain.\nVERDICT: A"
    finish_reason: str = "stop"
    refusal: str | None = None
    n_cached: int = 0


@dataclass(frozen=True)
class Fault:
    """What goes wrong with one request."""

    kind: str  # of _FAILURES, or as _Handler fails by itself


@dataclass
class Traffic:
    """What came in, and what is to go wrong with what comes next."""

    say: Callable[[Json], Said]
    api_key: str | None
    root: str = "/v1"  # of the paths
    models: frozenset[str] | None = frozenset({MODEL})  # None: whatever is asked for
    thinks: bool = False  # it takes what OpenAI's reasoning models take
    tells_usage: bool = True
    shape: Callable[[Json], Json] = lambda answer: answer  # a maker's own way to say it
    lists_models: bool = True
    tells: Mapping[str, Json] = field(default_factory=dict)  # further pages, by path: a dialect's
    asked: list[Json] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    looked_with: list[str] = field(default_factory=list)  # the keys of those who listed models
    faults: deque[Fault | None] = field(default_factory=deque)
    lock: Lock = field(default_factory=Lock)

    def note(self, body: Json, key: str) -> Fault | None:
        """Note a request; return what is to go wrong with it."""
        with self.lock:
            self.asked.append(body)
            self.keys.append(key)
            return self.faults.popleft() if self.faults else None


class FakeOpenAI(LoopbackFake):
    """The fake, in this process, as long as its block lasts."""

    def __init__(
        self, say: Callable[[Json], Said] = lambda _: Said(), *, api_key: str | None = None
    ) -> None:
        """Make a fake whose model says this; api_key is the one key it takes, or any, if None."""
        self.traffic = Traffic(say, api_key)
        super().__init__(_Handler, traffic=self.traffic)

    def inject(self, *faults: Fault | None) -> None:
        """Let something go wrong with each of the next requests; None: nothing."""
        self.traffic.faults.extend(faults)

    def usd_of(self, body: Json) -> float:
        """Return what an answer to a request costs at `PRICES`."""
        used = completion(body, self.traffic.say(body))["usage"]
        assert isinstance(used, dict)
        return float(used["prompt_tokens"] * 2.0 + used["completion_tokens"] * 10.0) / 1e6

    @property
    def billed_usd(self) -> float:
        """What is billed for all that was asked, if all of it was answered."""
        return fsum(map(self.usd_of, self.traffic.asked))


class _Handler(Handler):
    traffic: Traffic

    def serve(self) -> None:
        """Answer a request."""
        if self.command == "GET":
            self._tell()
        else:
            self._answer()

    def _tell(self) -> None:
        """List the models, or tell what the dialect has."""
        self.traffic.looked_with.append(self.token)
        listed: Json = {"data": [{"id": name} for name in self.traffic.models or ()]}
        pages = {f"{self.traffic.root}/models": listed} if self.traffic.lists_models else {}
        page = {**pages, **self.traffic.tells}.get(self.path)
        if page is None:
            self._send(404, {"detail": "Not Found"})
        elif self.traffic.api_key not in {None, self.token}:
            self._send(401, {"error": {"message": f"Incorrect API key: {self.token}"}})
        else:
            self._send(200, page)

    def _answer(self) -> None:
        """Answer a chat, or complete a text."""
        body = json.loads(self.received())
        fault, error = self.traffic.note(body, self.token), self._error(body, self.token)
        if error is not None:
            self._send(*error)
        elif fault is None:
            self._send(200, self._completion(body))
        else:
            self._fail(body, fault)

    def _error(self, body: Json, key: str) -> tuple[int, Json] | None:
        forms = {f"{self.traffic.root}{path}": form for path, form in _PATHS.items()}
        if self.path not in forms:
            return 404, {"detail": "Not Found"}
        if self.traffic.api_key not in {None, key}:
            return 401, {"error": {"message": f"Incorrect API key: {key}"}}
        if self.traffic.models is not None and body.get("model") not in self.traffic.models:
            return 404, {"error": {"message": f"The model `{body.get('model')}` does not exist."}}
        if self.traffic.thinks and (unsupported := _unsupported(body)):
            return 400, {"error": {"message": unsupported, "type": "invalid_request_error"}}
        wrong = fault_of(body, forms[self.path])
        told: Json = {"object": "error", "message": wrong, "type": "BadRequestError", "code": 400}
        return (400, told) if wrong else None

    def _fail(self, body: Json, fault: Fault) -> None:
        if fault.kind == "cut":
            self.cut()
            return
        whole = self._completion(body)
        match fault.kind:
            case "cut_half":
                self.send(200, json.dumps(whole).encode(), {}, share=0.5)
                self.cut()
            case "too_late":
                self._send(200, whole, mark=TOO_LATE)
            case "page":
                self._send_bytes(200, b"<html>Welcome</html>", kind="text/html")
            case "half_json":
                self._send_bytes(200, json.dumps(whole).encode()[:40])
            case "no_choices":
                self._send(200, {**whole, "choices": []})
            case "no_utf8":
                self._send_bytes(200, json.dumps(whole).encode().replace(b'": "', b'": "\xff'))
            case kind:
                self._send(*_FAILURES[kind])

    def _completion(self, body: Json) -> Json:
        whole = self.traffic.shape(completion(body, self.traffic.say(body)))
        return whole if self.traffic.tells_usage else {**whole, "usage": None}

    def _send(self, status: int, value: Json, *, mark: str | None = None) -> None:
        self._send_bytes(status, json.dumps(value).encode(), mark=mark)

    def _send_bytes(
        self, status: int, body: bytes, *, kind: str = "application/json", mark: str | None = None
    ) -> None:
        marked = {} if mark is None else {mark: "yes"}
        self.send(status, body, {"content-type": kind, "retry-after-ms": "1", **marked})


def _unsupported(body: Json) -> str | None:
    """Return what a reasoning model of OpenAI finds wrong, in its words; None: nothing."""
    if "max_tokens" in body:
        return (
            "Unsupported parameter: 'max_tokens' is not supported with this model."
            " Use 'max_completion_tokens' instead."
        )
    if body.get("temperature", 1) != 1:
        return "Unsupported value: 'temperature' does not support 0.0 with this model."
    return None


def fault_of(body: Json, asked_in: str) -> str | None:
    """Return what is wrong with a request, as vLLM would say it; None: nothing."""
    n_tokens = body.get("max_tokens", body.get("max_completion_tokens"))
    if asked_in not in body or not isinstance(n_tokens, int):
        return f"{asked_in} and max_tokens are asked for here"
    if not isinstance(body.get("temperature", 1), int | float):
        return "temperature must be a number"
    if n_tokens < 1:
        return "max_tokens must be at least 1"
    return _fault_of_text(body[asked_in]) or _fault_of_format(body.get("response_format"))


def _fault_of_text(asked: object) -> str | None:
    if isinstance(asked, str):
        return None
    assert isinstance(asked, list)
    if not all(isinstance(turn, dict) and turn.keys() == {"role", "content"} for turn in asked):
        return "each message needs a role and a content"
    return None


def _fault_of_format(wanted: object) -> str | None:
    match wanted:
        case None:
            return None
        case {"type": "json_schema", "json_schema": {"name": str(), "schema": {"type": "object"}}}:
            return None
        case _:
            return f"response_format {wanted!r} is not understood"


def completion(body: Json, said: Said) -> Json:
    """Return what the API answers; tokens are counted in characters."""
    n_prompt = len(json.dumps(body.get("messages", body.get("prompt")))) // _N_CHARS_PER_TOKEN
    n_reply = len(said.content or "") // _N_CHARS_PER_TOKEN
    message: Mapping[str, object] = {
        "role": "assistant",
        "content": said.content,
        "refusal": said.refusal,
    }
    is_chat = "messages" in body
    told: Mapping[str, object] = {"message": message} if is_chat else {"text": said.content}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_790_000_000,
        "model": body["model"],
        "choices": [{"index": 0, **told, "finish_reason": said.finish_reason}],
        "usage": {
            "prompt_tokens": n_prompt,
            "completion_tokens": n_reply,
            "total_tokens": n_prompt + n_reply,
            "prompt_tokens_details": {"cached_tokens": said.n_cached},
        },
    }


PRICES: Final = f"""\
date = 2026-04-27
batch_factor = 0.5
cache_write_5m_factor = 1.25
cache_write_1h_factor = 2.0

[[models]]
id = "{MODEL}"
input = 2.0
output = 10.0
"""
