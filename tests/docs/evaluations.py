"""The documents' page on evaluations, and the code in it."""

from tests.docs import pages

PAGE = pages.DOCS / "evaluations.md"


def blocks(language: str) -> list[str]:
    """Return the page's blocks of code in a language."""
    return [block.text for block in pages.blocks(PAGE) if block.language == language]
