"""Ask one server several requests at a time, each again only if nobody was billed.

The use case records requests as sent, and what became of them; `settle_all` is the loop between.

    with Pool(...) as pool:
        for group in pool.settle_all(waiting, record_as_sent):
            for request, answer in group:
                record(request, answer)

A request that a busy server may have billed is given back, to be recorded and sent as another.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence, Sized
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime, timedelta
from math import inf
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import Final, Generic, NamedTuple, TypeAlias, TypeVar

from commands.asking.pace import Pace, back_off_s
from commands.asking.rejections import HeldRejections
from commands.errors import ProviderError, counted
from commands.ports import Host, NoReply, Tell
from commands.settings.api_keys import redacted
from ledger.events.judging import Fate
from ledger.identity import Digest

THREAD_NAME: Final = "request"
MOST_LOST: Final = 10  # requests in a row without an answer, before the rest is not sent
LONGEST_WAIT_S: Final = 12 * 3600.0  # if a server wants a longer one, it is left alone
_ATTEMPTS: Final = 6  # to send a request
_LONGEST_UNTIMED_WAIT_S: Final = 3600.0  # of rejections without an answer that name no time to wait
_WORTH_TELLING_S: Final = 5.0
_FIRST_NOTICE_S: Final = 60.0  # many models think that long
Request = TypeVar("Request")
Answer = TypeVar("Answer")


Settled: TypeAlias = tuple[Request, Answer | NoReply]
"""A request and what became of it."""


class _Sent(NamedTuple, Generic[Request]):
    number: int  # in the order of sending
    request: Request
    n_failed: int  # times that it could not be sent before


class Pool(AbstractContextManager["Pool[Request, Answer]"], Generic[Request, Answer]):
    """Threads that ask one server, until none is left to ask or the server fails."""

    def __init__(
        self,
        host: Host,
        ask: Callable[[Request], Answer | NoReply],
        key_of: Callable[[Request], Digest],
        *,
        stops: Event,
        tell: Tell,
        pace: Pace | None = None,
        held: HeldRejections[Request] | None = None,
        longest_wait_s: float = LONGEST_WAIT_S,
    ) -> None:
        """Take whom to ask.

        Args:
            host: Who is asked.
            ask: Sends one request and waits for the answer; called on threads.
            key_of: Names a request.
            stops: Set by another thread or a signal: nothing more is sent.
            tell: Reports long waits, for the server and for an answer.
            pace: When the server takes requests; it may be shared by pools after each other.
            held: The server's rejections so far; likewise.
            longest_wait_s: How long to wait for a busy server.
        """
        self._host, self._ask, self._key_of = host, ask, key_of
        self._stops, self._tell = stops, tell
        self._pace, self._held = pace or Pace(), held or HeldRejections()
        self._sleep = self._pace.sleep or stops.wait
        self._longest_wait_s = longest_wait_s
        self._notices = WaitingNotices(
            host.name, timeout_s=host.timeout_s, now=self._pace.now, tell=tell
        )
        self._n_at_a_time = host.n_at_a_time
        self._todo: SimpleQueue[_Sent[Request] | None] = SimpleQueue()
        self._done: SimpleQueue[tuple[_Sent[Request], Answer | NoReply | BaseException]]
        self._done = SimpleQueue()
        self._again: deque[tuple[Fate, _Sent[Request]]] = deque()  # once the pace allows
        self._under_way: set[int] = set()  # the numbers of requests
        self._n_threads = self._n_sent = self._n_lost = 0
        self._limited_since: datetime | None = None
        self._error: BaseException | None = None

    def __exit__(self, *_: object) -> None:
        """Let the threads end, and wait for none; others may share the pace."""
        for number in self._under_way:
            self._pace.ended(number)
        for _thread in range(self._n_threads):
            self._todo.put(None)

    def settle_all(
        self, waiting: Sized, submit: Callable[[int], Sequence[Request]]
    ) -> Iterator[Sequence[Settled[Request, Answer]]]:
        """Send all that waits; yield what is settled, which is to be recorded before more is sent.

        After an error, or when `stops` is set, what is under way is still answered.

        Args:
            waiting: Where `submit` takes requests from. What is settled may wait there again.
            submit: Records at most so many requests as sent, and returns them; none if a cap
                allows none.

        Raises:
            Exception: What is wrong with the server, once all that was sent is settled.
        """
        while len(waiting):
            yield from self._send_and_receive(waiting, submit)
            held_back = self._held_back(is_cut_short=bool(len(waiting)))
            yield held_back
            if self._error is not None:
                raise self._error
            if not held_back:  # else their share of the cap is free now, and more may be sent
                return

    def _send_and_receive(
        self, waiting: Sized, submit: Callable[[int], Sequence[Request]]
    ) -> Iterator[Sequence[Settled[Request, Answer]]]:
        """Send what waits, and yield what is settled, until nothing is under way or may be sent."""
        while self._is_busy or (len(waiting) and not self._is_ending):
            is_capped = False
            if n_free := self._n_sendable(len(waiting)):
                requests = submit(n_free)
                for request in requests:
                    self._send(request, n_failed=0)
                is_capped = not requests
                if is_capped and not self._is_busy:
                    return
            yield self._settled(may_send=bool(len(waiting)) and not is_capped)

    @property
    def _is_busy(self) -> bool:
        """Whether requests are under way, or to be sent again."""
        return bool(self._under_way or self._again)

    @property
    def _is_ending(self) -> bool:
        """Whether nothing more is sent: after Ctrl-C, or an error of the server."""
        return self._error is not None or self._stops.is_set()

    def _n_sendable(self, n_waiting: int) -> int:
        """Return how many of the waiting requests may be sent now; their threads exist.

        Where the system allows fewer threads, these do all of the work.

        Raises:
            ProviderError: It allows none.
        """
        if self._is_ending or self._pace.wait_s:
            return 0
        n_free = self._n_free
        while n_free and self._again:
            _, sent = self._again.popleft()
            self._send(sent.request, n_failed=sent.n_failed)
            n_free -= 1
        n_free = min(n_free, n_waiting)
        self._start_threads(len(self._under_way) + n_free)
        return min(n_free, self._n_threads - len(self._under_way))

    def _settled(self, *, may_send: bool) -> Sequence[Settled[Request, Answer]]:
        """Wait for answers, or until more may be sent; return what is settled."""
        settled: list[Settled[Request, Answer]] = []
        for sent, result in self._received(may_send=may_send):
            settled += self._outcome(sent, result)
        if self._is_ending:
            why = "the run ended before it was sent again"
            settled += [
                (sent.request, NoReply(self._key_of(sent.request), "errored", why, fate))
                for fate, sent in self._again
            ]
            self._again.clear()
        return settled

    def _held_back(self, *, is_cut_short: bool) -> Sequence[Settled[Request, Answer]]:
        """Return the rejections that were held back until the end.

        If requests wait that a cap did not allow, too few were sent to tell the requests' fault
        from the server's, and no rejection is final.
        """
        if not self._is_ending:
            self._error = self._held.blame()
        has_failed = self._is_ending or is_cut_short
        return self._held.at_end(has_failed=has_failed)

    @property
    def _n_free(self) -> int:
        return self._pace.n_free(self._n_at_a_time)

    def _send(self, request: Request, *, n_failed: int) -> None:
        """Hand a request to a thread."""
        self._n_sent = self._pace.sent()
        self._under_way.add(self._n_sent)
        self._notices.sent(self._n_sent)
        self._todo.put(_Sent(self._n_sent, request, n_failed))

    def _start_threads(self, n: int) -> None:
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
            except BaseException as error:  # noqa: BLE001  # raised in the reader's thread
                self._done.put((sent, error))

    def _received(
        self, *, may_send: bool
    ) -> Iterator[tuple[_Sent[Request], Answer | NoReply | BaseException]]:
        """Yield what came back, after waiting for the first."""
        wait_s = self._wait_s(may_send=may_send)
        if not self._under_way:
            if 0 < wait_s < inf:
                self._sleep(wait_s)
            return
        try:
            yield self._done.get(timeout=min(wait_s, self._notices.due_s))
            while True:
                yield self._done.get_nowait()
        except Empty:
            self._notices.tell_if_due()

    def _wait_s(self, *, may_send: bool) -> float:
        """Return the seconds until a further request may be sent."""
        has_more = may_send or self._again
        return self._pace.wait_s if has_more and self._n_free and not self._is_ending else inf

    def _outcome(
        self, sent: _Sent[Request], result: Answer | NoReply | BaseException
    ) -> Sequence[Settled[Request, Answer]]:
        self._under_way.remove(sent.number)
        self._notices.ended(sent.number)
        self._pace.ended(sent.number)
        if isinstance(result, BaseException):
            return self._stop(sent.request, self._no_reply_of(sent.request, result), result)
        if not isinstance(result, NoReply):
            return self._answered(sent, result)
        if result.then in {"ask again", "wait"}:
            return self._ask_again(sent, result)
        if result.then == "stop" and (result.is_certain or not self._held.has_answered):
            return self._stop(sent.request, result, result.error)
        if result.reason == "rejected":
            return self._rejected(sent.request, result)
        return self._unanswered(sent.request, result)

    def _answered(self, sent: _Sent[Request], answer: Answer) -> Sequence[Settled[Request, Answer]]:
        self._n_lost, self._limited_since = 0, None
        self._pace.answered(sent.number)
        final_rejections = self._held.answered(sent.number)
        return [*final_rejections, (sent.request, answer)]

    def _no_reply_of(self, request: Request, error: BaseException) -> NoReply:
        why = f"{type(error).__name__}: {redacted(str(error))}"
        return NoReply(self._key_of(request), "errored", why, "perhaps billed")

    def _stop(
        self, request: Request, no_reply: NoReply, error: BaseException | None
    ) -> Sequence[Settled[Request, Answer]]:
        self._error = self._error or error
        return [(request, no_reply)]

    def _unanswered(
        self, request: Request, no_reply: NoReply
    ) -> Sequence[Settled[Request, Answer]]:
        """Stop if request after request gets no answer: each may be billed."""
        self._n_lost += 1
        if self._n_lost >= MOST_LOST:
            why = f"{MOST_LOST} requests in a row got no answer, last error: {no_reply.detail!r}"
            return self._stop(request, no_reply, ProviderError(why))
        return [(request, no_reply)]

    def _rejected(self, request: Request, no_reply: NoReply) -> Sequence[Settled[Request, Answer]]:
        """Hold a rejection; stop if the server rejects request after request.

        A certain one, of a server that has answered, is of its request alone.
        """
        if no_reply.is_certain and self._held.has_answered:
            return [(request, no_reply)]
        self._held.add(request, no_reply, self._n_sent)
        if self._held.blames_server:
            self._error = self._error or self._held.blame() or self._rejects_all(no_reply.detail)
        return []

    def _rejects_all(self, last: str) -> ProviderError:
        return ProviderError(
            f"{self._host.name} rejected {self._held.tally} (the last: {last!r})."
            " Correct the server, the account or the settings, then run the same command again."
        )

    def _ask_again(
        self, sent: _Sent[Request], no_reply: NoReply
    ) -> Sequence[Settled[Request, Answer]]:
        """Put a request back, unless the server has failed for too long."""
        n_failed = sent.n_failed
        if no_reply.then == "wait":
            is_patient = self._slow_down(sent, no_reply)
        else:
            self._pace.hold(back_off_s(n_failed))  # the others would fail as well
            n_failed += 1
            is_patient = n_failed < _ATTEMPTS
        if not is_patient:
            return self._stop(sent.request, replace(no_reply, then="stop"), no_reply.error)
        if no_reply.fate == "perhaps billed":
            return [(sent.request, no_reply)]
        self._again.append((no_reply.fate, sent._replace(n_failed=n_failed)))
        return []

    def _slow_down(self, sent: _Sent[Request], no_reply: NoReply) -> bool:
        """Wait as the server asks; return False if it asks too much, or has for too long."""
        now = self._pace.now()
        self._limited_since = self._limited_since or now
        longest_s = self._longest_wait_s
        if no_reply.asked_s is None:
            longest_s = min(longest_s, _LONGEST_UNTIMED_WAIT_S)
        limited_s = (now - self._limited_since).total_seconds()
        if max(limited_s, no_reply.asked_s or 0.0) > longest_s:
            return False
        held_s = self._pace.wait_s
        is_billed = no_reply.fate == "perhaps billed"
        wait_s = self._pace.rejected(sent.number, no_reply.asked_s, is_billed=is_billed)
        if wait_s > max(held_s, _WORTH_TELLING_S):
            until = now + timedelta(seconds=wait_s)
            self._tell(
                f"{self._host.name} takes no more requests now: waiting {wait_s:.0f} s, until"
                f" {until.astimezone():%H:%M:%S} ({no_reply.detail})"
            )
        return True


class WaitingNotices:
    """Reports requests under way if no answer came for 1 minute, then for 2, 4, 8 ... minutes."""

    def __init__(
        self, server: str, *, timeout_s: float, now: Callable[[], datetime], tell: Tell
    ) -> None:
        """Take the server's name in messages, and its timeout for one request in seconds."""
        self._server, self._timeout, self._now = server, timedelta(seconds=timeout_s), now
        self._tell = tell
        self._sent_at: dict[int, datetime] = {}  # of the requests under way, the oldest first
        self._since, self._patience_s = now(), _FIRST_NOTICE_S

    def sent(self, number: int) -> None:
        """Note that a request of a number is under way."""
        if not self._sent_at:
            self._begin()
        self._sent_at[number] = self._now()

    def ended(self, number: int) -> None:
        """Note that a request ended, with or without an answer."""
        del self._sent_at[number]
        self._begin()

    @property
    def due_s(self) -> float:
        """Seconds until the next report; infinite if nothing is under way."""
        if not self._sent_at:
            return inf
        return max(0.0, self._patience_s - (self._now() - self._since).total_seconds())

    def tell_if_due(self) -> None:
        """Report the server, how many requests wait, since when, and when they time out."""
        if self.due_s > 0:
            return
        self._patience_s *= 2
        since = next(iter(self._sent_at.values()))
        until = since + self._timeout
        self._tell(
            f"waiting for {self._server} since {since.astimezone():%H:%M:%S}:"
            f" {counted(len(self._sent_at), 'request')} without an answer; the oldest times out at"
            f" {until.astimezone():%H:%M:%S}, after {self._timeout.total_seconds():g} s"
        )

    def _begin(self) -> None:
        self._since, self._patience_s = self._now(), _FIRST_NOTICE_S
