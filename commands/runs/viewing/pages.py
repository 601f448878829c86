"""The pages as HTML: pure functions of what is known at a head, and of what an address asks for."""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final, NamedTuple, get_args
from urllib.parse import urlencode

import numpy as np

from commands.runs.report.battles import replies_of, shown_battle
from commands.runs.report.money import spending_of
from commands.runs.viewing.battle_index import BattleFilter, BattleIndex
from commands.runs.viewing.frame import render
from commands.runs.viewing.http_exchange import whole_number
from commands.runs.viewing.live import LiveView
from ledger.identity import Digest
from projections.tournament.compared import OutcomeKind
from projections.tournament.matches import Match, match_of

KINDS: Final[tuple[OutcomeKind, ...]] = get_args(OutcomeKind)
_OUTCOMES: Final[Mapping[str, str]] = {"a": "first", "b": "second"}
_ON_PAGE: Final = 50  # rows
_MOST: Final = 20_000  # characters of a text
_BEGINNING: Final = 200  # of a prompt in a list
_REMEMBERED: Final = 4


def waiting_page(fault: str | None) -> str:
    """Return the page that is there until the ledger has been read once."""
    return render("waiting.html", {"here": "", "title": "tourney", "position": 0, "fault": fault})


@lru_cache(maxsize=_REMEMBERED)
def overview_page(view: LiveView, fault: str | None = None) -> str:
    """Return the report, and what is going on."""
    content = view.content
    state, spend = view.reading.tournament, view.reading.spend
    steps = {
        "steps": view.steps,
        "newest": [_row(view, place) for place in view.newest],
        "here": "/",
        "in_flight": len(state.in_flight) + len(state.under_way),
        "spending": spending_of(state, spend),
        "cap": view.source.settings("judge").get("max_usd"),
        **_common(view, fault),
    }
    if content is None:
        return render("unrated.html", {**steps, "why": view.why_not})
    return render("overview.html", {**content, **steps})


def _common(view: LiveView, fault: str | None) -> dict[str, object]:
    return {
        "title": view.reading.tournament.stream,
        "position": view.head.position,
        "fault": fault,
    }


class ListedBattle(NamedTuple):
    """A battle in a list."""

    battle_id: str
    prompt_id: str
    a: str
    b: str
    dimension: str
    status: str
    outcome: str  # in a word or two
    is_disputed: bool


def _row(view: LiveView, place: int) -> ListedBattle:
    settled = view.index.battles[place]
    dimension, prompt_id, a, b = settled.pairing.names
    return ListedBattle(
        settled.battle_id,
        prompt_id,
        a,
        b,
        dimension,
        settled.status,
        _OUTCOMES.get(settled.status, settled.status.replace("_", " ")),
        bool(view.index.is_disputed[place]),
    )


class Pager(NamedTuple):
    """Which rows of a list are shown, and where the others are."""

    n: int
    first: int
    last: int
    number: int
    n_pages: int
    previous: str | None
    following: str | None


def _pager(path: str, query: dict[str, str], n: int, asked: str) -> Pager:
    n_pages = max(1, -(-n // _ON_PAGE))
    number = min(max(1, whole_number(asked) or 1), n_pages)

    def page_at(other: int) -> str | None:
        if not 1 <= other <= n_pages:
            return None
        return f"{path}?{urlencode({**query, 'page': str(other)})}"

    first = (number - 1) * _ON_PAGE
    last = min(n, first + _ON_PAGE)
    return Pager(n, first, last, number, n_pages, page_at(number - 1), page_at(number + 1))


def battles_page(
    view: LiveView, chosen: BattleFilter, number: str = "1", fault: str | None = None
) -> str:
    """Return a page of the battles that pass a filter."""
    index = view.index
    places = index.find(chosen)
    pager = _pager("/battles", chosen.query, len(places), number)
    rows = [_row(view, int(place)) for place in places[pager.first : pager.last]]
    return render(
        "battles.html",
        {
            "here": "/battles",
            "chosen": chosen,
            "pager": pager,
            "rows": rows,
            "n_all": len(index),
            "suffix": _suffix(chosen),
            "entrants": view.source.roster,
            "dimensions": list(view.source.settlements),
            "kinds": KINDS,
            **_common(view, fault),
        },
    )


def _suffix(chosen: BattleFilter) -> str:
    """Return what keeps a filter in the addresses of battles."""
    return f"?{urlencode(chosen.query)}" if chosen.query else ""


def battle_page(
    view: LiveView, battle_id: str, chosen: BattleFilter, fault: str | None = None
) -> str | None:
    """Return the page of one battle, with its neighbours under a filter; None: there is none."""
    place = view.index.places.get(Digest(battle_id))
    if place is None:
        return None
    settled, state = view.index.battles[place], view.reading.tournament
    match = settled.match
    if match is None:
        raise ValueError(f"battle {battle_id} is in the index without its responses")
    _, _, a, b = settled.pairing.names
    is_disputed = bool(view.index.is_disputed[place])
    battle = shown_battle(state, settled, match, is_disputed=is_disputed, most=_MOST)
    others = [
        reply
        for other in _other_matches(view, match)
        for reply in replies_of(state, other, (a, b), _MOST)
    ]
    before, after = _neighbours(view.index, place, chosen)
    return render(
        "battle.html",
        {
            "here": "/battles",
            "battle": battle._replace(replies=(*battle.replies, *others)),
            "battle_id": battle_id,
            "before": before,
            "after": after,
            "suffix": _suffix(chosen),
            **_common(view, fault),
        },
    )


def _other_matches(view: LiveView, match: Match) -> Iterator[Match]:
    """Yield the match as it is put to the other judges of the panel."""
    state = view.reading.tournament
    for judge in state.panel:
        if judge != view.source.judge and (other := match_of(state, match.pairing, judge)):
            yield other


def _neighbours(
    index: BattleIndex, place: int, chosen: BattleFilter
) -> tuple[Digest | None, Digest | None]:
    """Return the ids of the battles before and after one, among those that pass a filter."""
    places = index.find(chosen)
    at = int(np.searchsorted(places, place))
    after = at + 1 if at < len(places) and places[at] == place else at
    return (
        index.battles[places[at - 1]].battle_id if at > 0 else None,
        index.battles[places[after]].battle_id if after < len(places) else None,
    )


class ListedPrompt(NamedTuple):
    """A prompt in a list, and what became of its battles."""

    prompt_id: str
    source: str
    text: str
    has_gold: bool
    counts: tuple[int, ...]  # by kind
    n_disputed: int


def prompts_page(
    view: LiveView, text: str = "", number: str = "1", fault: str | None = None
) -> str:
    """Return a page of the prompts that hold a text."""
    sought = text.casefold()
    found = [
        each
        for each in view.reading.tournament.bank
        if sought in f"{each.prompt_id}\n{each.text}\n{each.gold_answer or ''}".casefold()
    ]
    pager = _pager("/prompts", {"text": text} if text else {}, len(found), number)
    counts = _counts(view.index)
    rows = [
        ListedPrompt(
            each.prompt_id,
            each.source,
            each.text[:_BEGINNING],
            each.gold_answer is not None,
            *counts.get(each.prompt_id, ((0,) * len(KINDS), 0)),
        )
        for each in found[pager.first : pager.last]
    ]
    return render(
        "prompts.html",
        {
            "here": "/prompts",
            "text": text,
            "pager": pager,
            "rows": rows,
            "kinds": KINDS,
            **_common(view, fault),
        },
    )


@lru_cache(maxsize=_REMEMBERED)
def _counts(index: BattleIndex) -> dict[str, tuple[tuple[int, ...], int]]:
    """Return of each prompt how many of its battles are of which kind, and how many disputed."""
    prompt, n = index.prompt.cells, len(index.prompt.labels)
    by_kind = [np.bincount(prompt[index.kind.equals(kind)], minlength=n) for kind in KINDS]
    disputed = np.bincount(prompt[index.is_disputed], minlength=n)
    return {
        label: (tuple(int(counts[i]) for counts in by_kind), int(disputed[i]))
        for i, label in enumerate(index.prompt.labels)
    }


def spend_page(view: LiveView, fault: str | None = None) -> str:
    """Return what was spent, by whom and for what, and by day."""
    return render(
        "spend.html",
        {
            "here": "/spend",
            "spending": spending_of(view.reading.tournament, view.reading.spend),
            "cap": view.source.settings("judge").get("max_usd"),
            **_common(view, fault),
        },
    )
