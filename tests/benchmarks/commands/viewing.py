"""`tourney view` on 100,000 battles of twenty entrants: its pages, and how soon it shows more."""

import gc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path
from threading import Thread
from typing import Final
from urllib.parse import urlencode

from commands.viewer.http_exchange import Access
from commands.viewer.server import HOST, PageServer
from commands.viewer.viewer import Follower, answer, follower_of
from ledger.events.registry import Event
from ledger.store import Ledger
from tests.benchmarks.bench import Bench, say
from tests.benchmarks.commands.reporting import play
from tests.benchmarks.rounds import cpu_seconds, interleaved, seconds
from tests.benchmarks.table import Row, at_most, stated
from tests.support.builders.events import STREAM

_N_PROMPTS: Final = 527
_EVENTS_A_PAIR: Final = 5
_ACCESS: Final = Access()


def measure(bench: Bench) -> Iterator[Row]:
    """Time each page as a browser gets it, and how much work it is to show a pair more."""
    with _as_the_command_collects():
        yield from _measured(bench)


@contextmanager
def _as_the_command_collects() -> Iterator[None]:
    """Collect garbage as seldom as `tourney view` does."""
    usual = gc.get_threshold()
    gc.set_threshold(100_000)
    yield
    gc.set_threshold(*usual)


def _measured(bench: Bench) -> Iterator[Row]:
    path = bench.folder / "viewed.ledger"
    say("playing a tournament")
    coming = play(path, bench.scaled(_N_PROMPTS, at_least=2), n_open=bench.n_rounds + 1)
    follower = follower_of(path, STREAM)
    first_s = cpu_seconds(follower.refresh)
    assert follower.view
    name = f"`tourney view` on {len(follower.view.index.battles):,} battles"
    yield stated(f"{name}: the first view (processor)", f"{first_s:.1f} s", first_s, at_most(15))
    pages = _pages(follower)
    with PageServer(lambda request: answer(request, _ACCESS, follower)) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        times = interleaved(
            bench.n_rounds,
            {page: partial(seconds, partial(_get, server, at)) for page, at in pages.items()},
        )
        server.shutdown()
    for page in pages:
        took_ms = 1000 * times.median(page)
        yield stated(f"{name}: {page}", f"{took_ms:.0f} ms", took_ms, at_most(100))
    taken = interleaved(bench.n_rounds, {"more": _taking_in(coming, path, follower)})
    took_s = taken.median("more")
    yield stated(f"{name}: a pair more (processor)", f"{took_s:.1f} s", took_s, at_most(5))


def _pages(follower: Follower) -> Mapping[str, str]:
    """Return the address of each kind of page, lists in their middle."""
    assert follower.view
    index = follower.view.index
    middle = len(index.battles) // 2
    settled = index.battles[middle]
    entrant = settled.entrant_a
    return {
        "overview": "/",
        "list of battles": f"/battles?{urlencode({'page': middle // 50})}",
        "battles of an entrant": f"/battles?{urlencode({'entrant': entrant, 'outcome': 'tied'})}",
        "search of two words": f"/battles?{urlencode({'text': 'fever blood'})}",
        "battle": f"/battle/{settled.battle_id}",
        "list of prompts": f"/prompts?{urlencode({'text': 'fever'})}",
        "spend": "/spend",
    }


def _get(server: PageServer, address: str) -> None:
    """Get a page as the browser does that was let in."""
    connection = HTTPConnection(HOST, server.server_port)
    cookie = f"tourney-{server.server_port}={_ACCESS.token}"
    connection.request("GET", address, headers={"Cookie": cookie})
    reply = connection.getresponse()
    reply.read()
    connection.close()
    if reply.status != HTTPStatus.OK:
        raise RuntimeError(f"{address} was answered by {reply.status}")


def _taking_in(coming: list[Event], path: Path, follower: Follower) -> Callable[[], float]:
    """Return what appends the next pair's events, and times how they are taken in."""

    def take_in() -> float:
        some, coming[:] = coming[:_EVENTS_A_PAIR], coming[_EVENTS_A_PAIR:]
        with Ledger.open(path) as ledger:
            ledger.append(STREAM, some)
        return cpu_seconds(follower.refresh)

    return take_in
