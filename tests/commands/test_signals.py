"""Ctrl-C stops gently at first, and at once the second time."""

import os
import signal
from collections.abc import Callable
from threading import Thread

import pytest

from commands.signals import interrupted_by_any_ending, stopping_gently


def test_the_first_ctrl_c_says_what_happens_and_the_second_interrupts(
    ctrl_c: Callable[[], None],
) -> None:
    """Answers under way are paid for; nobody must wait for them who cannot."""
    told: list[str] = []

    with stopping_gently(told.append) as stops:
        ctrl_c()
        is_set = stops.is_set()
        with pytest.raises(KeyboardInterrupt):
            ctrl_c()

    assert is_set
    assert told == ["stopping: answers under way are still recorded; Ctrl-C again leaves them"]


@pytest.mark.usefixtures("ctrl_c")
def test_afterwards_ctrl_c_is_what_it_was() -> None:
    """Other work has its own way to stop."""
    with stopping_gently(lambda _: None):
        pass

    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_command_that_ignores_ctrl_c_goes_on_ignoring_it(ctrl_c: Callable[[], None]) -> None:
    """It was begun in the background by a script."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    with stopping_gently(lambda _: None) as stops:
        ctrl_c()

    assert not stops.is_set()


def test_in_another_thread_there_is_no_signal_to_wait_for() -> None:
    """A program that uses the library may judge in a thread of its own, where Python sets none."""
    seen: list[object] = []

    def work() -> None:
        with stopping_gently(lambda _: None) as stops, interrupted_by_any_ending():
            seen.extend((stops.is_set(), signal.getsignal(signal.SIGTERM)))

    thread = Thread(target=work)
    thread.start()
    thread.join()

    assert seen == [False, signal.getsignal(signal.SIGTERM)]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_request_to_end_keeps_the_answers_under_way(number: signal.Signals) -> None:
    """A scheduler sends the one, a terminal that is closed the other; the answers are paid for."""
    before = signal.signal(number, signal.SIG_DFL)

    with stopping_gently(lambda _: None) as stops:
        os.kill(os.getpid(), number)
        is_set, now = stops.is_set(), signal.getsignal(number)

    signal.signal(number, before)
    assert is_set
    assert now is signal.SIG_DFL


def test_a_scheduler_that_ends_a_command_interrupts_it_as_ctrl_c_does() -> None:
    """A ledger that was begun in vain is removed then, too."""
    before = signal.getsignal(signal.SIGTERM)

    with pytest.raises(KeyboardInterrupt), interrupted_by_any_ending():
        signal.raise_signal(signal.SIGTERM)

    assert signal.getsignal(signal.SIGTERM) is before
