"""The page: complete in itself, and no text in it has an effect."""

import re
from base64 import b64encode
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path

import pytest

from commands.importing.labelled_pairs import PAIRS_FILE, SIDES
from commands.report.battles import WhichBattles
from commands.report.page import page_of
from commands.report.subject import Subject
from ledger.events.conversations import transcript
from ledger.events.registry import Event
from projections.evaluations.samples import ITEMS
from projections.tournament.matches import planned_responses
from tests.support.builders.events import (
    entrant,
    judge,
    known,
    opened,
    prompt,
    responses,
    rubric,
)
from tests.support.builders.reports import (
    HOSTILE,
    MADE_VISIBLE,
    ParsedPage,
    seen,
    subject,
    written,
)
from tests.support.builders.worlds import A as A_WINS
from tests.support.builders.worlds import B as B_WINS
from tests.support.builders.worlds import (
    Fate,
    become,
    court,
    cup,
    everything,
    heard,
    history,
    matches_of,
    unanswerable,
)
from tests.support.goldens.results import FOLDER, lay_out, report


def page(*events: Event, which: WhichBattles = "all") -> ParsedPage:
    """Return the report on events."""
    return ParsedPage(page_of(subject(*events), which))


def battles_on(found: ParsedPage) -> list[dict[str, str | None]]:
    """Return the attributes of the battles of a page."""
    return [each for each in found.named("details") if each.get("class") == "battle card"]


FATES: tuple[Fate, ...] = ("a", "b", "tie", "inconsistent", "a", "refused")
PLAYED: Sequence[Event] = history(cup(), *FATES)


@cache
def played() -> Subject:
    """Return a subject of every outcome."""
    return subject(*PLAYED)


@cache
def played_page() -> str:
    """Return the report on it."""
    return page_of(played(), "all")


def test_the_report_is_what_was_agreed_on(tmp_path: Path) -> None:
    """Every section but battles; `python -m tests.support.goldens.results` writes it."""
    golden = (FOLDER / "report.txt").read_text(encoding="utf-8")

    assert report(lay_out(tmp_path)) == golden


def test_the_page_asks_nothing_of_anybody() -> None:
    """It is mailed, archived and printed, and is whole without a network or a script."""
    found = ParsedPage(played_page())

    attributes = {name for _, each in found.elements for name in each}
    assert {"link", "img", "iframe", "object", "base"}.isdisjoint(tag for tag, _ in found.elements)
    assert attributes.isdisjoint({"src", "style", "srcset", "action", "background"})
    assert not [name for name in attributes if name.startswith("on")]
    assert all((each["href"] or "").startswith("#") for each in found.named("a"))
    assert "url(" not in played_page()
    assert "@import" not in played_page()


def test_its_own_policy_lets_nothing_run_but_its_style_and_its_script() -> None:
    """Should escaping ever fail, a browser still runs nothing and asks nobody."""
    source = played_page()

    (policy,) = [
        each["content"]
        for each in ParsedPage(source).named("meta")
        if each.get("http-equiv") == "Content-Security-Policy"
    ]
    hashes = {}
    for tag in ("style", "script"):
        (content,) = re.findall(rf"<{tag}>(.*?)</{tag}>", source, re.DOTALL)
        hashes[tag] = f"'sha256-{b64encode(sha256(content.encode()).digest()).decode()}'"
    assert policy == (
        f"default-src 'none'; style-src {hashes['style']}; script-src {hashes['script']};"
        " base-uri 'none'; form-action 'none'"
    )


def test_tables_and_drawings_are_read_aloud() -> None:
    """Whoever cannot see a picture has its title, and a table has a caption and headings."""
    source = played_page()
    found = ParsedPage(source)

    assert source.count("<table") == source.count("<caption")
    assert all(each.get("scope") in {"col", "row"} for each in found.named("th"))
    assert found.named("svg")
    assert all(each["role"] == "img" for each in found.named("svg"))
    assert source.count("<svg") == len(re.findall("<svg[^>]*><title>[^<]+</title><desc>", source))
    regions = [each for each in found.named("div") if each.get("class", "") == "scroll"]
    assert all(each["tabindex"] == "0" and each["aria-label"] for each in regions)


def luminance(colour: str) -> float:
    """Return the relative luminance of a colour such as #fff or #16191d (WCAG 2.2)."""
    digits = colour if len(colour) == 6 else "".join(2 * each for each in colour)
    parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_every_text_can_be_told_from_what_is_behind_it() -> None:
    """4.5 to 1 is what WCAG asks of text, in the light and in the dark."""
    style = played_page().partition("<style>")[2].partition("</style>")[0]
    palettes = [dict(re.findall(r"--([\w-]+): #(\w+)", part)) for part in style.split("@media")[:2]]

    for palette in palettes:
        grounds = {
            "ink": ("page", "card", "mark", *(f"h{shade}" for shade in range(-5, 6))),
            **dict.fromkeys(("soft", "accent"), ("page", "card")),
            "warn": ("warnbg",),
        }
        for text, behind in grounds.items():
            for ground in behind:
                both = sorted((luminance(palette[text]), luminance(palette[ground])))
                assert (both[1] + 0.05) / (both[0] + 0.05) >= 4.5, (text, ground)


def test_links_lead_to_what_is_on_the_page() -> None:
    """A section that a tournament lacks has no link either."""
    found = ParsedPage(played_page())

    ids = [each["id"] for _, each in found.elements if "id" in each]
    assert {f"#{each}" for each in ids} >= {each["href"] for each in found.named("a")}
    assert len(ids) == len(set(ids))


@cache
def plain_tags() -> frozenset[str]:
    """Return the elements of a page of harmless texts, and what a long name has."""
    two = opened(rubrics=[rubric("x")], prompts=[prompt("p1"), prompt("p2")])
    return frozenset(tag for tag, _ in page(*history(two, "a", "tie")).elements) | {"small"}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("".join(HOSTILE), id="all together"),
        *(pytest.param(each, marks=pytest.mark.nightly) for each in HOSTILE),
    ],
)
def test_what_people_and_models_wrote_is_shown_and_has_no_effect(text: str) -> None:
    """A report is opened by people who did not choose the texts in it."""
    opening = opened(
        prompts=[prompt("p1", text=text), prompt(f"{text}2")],
        entrants=[entrant(f"{text}1"), entrant(f"{text}2")],
        rubrics=[rubric(text)],
        judges=[judge("reference", model=text)],
    )
    events = written(opening, [text], "a", "tie")

    source = page_of(subject(*events), "all")

    found = ParsedPage(source)
    assert len(battles_on(found)) == 2
    assert {kind for kind in found.kinds if kind[0] in {"script", "img", "style", "title"}} == {
        ("script",),
        ("style",),
        ("title",),
    }
    assert {tag for tag, _ in found.elements} <= plain_tags()
    assert not [name for _, each in found.elements for name in each if name.startswith("on")]
    assert not set(source) & set(MADE_VISIBLE)
    assert " ".join(seen(text).split()) in found.text


@pytest.mark.parametrize(("n", "is_small"), [(3, False), (13, True)])
def test_a_grid_of_many_entrants_has_small_cells(n: int, is_small: bool) -> None:
    """Else most of it is beyond the edge of the page."""
    opening = opened(prompts=[prompt("p1")], entrants=[entrant(f"e{each}") for each in range(n)])

    page = page_of(subject(*history(opening, "a", "b")))

    assert ('<table class="heat many">' in page) is is_small
    assert ("Small: won" in page) is not is_small


def test_a_page_of_a_part_says_so_and_names_who_failed() -> None:
    """Neither what is pending nor what failed may pass for a result."""
    opening = cup()
    zoe_on_p1, *others = planned_responses(known(*opening), everything(known(*opening)))
    given = [
        each for each in responses(known(*opening)) if each.response_key != zoe_on_p1.response_key
    ]
    answers = (*opening, unanswerable(zoe_on_p1), *given)
    first, *_ = matches_of(known(*answers))

    found = page(*answers, *become(first, "a"))

    assert "1 of 2 prompts judged" in found.text
    assert "1 of 6 pairs judged so far. amy won or tied all its battles (1)." in found.text
    assert (
        "5 of 6 pairs have no outcome: 2 no response and 3 pending. Failed: 1 response of zoe."
        in found.text
    )
    assert len(others) == 5


def test_a_page_without_an_outcome_has_no_empty_tables() -> None:
    """It says that nobody can be ranked, and claims nothing of what was not done."""
    found = page(*history(cup()))

    sections = {each.get("id") for each in found.named("h2")}
    assert sections == {"ratings", "money", "provenance"}
    assert {each["href"] for each in found.named("a")} <= {
        "#main",
        *(f"#{each}" for each in sections),
    }
    assert "judge, reference, decided" not in found.text
    assert "Thin evidence" not in found.text


def test_the_evidence_is_about_the_one_that_is_tied() -> None:
    """Of whom less is known may be tied with the best, although somebody between them is not."""
    found = page(*history(cup(6), *FATES[:5], *FATES[:1], *FATES[:5], "a", *FATES[:5], "a"))

    assert "zoe has the highest rating, but is not shown to differ from kim." in found.text
    assert "It is 119 points ahead of kim;" in found.text


def test_sides_of_labelled_pairs_are_not_ranked() -> None:
    """Who is called a won nothing: the set measures the judge."""
    sides = [entrant(side, loader="recorded", weights=PAIRS_FILE) for side in SIDES]

    found = page(*history(opened(entrants=sides), "a"))

    assert "their ranking means nothing" in found.text
    assert "how often reference agrees with the labels" in found.text
    assert "won or tied all its battles" not in found.text


def test_a_conversation_is_read_turn_by_turn() -> None:
    """Fences are for judges."""
    talk = (("user", "Sing."), ("assistant", "La ```"), ("user", "Louder."))
    asked = prompt("p1", text=transcript(talk), messages=talk)

    source = page_of(subject(*history(opened(prompts=[asked]), "a")), "all")

    said = "".join(f'<small>{who}</small><p class="text" dir="auto">{it}</p>' for who, it in talk)
    assert source.count(f"<h3>Prompt</h3>{said}") == 2  # of the battle, and of all answers


def test_battles_are_called_a_sample_only_where_some_are_left_out() -> None:
    """And are filtered by disagreement only where judges disagree."""
    whole, agreed = page(*PLAYED), page(*history(cup(), *"aabbab"))

    assert "All 5." in whole.text
    assert "so they show what happens" not in whole.text
    assert "disputed" in {each.get("name") for each in whole.named("input")}
    assert "disputed" not in {each.get("name") for each in agreed.named("input")}


def test_a_run_and_a_tournament_as_it_stands_say_how_to_check_them() -> None:
    """A reader can compute the page again from the ledger."""
    run = played()
    now = Subject(run.results, run.spend, (), ITEMS.initial, is_run=False)
    command = "tourney replay --against runs/pilot_20260427_120000"
    head = f"tourney verify --checkpoint {run.head}"

    of_now = page_of(now, "none")

    assert command in played_page()
    assert head in played_page()
    assert command not in of_now
    assert head in of_now


@pytest.mark.parametrize(("which", "n"), [("all", 5), ("sample", 5), ("none", 0)])
def test_battles_are_shown_as_asked_for(which: WhichBattles, n: int) -> None:
    """Texts are what a report weighs; without a judged pair there is no section at all."""
    found = ParsedPage(page_of(played(), which))

    battles = battles_on(found)
    assert len(battles) == n
    assert ("Marked and underlined" in found.text) is bool(n)


def test_battles_can_be_filtered_by_who_fought_and_how_it_ended() -> None:
    """The script reads these attributes, and nothing else."""
    found = ParsedPage(played_page())

    battles = battles_on(found)
    assert [each["data-outcome"] for each in battles].count("won") == 3
    assert [("data-disputed" in each) for each in battles].count(True) == 1
    assert {each["data-a"] for each in battles} == {"zoe", "amy"}


def test_a_battle_on_which_judges_differ_is_disputed() -> None:
    """It is what a person should look at first."""
    events = heard(court(2), [A_WINS, A_WINS], [B_WINS, A_WINS])

    found = page(*events)

    battles = battles_on(found)
    assert [("data-disputed" in each) for each in battles] == [True, False]
    assert found.text.count("judges differ") == 2  # beside the battle, and beside its prompt
