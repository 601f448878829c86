"""`tourney view`: which page an address is, and the server that shows it."""

from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import TypeAlias

from commands.viewer import pages
from commands.viewer.battle_index import BattleFilter
from commands.viewer.following import LedgerFollower
from commands.viewer.live import LiveReading, LiveView, live_reading_of, view_of
from commands.viewer.pages import policy
from commands.viewer.server import (
    Access,
    PageReply,
    PageRequest,
    page,
    plain,
    serve_until_interrupted,
    whole_number,
)
from ledger.chain import Head
from ledger.identity import StreamId

Follower: TypeAlias = LedgerFollower[LiveReading, LiveView]


def follower_of(ledger: Path, stream: StreamId) -> Follower:
    """Return what follows a tournament; a view is told of once its first page is ready."""

    def ready(reading: LiveReading, head: Head) -> LiveView:
        view = view_of(reading, head, ledger, follower.view)
        pages.overview_page(view)
        return view

    follower: Follower = LedgerFollower(ledger, live_reading_of(stream), ready)
    return follower


def answer(request: PageRequest, access: Access, follower: Follower) -> PageReply:
    """Answer a request."""
    refused = access.refusal(request)
    if refused is not None:
        return refused
    if request.path == "/events":
        return PageReply(kind="text/event-stream", stream=follower.events())
    view, fault = follower.view, follower.fault
    if view is None:
        waiting = page(pages.waiting_page(fault), policy())
        return waiting._replace(status=HTTPStatus.SERVICE_UNAVAILABLE)
    source = _page_at(request, view, fault)
    if source is None:
        return plain(HTTPStatus.NOT_FOUND, "There is no such page.")
    return page(source, policy())


def _page_at(request: PageRequest, view: LiveView, fault: str | None) -> str | None:
    query = request.query
    number = query.get("page", "1")
    if number.isdecimal() and whole_number(number) is None:  # no list is as long
        return None
    match request.path.split("/")[1:]:
        case [""]:
            return pages.overview_page(view, fault)
        case ["battles"]:
            return pages.battles_page(view, BattleFilter.of(query), number, fault)
        case ["battle", battle_id]:
            return pages.battle_page(view, battle_id, BattleFilter.of(query), fault)
        case ["prompts"]:
            return pages.prompts_page(view, pages.PromptFilter.of(query), number, fault)
        case ["answers"]:
            chosen = pages.PromptFilter.of(query)
            return pages.answers_page(view, query.get("prompt", ""), chosen, fault)
        case _:
            return None


def view(ledger: Path, stream: StreamId, port: int, tell: Callable[[str], None]) -> None:
    """Show a tournament in the browser, until Ctrl-C; the ledger is only read.

    Args:
        ledger: The file.
        stream: The tournament in it.
        port: Where to listen; 0: any that is free.
        tell: Called with the address.

    Raises:
        ConfigurationError: The port cannot be had.
    """
    access, follower = Access(), follower_of(ledger, stream)
    follower.start()
    try:
        serve_until_interrupted(
            lambda request: answer(request, access, follower), port, access.token, tell
        )
    finally:
        follower.end()
