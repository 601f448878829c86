"""The one sender of paid requests: several at a time, each sent again only if nobody was billed.

A request that a busy server may have billed goes back to whoever took it, to be counted and taken
again as another. A client says what became of a request: it returns the answer or an `Unanswered`,
or it raises `TryAgain` or `Stop`. Pace, retries, the end and the drain are the same for all.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from heapq import heappop, heappush
from itertools import count
from math import inf
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import Final, Generic, NamedTuple, TypeVar

from commands.backends.remote.outcomes import HeldRejections, Settled, Stop, TryAgain, Unanswered
from commands.backends.remote.pace import Pace, back_off_s
from commands.backends.remote.waiting_notices import WaitingNotices
from commands.errors import ProviderError
from commands.ports import Tell
from commands.settings.api_keys import redacted
from ledger.events.judging import Fate

THREAD_NAME: Final = "request"
MOST_LOST: Final = 10  # requests in a row without an answer, before the rest is not sent
TIMEOUT_S: Final = 600.0  # of a request, where no setting says otherwise
_ATTEMPTS: Final = 6  # of a request that fails for a reason of its own
_LONGEST_UNTIMED_WAIT_S: Final = 3600.0  # of rejections without an answer that name no time to wait
_WORTH_TELLING_S: Final = 5.0
_GROUP: Final = 16  # answers at most, or more where there would be more groups
_GROUPS: Final = 8  # of all answers that may come together: one is recorded while others are asked
LONGEST_REPORTED_WAIT_S: Final = 12 * 3600.0
LONGEST_SILENT_WAIT_S: Final = 120.0  # longer looks like a hang
Request = TypeVar("Request")
Answer = TypeVar("Answer")


class WaitLimits(NamedTuple):
    """How long to wait for a server, in seconds."""

    busy_s: float = LONGEST_REPORTED_WAIT_S  # if it wants a longer wait, it is left alone
    silent_s: float = TIMEOUT_S  # after which a request without an answer is given up


USUAL: Final = WaitLimits()


class _Sent(NamedTuple, Generic[Request]):
    number: int  # in the order of sending
    request: Request
    n_failed: int  # times that it was sent before, and failed


class Sender(Generic[Request, Answer]):
    """Sends requests to one server on threads, until none is left or the server fails."""

    def __init__(
        self,
        server: str,
        ask: Callable[[Request], Answer | Unanswered],
        pace: Pace,
        *,
        n_at_a_time: int,
        held: HeldRejections[Request],
        stops: Event,
        tell: Tell,
        limits: WaitLimits = USUAL,
    ) -> None:
        """Take the client.

        Args:
            server: Its name in messages.
            ask: Sends one request and waits for the answer; called on threads.
            pace: How many requests the server takes, and when.
            n_at_a_time: Most requests under way.
            held: The server's rejections so far.
            stops: Set by another thread or a signal: nothing more is sent.
            tell: Reports long waits, for the server and for an answer.
            limits: How long to wait for the server.
        """
        self._server, self._ask, self._pace = server, ask, pace
        self._n_at_a_time, self._stops, self._tell = n_at_a_time, stops, tell
        self._longest_wait_s = limits.busy_s
        self._notices = WaitingNotices(server, timeout_s=limits.silent_s, now=pace.now, tell=tell)
        self._sleep = pace.sleep or stops.wait
        self._todo: SimpleQueue[_Sent[Request] | None] = SimpleQueue()
        self._done: SimpleQueue[tuple[_Sent[Request], Answer | Unanswered | Exception]]
        self._done = SimpleQueue()
        self._held = held
        self._again: list[tuple[datetime, int, Fate, _Sent[Request]]] = []  # a heap, by time, turn
        self._turns = count()
        self._n_threads = self._n_under_way = self._n_sent = self._n_lost = 0
        self._limited_since: datetime | None = None
        self._may_take = True  # False: none was to be taken the last time
        self._error: Exception | None = None

    def run(
        self, take: Callable[[int], Sequence[Request]]
    ) -> Iterator[tuple[Settled[Request, Answer], ...]]:
        """Yield what becomes of requests, in groups as it is known; each request exactly once.

        After an error, or when `stops` is set, nothing more is sent, and what is under way is
        still yielded. Closing the iterator waits for nothing.

        Args:
            take: Returns at most so many further requests, to be sent at once; none if none may be
                sent now. It is called again after each group, and at the end of all once more.

        Raises:
            TourneyError: The server fails, whatever it is asked; or no thread can be started.
        """
        self._start_threads(1)  # before a request is recorded as sent
        try:
            while self._send(take):
                if group := self._settle():
                    yield group
            if not self._is_ending:
                self._error = self._held.blame()
            if rest := self._held.at_end(has_failed=self._is_ending):
                yield tuple(Settled(*each) for each in rest)
        finally:
            for _ in range(self._n_threads):
                self._todo.put(None)
        if self._error is not None:
            raise self._error

    @property
    def _is_ending(self) -> bool:
        return self._error is not None or self._stops.is_set()

    @property
    def _n_free(self) -> int:
        return self._pace.n_free(self._n_under_way, self._n_at_a_time)

    def _send(self, take: Callable[[int], Sequence[Request]]) -> bool:
        """Send what may be sent now; return False when all is done."""
        if self._is_ending:
            return bool(self._n_under_way or self._again)
        n_granted = 0 if self._pace.wait_s else self._n_free
        while n_granted and self._again and self._again[0][0] <= self._pace.now():
            self._put(heappop(self._again)[-1])
            n_granted -= 1
        if n_granted:
            requests = take(n_granted)
            self._may_take = bool(requests)
            self._start_threads(self._n_under_way + len(requests))
            for request in requests:
                self._put(_Sent(0, request, 0))
        return bool(self._n_under_way or self._again or self._may_take)

    def _put(self, sent: _Sent[Request]) -> None:
        self._n_sent = self._pace.sent()
        self._n_under_way += 1
        self._start_threads(self._n_under_way)
        self._notices.sent(self._n_sent)
        self._todo.put(sent._replace(number=self._n_sent))

    def _start_threads(self, n: int) -> None:
        """Let there be n threads, before they have something to do: so they start sooner.

        Where the system allows fewer, these do all of the work.

        Raises:
            ProviderError: It allows none.
        """
        while self._n_threads < min(n, self._n_at_a_time):
            # a daemon: an ending process must not wait for answers that it would not record
            thread = Thread(target=self._work, name=THREAD_NAME, daemon=True)
            try:
                thread.start()
            except RuntimeError as error:
                if not self._n_threads:
                    why = f"no request can be sent: {error}; free some memory"
                    raise ProviderError(why) from error
                self._n_at_a_time = self._n_threads
                return
            self._n_threads += 1

    def _work(self) -> None:
        while (sent := self._todo.get()) is not None:
            try:
                self._done.put((sent, self._ask(sent.request)))
            except Exception as error:  # noqa: BLE001  # handled in the reader's thread
                self._done.put((sent, error))

    def _settle(self) -> tuple[Settled[Request, Answer], ...]:
        """Wait for answers, or until more may be sent; return what is settled."""
        settled = [
            each for sent, result in self._finished() for each in self._outcome(sent, result)
        ]
        if self._is_ending:
            dropped, self._again = self._again, []
            why = "the run ended before it was sent again"
            settled += [Settled(sent.request, Unanswered(why, fate)) for *_, fate, sent in dropped]
        return tuple(settled)

    def _finished(self) -> Iterator[tuple[_Sent[Request], Answer | Unanswered | Exception]]:
        """Yield what came back, after waiting for the first."""
        wait_s = self._wait_s()
        if not self._n_under_way:
            if 0 < wait_s < inf:
                self._sleep(wait_s)
            return
        try:
            yield self._done.get(timeout=min(wait_s, self._notices.due_s))
            for _ in range(1, max(_GROUP, self._n_at_a_time // _GROUPS)):
                yield self._done.get_nowait()
        except Empty:
            self._notices.tell_if_due()

    def _wait_s(self) -> float:
        """Return the seconds until a further request may be sent."""
        if self._is_ending or not self._n_free:
            return inf
        if self._may_take:
            return self._pace.wait_s
        if not self._again:
            return inf
        due_s = (self._again[0][0] - self._pace.now()).total_seconds()
        return max(due_s, self._pace.wait_s, 0.0)

    def _outcome(
        self, sent: _Sent[Request], result: Answer | Unanswered | Exception
    ) -> list[Settled[Request, Answer]]:
        self._n_under_way -= 1
        self._notices.ended(sent.number)
        self._pace.ended(sent.number)
        match result:
            case TryAgain():
                return self._later(sent, result)
            case Stop(why=why, fate=fate):
                what = Unanswered(str(why), fate)
                if result.unless_proven and self._held.has_answered:
                    return self._unanswered(sent.request, what)
                return self._failed(sent.request, why, what)
            case Exception():
                lost = Unanswered(
                    f"{type(result).__name__}: {redacted(str(result))}", "perhaps billed"
                )
                return self._failed(sent.request, result, lost)
            case Unanswered(reason="rejected"):
                return self._rejected(sent.request, result)
            case Unanswered():
                return self._unanswered(sent.request, result)
            case answer:
                self._n_lost, self._limited_since = 0, None
                self._pace.answered(sent.number)
                final = [Settled(*each) for each in self._held.answered(sent.number)]
                return [*final, Settled(sent.request, answer)]

    def _failed(
        self, request: Request, error: Exception, what: Unanswered
    ) -> list[Settled[Request, Answer]]:
        self._error = self._error or error
        return [Settled(request, what)]

    def _unanswered(self, request: Request, what: Unanswered) -> list[Settled[Request, Answer]]:
        """Stop if request after request gets no answer: each may be billed."""
        self._n_lost += 1
        if self._n_lost >= MOST_LOST:
            why = f"{MOST_LOST} requests in a row got no answer, last error: {what.detail!r}"
            return self._failed(request, ProviderError(why), what)
        return [Settled(request, what)]

    def _rejected(self, request: Request, what: Unanswered) -> list[Settled[Request, Answer]]:
        """Hold a rejection; stop if the server rejects request after request.

        A certain one, of a server that has answered, is of its request alone.
        """
        if what.is_certain and self._held.has_answered:
            return [Settled(request, what)]
        self._held.add(request, what, self._n_sent)
        if self._held.blames_server:
            self._error = (
                self._error
                or self._held.blame()
                or ProviderError(
                    f"{self._server} rejected {self._held.tally} (the last: {what.detail!r})."
                    " Correct the server, the account or the settings, then run the same command"
                    " again."
                )
            )
        return []

    def _later(self, sent: _Sent[Request], again: TryAgain) -> list[Settled[Request, Answer]]:
        """Put a request back, unless it or the server has failed for too long."""
        is_limit = again.is_limit
        if is_limit:
            is_patient, wait_s = self._slow_down(sent.number, again), 0.0
        else:
            wait_s = max(again.asked_s or 0.0, back_off_s(sent.n_failed))
            is_patient = sent.n_failed + 1 < _ATTEMPTS and wait_s <= self._longest_wait_s
            if not isinstance(again.or_else, Unanswered):  # the others would fail as well
                self._pace.hold(wait_s)
        if is_patient and is_limit and again.fate == "perhaps billed":
            self._may_take = True
            return [
                Settled(sent.request, Unanswered(str(again.or_else), again.fate, is_again=True))
            ]
        if is_patient:
            due_at = self._pace.now() + timedelta(seconds=wait_s)
            tried = sent._replace(n_failed=sent.n_failed + (not is_limit))
            heappush(self._again, (due_at, next(self._turns), again.fate, tried))
            return []
        if isinstance(again.or_else, Unanswered):
            return self._unanswered(sent.request, again.or_else)
        what = Unanswered(str(again.or_else), again.fate)
        return self._failed(sent.request, again.or_else, what)

    def _slow_down(self, number: int, again: TryAgain) -> bool:
        """Wait as the server asks; return False if it asks too much, or has for too long."""
        now = self._pace.now()
        self._limited_since = self._limited_since or now
        longest_s = self._longest_wait_s
        if again.asked_s is None:
            longest_s = min(longest_s, _LONGEST_UNTIMED_WAIT_S)
        limited_s = (now - self._limited_since).total_seconds()
        if max(limited_s, again.asked_s or 0.0) > longest_s:
            return False
        held_s = self._pace.wait_s
        wait_s = self._pace.rejected(number, again.asked_s)
        if wait_s > max(held_s, _WORTH_TELLING_S):
            until = now + timedelta(seconds=wait_s)
            self._tell(
                f"{self._server} takes no more requests now: waiting {wait_s:.0f} s, until"
                f" {until.astimezone():%H:%M:%S} ({again.or_else})"
            )
        return True
