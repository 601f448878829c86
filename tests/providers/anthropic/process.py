"""The fake in a process of its own, which lives on when its client is killed.

`with FakeProcess() as fake:` offers what FakeAnthropic does, over HTTP.
"""

from http.client import HTTPConnection
from urllib.parse import urlsplit

import msgspec

from tests.providers.anthropic.bill import Bill
from tests.providers.anthropic.exchange import Fault, Programme, Shares
from tests.providers.loopback import ServerProcess
from tests.support.patience import PATIENCE_S, wait_until


class FakeProcess(ServerProcess):
    """A process that ends with the block, or with the process that began it."""

    def __init__(self, *options: str) -> None:
        """Make a process; `options` are those of `python -m tests.providers.anthropic`."""
        super().__init__("tests.providers.anthropic", *options)

    @property
    def url(self) -> str:
        """The base_url for the SDK."""
        return f"http://127.0.0.1:{self.port}"

    def bill(self, *, settle: bool = True, lines: bool = True) -> Bill:
        """Return the books; with `settle`, after all batches that were accepted have ended."""
        asked = f"/_bill?settle={str(settle).lower()}&lines={str(lines).lower()}"
        return msgspec.json.decode(self._asked("GET", asked), type=Bill)

    def inject(self, *faults: Fault, shares: Shares | None = None) -> None:
        """Let things go wrong."""
        self._asked("POST", "/_faults", Programme(faults, shares))

    def clear(self) -> None:
        """Let everything go well again, and late answers come."""
        self._asked("POST", "/_faults", Programme(clear=True))

    def end_batches(self) -> None:
        """Let every batch end now that has not."""
        self._asked("POST", "/_end")

    def hear_out(self) -> None:
        """Wait until it is done with all that was sent to it by clients that have ended."""
        wait_until(lambda: self._asked("GET", "/_connections") == b'{"n_others":0}')

    def _asked(self, method: str, path: str, body: object = None) -> bytes:
        connection = HTTPConnection(urlsplit(self.url).netloc, timeout=PATIENCE_S)
        try:
            connection.request(method, path, msgspec.json.encode(body))
            answer = connection.getresponse()
            said = answer.read()
        finally:
            connection.close()
        if answer.status != 200:
            raise RuntimeError(f"{method} {path}: {said!r}")
        return said
