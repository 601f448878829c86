"""A server with OpenAI's API that takes so many requests a second, and says so: one process.

`python -m tests.benchmarks.commands.limited_server RATE` prints its port. It has a bucket of one
second's requests, refilled all the time; whoever finds it empty gets "too many requests" and is
asked to wait a second, as hosted servers do. `GET /told` says what was answered and what not.
"""

import json
import sys
import time
from http.server import BaseHTTPRequestHandler
from threading import Lock
from typing import Any, Final

from tests.providers.loopback import LoopbackServer
from tests.providers.openai import Said, completion


class Bucket:
    """What the server still takes now, and what it took."""

    def __init__(self, rate: float) -> None:
        """Take how many requests a second are allowed."""
        self._rate, self._n_left, self._filled_at = rate, rate, time.monotonic()
        self._lock = Lock()
        self._first_s: float | None = None
        self._last_s = 0.0
        self._n_answered = self._n_rejected = 0

    def takes(self) -> bool:
        """Take a request, if one is allowed now."""
        with self._lock:
            now = time.monotonic()
            refilled = self._n_left + (now - self._filled_at) * self._rate
            self._n_left, self._filled_at = min(self._rate, refilled), now
            if self._first_s is None:
                self._first_s = now
            self._last_s = now
            if self._n_left < 1:
                self._n_rejected += 1
                return False
            self._n_left -= 1
            self._n_answered += 1
            return True

    def told(self) -> dict[str, float]:
        """Return what was answered, rejected and allowed until the last request."""
        with self._lock:
            took_s = self._last_s - (self._first_s or 0.0)
            return {
                "answered": self._n_answered,
                "rejected": self._n_rejected,
                "allowed": self._rate * (took_s + 1),
                "took_s": took_s,
            }


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    bucket: Bucket

    def do_GET(self) -> None:
        """Say what was told so far."""
        self._send(200, self.bucket.told())

    def do_POST(self) -> None:
        """Answer a chat, if it is allowed now."""
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.bucket.takes():
            self._send(200, completion(body, Said()))
        else:
            self._send(429, {"error": {"message": "Rate limit reached for requests"}})

    def log_message(self, *_args: object) -> None:
        """Say nothing."""

    def _send(self, status: int, value: dict[str, Any]) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.send_header("retry-after", "1")
        self.end_headers()
        self.wfile.write(body)


_ANY_PORT: Final = ("127.0.0.1", 0)


def main() -> None:
    """Serve until the process is ended."""
    handler = type("BoundHandler", (_Handler,), {"bucket": Bucket(float(sys.argv[1]))})
    server = LoopbackServer(_ANY_PORT, handler)
    sys.stdout.write(f"{server.server_port}\n")
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    main()
