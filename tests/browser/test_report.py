"""The report in a real browser: it works, it can be read by anybody, and no text in it acts."""

from functools import cache
from importlib.resources import files
from typing import get_args

import pytest

from commands.report.page import page_of
from ledger.events.registry import Event
from tests.browser.conftest import Scheme, Visit, Visiting
from tests.support.builders.events import entrant, judge, opened, prompt, rubric
from tests.support.builders.reports import HOSTILE, MADE_VISIBLE, seen, subject, written
from tests.support.builders.worlds import Fate, cup, history, sure

pytestmark = pytest.mark.browser

AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")
FATES: tuple[Fate, ...] = ("a", "b", "tie", "inconsistent", "a", "a")
NARROW, WIDE, PAPER = 400, 1280, 688  # paper: what A4 has between its margins
OPEN_ALL = "document.querySelectorAll('details').forEach(each => each.open = true)"


@cache
def report() -> str:
    """Return a report with every section that a tournament without endpoints has."""
    events = sure(history(cup(4), *FATES * 2), {"zoe": 0.9, "amy": 0.4})
    return page_of(subject(*events), "all")


@cache
def crowded() -> str:
    """Return a report on twelve entrants with long names."""
    names = [f"security_plus_robustness_{n:02}" for n in range(12)]
    opening = opened(prompts=[prompt("p1"), prompt("p2")], entrants=[*map(entrant, names)])
    return page_of(subject(*history(opening, *FATES * 22)), "sample")


def shown_battles(visit: Visit) -> int:
    """Count the battles that a filter leaves."""
    return visit.page.locator(".battle:visible").count()


def test_it_asks_nothing_of_any_network_and_complains_of_nothing(visit: Visiting) -> None:
    """Whoever opens it from a mail, on a train, sees all of it."""
    found = visit(report())

    found.page.evaluate(OPEN_ALL)

    assert found.asked == [found.page.url]
    assert found.page.url.startswith("file:")
    assert (found.said, found.dialogs) == ([], [])


def test_a_click_on_a_heading_sorts_a_table_by_its_numbers(visit: Visiting) -> None:
    """1000 is more than 900, though its first digit is smaller."""
    found = visit(report())
    ratings = ".board tbody b"
    before = [int(each) for each in found.texts(ratings)]
    heading = found.page.get_by_role("columnheader", name="Rating")

    heading.get_by_role("button").click()
    down = [int(each) for each in found.texts(ratings)]
    found.page.keyboard.press("Enter")
    up = [int(each) for each in found.texts(ratings)]

    assert down == sorted(before, reverse=True)
    assert up == sorted(before)
    assert heading.get_attribute("aria-sort") == "ascending"


def test_battles_are_filtered_and_searched(visit: Visiting) -> None:
    """Of hundreds a reader wants those of two entrants, or those that are disputed."""
    found = visit(report())
    n_all = shown_battles(found)
    form = found.page.locator(".filters")

    form.get_by_label("Entrant").select_option("zoe")
    of_zoe = shown_battles(found)
    form.get_by_label("Outcome").select_option("inconsistent")
    inconsistent = shown_battles(found)
    form.get_by_label("disputed only").check()
    disputed = shown_battles(found)
    form.get_by_label("Text").fill("P4")

    assert (n_all, of_zoe, inconsistent, disputed) == (12, 8, 2, 2)
    assert found.texts(".battle:visible summary b") == ["p4"]
    assert found.texts("output") == ["1 shown"]


def boxes(visit: Visit) -> tuple[float, float, float, float]:
    """Open the first battle; return where both responses begin: left and top of each."""
    visit.page.locator(".battle summary").first.click()
    first, second = (each.bounding_box() for each in visit.page.locator(".side").all()[:2])
    assert first is not None
    assert second is not None
    return first["x"], first["y"], second["x"], second["y"]


def test_responses_stand_side_by_side_and_the_words_that_differ_are_marked(
    visit: Visiting,
) -> None:
    """On a telephone one stands below the other."""
    wide, narrow = visit(report()), visit(report(), width=NARROW)

    x, y, other_x, other_y = boxes(wide)
    below_x, below_y, narrow_x, narrow_y = boxes(narrow)

    assert (y == other_y, x < other_x) == (True, True)
    assert (below_x == narrow_x, below_y < narrow_y) == (True, True)
    assert found_marks(wide) == ["zoe", "amy"]


def found_marks(visit: Visit) -> list[str]:
    """Return the marked words of the first battle; each must be underlined, too."""
    marks = visit.page.locator(".battle[open] mark")
    lines = marks.evaluate_all("all => all.map(each => getComputedStyle(each).textDecorationLine)")
    assert set(lines) == {"underline"}
    return [each.strip() for each in marks.all_inner_texts()]


def test_all_can_be_done_by_keyboard(visit: Visiting) -> None:
    """Where the keyboard is can be seen; j and k go from battle to battle."""
    found = visit(report(), width=NARROW)
    keyboard = found.page.keyboard

    keyboard.press("Tab")
    focused = "document.activeElement"
    outline = found.page.evaluate(f"getComputedStyle({focused}).outlineStyle")
    keyboard.press("j")
    keyboard.press("j")
    keyboard.press("k")
    place = found.number(f"[...document.querySelectorAll('summary')].indexOf({focused})")
    first = found.number(
        "[...document.querySelectorAll('summary')].findIndex(each => each.closest('.battle'))"
    )
    keyboard.press("Enter")

    assert outline == "solid"
    assert place == first
    assert found.page.locator(".battle").first.get_attribute("open") is not None


def test_what_is_wider_than_the_page_scrolls_by_keyboard(visit: Visiting) -> None:
    """A table of twelve columns cannot fit a telephone; the page itself never scrolls aside."""
    found = visit(crowded(), width=NARROW)
    region = found.page.locator(".scroll", has=found.page.locator(".heat")).first

    region.focus()
    found.page.keyboard.press("End")
    for _ in range(3):
        found.page.keyboard.press("ArrowRight")
    found.page.wait_for_function("document.activeElement.scrollLeft > 0")

    assert found.number("document.documentElement.scrollWidth") == NARROW


def test_without_its_script_everything_can_be_read(visit: Visiting) -> None:
    """Many mail programs and archives run none."""
    found = visit(report(), script=False)

    found.page.locator(".battle summary").first.click()

    assert found.page.locator(".filters").is_hidden()
    assert shown_battles(found) == 12
    assert found.page.locator(".battle .side").first.is_visible()
    assert found.page.locator(".reply").first.is_visible()
    assert found.page.locator(".board").first.is_visible()


@pytest.mark.parametrize("scheme", get_args(Scheme))
@pytest.mark.parametrize("width", [NARROW, WIDE])
def test_it_breaks_no_rule_of_accessibility(visit: Visiting, width: int, scheme: Scheme) -> None:
    """Contrast, names, roles and order, by axe-core; all details are open."""
    found = visit(report(), width=width, scheme=scheme)
    found.page.evaluate(OPEN_ALL)

    found.page.evaluate(AXE)
    broken = found.page.evaluate("axe.run().then(found => found.violations)")

    assert [(each["id"], [node["html"] for node in each["nodes"]]) for each in broken] == []
    assert found.number("document.documentElement.scrollWidth") == width


def test_on_paper_no_table_is_cut_and_nothing_is_dark(visit: Visiting) -> None:
    """A reader in the dark prints on white paper, without links and controls."""
    found = visit(crowded(), width=PAPER, scheme="dark")
    found.page.emulate_media(media="print")

    edges = found.page.locator("table:visible, svg:visible").evaluate_all(
        "all => all.map(each => each.getBoundingClientRect().right)"
    )
    page = "getComputedStyle(document.body)"
    grounds = found.page.evaluate(f"[{page}.backgroundColor, {page}.color]")

    assert edges
    assert max(edges) <= PAPER
    assert grounds == ["rgb(255, 255, 255)", "rgb(0, 0, 0)"]
    assert found.page.locator("nav, .filters").filter(visible=True).count() == 0
    assert found.page.pdf(format="A4").startswith(b"%PDF")


def hostile_events() -> tuple[Event, ...]:
    """Return a tournament whose names, prompts, responses and replies are all hostile."""
    opening = opened(
        prompts=[prompt(f"{text}{n}", text=text) for n, text in enumerate(HOSTILE)],
        entrants=[entrant(f"{HOSTILE[0]}1"), entrant(f"{HOSTILE[1]}2")],
        rubrics=[rubric(HOSTILE[1])],
        judges=[judge("reference", model=HOSTILE[0])],
    )
    fates: tuple[Fate, ...] = ("a", "tie", "b", "inconsistent")
    return written(opening, HOSTILE, *(fates[n % len(fates)] for n in range(len(HOSTILE))))


def test_no_text_that_people_or_models_wrote_does_anything(visit: Visiting) -> None:
    """Scripts, handlers, escape sequences, turned text: they are shown, and that is all."""
    found = visit(page_of(subject(*hostile_events()), "all"))
    found.page.evaluate(OPEN_ALL)

    for each in found.page.locator(".battle").all():
        each.dispatch_event("mouseover")
    found.page.locator(".filters select[name=entrant]").select_option(index=1)
    text = found.page.locator("main").inner_text()

    assert (found.said, found.dialogs) == ([], [])
    assert found.asked == [found.page.url]
    assert shown_battles(found) == len(HOSTILE)
    assert not set(found.page.content()) & set(MADE_VISIBLE)
    assert not [each for each in HOSTILE if seen(each) not in text]


def test_a_line_of_a_megabyte_stays_inside_the_page(visit: Visiting) -> None:
    """Models repeat themselves without end."""
    long = "la" * 500_000
    events = written(opened(), [long], "a")
    found = visit(page_of(subject(*events), "all"), width=NARROW)

    found.page.locator(".battle summary").first.click()

    assert found.number("document.documentElement.scrollWidth") == NARROW
    assert len(found.page.locator(".side .text").first.inner_text()) > len(long)
