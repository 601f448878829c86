"""docs/llms.txt: which page answers what, for language models; made from the index."""

import re
from collections.abc import Iterator

from tests.docs.pages import DOCS

_ROW = re.compile(r"\| (?P<job>[^|]+) \| (?P<links>[^|]+) \|")
_LINK = re.compile(r"\[[^]]+\]\([^)]+\)")


def llms_page() -> str:
    """Return the file, as llmstxt.org describes it."""
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    title, summary = index.split("\n\n")[:2]
    return "\n".join([title, "", f"> {summary}", "", "## Docs", "", *_pages(index), ""])


def _pages(index: str) -> Iterator[str]:
    for row in _ROW.finditer(index):
        for link in _LINK.findall(row["links"]):
            yield f"- {link}: {row['job']}"
