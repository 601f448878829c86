"""The fake's own books: what came in, what became of each request, and what was paid for.

A test of "nothing is paid twice" reads these, and takes no client's word for it.
"""

from collections import Counter
from collections.abc import Sequence
from threading import Lock

import msgspec

from tests.providers.anthropic.exchange import Outcome, Request
from tests.providers.anthropic.messages import Usage

_BILLED = frozenset({"succeeded", "refused", "truncated", "unreadable"})


class Line(msgspec.Struct, frozen=True, gc=False):
    """What became of one request: one attempt at it."""

    digest: str
    outcome: Outcome
    custom_id: str | None = None
    batch_id: str | None = None
    usage: Usage = Usage()

    @property
    def is_billed(self) -> bool:
        """Whether it was paid for: a reply was, of whatever use; an error was not."""
        return self.outcome in _BILLED


class Call(msgspec.Struct, gc=False):
    """A call to the API; no key is kept."""

    method: str
    path: str
    endpoint: str | None
    request_id: str
    n_bytes: int = 0


class Bill(msgspec.Struct, frozen=True):
    """The books at a moment."""

    lines: Sequence[Line] = ()
    calls: Sequence[Call] = ()
    batches: Sequence[str] = ()  # the ids of those that were accepted
    n_open_requests: int = 0  # accepted, and not yet processed

    @property
    def paid(self) -> tuple[Line, ...]:
        """What is to be paid."""
        return tuple(line for line in self.lines if line.is_billed)

    @property
    def n_paid_by_digest(self) -> Counter[str]:
        """How often each request, named by its digest, was paid for."""
        return Counter(line.digest for line in self.paid)

    @property
    def n_paid_by_custom_id(self) -> Counter[str]:
        """How often each custom_id was paid for; direct messages have none."""
        return Counter(line.custom_id for line in self.paid if line.custom_id is not None)

    @property
    def n_by_outcome(self) -> Counter[Outcome]:
        """How many attempts ended in each way."""
        return Counter(line.outcome for line in self.lines)

    @property
    def total(self) -> Usage:
        """All tokens that are to be paid."""
        return sum((line.usage for line in self.paid), Usage())

    @property
    def posts(self) -> tuple[Call, ...]:
        """All POSTs that came in."""
        return tuple(call for call in self.calls if call.method == "POST")


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
        with self._lock:
            request_id = f"req_01{len(self._calls):022d}"
            call = Call(request.method, request.path, None, request_id, len(request.body))
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
            self._asked |= {line.digest, line.custom_id or line.digest}
        self._n_closed = len(self._lines)

    def bill(self, batches: Sequence[str], n_open_requests: int) -> Bill:
        """Return the books as they stand."""
        with self._lock:
            return Bill(tuple(self._lines), tuple(self._calls), batches, n_open_requests)
