"""What servers send is read, whatever it is and whichever thread is the first."""

import subprocess
import sys

import httpx2
import pytest

from commands.backends.remote.bodies import retry_after_s

FIRST_REPLIES = """
import os, sys
from threading import Barrier, Thread
from commands.backends.anthropic._replies import answer_of
from commands.backends.endpoint.askers import reply_of, text_of
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


@pytest.mark.nightly
def test_the_first_replies_may_come_at_the_same_time() -> None:
    """A type that two threads are the first to decode may crash msgspec."""
    subprocess.run([sys.executable, "-c", FIRST_REPLIES], check=True)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after": "-1"}, 0.0),
        (
            {
                "retry-after": "Fri, 01 Jan 2027 00:00:08 GMT",
                "date": "Fri, 01 Jan 2027 00:00:00 GMT",
            },
            8.0,
        ),
        ({"retry-after": "Fri, 01 Jan 1999 00:00:00 GMT"}, 0.0),
        ({"retry-after": "Fri, 01 Jan 2027 00:00:08 -0000"}, None),  # a date without a zone
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)
def test_the_wait_that_a_server_asks_for_is_read(
    headers: dict[str, str], seconds: float | None
) -> None:
    """A date is by the server's clock, which the server tells, too."""
    assert retry_after_s(httpx2.Headers(headers)) == seconds
