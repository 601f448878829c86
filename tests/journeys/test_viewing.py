"""`tourney view` beside a run in another process: what it shows while the ledger grows."""

import os
import re
from collections.abc import Iterator
from contextlib import ExitStack
from http import HTTPStatus
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import pytest

from tests.support.command_line.launching import launch
from tests.support.command_line.settled import head_of
from tests.support.command_line.warm import begin
from tests.support.patience import PATIENCE_S

_N_PROMPTS: Final = 8
_N_PAIRS: Final = 3 * _N_PROMPTS
_STEP: Final = re.compile(r"<b>([\d,]+)</b> of ([\d,]+) <bdi>(\w+)")
_ROW: Final = re.compile(r'<a href="/battle/(\w+)">')


class Shown(NamedTuple):
    """What the first page shows."""

    position: int
    responses: tuple[int, int]  # there, of how many
    pairs: tuple[int, int]  # judged, of how many
    newest: tuple[str, ...]  # ids of battles, the one that was judged last first


class Reader:
    """What a browser does: it enters by the address, gets pages, and hears of news."""

    def __init__(self, address: str, closing: ExitStack) -> None:
        parts = urlsplit(address)
        self._host, self._port, self._closing = parts.hostname or "", parts.port, closing
        self._cookie = ""
        entered = self._get(f"/?{parts.query}")
        self._cookie = entered.headers["Set-Cookie"].partition(";")[0]
        self._told = self._get("/events")

    def _get(self, path: str) -> HTTPResponse:
        connection = HTTPConnection(self._host, self._port, timeout=PATIENCE_S)
        self._closing.callback(connection.close)
        connection.request("GET", path, headers={"Cookie": self._cookie})
        return self._closing.enter_context(connection.getresponse())

    def until(self, position: int) -> list[Shown]:
        """Return what is shown after each piece of news, until a position is."""
        seen: list[Shown] = []
        while not seen or seen[-1].position < position:
            self._hear()
            seen += filter(None, [self.overview()])
        return seen

    def _hear(self) -> None:
        """Wait for news, or for a sign that there is none."""
        while not self._told.readline().startswith((b"data: ", b": ")):
            pass

    def overview(self) -> Shown | None:
        """Return what the first page shows now; None: the ledger is still being read."""
        reply = self._get("/")
        page = reply.read().decode()
        if reply.status == HTTPStatus.SERVICE_UNAVAILABLE:
            return None
        found = {what: (_number(n), _number(of)) for n, of, what in _STEP.findall(page)}
        return Shown(
            int(page.partition('data-position="')[2].partition('"')[0]),
            found["responses"],
            found["pairs"],
            tuple(_ROW.findall(page)),
        )


def _number(text: str) -> int:
    return int(text.replace(",", ""))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Give a tournament of three systems whose answers are there, and some of them judged."""
    rows = [f"What is {n} plus 1?,{n + 1},{n + 1}.,{n} or so,No {n}" for n in range(_N_PROMPTS)]
    (tmp_path / "table.csv").write_text("\n".join(["prompt,gold_answer,a,b,c", *rows]))
    for folder, words in (
        (tmp_path, "init mine --from table.csv"),
        (tmp_path / "mine", "apply generate"),
        (tmp_path / "mine", "apply judge --limit 4 --allow-gaps"),
    ):
        done = launch(folder, *words.split())
        assert done.returncode == 0, done.stderr
    return tmp_path / "mine"


@pytest.fixture
def reader(place: Path) -> Iterator[Reader]:
    """Give a browser that opened the address that `tourney view` tells."""
    viewing = begin(place, ("view",), os.environ)
    viewing.until(lambda: "token=" in viewing.out)
    with ExitStack() as closing:
        yield Reader(viewing.out.split()[0], closing)
    viewing.kill()


def test_a_view_shows_how_far_a_run_is_until_its_end(place: Path, reader: Reader) -> None:
    """Another process judges what is left: one page follows it."""
    *_, at_first = reader.until(head_of(place / "tournament.db").position)

    assert launch(place, "run").returncode == 0
    *passing, at_last = reader.until(head_of(place / "tournament.db").position)

    every = (3 * _N_PROMPTS,) * 2
    assert at_first.responses == at_last.responses == every
    assert 0 < at_first.pairs[0] < at_first.pairs[1] == _N_PAIRS
    assert at_last.pairs == (_N_PAIRS, _N_PAIRS)
    assert at_first.newest
    assert [*at_last.newest[: len(at_first.newest)]] != [*at_first.newest]
    judged = [each.pairs[0] for each in (at_first, *passing, at_last)]
    assert judged == sorted(judged)
