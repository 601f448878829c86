"""Where the bill is written: every call as it comes in, every request as it is dealt with."""

import hashlib
from collections.abc import Sequence
from threading import Lock

from tests.anthropic_api.bill import Bill, Call, CreatedBatch, Line
from tests.anthropic_api.exchange import Request


class Books:
    """The calls and the lines, and who was asked before."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._lines: list[Line] = []
        self._calls: list[Call] = []
        self._asked = set[str]()
        self._n_closed = 0

    def call(self, request: Request) -> Call:
        """Enter a call, which has no answer yet."""
        headers, path = request.headers, request.path
        with self._lock:
            request_id = f"req_01{len(self._calls):022d}"
            digest = key_digest(request.key)
            call = Call(request.method, path, None, request_id, digest, len(request.body))
            call.retry_count = headers.get("x-stainless-retry-count")
            call.idempotency_key = headers.get("idempotency-key")
            self._calls.append(call)
        return call

    def enter(self, line: Line) -> None:
        """Enter what became of a request."""
        self._lines.append(line)

    @property
    def n_lines(self) -> int:
        """How many requests were dealt with."""
        return len(self._lines)

    def is_first(self, *names: str) -> bool:
        """Tell whether no request of these digests or custom_ids was closed before."""
        return self._asked.isdisjoint(names)

    def close(self) -> None:
        """Let what was entered count as an attempt, from the next batch on."""
        for line in self._lines[self._n_closed :]:
            self._asked.add(line.digest)
            if line.custom_id is not None:
                self._asked.add(line.custom_id)
        self._n_closed = len(self._lines)

    def bill(self, batches: Sequence[CreatedBatch], n_open_requests: int) -> Bill:
        """Return the books as they stand."""
        with self._lock:
            return Bill(tuple(self._lines), tuple(self._calls), batches, n_open_requests)


def key_digest(key: str) -> str:
    """Return half of a key's digest: enough to know it by, and not the key."""
    return hashlib.sha256(key.encode()).hexdigest()[:32]
