"""A real browser without a window, and what a page did in it."""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, Protocol

import pytest

if TYPE_CHECKING:  # all who run other tests would import it, too
    from playwright.sync_api import Browser, Dialog, Page

NAMES: Final = ("chromium", "chromium-browser", "google-chrome")
MISSING: Final = "no Chromium is installed (Debian: apt-get install chromium)"
Scheme = Literal["light", "dark"]
_PATIENCE_MS: Final = 120_000  # with a busy machine; only a fault waits so long


@dataclass
class Visit:
    """A page in the browser, and what it did beside being shown."""

    page: "Page"
    said: list[str] = field(default_factory=list)  # on the console, or as an error
    asked: list[str] = field(default_factory=list)  # addresses, its own among them
    dialogs: list[str] = field(default_factory=list)

    def note_dialog(self, dialog: "Dialog") -> None:
        """Note a dialog, and close it."""
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    def texts(self, selector: str) -> list[str]:
        """Return the visible text of all elements that a selector finds."""
        return [each.strip() for each in self.page.locator(selector).all_inner_texts()]

    def number(self, expression: str) -> float:
        """Return a number that the page computes."""
        return float(self.page.evaluate(expression))


class Visiting(Protocol):
    """Opens a page from a file."""

    def __call__(
        self, source: str, *, width: int = 1280, scheme: Scheme = "light", script: bool = True
    ) -> Visit:
        """Open it at a width, in a colour scheme, with or without its script."""


@pytest.fixture(scope="session")
def chromium() -> Iterator["Browser"]:
    """Give a running browser; skip where none is installed."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip(MISSING)
    from playwright.sync_api import sync_playwright  # noqa: PLC0415  # as above

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def visit(chromium: "Browser", tmp_path: Path) -> Iterator[Visiting]:
    """Give what opens a page from a file, as a reader does who got it in a mail."""
    closing: list[Callable[[], None]] = []

    def opened(
        source: str, *, width: int = 1280, scheme: Scheme = "light", script: bool = True
    ) -> Visit:
        context = chromium.new_context(
            viewport={"width": width, "height": 900},
            color_scheme=scheme,
            java_script_enabled=script,
        )
        context.set_default_timeout(_PATIENCE_MS)
        closing.append(context.close)
        found = Visit(context.new_page())
        found.page.on("console", lambda message: found.said.append(message.text))
        found.page.on("pageerror", lambda error: found.said.append(str(error)))
        found.page.on("request", lambda request: found.asked.append(request.url))
        found.page.on("dialog", found.note_dialog)
        file = tmp_path / "report.html"
        file.write_bytes(source.encode())
        found.page.goto(file.as_uri())
        return found

    yield opened
    for close in closing:
        close()
