"""Several requests are under way at a time; none is lost, and none is paid for twice."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import count
from threading import Barrier, Event, Thread
from threading import enumerate as threads

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands.asking.pace import Pace
from commands.asking.pool import MOST_LOST, THREAD_NAME, Pool, Settled
from commands.asking.rejections import MOST_ALIKE, HeldRejections
from commands.errors import ProviderError, SpendLimitReached
from commands.ports import Host, NoReply
from ledger.errors import TourneyError
from ledger.events.judging import Fate
from ledger.identity import Digest
from tests.support.builders.clock import Clock
from tests.support.patience import PATIENCE_S

TOO_MUCH = SpendLimitReached("no money")
BUSY = ProviderError("HTTP 429")
Ask = Callable[[int], str | NoReply]


def key_of(number: int) -> Digest:
    """Name a number."""
    return Digest(str(number))


def no(number: int, detail: str, fate: Fate = "refused") -> NoReply:
    """Return why a number has no answer."""
    return NoReply(key_of(number), "errored", detail, fate)


def rejection(number: int, detail: str, *, is_certain: bool = False) -> NoReply:
    """Return why a number is rejected."""
    return NoReply(key_of(number), "rejected", detail, is_certain=is_certain)


def stop(number: int, error: TourneyError, fate: Fate = "refused", **more: bool) -> NoReply:
    """Return that no number can succeed."""
    what = NoReply(key_of(number), "errored", str(error), fate)
    return replace(what, then="stop", error=error, **more)  # type: ignore[arg-type]  # is_certain


def busy(number: int, asked_s: float | None = None) -> NoReply:
    """Return that the server takes no numbers at present."""
    what = NoReply(key_of(number), "errored", str(BUSY))
    return replace(what, then="wait", error=BUSY, asked_s=asked_s)


class Work:
    """Numbers to ask about, and what became of each."""

    def __init__(self, n: int, *, cap: int | None = None) -> None:
        """Take how many there are, and how many may be sent."""
        self.left, self.cap = deque(range(n)), cap
        self.stops = Event()
        self.took: list[int] = []  # how many at a time
        self.settled: list[Settled[int, str]] = []
        self.told: list[str] = []
        self.clock = Clock()

    def take(self, n: int) -> Sequence[int]:
        """Return the next numbers; none beyond the cap."""
        left = n if self.cap is None else self.cap - sum(self.took)
        taken = [self.left.popleft() for _ in range(min(n, left, len(self.left)))]
        self.took.append(len(taken))
        return taken

    def tell(self, line: str) -> None:
        """Note what is told."""
        self.told.append(line)

    def pool(
        self,
        ask: Ask,
        *,
        n_at_a_time: int = 1,
        pace: Pace | None = None,
        held: HeldRejections[int] | None = None,
    ) -> Pool[int, str]:
        """Return a pool whose waiting takes no time."""
        return Pool(
            Host("the server", n_at_a_time, timeout_s=600.0),
            ask,
            key_of,
            stops=self.stops,
            tell=self.tell,
            pace=pace or self.clock.pace(),
            held=held,
        )

    def groups(self, pool: Pool[int, str]) -> Iterator[Sequence[Settled[int, str]]]:
        """Yield what becomes of all of them, as a use case would record it."""
        with pool:
            yield from pool.settle_all(self.left, self.take)

    def run(self, ask: Ask, **options: object) -> "Work":
        """Ask about all of them, and keep what became of each even after an error."""
        for group in self.groups(self.pool(ask, **options)):  # type: ignore[arg-type]  # as above
            self.settled += group
        return self

    @property
    def fates(self) -> dict[int, str]:
        """The fate of each number; "answered" if it was."""
        return {
            number: answer.fate if isinstance(answer, NoReply) else "answered"
            for number, answer in self.settled
        }

    @property
    def reasons(self) -> list[str]:
        """The reasons of those without an answer."""
        return [answer.reason for _, answer in self.settled if isinstance(answer, NoReply)]


@given(n=st.integers(0, 30), n_at_a_time=st.integers(1, 8))
def test_each_request_is_sent_once_and_settled_once(n: int, n_at_a_time: int) -> None:
    """Whatever the number of threads that pull at them."""
    asked: list[int] = []

    def ask(number: int) -> str:
        asked.append(number)
        return str(number)

    work = Work(n).run(ask, n_at_a_time=n_at_a_time)

    assert sorted(asked) == sorted(number for number, _ in work.settled) == list(range(n))
    assert all(answer == str(number) for number, answer in work.settled)


@given(n=st.integers(1, 12), n_at_a_time=st.integers(1, 5), data=st.data())
def test_every_request_that_was_taken_is_settled_whatever_happens(
    n: int, n_at_a_time: int, data: st.DataObject
) -> None:
    """One that is not would count as perhaps billed for ever."""
    fails = data.draw(st.lists(st.sampled_from(["ok", "busy", "broken", "no", "stop"]), min_size=n))
    turns = iter(fails)

    def ask(number: int) -> str | NoReply:
        match next(turns, "ok"):
            case "busy":
                return busy(number)
            case "broken":
                return no(number, "HTTP 500")
            case "no":
                return rejection(number, "too odd")
            case "stop":
                return stop(number, TOO_MUCH)
        return "ok"

    work = Work(n)
    try:
        work.run(ask, n_at_a_time=n_at_a_time)
    except (SpendLimitReached, ProviderError):
        pass
    else:
        assert not work.left

    assert sorted(number for number, _ in work.settled) == list(range(sum(work.took)))


def test_where_a_cap_lets_too_few_be_sent_no_rejection_is_final() -> None:
    """A server that is set up wrongly rejects them all, and two of them do not tell."""
    work = Work(3, cap=2)

    work.run(lambda number: rejection(number, f"too odd: {number}"), n_at_a_time=2)

    assert work.reasons == ["errored", "errored"]


def test_a_thread_that_ends_for_whatever_reason_hangs_nobody() -> None:
    """The run would wait for its answer for ever."""

    def ask(_: int) -> str:
        raise SystemExit("the library gave up on Bearer sk-canary-1f2e3d4c")

    work = Work(3)
    with pytest.raises(SystemExit, match="the library gave up"):
        work.run(ask)

    assert work.fates == {0: "perhaps billed"}
    assert "the library gave up" in str(work.settled)
    assert "canary" not in str(work.settled)  # which is recorded


def test_what_a_busy_server_may_have_billed_is_given_back() -> None:
    """It is recorded, and counts against the cap, before anybody sends it again."""
    asked: list[int] = []

    def ask(number: int) -> NoReply:
        asked.append(number)
        return replace(busy(number), fate="perhaps billed")

    work = Work(1).run(ask)

    assert (asked, work.fates) == ([0], {0: "perhaps billed"})


def test_no_more_are_taken_than_are_sent_at_once() -> None:
    """What is taken is recorded as sent, and counts as paid for if the process dies."""
    work = Work(9).run(str, n_at_a_time=4)

    assert max(work.took) <= 4
    assert sum(work.took) == 9


def test_what_is_under_way_at_an_error_is_answered_before_it_is_raised() -> None:
    """It may be paid for; what was not sent is left alone."""
    both, work = Barrier(2, timeout=PATIENCE_S), Work(20)
    failed = Event()

    def ask(number: int) -> str | NoReply:
        both.wait()
        if number == 0:
            failed.set()
            return stop(number, TOO_MUCH)
        assert failed.wait(PATIENCE_S)
        return "ok"

    with pytest.raises(SpendLimitReached):
        work.run(ask, n_at_a_time=2)

    assert work.fates == {0: "refused", 1: "answered"}


def test_who_is_stopped_sends_nothing_more_and_records_what_is_under_way() -> None:
    """The first Ctrl-C: the answer is paid for."""
    work = Work(20)

    def ask(number: int) -> str:
        if number == 3:
            work.stops.set()
        return "ok"

    work.run(ask)

    assert work.fates == dict.fromkeys(range(4), "answered")


def test_who_stops_listening_waits_for_nothing() -> None:
    """The second Ctrl-C must work at once, be a server ever so slow."""
    late, others, work = Event(), set(threads()), Work(2)
    pool = work.pool(lambda n: "ok" if n == 0 else str(late.wait(PATIENCE_S)), n_at_a_time=2)
    results = work.groups(pool)
    next(results)

    results.close()  # type: ignore[attr-defined]  # it is a generator

    assert THREAD_NAME in {each.name for each in set(threads()) - others if each.daemon}
    late.set()


def unreachable(number: int) -> NoReply:
    """Return that the server was not reached."""
    error = ProviderError("connection refused")
    what = NoReply(key_of(number), "errored", str(error), "not sent")
    return replace(what, then="ask again", error=error)


def test_a_request_that_was_surely_not_sent_is_sent_again() -> None:
    """A server may be started again meanwhile."""
    n_asked: dict[int, int] = {}

    def ask(number: int) -> str | NoReply:
        n_asked[number] = n_asked.get(number, 0) + 1
        return unreachable(number) if n_asked[number] < 3 else "ok"

    work = Work(2).run(ask)

    assert n_asked == {0: 3, 1: 3}
    assert sum(work.clock.slept_s) > 0  # and not at once
    assert set(work.fates.values()) == {"answered"}


def test_a_server_that_cannot_be_reached_ends_the_run() -> None:
    """None of the requests was sent."""
    work = Work(30)
    with pytest.raises(ProviderError, match="connection refused"):
        work.run(unreachable)

    assert work.fates == {0: "not sent"}


def test_what_may_have_been_billed_is_not_sent_again() -> None:
    """Nobody pays twice without being told."""
    asked: list[int] = []

    def ask(number: int) -> str | NoReply:
        asked.append(number)
        return no(number, "cut", "perhaps billed") if number == 1 else "ok"

    work = Work(3).run(ask)

    assert asked == [0, 1, 2]
    assert work.fates == {0: "answered", 1: "perhaps billed", 2: "answered"}


def test_request_after_request_without_an_answer_ends_the_run() -> None:
    """Each may be billed, for nothing."""
    work = Work(50)

    with pytest.raises(ProviderError, match=r"10 requests in a row got no answer, .*'cut'"):
        work.run(lambda number: no(number, "cut", "perhaps billed"))

    assert len(work.settled) == MOST_LOST


def test_a_limit_is_waited_out_and_costs_no_attempt() -> None:
    """However often it is reached."""
    n_left = [30]

    def ask(number: int) -> str | NoReply:
        if n_left[0]:
            n_left[0] -= 1
            return busy(number, asked_s=60.0)
        return "ok"

    work = Work(2).run(ask)

    assert set(work.fates.values()) == {"answered"}
    assert work.clock.slept_s[:30] == [60.0] * 30
    assert len(work.told) == 30
    assert work.told[0].startswith("the server takes no more requests now: waiting 60 s, until ")


def test_a_reply_of_another_kind_ends_the_run_unless_the_server_is_proven() -> None:
    """A welcome page says that the address is wrong; one broken body among many says nothing."""

    def ask(number: int) -> str | NoReply:
        if number == first_wrong:
            return stop(number, ProviderError("no JSON"), "perhaps billed", is_certain=False)
        return "ok"

    first_wrong = 0
    with pytest.raises(ProviderError, match="no JSON"):
        Work(3).run(ask)
    first_wrong = 1
    work = Work(3).run(ask)

    assert work.fates == {0: "answered", 1: "perhaps billed", 2: "answered"}


def rejecting(numbers: range) -> Ask:
    """Return a server that rejects some numbers, all in the same words."""
    return lambda number: rejection(number, "usage limit") if number in numbers else "ok"


def test_rejections_in_the_same_words_end_the_run_and_burn_nothing() -> None:
    """An account's limit may be reached after any number of answers, and lifted tomorrow."""
    work = Work(172)

    with pytest.raises(ProviderError, match=r"rejected 8 requests in a row .* 'usage limit'"):
        work.run(rejecting(range(40, 172)))

    assert list(work.fates.values()).count("answered") == 40
    assert work.reasons == ["errored"] * MOST_ALIKE


@pytest.mark.parametrize(
    "words",
    [
        "HTTP 400: no (request req_{1})",
        "quota of project 7 is used up at {0}:00",
        "see https://errors.example.org/trace/{1}",
    ],
)
def test_rejections_that_differ_in_the_requests_own_words_alone_are_alike(words: str) -> None:
    """Anthropic names each request, so that its support can find it; others link to a trace."""
    work = Work(30)

    with pytest.raises(ProviderError, match=r"rejected \d+ requests"):
        work.run(lambda n: rejection(n, words.format(n, "abcdefghij"[n % 10])))

    assert work.reasons == ["errored"] * MOST_ALIKE


def test_a_server_that_is_blamed_stays_so_while_the_rest_comes_in() -> None:
    """Eight are under way beside the eighth rejection, and may be rejected in other words."""
    turns, together = count(), Barrier(MOST_ALIKE + 1, timeout=PATIENCE_S)
    blamed = Event()

    def ask(number: int) -> NoReply:
        turn = next(turns)
        together.wait()
        if turn == MOST_ALIKE:
            assert blamed.wait(PATIENCE_S)
            return rejection(number, "other words")
        return rejection(number, "limit")

    class Blaming(HeldRejections[int]):
        def add(self, request: int, rejection: NoReply, n_sent: int) -> None:
            super().add(request, rejection, n_sent)
            if self.blames_server:
                blamed.set()

    work = Work(MOST_ALIKE + 1)
    with pytest.raises(ProviderError, match=r"rejected \d+ requests"):
        work.run(ask, n_at_a_time=MOST_ALIKE + 1, held=Blaming())

    assert work.reasons == ["errored"] * (MOST_ALIKE + 1)


def test_a_rejection_is_final_once_a_later_request_is_answered() -> None:
    """The server works; the request does not."""
    work = Work(40).run(rejecting(range(10, 14)))

    assert work.reasons == ["rejected"] * 4
    assert len(work.settled) == 40


def test_an_answer_to_an_earlier_request_proves_nothing() -> None:
    """It was under way when the limit was reached."""
    rejected, work = Event(), Work(2)

    def ask(number: int) -> str | NoReply:
        if number == 0:
            assert rejected.wait(PATIENCE_S)
            return "ok"
        rejected.set()
        return rejection(number, "limit")

    held: HeldRejections[int] = HeldRejections()
    work.run(ask, n_at_a_time=2, held=held)

    assert [number for number, _ in work.settled] == [0, 1]  # the rejection came last, at the end


def test_rejections_for_reasons_of_their_own_are_final() -> None:
    """A few prompts may each have a fault; twice as many as are alike are the server's."""
    wrong = [f"{word} is not allowed" for word in "abcdefghijklmnopqrst"]

    def ask(number: int) -> NoReply:
        return rejection(number, wrong[number])

    few = Work(2 * MOST_ALIKE - 1).run(ask)
    many = Work(20)
    with pytest.raises(ProviderError, match=r"rejected \d+ requests"):
        many.run(ask)

    assert few.reasons == ["rejected"] * (2 * MOST_ALIKE - 1)
    assert many.reasons == ["errored"] * 2 * MOST_ALIKE


def test_rejections_with_answers_between_them_are_not_in_a_row() -> None:
    """The answers were under way when the first rejection came, as with 64 at a time."""
    held: HeldRejections[int] = HeldRejections()
    for number in range(1, 65):
        if number % 4:
            held.answered(number)
        else:
            word = "abcdefghijklmnop"[number // 4 - 1]
            held.add(number, rejection(number, f"no {word}"), 64)

    assert not held.blames_server


def test_alike_rejections_with_an_earlier_answer_between_are_not_said_to_be_in_a_row() -> None:
    """An account's limit may be reached while earlier requests are still answered."""
    held: HeldRejections[int] = HeldRejections()
    for number in range(MOST_ALIKE):
        if number == 3:
            held.answered(number)
        held.add(number, rejection(number, "usage limit"), 64)

    assert held.blames_server
    assert held.tally == "8 requests in the same words"


def test_a_server_that_answers_nothing_is_not_believed_about_its_requests() -> None:
    """A gateway that flags everything is set up wrongly; one that answers others is believed."""
    all_flagged, few_flagged = Work(20), Work(20)

    def flagged(number: int) -> NoReply:
        return rejection(number, "flagged", is_certain=True)

    with pytest.raises(ProviderError, match="rejected 8 requests in a row"):
        all_flagged.run(flagged)
    few_flagged.run(lambda number: "ok" if number == 0 else flagged(number))

    assert all_flagged.reasons == ["errored"] * MOST_ALIKE
    assert few_flagged.reasons == ["rejected"] * 19


def test_a_few_rejections_are_believed_and_remembered() -> None:
    """A cap cuts a run into pieces that are each too short to tell."""
    held: HeldRejections[int] = HeldRejections()
    ask = rejecting(range(100))

    first = Work(5).run(ask, held=held)
    with pytest.raises(ProviderError, match=r"rejected \d+ requests"):
        Work(5).run(ask, held=held)

    assert first.reasons == ["rejected"] * 5


def allow_threads(monkeypatch: pytest.MonkeyPatch, n: int) -> None:
    """Let the system start so many threads, and refuse more as Linux does."""
    left, start = [None] * n, Thread.start

    def start_if_allowed(thread: Thread) -> None:
        if not left:
            raise RuntimeError("can't start new thread")
        left.pop()
        start(thread)

    monkeypatch.setattr(Thread, "start", start_if_allowed)


def test_a_system_with_few_threads_sends_with_those(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was recorded as sent is sent, and nothing ends in a traceback."""
    allow_threads(monkeypatch, 3)

    work = Work(40).run(str, n_at_a_time=16)

    assert list(work.fates.values()) == ["answered"] * 40
    assert max(work.took) == 3  # no more are recorded as sent than threads exist


def test_a_system_without_threads_records_nothing_as_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each request would count as perhaps billed, and none would be."""
    allow_threads(monkeypatch, 0)
    work = Work(40)

    with pytest.raises(ProviderError, match="can't start new thread; free some memory"):
        work.run(str, n_at_a_time=16)

    assert work.took == []


class HurriedTime(Clock):
    """A clock that moves on by more than a minute whenever it is read."""

    def now(self) -> datetime:
        """Return the time."""
        self.moment += timedelta(seconds=61)
        return self.moment


def test_a_request_that_hangs_is_told_of_while_it_hangs() -> None:
    """The answer is only let through once the line has come."""
    told = Event()

    class Telling(Work):
        def tell(self, line: str) -> None:
            super().tell(line)
            told.set()

    work = Telling(1)
    work.run(lambda number: f"{number} {told.wait(PATIENCE_S)}", pace=HurriedTime().pace())

    assert work.settled == [(0, "0 True")]
    assert work.told[0].startswith("waiting for the server since ")
    assert "1 request without an answer" in work.told[0]


def test_who_leaves_early_lets_the_next_pool_go_on_at_the_same_pace() -> None:
    """Else the server that was just tried would be sent nothing more, by anybody."""
    late, pace = Event(), HurriedTime().pace()
    pace.rejected(pace.sent(), 0.0)

    class Leaving(Work):
        def tell(self, _: str) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Leaving(1).run(lambda _: str(late.wait(PATIENCE_S)), pace=pace)

    assert pace.n_free(1)
    late.set()
