"""What all pages have in common: the style, the scripts, and the policy for them."""

from collections.abc import Mapping
from functools import cache
from typing import Final

from markupsafe import Markup

from commands.report.page import hash_of, source_of, templates

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
