"""Subjects of reports, texts that try to do something in one, and pages as a browser reads them."""

from collections.abc import Sequence
from html.parser import HTMLParser
from itertools import cycle
from typing import Final

from msgspec.structs import replace

from commands.report.subject import Subject
from ledger.events.judging import VerdictReceived
from ledger.events.registry import Event
from projections.artifacts.results import results_of
from projections.evaluations.metrics import metrics_of
from projections.evaluations.samples import ITEMS
from projections.evaluations.state import evaluations_of
from projections.fold import fold
from projections.tournament.folding import tournament_of
from projections.tournament.spend import Spend
from tests.support.builders.events import STREAM, known, recorded, responses
from tests.support.builders.worlds import Fate, become, matches_of, publication


def subject(*events: Event) -> Subject:
    """Return what a report on these events is about."""
    told_of = recorded(events)
    tournament = fold(tournament_of(STREAM), told_of)
    told = publication(tournament)
    terms = replace(told.terms, judge=tournament.panel[0].judge_id)
    results = results_of(tournament, replace(told, terms=terms))
    runs = fold(evaluations_of(STREAM), told_of).runs
    items = fold(ITEMS, told_of)
    return Subject(results, Spend(STREAM), tuple(map(metrics_of, runs)), items, is_run=True)


HOSTILE: Final = [
    "<script>alert(1)</script>",
    '<img src=x onerror="alert(1)">',
    "' onmouseover='alert(1)",
    '<svg/onload=alert(1)><meta http-equiv="refresh" content="0;url=http://evil.example/">',
    '<a href="javascript:alert(1)">go</a><iframe src="http://evil.example/"></iframe>',
    "</style></title></textarea>{{ 7 * 7 }}{% raw %}",
    "\x1b[31mred\x1b]8;;http://evil\x07link",
    "abc\u202egnp.exe\u2066",
    "nul\x00byte",
]
MADE_VISIBLE: Final = {
    "\x1b": r"\x1b",
    "\x07": r"\x07",
    "\u202e": r"\u202e",
    "\u2066": r"\u2066",
    "\x00": r"\x00",
}


def seen(text: str) -> str:
    """Return a text as the page shows it."""
    return "".join(MADE_VISIBLE.get(each, each) for each in text)


def written(opening: Sequence[Event], texts: Sequence[str], *fates: Fate) -> tuple[Event, ...]:
    """Return a tournament in which responses and replies have these texts in turn."""
    turns = cycle(texts)
    answers = responses(known(*opening))
    said = [replace(each, text=f"{next(turns)} by {each.entrant_id[-1]}") for each in answers]
    events = (*opening, *said)
    fated = zip(matches_of(known(*events)), fates, strict=False)
    judged = [event for match, fate in fated for event in become(match, fate)]
    return (
        *events,
        *(
            replace(each, reply=next(turns)) if isinstance(each, VerdictReceived) else each
            for each in judged
        ),
    )


_VOID: Final = {"meta", "br", "wbr", "input", "link", "img"}


class ParsedPage(HTMLParser):
    """A page as a browser reads it: its elements, attributes and texts."""

    def __init__(self, source: str) -> None:
        """Read the source; every element must be closed where it was opened."""
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(source)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        self.elements.append((tag, dict(attrs)))
        if tag not in _VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element without content."""
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        """Close an element."""
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Note a text."""
        self.texts.append(data)

    @property
    def text(self) -> str:
        """The texts on one line."""
        return " ".join("".join(self.texts).split())

    @property
    def kinds(self) -> set[tuple[str, ...]]:
        """The elements, each with the names of its attributes."""
        return {(tag, *sorted(each)) for tag, each in self.elements}

    def named(self, tag: str) -> list[dict[str, str | None]]:
        """Return the attributes of the elements of a kind."""
        return [attributes for name, attributes in self.elements if name == tag]
