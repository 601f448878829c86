"""A server on loopback for fakes: a thread for each connection, which ends with the process."""

import sys
from http.server import ThreadingHTTPServer
from socketserver import BaseRequestHandler
from threading import Lock
from typing import Any, Final

TOO_LATE: Final = "x-too-late"  # a header: whoever is `impatient` has not waited for the answer


class LoopbackServer(ThreadingHTTPServer):
    """Takes many connections at once, and does not wait for them when it is closed."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], handler: type[BaseRequestHandler]) -> None:
        """Take an address, and what handles a connection."""
        super().__init__(address, handler)
        self._lock = Lock()
        self.n_open = 0  # connections; all that were begun before the one that asks are counted

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401  # theirs
        """Begin with a connection."""
        with self._lock:
            self.n_open += 1
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:  # noqa: ANN401  # as above
        """End a connection."""
        super().shutdown_request(request)
        with self._lock:
            self.n_open -= 1

    def handle_error(self, request: object, client_address: object) -> None:
        """Tell of the fake's own errors only, not that a client went away."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]  # passed on
