"""The fake in a process of its own, which lives on when its client is killed.

`with FakeProcess(folder) as fake:` offers what FakeAnthropic does, over HTTP.
"""

import subprocess
import sys
import time
from datetime import timedelta
from http.client import HTTPConnection
from pathlib import Path
from types import TracebackType
from typing import Final, Self
from urllib.parse import urlsplit

import msgspec

from tests.providers.anthropic.bill import Bill
from tests.providers.anthropic.exchange import Fault, Programme, Shares
from tests.providers.anthropic.server import Advance
from tests.support.patience import PATIENCE_S, wait_until

_ROOT: Final = Path(__file__).parents[3]
_LOOK_S: Final = 0.02


class FakeProcess:
    """A process that ends with the block, or with the process that began it."""

    def __init__(self, folder: Path, *options: str) -> None:
        """Make a process; `options` are those of `python -m tests.providers.anthropic`."""
        self._folder = folder
        self._options = options
        self.url = ""

    def __enter__(self) -> Self:
        """Begin it, and wait for its port."""
        port_file = self._folder / "port"
        port_file.unlink(missing_ok=True)
        places = ("--port-file", str(port_file), "--state-dir", str(self._folder))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.providers.anthropic", *places, *self._options],
            cwd=_ROOT,
            stdin=subprocess.PIPE,
        )
        self.url = f"http://127.0.0.1:{self._port(port_file)}"
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End it."""
        self._process.kill()
        self._process.communicate()

    @property
    def pid(self) -> int:
        """Its id, to measure its memory by."""
        return self._process.pid

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

    def advance(self, by: timedelta) -> None:
        """Let time pass."""
        self._asked("POST", "/_clock", Advance(by.total_seconds()))

    def end_batches(self) -> None:
        """Let every batch end now that has not."""
        self._asked("POST", "/_end")

    def hear_out(self) -> None:
        """Wait until it is done with all that was sent to it by clients that have ended."""
        wait_until(lambda: self._asked("GET", "/_connections") == b'{"n_others":0}')

    def _port(self, port_file: Path) -> int:
        give_up_at = time.monotonic() + PATIENCE_S
        while not port_file.exists():
            if self._process.poll() is not None or time.monotonic() > give_up_at:
                raise RuntimeError(f"the fake did not start; exit code {self._process.poll()}")
            time.sleep(_LOOK_S)
        return int(port_file.read_text(encoding="utf-8"))

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
