"""Addresses and their pages, from a ledger that somebody else writes to."""

from collections.abc import Callable
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path
from threading import Timer
from urllib.parse import urlsplit

import pytest

from commands.viewer.server import Access, PageReply, PageRequest
from commands.viewer.viewer import Follower, answer, follower_of, view
from ledger.store import Ledger
from tests.support.builders.events import STREAM
from tests.support.builders.worlds import cup, history

ACCESS = Access("secret")
EVENTS = history(cup(), "a", "b", "tie")


@pytest.fixture
def ledger_file(tmp_path: Path) -> Path:
    """Give a ledger that lacks its last verdicts."""
    with Ledger.open(tmp_path / "tournament.db") as ledger:
        ledger.append(STREAM, EVENTS[:-3])
    return tmp_path / "tournament.db"


def ask(follower: Follower, path: str, **query: str) -> PageReply:
    """Ask as a browser that was let in."""
    asked = PageRequest(path, query, host="localhost:80", cookie="tourney-80=secret")
    return answer(asked, ACCESS, follower)


def test_every_address_has_its_page(ledger_file: Path) -> None:
    """And what is no address is told."""
    follower = follower_of(ledger_file, STREAM)
    follower.refresh()
    assert follower.view
    battle = follower.view.index.battles[0].battle_id

    for path in ("/", "/battles", f"/battle/{battle}", "/prompts"):
        found = ask(follower, path)
        assert found.status is HTTPStatus.OK
        assert dict(found.headers)["Content-Security-Policy"].startswith("default-src 'none'")
    assert ask(follower, "/answers", prompt="p1").status is HTTPStatus.OK
    for path in ("/nowhere", "/answers", "/battle/nothing", "/battles/", "//evil.example"):
        assert ask(follower, path).status is HTTPStatus.NOT_FOUND
    assert ask(follower, "/favicon.ico").status is HTTPStatus.NO_CONTENT
    assert answer(PageRequest("/"), ACCESS, follower).status is HTTPStatus.FORBIDDEN


@pytest.mark.parametrize("path", ["/battles", "/prompts"])
def test_a_page_of_thousands_of_digits_is_none(ledger_file: Path, path: str) -> None:
    """A number beyond the last page leads there; one that nobody can mean leads nowhere."""
    follower = follower_of(ledger_file, STREAM)
    follower.refresh()

    assert ask(follower, path, page="9" * 5_000).status is HTTPStatus.NOT_FOUND
    assert ask(follower, path, page="999").status is HTTPStatus.OK
    assert ask(follower, path, page="x").status is HTTPStatus.OK


def test_until_the_ledger_is_read_a_page_waits(ledger_file: Path) -> None:
    """Of a big one that takes a while; nothing is shown that is not so."""
    found = ask(follower_of(ledger_file, STREAM), "/battles")

    assert found.status is HTTPStatus.SERVICE_UNAVAILABLE
    assert b"Reading the ledger" in found.body
    assert b'http-equiv="refresh"' in found.body


def test_control_c_ends_it(ledger_file: Path, ctrl_c: Callable[[], None]) -> None:
    """It is how a viewer ends, and no failure."""
    told: list[str] = []

    def tell(address: str) -> None:
        told.append(address)
        Timer(0.05, ctrl_c).start()

    view(ledger_file, STREAM, 0, tell)

    (address,) = told
    assert urlsplit(address).hostname == "127.0.0.1"
    assert urlsplit(address).query.startswith("token=")
    with pytest.raises(ConnectionError):
        HTTPConnection("127.0.0.1", urlsplit(address).port or 0).connect()


def test_a_view_keeps_the_matches_of_the_one_before(ledger_file: Path) -> None:
    """Of 100,000 pairs, their queries' keys alone would take seconds after each verdict."""
    follower = follower_of(ledger_file, STREAM)
    follower.refresh()
    first = follower.view
    with Ledger.open(ledger_file) as ledger:
        ledger.append(STREAM, EVENTS[-3:])

    follower.refresh()

    assert first
    assert follower.view
    assert follower.view.head != first.head
    pairs = zip(first.index.battles, follower.view.index.battles, strict=True)
    assert all(new.match is old.match for old, new in pairs)
