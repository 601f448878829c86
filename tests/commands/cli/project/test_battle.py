"""One battle on one screen: everything is on it, nothing is broken, nothing takes effect."""

from collections.abc import Sequence

import pytest
from msgspec.structs import replace
from rich.console import Console

from commands.cli.project.battle import battle_screen, battle_table
from commands.cli.tables.render import print_lines
from ledger.events.registry import Event
from projections.battles.details import BattleDetails, battle_details
from projections.tournament.matches import planned_responses
from tests.support.builders.events import known, opened, prompt, responses
from tests.support.builders.worlds import (
    SLOT_A,
    TIE,
    A,
    Said,
    answered,
    everything,
    failure,
    heard,
    planned_pairings,
    questions_of,
    unanswerable,
)
from tests.support.goldens.screens import printed

WORDS = "the quick brown fox jumps over the lazy dog " * 4
EVIL = "\x1b[31mred \x1b]8;;http://x\x07 \u202edoc [bold]x[/bold] \0 \x9b2J"


def details_of(events: Sequence[Event]) -> BattleDetails:
    """Return the only battle of events."""
    tournament = known(*events)
    return battle_details(tournament, planned_pairings(tournament), tournament.panel[0])


def said(*sides: str) -> tuple[Event, ...]:
    """Return a tournament in which base and tuned said so."""
    names = [("base", "p1"), ("tuned", "p1")]
    return (*opened(), *responses(known(*opened()), dict(zip(names, sides, strict=True))))


def screen(details: BattleDetails, width: int | None = None, *, is_terminal: bool = False) -> str:
    """Return what is printed on a terminal so wide, or in a pipe."""

    def draw(console: Console) -> None:
        print_lines(battle_screen(details, console, width), console)

    return printed(draw, width=width or 10_000, force_terminal=is_terminal)


@pytest.mark.parametrize(
    ("verdicts", "lines"),
    [
        (A, ("factuality: base wins", "base first: prefers base", "tuned first: prefers base")),
        (SLOT_A, ("inconsistent: the verdict", "base first: prefers base", "first: prefers tuned")),
        (TIE, ("factuality: a tie", "base first: calls it a tie", "tuned first: calls it a tie")),
    ],
)
def test_the_verdict_is_told_in_words(verdicts: Said, lines: tuple[str, ...]) -> None:
    """Who stood in slot A is the program's business."""
    text = screen(details_of(heard(answered(opened()), [verdicts])))

    assert not [line for line in lines if line not in text]
    assert f"VERDICT: {verdicts[0]}" in text


def test_what_has_no_verdict_says_why() -> None:
    """Silence would look like a verdict that got lost."""
    events = answered(opened())
    forward, _ = questions_of(known(*events))
    tournament = known(*opened())
    base, _ = planned_responses(tournament, everything(tournament))

    refused = screen(details_of((*events, failure(forward, "refused"))))
    unanswered = screen(details_of((*opened(), unanswerable(base))))

    assert "no outcome: refused" in refused
    assert "base first: no verdict: refused" in refused
    assert "tuned first: no verdict yet: not asked" in refused
    assert "no response: prompt_too_long" in unanswered
    assert "no response yet" in unanswered
    assert "not asked: a response is missing" in unanswered


def test_responses_stand_side_by_side_only_where_there_is_room() -> None:
    """Two columns of thirty characters are harder to read than one of sixty."""
    details = details_of(said(WORDS, f"{WORDS} now"))

    wide, narrow = screen(details, 100).splitlines(), screen(details, 60).splitlines()

    assert [line for line in wide if "base (" in line and "tuned (" in line]
    assert not [line for line in narrow if "base (" in line and "tuned (" in line]
    assert max(map(len, wide)) <= 100
    assert max(map(len, narrow)) <= 60
    assert {*" ".join(narrow).split()} >= {*WORDS.split()}


def test_words_that_differ_are_underlined_on_a_terminal_alone() -> None:
    """The eye finds them in a long text; in a pipe no line is wrapped, to be searched for."""
    details = details_of(said(f"left {WORDS.strip()}", f"right {WORDS.strip()}"))
    shown, piped = screen(details, 400, is_terminal=True), screen(details)

    assert "\x1b[1;4mleft\x1b[0m the" in shown
    assert "\x1b[1;4mright\x1b[0m the" in shown
    assert f"  left {WORDS.strip()}\n" in piped
    assert "\x1b" not in piped


def test_nothing_that_others_wrote_takes_effect() -> None:
    """Prompt, gold answer, response and reply come from elsewhere."""
    opening = opened(prompts=[prompt(gold=EVIL, text=EVIL)])
    texts = {("base", "p1"): EVIL, ("tuned", "p1"): f"{EVIL} {'x' * 5_000}"}
    events = (*opening, *responses(known(*opening), texts))
    forward, _ = questions_of(known(*events))
    details = details_of((*events, replace(failure(forward), reply=EVIL, detail=EVIL)))

    for width in (None, 60, 120):
        text = screen(details, width)

        assert {*text}.isdisjoint("\x1b\x07\x9b\u202e\0")
        assert "[bold]x[/bold]" in text


def test_programs_get_a_row_for_each_order_and_the_texts() -> None:
    """Full ids and whole replies, under stable keys."""
    table = battle_table(details_of(heard(answered(opened()), [A])))

    forward, swapped = table.rows
    assert table.schema == "tourney/battle@1"
    assert (forward["first"], swapped["first"]) == ("base", "tuned")
    assert (forward["verdict"], swapped["verdict"]) == ("A", "B")
    assert forward["preferred"] == swapped["winner"] == "base"
    assert forward["id"] == swapped["id"]
    assert table.facts["responses"] == [
        {
            "entrant": name,
            "text": f"{name} on p1",
            "finish_reason": "stop",
            "n_tokens": 3,
            "failure": None,
        }
        for name in ("base", "tuned")
    ]
