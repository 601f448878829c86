"""The pictures of the pages: `python -m tests.browser.pictures DEMO`, a finished demo's folder.

They are taken in a real browser, and put into docs/report and docs/browser. The demo is copied:
whoever is asked for a vote has a ledger to write it to.
"""

import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from playwright.sync_api import Browser, Page, sync_playwright

from tests.browser.conftest import NAMES, Scheme
from tests.docs.pages import DOCS

_TOURNEY: Final = (sys.executable, "-m", "tourney")
_BATTLE: Final = "recall_001"  # its prompt
_WIDTHS: Final = {"narrow": 400, "wide": 1280}
_SCHEMES: Final[tuple[Scheme, ...]] = ("light", "dark")
_BROWSER_HEIGHTS: Final = {"overview": 860, "battle": 860, "answers": 860, "ballot": 700}
_REPORT_HEIGHT: Final = 1500


def main() -> None:
    """Take all pictures of the demo that the argument names."""
    with TemporaryDirectory() as scratch, sync_playwright() as playwright:
        demo = Path(scratch) / "demo"
        shutil.copytree(sys.argv[1], demo, ignore=shutil.ignore_patterns("weights", "hydra"))
        found = next(filter(None, map(shutil.which, NAMES)))
        chromium = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        _show_report(chromium, demo)
        _show_view(chromium, demo)
        _show_ballot(chromium, demo)
        chromium.close()


def _show_report(chromium: Browser, demo: Path) -> None:
    subprocess.run([*_TOURNEY, "report", "-o", "report.html"], cwd=demo, check=True)
    for width, pixels in _WIDTHS.items():
        for scheme in _SCHEMES:
            page = _page(chromium, pixels, _REPORT_HEIGHT, scheme)
            page.goto((demo / "report.html").as_uri())
            page.screenshot(path=DOCS / "report" / f"{width}-{scheme}.png")


def _show_view(chromium: Browser, demo: Path) -> None:
    with _served(demo, "view") as address:
        page = _page(chromium, _WIDTHS["wide"], _BROWSER_HEIGHTS["overview"])
        page.goto(address)
        page.wait_for_selector(".step")  # the ledger was read
        _keep(page, "overview")
        home = page.url
        page.goto(f"{home}battles?text={_BATTLE}&outcome=decided")
        page.locator(".list a").first.click()
        page.wait_for_url("**/battle/*")
        page.set_viewport_size({"width": _WIDTHS["wide"], "height": _BROWSER_HEIGHTS["battle"]})
        _keep(page, "battle")
        page.goto(f"{home}answers?prompt={_BATTLE}")
        for width, pixels in _WIDTHS.items():
            page.set_viewport_size({"width": pixels, "height": _BROWSER_HEIGHTS["answers"]})
            _keep(page, "answers", width)


def _show_ballot(chromium: Browser, demo: Path) -> None:
    with _served(demo, "annotate", "--annotator", "ann", "--limit", "60") as address:
        page = _page(chromium, _WIDTHS["wide"], _BROWSER_HEIGHTS["ballot"])
        page.goto(address)
        page.wait_for_selector("button")
        _keep(page, "ballot")


def _page(chromium: Browser, width: int, height: int, scheme: Scheme = "light") -> Page:
    size = {"width": width, "height": height}
    return chromium.new_page(viewport=size, color_scheme=scheme)  # type: ignore[arg-type]


def _keep(page: Page, name: str, width: str = "wide") -> None:
    page.screenshot(path=DOCS / "browser" / f"{name}-{width}-light.png")


@contextmanager
def _served(demo: Path, *words: str) -> Iterator[str]:
    """Run a command that serves pages; give the address that it prints."""
    command = [*_TOURNEY, *words]
    with subprocess.Popen(command, cwd=demo, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            yield process.stdout.readline().strip()
        finally:
            process.send_signal(signal.SIGINT)


if __name__ == "__main__":
    main()
