"""Ctrl-C stops gently at first, and at once the second time."""

import os
import signal
from threading import Thread

import pytest

from commands.judging.stopping import stopping_gently


def press_ctrl_c() -> None:
    """Send this process what a terminal sends at Ctrl-C."""
    os.kill(os.getpid(), signal.SIGINT)


def test_the_first_ctrl_c_says_what_happens_and_the_second_interrupts() -> None:
    """Answers under way are paid for; nobody must wait for them who cannot."""
    told: list[str] = []

    with stopping_gently(told.append) as stops:
        press_ctrl_c()
        is_set = stops.is_set()
        with pytest.raises(KeyboardInterrupt):
            press_ctrl_c()

    assert is_set

    assert told == ["stopping: answers under way are still recorded; Ctrl-C again leaves them"]


def test_afterwards_ctrl_c_is_what_it_was() -> None:
    """Other work has its own way to stop."""
    before = signal.getsignal(signal.SIGINT)

    with stopping_gently(lambda _: None):
        pass

    assert signal.getsignal(signal.SIGINT) is before


def test_in_another_thread_there_is_no_signal_to_wait_for() -> None:
    """A program that uses the library may judge in a thread of its own."""
    seen: list[bool] = []

    def work() -> None:
        with stopping_gently(lambda _: None) as stops:
            seen.append(stops.is_set())

    thread = Thread(target=work)
    thread.start()
    thread.join()

    assert seen == [False]
