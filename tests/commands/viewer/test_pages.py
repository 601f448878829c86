"""The pages: what they show, where they lead, and that no text in them has an effect."""

import dataclasses
import re
from base64 import b64encode
from datetime import date
from functools import cache
from hashlib import sha256
from html import unescape

import pytest
from immutables import Map
from msgspec.structs import replace

from commands.viewer import pages
from commands.viewer.battle_index import BattleFilter
from commands.viewer.live import LiveView
from commands.viewer.pages import PromptFilter, policy
from ledger.events.judging import VerdictReceived
from ledger.events.registry import Event
from ledger.events.responses import ResponseGenerated
from ledger.identity import Dimension, JudgeId
from projections.artifacts.escaping import escaped
from projections.tournament.requests import Bill
from projections.tournament.spend import Spend, SpendKey
from tests.support.builders.events import STREAM, entrant, judge, opened, prompt, rubric
from tests.support.builders.reports import HOSTILE, MADE_VISIBLE, ParsedPage
from tests.support.builders.views import viewed
from tests.support.builders.worlds import RUBRICS, Fate, court, cup, heard, history
from tests.support.builders.worlds import A as A_WINS
from tests.support.builders.worlds import B as B_WINS

FATES: tuple[Fate, ...] = ("a", "b", "tie", "inconsistent", "a", "refused")


@cache
def played() -> LiveView:
    """Return a view of every outcome: zoe-amy, zoe-kim, amy-kim on p1, then on p2."""
    return viewed(*history(cup(), *FATES))


@cache
def many() -> LiveView:
    """Return a view of 153 battles, none of them judged."""
    return viewed(*history(cup(51)))


def text_of(source: str) -> str:
    """Return the text of a page, on one line."""
    body = re.sub(r"<(style|script)>.*?</\1>", "", source, flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]*>", " ", body).split())


def links(source: str, pattern: str) -> list[str]:
    """Return where the links of a page lead that match a pattern."""
    return [each.replace("&amp;", "&") for each in re.findall(rf'href="({pattern})"', source)]


def all_pages(view: LiveView) -> list[str]:
    """Return every kind of page."""
    (battle, *_) = view.index.battles
    return [
        pages.overview_page(view),
        pages.battles_page(view, BattleFilter()),
        pages.battle_page(view, battle.battle_id, BattleFilter()) or "",
        pages.prompts_page(view, PromptFilter()),
        pages.answers_page(view, battle.prompt_id, PromptFilter()) or "",
        pages.waiting_page("gone"),
    ]


def test_the_policy_lets_run_what_every_page_brings_and_nothing_else() -> None:
    """It asks nobody but this server for anything."""
    for source in all_pages(played()):
        for tag in ("style", "script"):
            (content,) = re.findall(rf"<{tag}>(.*?)</{tag}>", source, re.DOTALL)
            digest = b64encode(sha256(content.encode()).digest()).decode()
            assert f"{tag}-src 'sha256-{digest}'" in policy()
        assert not re.findall(r"""\s(?:src|style|on\w+)=""", re.sub(r"<script>.*", "", source))
        assert not links(source, '(?!/|#)[^"]*')


def test_the_overview_is_the_report_and_what_is_going_on() -> None:
    """Whoever knows the report finds everything in its place."""
    source = pages.overview_page(played())

    assert "6 of 6 pairs judged on factuality" in text_of(source)
    assert 'id="ratings"' in source
    assert 'id="provenance"' in source
    assert "$0.00 spent" in text_of(source)
    assert len(links(source, r"/battle/[0-9a-f]{64}")) == 5
    assert 'class="battle card"' not in source


def test_a_fault_is_on_every_page_until_it_is_gone() -> None:
    """Else old numbers would look like new ones."""
    source = pages.battles_page(played(), BattleFilter(), fault="no <permission>")

    assert "no &lt;permission&gt;" in source
    assert 'role="alert"' not in pages.battles_page(played(), BattleFilter())


def test_battles_are_listed_by_page() -> None:
    """However many there are, a page has fifty."""
    first, last, beyond = (
        pages.battles_page(many(), BattleFilter(entrant="zoe"), number)
        for number in ("1", "3", "99")
    )

    assert "1 to 50 of 102 battles" in text_of(first)
    assert links(first, r"/battles\?[^\"]+")[0] == "/battles?entrant=zoe&page=2"
    assert "101 to 102 of 102 battles" in text_of(last)
    assert last == beyond
    assert "no battles" in text_of(pages.battles_page(many(), BattleFilter(entrant="<b>")))
    assert pages.battles_page(many(), BattleFilter(), "-1") == pages.battles_page(
        many(), BattleFilter(), "²"
    )


def test_a_battle_has_both_sides_both_replies_and_its_neighbours() -> None:
    """One goes from one to the next of what was found."""
    ids = [each.battle_id for each in played().index.battles]
    chosen = BattleFilter(entrant="zoe")

    source = pages.battle_page(played(), ids[1], chosen)

    assert source
    assert links(source, r"/battle/[^\"]+") == [
        f"/battle/{ids[0]}?entrant=zoe",
        f"/battle/{ids[3]}?entrant=zoe",
    ]
    assert source.count('<section class="reply">') == 2
    assert "Gold answer aspirin" in text_of(source)
    assert "kim won" in text_of(source)
    assert pages.battle_page(played(), "0" * 64, chosen) is None


def test_a_battle_that_was_not_found_has_neighbours_too() -> None:
    """Its address may have been sent by somebody with another search."""
    ids = [each.battle_id for each in played().index.battles]

    source = pages.battle_page(played(), ids[2], BattleFilter(entrant="zoe"))

    assert source
    assert [link[8:72] for link in links(source, r"/battle/[^\"]+")] == [ids[1], ids[3]]


def test_every_judge_of_the_panel_is_heard() -> None:
    """Where they differ one wants to read them all."""
    view = viewed(*heard(court(2), [A_WINS], [B_WINS]))

    source = pages.battle_page(view, view.index.battles[0].battle_id, BattleFilter())

    assert source
    assert source.count('<section class="reply">') == 4
    assert "judges differ" in source


def test_prompts_lead_to_their_battles() -> None:
    """How its battles ended says what a prompt is worth."""
    source = pages.prompts_page(played(), PromptFilter("QUESTION P2"))

    assert "1 to 1 of 1 prompts" in text_of(source)
    assert links(source, r"/battles\?[^\"]+") == ["/battles?prompt=p2"]
    assert links(source, r"/answers\?[^\"]+") == ["/answers?text=QUESTION+P2&prompt=p2"]
    assert re.findall(r'<td class="n(?: wide)?">(\d+)</td>', source) == [
        "1",
        "0",
        "1",
        "1",
        "0",
        "1",
    ]


def test_all_answers_to_a_prompt_stand_side_by_side() -> None:
    """Whoever won most comes first; each cell leads to the battle that it shows."""
    ids = [battle.battle_id for battle in played().index.battles]

    source = pages.answers_page(played(), "p1", PromptFilter()) or ""

    assert re.findall(r"<h3>\d (?:<[^>]+>)+(\w+)", source) == ["zoe", "kim", "amy"]
    assert "1 zoe 1–1–0, 3 tokens" in text_of(source)  # noqa: RUF001
    assert set(links(source, r"/battle/[^\"]+")) == {f"/battle/{each}" for each in ids[:3]}
    assert links(source, r"/battles\?[^\"]+") == ["/battles?prompt=p1"]
    assert links(source, r"/answers\?[^\"]+") == ["/answers?prompt=p2"]
    assert pages.answers_page(played(), "p9", PromptFilter()) is None


@pytest.mark.parametrize(
    ("only", "prompts"),
    [("", ["p1", "p2"]), ("orders differ", ["p2"]), ("judges differ", []), ("odd", ["p1", "p2"])],
)
def test_prompts_are_filtered_by_why_they_are_worth_a_look(only: str, prompts: list[str]) -> None:
    """One goes from one to the next of them."""
    source = pages.prompts_page(played(), PromptFilter(only=only))

    assert re.findall(r"/answers\?[^\"]*prompt=(\w+)", source) == prompts
    if only == "orders differ":
        answers = pages.answers_page(played(), "p2", PromptFilter(only=only)) or ""
        assert not links(answers, r"/answers\?[^\"]+")
        assert '<span class="chip">orders differ</span>' in answers


def test_a_prompt_that_changes_who_is_ahead_is_decisive() -> None:
    """One more win in three is turned by that one prompt."""
    fates: list[Fate] = [*("a", "a", "a", "b", "b", "b") * 2]
    fates[11] = "a"

    marked = viewed(*history(cup(4), *fates)).marked

    assert marked["decisive"]
    assert not marked["orders differ"] | marked["judges differ"]


def test_spend_is_told_by_judge_and_by_day() -> None:
    """A run that goes on for days costs on each of them."""
    bills = {
        SpendKey(JudgeId("sonnet"), Dimension(on), date(2026, 4, day)): Bill(n_replies=4, usd=1.25)
        for on, day in (("utility", 28), ("utility", 27), ("factuality", 27))
    }
    by_day = {
        SpendKey(JudgeId("sonnet"), None, date(2026, 4, day)): Bill(n_replies=n, usd=usd)
        for day, n, usd in ((27, 8, 2.5), (28, 4, 1.25))
    }
    spend = Spend(STREAM, settled=Map(bills), settled_by_day=Map(by_day))
    reading = dataclasses.replace(played().reading, spend=spend)

    view = dataclasses.replace(played(), reading=reading)

    for each in (view, dataclasses.replace(view, content=None)):
        told = text_of(pages.overview_page(each))
        assert "sonnet utility 8 0 0 2.5000" in told
        assert "sonnet 2026-04-27 8 0 0 2.5000" in told
        assert "sonnet 2026-04-28 4 0 0 1.2500" in told


def test_battles_are_chosen_by_dimension_where_there_are_several() -> None:
    """With one, no column repeats its name."""
    both = viewed(*history(opened(rubrics=RUBRICS), "a"))

    assert 'name="dimension"' in pages.battles_page(both, BattleFilter())
    assert 'name="dimension"' not in pages.battles_page(played(), BattleFilter())


def says(event: Event, text: str) -> Event:
    """Return an event with a text of its author's choice."""
    match event:
        case ResponseGenerated():
            return replace(event, text=f"{text} by {event.entrant_id[-1]}")
        case VerdictReceived():
            return replace(event, reply=text)
        case _:
            return event


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("".join(("../..//evil.example?a=b#c", *HOSTILE)), id="all together"),
        *(pytest.param(each, marks=pytest.mark.nightly) for each in HOSTILE),
    ],
)
def test_what_people_and_models_wrote_has_no_effect(text: str) -> None:
    """It is shown, and neither runs nor leads anywhere."""
    opening = opened(
        prompts=[prompt(text, text=text, source=text)],
        entrants=[entrant(f"{text}1"), entrant(f"{text}2")],
        rubrics=[rubric(text), rubric("other")],
        judges=[judge(text, model=text)],
    )
    view = viewed(*[says(event, text) for event in history(opening, "a", "tie")])

    sources = [*all_pages(view), pages.battles_page(view, BattleFilter(text=text, prompt=text))]

    for source in sources:
        assert len(re.findall(r"<script\b", source)) == 1
        kinds = ParsedPage(source).kinds
        assert not [name for _, *names in kinds for name in names if name.startswith("on")]
        assert not set(source) & set(MADE_VISIBLE)
        assert not links(source, '(?!/(?!/)|#)[^"]*')
    assert escaped(text).split()[0] in unescape(text_of(sources[2]))
