"""Consent on the command line: the question, and what is refused before it is asked."""

import sys

import typer

from commands.cli.progress_bar import put_bars_away
from commands.consent import Offer, require_consent, require_within_cap
from commands.errors import Refused
from commands.hostile import shown


def require_somebody(what: str, *, agreed: bool) -> None:
    """Find out at once that nobody is there to agree.

    Raises:
        Refused: Nobody agreed beforehand, and there is no terminal to ask at.
    """
    if not agreed and not _is_at_a_terminal():
        raise Refused(
            f"asking {what} costs money, and nobody is here to agree: say --yes, and --max-usd to"
            " set a cap; `tourney plan` tells what it costs"
        )


def agree_to(offer: Offer, *, agreed: bool) -> None:
    """Ask whether an offer may be paid for.

    Raises:
        Refused: It is above the cap, or nobody agreed; nothing was sent.
    """
    require_within_cap(offer)
    require_consent(
        offer,
        agreed=agreed,
        is_terminal=_is_at_a_terminal(),
        confirm=_says_yes,
    )


def _is_at_a_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()  # None where it was closed


def _says_yes(question: str) -> bool:
    """Ask in plain words, on a line that nothing is painted over; whatever is no yes is a no."""
    put_bars_away()
    typer.echo(f"{shown(question)} [y/N]: ", nl=False, err=True)
    answer = ""
    try:
        answer = sys.stdin.readline()
    finally:
        if not answer.endswith("\n"):  # Ctrl-C and Ctrl-D do not end the line
            typer.echo(err=True)
    return answer.strip().lower() in {"y", "yes"}
