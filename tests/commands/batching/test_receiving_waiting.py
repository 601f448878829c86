"""A wait for batches: how often they are looked at, what it outlasts, and what is told of it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise

import pytest

from commands.batching.receiving import BatchOptions
from commands.decisions.recorder import Recorder
from commands.errors import BatchGone, BatchUncertain, NoCredentials, NotAnswering, WorkInFlight
from commands.ports import Answer, BatchState
from ledger.errors import TourneyError
from ledger.store import Ledger
from tests.support.builders.batching import (
    N_QUERIES,
    again,
    batching,
    judged,
    left_in_flight,
    statuses,
)
from tests.support.builders.clock import Clock
from tests.support.builders.commands import prefer_tuned
from tests.support.builders.events import NOON
from tests.support.scripted import ScriptedBatchJudge

HOUR = timedelta(hours=1)
WHY = "the connection to api.example.com failed"


class Remote(ScriptedBatchJudge):
    """A provider that fails whoever looks at it from one time to another."""

    def __init__(self, clock: Clock, *, tells_queries: bool = False) -> None:
        """Let it answer."""
        super().__init__(
            prefer_tuned, ends_at_once=False, tells_queries=tells_queries, now=clock.now
        )
        self._clock = clock
        self._down: tuple[datetime, datetime] | None = None
        self._error: TourneyError = NotAnswering(WHY)
        self.looked_at: list[datetime] = []

    def fail(self, lasting: timedelta, error: TourneyError | None = None) -> None:
        """Answer nothing from now on, and for so long."""
        self._down = (self._clock.moment, self._clock.moment + lasting)
        self._error = error or self._error

    def retrieve(self, provider_batch_id: str) -> BatchState:
        """Return how a batch is doing."""
        self._answer()
        return super().retrieve(provider_batch_id)

    def created_since(self, moment: datetime) -> Iterator[BatchState]:
        """Yield the batches created at or after a moment."""
        self._answer()
        yield from super().created_since(moment)

    def results(self, provider_batch_id: str) -> Iterator[Answer]:
        """Yield a batch's answers; the connection breaks after the first of them."""
        for answer in super().results(provider_batch_id):
            yield answer
            self._answer()

    def _answer(self) -> None:
        self.looked_at.append(self._clock.moment)
        if self._down is not None and self._down[0] <= self._clock.moment < self._down[1]:
            raise self._error


@dataclass
class Later:
    """What happens as time passes."""

    clock: Clock
    at: dict[timedelta, Callable[[], None]]

    def sleep(self, seconds: float) -> None:
        """Sleep, and let happen what is due by then."""
        self.clock.sleep(seconds)
        for after in sorted(self.at):
            if self.clock.moment >= NOON + after:
                self.at.pop(after)()


@pytest.fixture
def remote(clock: Clock) -> Remote:
    """Give a provider that can be failed."""
    return Remote(clock)


def while_waiting(
    how: BatchOptions, clock: Clock, at: dict[timedelta, Callable[[], None]]
) -> BatchOptions:
    """Return the same options, but that things happen so long after noon."""
    return replace(how, sleep=Later(clock, at).sleep)


def test_looking_is_repeated_with_growing_delays(
    recorder: Recorder, remote: Remote, clock: Clock
) -> None:
    """Asking every second for an hour would be refused; asking once an hour would be slow."""
    how = while_waiting(batching(clock), clock, {HOUR: remote.end})

    judged(recorder, remote, how)

    looks = remote.looked_at
    between_s = [(later - at).total_seconds() for at, later in pairwise(looks)]
    assert between_s[0] < 6
    assert all(54 <= each <= 66 for each in between_s[9:50])


def test_each_minute_a_line_says_where_the_wait_stands(
    recorder: Recorder, remote: Remote, clock: Clock
) -> None:
    """A terminal that says nothing for hours looks as if it hung."""
    told: list[str] = []
    how = batching(clock, most_queries=3, tell=told.append)

    judged(recorder, remote, while_waiting(how, clock, {timedelta(minutes=125): remote.end}))

    lines = [line for line in told if line.startswith("waiting")]
    standing = "0 of 4 requests and 0 of 2 batches are done"
    assert lines[0] == f"waiting for 1 min: {standing}"
    assert lines[59] == f"waiting for 1 h 0 min: {standing}"
    assert len(lines) == 125
    assert told[-2:] == [
        "batch batch_1 ended: 3 answered, 0 not",
        "batch batch_2 ended: 1 answered, 0 not",
    ]


def test_what_has_come_is_counted_in_that_line(
    recorder: Recorder, remote: Remote, clock: Clock
) -> None:
    """The wait goes on for what is asked again."""
    told: list[str] = []
    how = batching(clock, most_queries=3, tell=told.append)

    def end_first() -> None:
        remote.cancel("batch_1")

    at = {timedelta(minutes=2): end_first, timedelta(minutes=9): remote.end}
    judged(recorder, remote, while_waiting(how, clock, at))

    lines = [line for line in told if line.startswith("waiting")]
    assert lines[-1] == "waiting for 9 min: 3 of 7 requests and 1 of 3 batches are done"


@pytest.mark.parametrize("lasting", [HOUR, 20 * HOUR])
def test_a_wait_outlasts_the_network(
    recorder: Recorder, remote: Remote, clock: Clock, lasting: timedelta
) -> None:
    """Looking is free, and a laptop that was carried home is online again tomorrow."""
    told: list[str] = []
    how = batching(clock, tell=told.append)
    at = {timedelta(minutes=5): lambda: remote.fail(lasting), timedelta(minutes=30): remote.end}

    done = judged(recorder, remote, while_waiting(how, clock, at))

    assert done.n_verdicts == N_QUERIES
    assert len(remote.asked) == N_QUERIES
    assert clock.moment > NOON + lasting
    assert told.count(f"the provider does not answer: {WHY}") == 1
    assert told.count("the provider answers again") == 1
    silent = [line for line in told if "no answer since" in line]
    n_minutes = lasting // timedelta(minutes=1)
    assert n_minutes - 3 <= len(silent) <= n_minutes + 3
    assert silent[-1].startswith(f"waiting for {lasting // HOUR} h ")


@pytest.mark.parametrize("tells_queries", [False, True])
def test_a_batch_of_unknown_fate_is_looked_for_until_the_provider_answers(
    recorder: Recorder, clock: Clock, *, tells_queries: bool
) -> None:
    """Dropped because nobody answered, it would be paid for twice."""
    remote = Remote(clock, tells_queries=tells_queries)
    remote.fail_next(BatchUncertain("the connection was cut"), accepts=True)
    remote.fail(2 * HOUR)

    done = judged(recorder, remote, while_waiting(batching(clock), clock, {3 * HOUR: remote.end}))

    assert done.n_verdicts == N_QUERIES
    assert len(remote.asked) == N_QUERIES
    assert statuses(recorder) == ["ended"]


@pytest.mark.parametrize("error", [NoCredentials("refused"), BatchGone("batch_1")])
def test_what_no_wait_can_mend_ends_it(
    recorder: Recorder, remote: Remote, clock: Clock, error: TourneyError
) -> None:
    """A key that was revoked, a batch that was deleted: somebody must do something."""
    at = {timedelta(minutes=5): lambda: remote.fail(HOUR, error)}

    with pytest.raises(type(error)):
        judged(recorder, remote, while_waiting(batching(clock), clock, at))

    assert clock.moment < NOON + timedelta(minutes=7)


def test_what_has_ended_is_received_before_the_rest_is_sent_and_nobody_waits(
    recorder: Recorder, ledger: Ledger, remote: Remote, clock: Clock
) -> None:
    """Half of the first batch was canceled: it is owed, and work is in flight until it is here."""
    left_in_flight(recorder, remote, batching(clock, waits=False, most_queries=3), limit=3)
    remote.cancel("batch_1")
    later = again(recorder, ledger)

    with pytest.raises(WorkInFlight, match="4 requests in 2 batches"):
        judged(later, remote, batching(clock, waits=False, most_queries=3))

    assert statuses(later) == ["ended", "in flight", "in flight"]
    assert clock.slept_s == []
