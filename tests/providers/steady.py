"""A server of chat completions that answers each request after the same time, however many come.

It is a process of its own, so that measuring its client does not measure it: `with SteadyServer()
as server: ... server.url ...`. It reads no more of a request than it must.
"""

import asyncio
import re
import subprocess
import sys
from pathlib import Path
from typing import Final, Self

_LENGTH: Final = re.compile(rb"content-length: (\d+)", re.IGNORECASE)
_REPLY: Final = (
    b'{"id":"chatcmpl-1","object":"chat.completion","created":1790000000,"model":"steady",'
    b'"choices":[{"index":0,"message":{"role":"assistant","content":"'
    + b"Rest, fluids and a second look within two days. "
    * 8
    + b'\\nVERDICT: A"},"finish_reason":"stop"}],'
    b'"usage":{"prompt_tokens":200,"completion_tokens":100,"total_tokens":300}}'
)
_ANSWER: Final = (
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s"
    % (len(_REPLY), _REPLY)
)


class SteadyServer:
    """The process of the server, which tells its port first, as long as its block lasts."""

    def __init__(self, latency_s: float = 0.2) -> None:
        """Answer each request after this time."""
        self._command = [sys.executable, "-m", __spec__.name, str(latency_s)]
        self._port = 0

    def __enter__(self) -> Self:
        """Begin it, and wait for its port."""
        pipe, root = subprocess.PIPE, Path(__file__).parents[2]
        self._process = subprocess.Popen(self._command, cwd=root, stdin=pipe, stdout=pipe)
        assert self._process.stdout is not None
        self._port = int(self._process.stdout.readline())
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        self._process.kill()
        self._process.communicate()

    @property
    def url(self) -> str:
        """The base_url for a client of OpenAI's API."""
        return f"http://127.0.0.1:{self._port}/v1"


class _Connection(asyncio.Protocol):
    def __init__(self, latency_s: float) -> None:
        self._latency_s, self._received = latency_s, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, end, body = self._received.partition(b"\r\n\r\n")
        length = _LENGTH.search(head)
        if end and len(body) >= int(length[1] if length else 0):
            self._received = b""
            asyncio.get_running_loop().call_later(self._latency_s, self._transport.write, _ANSWER)


async def _serve(latency_s: float) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Connection(latency_s), "127.0.0.1", 0, backlog=1024)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_serve(float(sys.argv[1])))
