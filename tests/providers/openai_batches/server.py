"""A fake of OpenAI's Files and Batch API on loopback.

`with FakeOpenAIBatches() as fake: ... fake.url ...`. The real client talks to it. Batches end when
they are told to.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from email.parser import BytesParser
from email.policy import HTTP
from typing import Final
from urllib.parse import parse_qs, urlsplit

from tests.providers.anthropic.exchange import USAGE_LIMIT, Kind
from tests.providers.loopback import TOO_LATE, Handler, LoopbackFake
from tests.providers.openai import Json, Said
from tests.providers.openai_batches.service import ENDED, UNDONE, Call, Service, Trouble, error


@dataclass(frozen=True)
class Sent:
    """An answer on its way."""

    status: int
    body: bytes
    kind: str = "application/json"


def _told(status: int, value: object) -> Sent:
    return Sent(status, json.dumps(value).encode())


_TOLD: Final[Mapping[Kind | None, Sent]] = {
    "rate_limited": _told(429, error("Rate limit reached")),
    "overloaded": _told(529, error("Overloaded")),
    "no_credit": _told(429, error("No more.", code="insufficient_quota")),
    "usage_limit": _told(400, error(USAGE_LIMIT)),
    "too_large": _told(413, error("The file is too large")),
    "server_error": _told(500, error("The server had an error")),
    "error_after": _told(500, error("The server had an error")),
}


class FakeOpenAIBatches(LoopbackFake):
    """The fake, in this process, as long as its block lasts."""

    def __init__(
        self, say: Callable[[Json], Said] = lambda _: Said(), *, api_key: str | None = None
    ) -> None:
        """Make a fake whose model says this; api_key is the one key it takes, or any, if None."""
        self.service = Service(say, api_key)
        super().__init__(_Handler, service=self.service)

    def inject(self, *troubles: Trouble) -> None:
        """Let something go wrong with each of the next calls."""
        self.service.troubles.extend(troubles)

    def end_batches(self, status: str = "completed", *, n_done: int | None = None) -> None:
        """End the batches that are open."""
        for batch in self.service.batches.values():
            if batch["status"] not in ENDED:
                self.service.end(batch, status, n_done=n_done)

    def fail_batches(self, code: str, message: str) -> None:
        """Find the open batches invalid, and do nothing on them."""
        fault = {"code": code, "message": message, "param": None, "line": 1}
        for batch in self.service.batches.values():
            if batch["status"] not in ENDED:
                batch.update(status="failed", errors={"object": "list", "data": [fault]})

    def lose_files(self) -> None:
        """Let a month pass: no file is kept."""
        self.service.files.clear()


class _Handler(Handler):
    service: Service

    def serve(self) -> None:
        """Do what is asked, unless a trouble comes first."""
        body, key = self.received(), self.token
        place = urlsplit(self.path)
        parts = place.path.removeprefix("/v1/").split("/")
        call, service, sent = _call(self.command, parts), self.service, None
        with service.lock:
            service.calls.append(call)
            service.keys.append(key)
            trouble = service.trouble_with(call)
            if service.api_key not in {None, key}:
                sent = _told(401, error(f"Incorrect API key provided: {key}"))
            elif trouble not in UNDONE:
                sent = self._done(call, parts, parse_qs(place.query), body)
        if trouble in _TOLD:
            self._send(_TOLD[trouble])
        elif trouble in {"cut_before", "cut_after"} or sent is None:
            self.close_connection = True
        else:
            self._send_badly(sent, trouble)

    def _send_badly(self, sent: Sent, trouble: Kind | None) -> None:
        match trouble:
            case "too_late":
                self._send(sent, headers={TOO_LATE: "yes"})
            case "page":
                self._send(replace(sent, body=b"<html>Sign in</html>", kind="text/html"))
            case "cut_half":
                self._send(sent, share=0.5)
                self.cut()
            case "cut_quietly":
                self._send(replace(sent, body=sent.body[: len(sent.body) // 2]))
            case _:
                self._send(sent)

    def _done(
        self, call: Call, parts: Sequence[str], query: Mapping[str, list[str]], body: bytes
    ) -> Sent:
        """Do what is asked, and return what is to be told."""
        service, name = self.service, parts[1] if len(parts) > 1 else ""
        is_batch = parts[0] == "batches"
        if is_batch and name and name not in service.batches:
            return _told(404, error(f"No batch found with id '{name}'."))
        if not is_batch and name and name not in service.files:
            return _told(404, error(f"No such File object: {name}"))
        match call:
            case "upload":
                return _told(200, service.upload(self._uploaded(body)))
            case "order":
                return _told(*service.order(json.loads(body)))
            case "retrieve":
                return _told(200, service.looked_at(name) if is_batch else {"id": name})
            case "list":
                (after,), (limit,) = query.get("after", [None]), query["limit"]
                return _told(200, service.listed(after, int(limit)))
            case "cancel":
                return _told(*service.cancel(service.batches[name]))
            case "content":
                return Sent(200, service.files[name], "application/octet-stream")

    def _uploaded(self, body: bytes) -> bytes:
        """Return the file of a form."""
        head = f"Content-Type: {self.headers['content-type']}\r\n\r\n".encode()
        form = BytesParser(policy=HTTP).parsebytes(head + body)
        (file,) = (part for part in form.iter_parts() if part.get_filename())
        content = file.get_payload(decode=True)
        assert isinstance(content, bytes)
        return content

    def _send(
        self, sent: Sent, *, share: float = 1.0, headers: Mapping[str, str] | None = None
    ) -> None:
        given = {"content-type": sent.kind, "retry-after-ms": "1", **(headers or {})}
        self.send(sent.status, sent.body, given, share=share)


def _call(method: str, parts: Sequence[str]) -> Call:
    match method, *parts:
        case "POST", "files":
            return "upload"
        case "POST", "batches":
            return "order"
        case "POST", "batches", _, "cancel":
            return "cancel"
        case "GET", "batches":
            return "list"
        case "GET", "files", _, "content":
            return "content"
        case _:
            return "retrieve"
