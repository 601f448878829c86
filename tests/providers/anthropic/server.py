"""A fake of the Anthropic API on loopback: `with FakeAnthropic() as fake: ... fake.url ...`.

The real SDK talks to it; it enforces what the API enforces, fails as the API fails, and keeps a
bill of its own.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Self
from urllib.parse import parse_qsl, unquote, urlsplit

from tests.providers.anthropic.bill import Bill
from tests.providers.anthropic.exchange import Answer, Fault, FaultPlan, Request, Shares
from tests.providers.anthropic.messages import Answering, judge
from tests.providers.anthropic.service import Service, real_time
from tests.providers.loopback import Handler, LoopbackFake


class _Handler(Handler):
    fake: "FakeAnthropic"

    def serve(self) -> None:
        """Answer one request."""
        body = self.received()
        if len(body) < int(self.headers.get("content-length", "0")):
            self.cut()  # the client went away as it sent: it has asked for nothing
            return
        url = urlsplit(self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        query = dict(parse_qsl(url.query))
        request = Request(self.command, unquote(url.path), query, headers, body)
        self._send(self.fake.service.answer(request))

    def _send(self, answer: Answer) -> None:
        kind = None if answer.fault is None else answer.fault.kind
        if kind in {"cut_before", "cut_after"}:
            self.cut()
            return
        if answer.fault is not None and kind == "late":
            self.fake.plan.wait(answer.fault.delay_s)
        share = 0.5 if kind == "cut_half" else 1.0
        self.send(answer.status, answer.body, answer.headers, share=share)
        if kind == "cut_half":
            self.cut()


class FakeAnthropic(LoopbackFake):
    """The fake, in this process, as long as its block lasts."""

    def __init__(
        self,
        *,
        answering: Answering = judge,
        ends_after_retrievals: int | None = 1,
        api_key: str | None = None,
        now: Callable[[], datetime] = real_time,
    ) -> None:
        """Make a fake.

        Args:
            answering: what the models reply.
            ends_after_retrievals: that found a batch open; None: it ends when it is told to.
            api_key: the one key that is taken; any, if None.
            now: the clock, which `advance` moves on.
        """
        self.plan = FaultPlan()
        self.service = Service(
            answering, self.plan, now, ends_after_retrievals=ends_after_retrievals, api_key=api_key
        )
        super().__init__(_Handler, fake=self)

    def __enter__(self) -> Self:
        """Listen on a port of loopback that is free."""
        super().__enter__()
        self.service.base_url = self.url
        return self

    def let_go(self) -> None:
        """Let go of answers that wait."""
        self.plan.clear()

    @property
    def url(self) -> str:
        """The base_url for the SDK."""
        return f"http://127.0.0.1:{self.port}"

    def bill(self, *, settle: bool = True) -> Bill:
        """Return the books; with `settle`, after all batches that were accepted have ended."""
        return self.service.bill(settle=settle)

    def inject(self, *faults: Fault, shares: Shares | None = None) -> None:
        """Let things go wrong."""
        self.plan.inject(faults, shares=shares)

    def clear(self) -> None:
        """Let everything go well again, and late answers come."""
        self.plan.clear()

    def advance(self, by: timedelta) -> None:
        """Let time pass."""
        self.service.advance(by)

    def end_batches(self) -> None:
        """Let every batch end now that has not."""
        self.service.end_batches()
