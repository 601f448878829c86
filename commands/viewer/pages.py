"""The pages as HTML: pure functions of what is known at a head, and of what an address asks for."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Final, NamedTuple, get_args
from urllib.parse import urlencode

from markupsafe import Markup

from commands.reading.rows import outcome_rows
from commands.report.answers import MARKS, answer_grid
from commands.report.battles import replies_of, shown_battle
from commands.report.money import spending_of
from commands.report.page import hash_of, source_of, templates
from commands.viewer.battle_index import BattleFilter
from commands.viewer.live import LiveView
from commands.viewer.server import whole_number
from ledger.events.conversations import turns_in
from ledger.events.registration import Prompt
from ledger.identity import Digest
from projections.results.outcomes import OutcomeRow
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
        "newest": _listed(view, view.newest),
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


def _listed(view: LiveView, places: Sequence[int]) -> list[tuple[OutcomeRow, str, bool]]:
    """Return battles with their outcome in a word or two, and whether they are disputed."""
    rows = outcome_rows(view.index.battles[place] for place in places)
    return [
        (
            row,
            _OUTCOMES.get(row.status, row.status.replace("_", " ")),
            view.index.is_disputed(place),
        )
        for place, row in zip(places, rows, strict=True)
    ]


class Pager(NamedTuple):
    """Which rows of a list are shown, and where the others are."""

    n: int
    first: int
    last: int
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
    return Pager(n, first, last, page_at(number - 1), page_at(number + 1))


def battles_page(
    view: LiveView, chosen: BattleFilter, number: str = "1", fault: str | None = None
) -> str:
    """Return a page of the battles that pass a filter."""
    index = view.index
    places = index.find(chosen)
    pager = _pager("/battles", chosen.query, len(places), number)
    return render(
        "battles.html",
        {
            "here": "/battles",
            "chosen": chosen,
            "pager": pager,
            "rows": _listed(view, places[pager.first : pager.last]),
            "n_all": len(index.battles),
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
    is_disputed = view.index.is_disputed(place)
    battle = shown_battle(state, settled, match, is_disputed=is_disputed, most=_MOST)
    others = [
        reply
        for other in _other_matches(view, match)
        for reply in replies_of(state, other, (a, b), _MOST)
    ]
    before, after = view.index.beside(place, chosen)
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


class PromptFilter(NamedTuple):
    """Which prompts are listed; empty: all."""

    text: str = ""
    only: str = ""  # those with this mark

    @classmethod
    def of(cls, query: Mapping[str, str]) -> "PromptFilter":
        """Take the filter out of the query of an address."""
        return cls(query.get("text", "").strip(), query.get("only", ""))

    @property
    def query(self) -> dict[str, str]:
        """What says the same in an address."""
        return {name: value for name, value in self._asdict().items() if value}

    def find(self, view: LiveView) -> list[Prompt]:
        """Return the prompts that pass, in the order of the bank."""
        sought, marked = " ".join(self.text.casefold().split()), view.marked.get(self.only)
        return [
            prompt
            for prompt in view.reading.tournament.bank
            if sought in view.index.prompts[prompt.prompt_id]
            and (marked is None or prompt.prompt_id in marked)
        ]


def prompts_page(
    view: LiveView, chosen: PromptFilter, number: str = "1", fault: str | None = None
) -> str:
    """Return a page of the prompts that pass a filter, and of how their battles ended."""
    prompts = chosen.find(view)
    pager = _pager("/prompts", chosen.query, len(prompts), number)
    return render(
        "prompts.html",
        {
            "here": "/prompts",
            "chosen": chosen,
            "marks": MARKS,
            "pager": pager,
            "prompts": [
                (prompt, _beginning(prompt)) for prompt in prompts[pager.first : pager.last]
            ],
            "counts": view.index.counts,
            "kinds": KINDS,
            **_common(view, fault),
        },
    )


def _beginning(prompt: Prompt) -> str:
    """Return how a prompt begins; of a conversation what is said in it."""
    return (" ".join(said for _, said in turns_in(prompt.text)) or prompt.text)[:_BEGINNING]


def answers_page(
    view: LiveView, prompt_id: str, chosen: PromptFilter, fault: str | None = None
) -> str | None:
    """Return all answers to a prompt side by side; None: there is no such prompt."""
    if prompt_id not in view.index.prompts:
        return None
    battles = [
        view.index.battles[place] for place in view.index.find(BattleFilter(prompt=prompt_id))
    ]
    prompts = [str(prompt.prompt_id) for prompt in chosen.find(view)]
    at = prompts.index(prompt_id) if prompt_id in prompts else None
    return render(
        "answers.html",
        {
            "here": "/prompts",
            "prompt_id": prompt_id,
            "grid": answer_grid(battles, view.marked, most=_MOST) if battles else None,
            "chosen": chosen,
            "before": prompts[at - 1] if at else None,
            "after": prompts[at + 1] if at is not None and at + 1 < len(prompts) else None,
            **_common(view, fault),
        },
    )


LIVE: Final = "live.js"
"""The script of pages that follow the ledger."""


@cache
def _style() -> Markup:
    return source_of("style.css") + "\n" + source_of("live.css", __package__)


@cache
def _scripts(name: str) -> Markup:
    """Return what sorts tables, and a script of our own."""
    return source_of("script.js") + "\n" + source_of(name, __package__)


@cache
def policy(script: str = LIVE) -> str:
    """Return the policy of a page: its style and scripts run, and it talks to this server alone."""
    return (
        f"default-src 'none'; style-src '{hash_of(_style())}';"
        f" script-src '{hash_of(_scripts(script))}'; connect-src 'self'; form-action 'self';"
        " base-uri 'none'; frame-ancestors 'none'"
    )


def render(template: str, shown: Mapping[str, object], script: str = LIVE) -> str:
    """Return a page with one of our scripts."""
    found = templates(__package__).get_template(template)
    return found.render(shown, style=_style(), script=_scripts(script))
