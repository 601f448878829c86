"""A fake of the Anthropic API on loopback: `with FakeAnthropic() as fake: ... fake.url ...`.

The real SDK talks to it; it enforces what the API enforces, fails as the API fails, and keeps
a bill of its own. `python -m tests.anthropic_api` runs it as a process, see process.py.
"""

from collections.abc import Callable
from contextlib import ExitStack
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from types import TracebackType
from typing import Final, Self

from tests.anthropic_api.answers import Answering, judge
from tests.anthropic_api.batches import Batches, Pace
from tests.anthropic_api.bill import Bill
from tests.anthropic_api.books import Books
from tests.anthropic_api.clock import Clock, real_time
from tests.anthropic_api.control import Control
from tests.anthropic_api.desk import Desk
from tests.anthropic_api.faults import Fault, FaultPlan, Shares
from tests.anthropic_api.handler import bound
from tests.anthropic_api.limits import Limits
from tests.anthropic_api.messages import Assistant
from tests.anthropic_api.rates import Rates
from tests.anthropic_api.service import Service
from tests.loopback import LoopbackServer

BATCH_HIT_RATE: Final = 0.6  # the API's documentation says 30 to 98 %
_POLL_S: Final = 0.02


class FakeAnthropic:
    """The fake, in this process, as long as its block lasts."""

    def __init__(
        self,
        *,
        answering: Answering = judge,
        pace: Pace | None = None,
        limits: Limits | None = None,
        api_key: str | None = None,
        batch_hit_rate: float = BATCH_HIT_RATE,
        now: Callable[[], datetime] = real_time,
        folder: Path | None = None,
        seed: int = 0,
    ) -> None:
        """Make a fake.

        Args:
            answering: what the models reply.
            pace: when batches end; by default at the second retrieval.
            limits: by default those of the API.
            api_key: the one key that is taken; any, if None.
            batch_hit_rate: the share of a batch's requests that find a prefix that is cached.
            now: the clock, which `advance` moves on.
            folder: where requests and results lie; a temporary one, if None.
            seed: of ids and of the order of results.
        """
        self._exits = ExitStack()
        self._clock, self._plan = Clock(now), FaultPlan()
        self._limits = limits or Limits()
        books = Books()
        self._service = Service(
            batches=Batches(
                folder or Path(self._exits.enter_context(TemporaryDirectory(prefix="anthropic-"))),
                limits=self._limits,
                pace=pace or Pace(),
                now=self._clock.now,
                seed=seed,
            ),
            desk=Desk(
                Assistant(answering, batch_hit_rate=batch_hit_rate), self._plan, books, self._clock
            ),
            books=books,
            plan=self._plan,
            clock=self._clock,
            rates=Rates(self._limits.n_requests_per_minute, now=self._clock.now),
            api_key=api_key,
        )

    def __enter__(self) -> Self:
        """Listen on a port of loopback that is free."""
        control = Control(self._service, self._plan)
        handler = bound(api=self._service, control=control, limits=self._limits, plan=self._plan)
        server = self._exits.enter_context(LoopbackServer(("127.0.0.1", 0), handler))
        self._service.base_url = f"http://127.0.0.1:{server.server_port}"
        thread = Thread(target=server.serve_forever, args=(_POLL_S,), daemon=True)
        thread.start()
        for step in (thread.join, server.shutdown, self._plan.clear):
            self._exits.callback(step)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the port, let go of answers that wait, and remove a temporary folder."""
        self._exits.close()

    @property
    def url(self) -> str:
        """The base_url for the SDK."""
        return self._service.base_url

    def bill(self, *, settle: bool = True) -> Bill:
        """Return the books; with `settle`, after all batches that were accepted have ended."""
        return self._service.bill(settle=settle)

    def inject(self, *faults: Fault, shares: Shares | None = None) -> None:
        """Let things go wrong."""
        self._plan.inject(faults, shares=shares)

    def clear(self) -> None:
        """Let everything go well again, and late answers come."""
        self._plan.clear()

    def advance(self, by: timedelta) -> None:
        """Let time pass."""
        self._service.advance(by)

    def end_batches(self) -> None:
        """Let every batch end now that has not."""
        self._service.end_batches()
