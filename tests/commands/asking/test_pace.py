"""A server is sent requests as fast as it takes them, and is waited for as it asks."""

import random
from collections.abc import Callable
from datetime import timedelta
from heapq import heappop, heappush
from typing import Final

import pytest

from commands.asking.pace import Pace, back_off_s, steady_now
from tests.support.builders.clock import Clock

N_AT_A_TIME: Final = 64


class Bucket:
    """A server that takes so many requests a second, and as many at once."""

    def __init__(self, per_s: float) -> None:
        self.per_s = self.left = per_s
        self.last_s = 0.0

    def __call__(self, now_s: float) -> bool:
        """Say whether it takes a request."""
        self.left = min(self.per_s, self.left + (now_s - self.last_s) * self.per_s)
        self.last_s = now_s
        takes = self.left >= 1
        self.left -= takes
        return takes


class Simulation:
    """Requests to a server that answers in 50 ms to 2 s, and rejects in 50 ms."""

    def __init__(
        self, takes: Callable[[float], bool], *, seed: int, asked_s: float | None = None
    ) -> None:
        self.clock = Clock()
        self.began_at = self.clock.now()
        self.pace = Pace(now=self.clock.now)
        self.takes, self.asked_s, self.rng = takes, asked_s, random.Random(seed)  # noqa: S311
        random.seed(seed)  # of the waits, which vary at random
        self.answered_s: list[float] = []
        self.sent_s: list[float] = []
        self.rejected_s: list[float] = []
        self.n_at_once = 0
        self._under_way: list[tuple[float, int, bool]] = []  # a heap, by the end

    @property
    def now_s(self) -> float:
        """Seconds since the beginning."""
        return (self.clock.now() - self.began_at).total_seconds()

    def run(self, n_answers: int) -> "Simulation":
        """Send requests until so many were answered."""
        while len(self.answered_s) < n_answers:
            while not self.pace.wait_s and (n := self.pace.n_free(N_AT_A_TIME)):
                for _ in range(n):
                    self._send()
            self._pass_time()
        return self

    @property
    def _n(self) -> int:
        return len(self._under_way)

    def _send(self) -> None:
        is_taken = self.takes(self.now_s)
        lasts_s = self.rng.uniform(0.05, 2.0) if is_taken else 0.05
        heappush(self._under_way, (self.now_s + lasts_s, self.pace.sent(), is_taken))
        self.sent_s.append(self.now_s)
        self.n_at_once = max(self.n_at_once, self._n)

    def _pass_time(self) -> None:
        """Go on to the end of a request, or to when the next may be sent."""
        ends = [self._under_way[0][0]] if self._n else []
        if self.pace.n_free(N_AT_A_TIME):
            ends.append(self.now_s + self.pace.wait_s + 1e-6)
        self.clock.moment = self.began_at + timedelta(seconds=max(min(ends), self.now_s))
        while self._n and self._under_way[0][0] <= self.now_s + 1e-6:
            _, number, is_taken = heappop(self._under_way)
            self.pace.ended(number)
            if is_taken:
                self.answered_s.append(self.now_s)
                self.pace.answered(number)
            else:
                self.rejected_s.append(self.now_s)
                self.pace.rejected(number, self.asked_s)


@pytest.mark.parametrize("per_s", [2.0, 40.0])
def test_a_servers_limit_is_used_and_seldom_passed(per_s: float) -> None:
    """Each rejection may be billed by a gateway, and flooding a server gets a key banned."""
    simulation = Simulation(Bucket(per_s), seed=0).run(1_000)

    assert len(simulation.rejected_s) / 1_000 <= 0.15
    assert 1_000 / simulation.now_s >= 0.6 * per_s


def test_a_cap_is_not_lost_to_rejections_that_count_as_billed() -> None:
    """Of what is under way when a limit is found each may be billed; later ones are few."""
    simulation = Simulation(Bucket(40.0), seed=0).run(4_000)

    n_later = sum(rejected_s > 1 for rejected_s in simulation.rejected_s)
    assert len(simulation.rejected_s) <= 0.02 * 4_000
    assert n_later <= 0.01 * 4_000


def test_a_server_without_a_limit_gets_as_many_at_a_time_as_are_allowed() -> None:
    """Nothing is slowed down before a server asks for it."""
    simulation = Simulation(lambda _: True, seed=0).run(2_000)

    assert simulation.sent_s[:N_AT_A_TIME] == [0.0] * N_AT_A_TIME
    assert 2_000 / simulation.now_s >= 0.9 * N_AT_A_TIME / 1.025


def test_an_outage_is_no_measurement() -> None:
    """Once the server is back, it is soon sent as much as before."""
    simulation = Simulation(lambda now_s: not 30 <= now_s < 50, seed=0).run(8_000)

    assert len(simulation.rejected_s) <= N_AT_A_TIME + 10
    of_ten_s = [sum(t <= each < t + 10 for each in simulation.answered_s) for t in (20, 70)]
    assert of_ten_s[1] >= 0.9 * of_ten_s[0]


def test_what_a_server_asks_to_wait_is_waited() -> None:
    """Coming sooner is refused again."""
    simulation = Simulation(Bucket(2.0), seed=0, asked_s=7.0).run(200)

    for rejected_s in simulation.rejected_s:
        assert not any(rejected_s < each < rejected_s + 7 for each in simulation.sent_s)


def test_the_clock_that_is_waited_by_never_goes_back() -> None:
    """One that is set while a server is waited for would hang the run, or hammer the server."""
    times = [steady_now() for _ in range(100)]

    assert times == sorted(times)
    assert Pace().now is steady_now


def test_after_a_rejection_one_is_sent_at_a_time_until_the_server_answers() -> None:
    """Whatever became of that one before, the next may be sent."""
    pace = Clock().pace()
    pace.rejected(pace.sent(), 0.0)

    trial = pace.sent()

    assert pace.n_free(N_AT_A_TIME) == 0
    pace.ended(trial)
    assert pace.n_free(N_AT_A_TIME) == 1
    pace.answered(pace.sent())
    assert pace.wait_s > 0  # from now on at a rate


def test_rejections_of_the_same_moment_count_once() -> None:
    """Eight that were under way together must not wait for eight times as long."""
    pace = Clock().pace()
    numbers = [pace.sent() for _ in range(8)]

    waits = [pace.rejected(number, None) for number in numbers]

    assert max(waits) <= 0.5
    assert pace.wait_s <= 0.5


def test_else_each_rejection_waits_longer_up_to_a_limit() -> None:
    """Jitter keeps many clients from coming back at once."""
    for n_before, limit in [(0, 0.5), (1, 1.0), (2, 2.0), (20, 60.0), (10_000, 60.0)]:
        assert all(limit / 2 <= back_off_s(n_before) <= limit for _ in range(20))


@pytest.mark.parametrize("asked_s", [None, 0.0])
def test_a_server_that_rejects_again_and_names_no_time_is_not_hammered(
    asked_s: float | None,
) -> None:
    """Each rejection may have its price."""
    clock = Clock()
    pace = clock.pace()
    pace.rejected(pace.sent(), asked_s)
    clock.sleep(60.0)

    assert pace.rejected(pace.sent(), asked_s) >= 0.5


def test_a_server_that_may_bill_what_it_rejects_is_asked_ever_more_rarely() -> None:
    """It asked for a second each time, and an hour of that was 3,600 requests perhaps billed."""
    clock = Clock()
    pace, n = clock.pace(), 0
    began_at = pace.now()

    while pace.now() - began_at < timedelta(hours=1):
        n += 1
        clock.sleep(pace.rejected(pace.sent(), 1.0, is_billed=True))

    assert 60 <= n <= 140
