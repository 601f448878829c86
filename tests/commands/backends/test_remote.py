"""Several queries are under way at a time, and none is lost or asked twice."""

import subprocess
import sys
from collections.abc import Callable
from threading import Barrier, Event
from threading import enumerate as threads

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands.backends._remote import THREAD_NAME, run_concurrently
from commands.ports import Answer, Reply
from projections.verdicts.queries import JudgeQuery
from tests.support.builders.commands import reply
from tests.support.builders.events import key
from tests.support.patience import PATIENCE_S


class TooMuch(Exception):
    """What a provider may run into."""


def numbered(n: int) -> list[JudgeQuery]:
    """Return different queries."""
    return [JudgeQuery(key(str(each)), "forward", "", "", "", "", None) for each in range(n)]


def replying(query: JudgeQuery) -> Reply:
    """Reply at once."""
    return reply(query.query_key)


@given(n=st.integers(0, 30), n_at_a_time=st.integers(1, 8))
def test_each_query_is_asked_once_and_answered_once(n: int, n_at_a_time: int) -> None:
    """Whatever the number of threads that pull at them."""
    asked: list[str] = []

    def ask(query: JudgeQuery) -> Answer:
        asked.append(query.query_key)
        return replying(query)

    answered = [
        each.query_key for each in run_concurrently(numbered(n), ask, n_at_a_time=n_at_a_time)
    ]

    expected = sorted(query.query_key for query in numbered(n))
    assert sorted(asked) == sorted(answered) == expected


def test_what_is_under_way_at_an_error_is_answered_before_it_is_raised() -> None:
    """It may be paid for; what was not asked is left alone."""
    first, *_ = queries = numbered(20)
    both_asked, asked = Barrier(2, timeout=PATIENCE_S), []

    def ask(query: JudgeQuery) -> Answer:
        asked.append(query)
        both_asked.wait()
        if query == first:
            raise TooMuch
        assert stops.wait(PATIENCE_S)  # as the other thread has raised
        return replying(query)

    stops, kept = Event(), list[Answer]()
    with pytest.raises(TooMuch):
        kept.extend(run_concurrently(queries, ask, n_at_a_time=2, stops=stops))

    assert [answer.query_key for answer in kept] == [queries[1].query_key]
    assert len(asked) == 2


def test_who_stops_listening_waits_for_nothing() -> None:
    """Ctrl-C must work at once, be a server ever so slow."""
    late, others = Event(), set(threads())
    answers = run_concurrently(numbered(2), waiting_for(late, but=numbered(1)[0]), n_at_a_time=2)
    next(answers)

    answers.close()  # type: ignore[attr-defined]  # it is a generator

    assert THREAD_NAME in {each.name for each in set(threads()) - others}
    late.set()


def waiting_for(late: Event, *, but: JudgeQuery) -> Callable[[JudgeQuery], Answer]:
    """Return what answers one query at once, and others late."""

    def ask(query: JudgeQuery) -> Answer:
        if query != but:
            late.wait(PATIENCE_S)
        return replying(query)

    return ask


FIRST_REPLIES = """
import os, sys
from threading import Barrier, Thread
from commands.backends.anthropic._replies import answer_of
from commands.backends.endpoint._replies import reply_of, text_of
from ledger.identity import Digest

N_THREADS = 4
USAGE = b'{"input_tokens": 1, "output_tokens": 1, "prompt_tokens": 1, "completion_tokens": 1}'
BODY = (
    b'{"type": "message", "model": "m", "content": [{"type": "text", "text": "A"}], "usage": '
    + USAGE
    + b', "choices": [{"message": {"content": "A"}, "finish_reason": "stop"}]}'
)


def decode(at_once):
    at_once.wait()
    answer_of(Digest("0" * 64), BODY)
    reply_of(Digest("0" * 64), BODY)
    text_of(Digest("0" * 64), BODY, elapsed_s=0.1)


def child():
    sys.setswitchinterval(1e-6)
    at_once = Barrier(N_THREADS)
    threads = [Thread(target=decode, args=(at_once,)) for _ in range(N_THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


for _ in range(20):
    if (pid := os.fork()) == 0:
        child()
        os._exit(0)
    ended = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert ended == 0, ended
"""


def test_the_first_replies_may_come_at_the_same_time() -> None:
    """A type that two threads are the first to decode may crash msgspec."""
    subprocess.run([sys.executable, "-c", FIRST_REPLIES], check=True)
