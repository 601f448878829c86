"""`tourney annotate`: the pages on which somebody votes, without names."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Final

from commands.importing.votes import CHOICES, BallotBox, Choice
from commands.report.text import shown_text, texts_beside
from commands.viewer.pages import policy, render
from commands.viewer.server import (
    Access,
    PageReply,
    PageRequest,
    moved_to,
    page,
    plain,
    serve_until_interrupted,
    whole_number,
)
from ledger.errors import TourneyError

_SCRIPT: Final = "annotate.js"
_SAID: Final = {
    "model_a": "A is better",
    "model_b": "B is better",
    "tie": "a tie",
    "no verdict": "skipped",
}


def ballot_page(box: BallotBox, number: int, form_token: str) -> str:
    """Return the page of a ballot, counted from 0: the prompt, two responses, and the choices."""
    ballot, vote = box.ballots[number], box.vote_on(number)
    rubric, prompt = ballot.pairing.rubric, ballot.pairing.prompt
    a, b = texts_beside(ballot.a.text, ballot.b.text, most=None)
    return render(
        "ballot.html",
        {
            "title": "tourney annotate",
            "dimension": rubric.dimension,
            "guidance": rubric.guidance,
            "prompt": shown_text(prompt.text, None),
            "gold": prompt.gold_answer if rubric.needs_gold else None,
            "sides": (("A", a), ("B", b)),
            "same": ballot.a.text == ballot.b.text,
            "number": number,
            "n_done": box.n_done,
            "n": len(box.ballots),
            "voted": None if vote is None else _SAID[vote.winner],
            "n_before": box.n_cast_on(number),
            "form_token": form_token,
        },
        _SCRIPT,
    )


def done_page(box: BallotBox) -> str:
    """Return the page that is there when all ballots have a vote."""
    return render(
        "done.html",
        {"title": "tourney annotate", "n": len(box.ballots), "name": box.name},
        _SCRIPT,
    )


def answer_annotator(request: PageRequest, access: Access, box: BallotBox) -> PageReply:
    """Answer a request of whoever votes."""
    refused = access.refusal(request)
    if refused is not None:
        return refused
    if request.method == "POST":
        return _take(request, box)
    match request.path.split("/")[1:]:
        case [""]:
            number = box.next_open
        case ["ballot", said] if (found := _number(said, box)) is not None:
            number = found
        case _:
            return plain(HTTPStatus.NOT_FOUND, "There is no such page.")
    shown = done_page(box) if number is None else ballot_page(box, number, access.form_token)
    return page(shown, policy(_SCRIPT))


def _number(said: str, box: BallotBox) -> int | None:
    """Return the ballot that an address or a form names, counted from 0; None: there is none."""
    number = whole_number(said)
    return number - 1 if number and number <= len(box.ballots) else None


def _take(request: PageRequest, box: BallotBox) -> PageReply:
    """Record a vote, and go on to the next ballot."""
    form = request.form
    number, choice = _number(form.get("ballot", ""), box), _choice(form.get("choice", ""))
    n_before = whole_number(form.get("n_before", ""))
    if request.path != "/vote" or number is None or choice is None or n_before is None:
        return plain(HTTPStatus.BAD_REQUEST, "This is no vote.")
    try:
        counts = box.cast(number, choice, n_before=n_before)
    except TourneyError as error:
        return plain(HTTPStatus.INTERNAL_SERVER_ERROR, f"This vote is not recorded: {error}")
    return moved_to("/" if counts else f"/ballot/{number + 1}")  # shows the vote that counts


def _choice(said: str) -> Choice | None:
    return next((choice for choice in CHOICES if choice == said), None)


def annotate(box: BallotBox, port: int, tell: Callable[[str], None]) -> None:
    """Let somebody vote in the browser, until Ctrl-C; each vote is recorded at once.

    Args:
        box: The ballots.
        port: Where to listen; 0: any that is free.
        tell: Called with the address.

    Raises:
        ConfigurationError: The port cannot be had.
    """
    access = Access(is_read_only=False)
    serve_until_interrupted(
        lambda request: answer_annotator(request, access, box), port, access.token, tell
    )
