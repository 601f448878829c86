"""What all pages have in common: the style, the script, and the policy that lets only these run."""

from functools import cache

from markupsafe import Markup

from commands.runs.report.page import hash_of, source_of, templates


@cache
def _assets() -> dict[str, Markup]:
    """Return the style and the script of every page."""
    style = source_of("style.css") + "\n" + source_of("live.css", __package__)
    script = source_of("script.js") + "\n" + source_of("live.js", __package__)
    return {"style": style, "script": script}


@cache
def policy() -> str:
    """Return the policy of every page: its own style and script run, and it talks to us alone."""
    style, script = (hash_of(each) for each in _assets().values())
    return (
        f"default-src 'none'; style-src '{style}'; script-src '{script}'; connect-src 'self';"
        " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )


def render(template: str, here: str, **shown: object) -> str:
    """Return a page; `here` is the address of its entry among the links."""
    found = templates(__package__).get_template(template)
    return found.render(shown, here=here, **_assets())
