"""The pages that are served, in a real browser: they follow the ledger, and take votes by key."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import pytest

from commands.importing.votes import open_ballot_box
from commands.viewer.annotator import answer_annotator
from commands.viewer.server import Access, Answer, PageServer
from commands.viewer.viewer import Follower, answer, follower_of
from ledger.identity import Dimension
from ledger.store import Ledger
from tests.browser.conftest import Scheme
from tests.browser.test_report import AXE
from tests.support.builders.events import STREAM, known
from tests.support.builders.worlds import cup, history

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

EVENTS = history(cup(4), *("a", "b", "tie", "inconsistent") * 2)
_PATIENCE_MS = 120_000


@contextmanager
def serving(answers: Answer) -> Iterator[str]:
    """Serve pages as long as the block lasts."""
    with PageServer(answers) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield server.address
        server.shutdown()
        thread.join()


@pytest.fixture
def ledger_file(tmp_path: Path) -> Path:
    """Give a ledger that lacks its last battle."""
    with Ledger.open(tmp_path / "tournament.db") as ledger:
        ledger.append(STREAM, EVENTS[:-3])
    return tmp_path / "tournament.db"


@pytest.fixture
def follower(ledger_file: Path) -> Iterator[Follower]:
    """Give what follows the ledger, at its head."""
    found = follower_of(ledger_file, STREAM)
    found.refresh()
    yield found
    found.end()


def entered(
    chromium: "Browser",
    address: str,
    access: Access,
    *,
    width: int = 1280,
    scheme: Scheme = "light",
) -> tuple["Page", list[str]]:
    """Open the address that is printed; return the page, and all that it complains of."""
    context = chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    context.set_default_timeout(_PATIENCE_MS)
    page, said = context.new_page(), list[str]()
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(f"{address}?token={access.token}")
    page.wait_for_url(address)
    return page, said


def test_a_page_shows_what_is_recorded_while_it_is_open(
    chromium: "Browser", follower: Follower, ledger_file: Path
) -> None:
    """Nothing is reloaded: what was opened stays open."""
    access = Access()
    with serving(lambda request: answer(request, access, follower)) as address:
        page, said = entered(chromium, address, access)
        page.wait_for_selector("#live[data-on]")
        page.locator("details summary").last.click()
        before = page.locator(".step b").last.inner_text()

        with Ledger.open(ledger_file) as ledger:
            ledger.append(STREAM, EVENTS[-3:])
        follower.refresh()
        page.wait_for_selector(f'#live[data-position="{len(EVENTS)}"]')

        assert (before, page.locator(".step b").last.inner_text()) == ("7", "8")
        assert page.locator("details").last.evaluate("each => each.open")
        assert page.locator("th[data-sort] button").count() > 0
        assert page.url == address
        assert "token" not in page.url
        assert said == []
        page.context.close()
        follower.end()


def test_a_page_that_was_opened_early_learns_its_name(
    chromium: "Browser", ledger_file: Path
) -> None:
    """It waits for the first reading, and its head is of no tournament until then."""
    access, follower = Access(), follower_of(ledger_file, STREAM)
    with serving(lambda request: answer(request, access, follower)) as address:
        page, _ = entered(chromium, address, access)

        follower.refresh()
        page.wait_for_selector(".step")

        assert page.locator(".top bdi").inner_text() == STREAM
        page.context.close()
        follower.end()


def test_keys_go_from_battle_to_battle(chromium: "Browser", follower: Follower) -> None:
    """Among those that were found."""
    access = Access()
    with serving(lambda request: answer(request, access, follower)) as address:
        page, said = entered(chromium, address, access)
        page.goto(f"{address}battles")
        page.select_option("[name=outcome]", "decided")
        page.click("text=Search")
        page.wait_for_url("**/battles?*outcome=decided*")
        page.locator(".list a").first.click()
        page.wait_for_url("**/battle/*")
        first = page.url

        with page.expect_navigation():
            page.keyboard.press("j")
        second = page.url
        with page.expect_navigation():
            page.keyboard.press("k")

        assert page.url == first != second
        assert "outcome=decided" in second
        assert said == []
        page.context.close()
        follower.end()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_can_be_read_by_anybody(
    chromium: "Browser", follower: Follower, scheme: Scheme
) -> None:
    """As axe-core tells, and on a telephone without scrolling sideways."""
    access = Access()
    with serving(lambda request: answer(request, access, follower)) as address:
        page, _ = entered(chromium, address, access, width=400, scheme=scheme)
        page.goto(f"{address}battles")
        battle = page.locator(".list a").first.get_attribute("href") or ""
        for path in ("", "battles", battle[1:], "prompts", "answers?prompt=p1"):
            shown = page.goto(f"{address}{path}")
            assert shown, path
            assert shown.ok, path
            page.evaluate(AXE)
            found = page.evaluate("axe.run().then(found => found.violations.map(each => each.id))")
            assert found == [], path
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
        page.context.close()
        follower.end()


def test_votes_are_cast_by_key_and_taken_back_by_another(
    chromium: "Browser", tmp_path: Path
) -> None:
    """A form of our own page is taken; nobody sees a name."""
    access = Access(is_read_only=False)
    with Ledger.open(tmp_path / "votes.db") as ledger:
        on = Dimension("factuality")
        box = open_ballot_box(ledger, known(*EVENTS), "votes", "ann", dimension=on, design="random")
        with serving(lambda request: answer_annotator(request, access, box)) as address:
            page, said = entered(chromium, address, access)
            for key in "abts":
                with page.expect_navigation():
                    page.keyboard.press(key)
            with page.expect_navigation():
                page.keyboard.press("u")
            with page.expect_navigation():
                page.click("button[value=tie]")
            page.evaluate(AXE)
            found = page.evaluate("axe.run().then(found => found.violations.map(each => each.id))")

            assert page.inner_text("[role=status]") == "4 of 12 voted"
            winners = [vote.winner if (vote := box.vote_on(n)) else None for n in range(5)]
            assert winners == ["model_a", "model_b", "tie", "tie", None]
            assert found == []
            assert said == []
            page.context.close()
