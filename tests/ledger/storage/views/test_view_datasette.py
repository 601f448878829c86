"""What `datasette tournament.db` shows, asked of datasette itself, in process.

By night: it takes a second to load, and the columns and rows of every view are tested by day.
"""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from ledger.storage.schema import VIEWS
from ledger.store import Ledger
from tests.support.builders.events import STREAM
from tests.support.builders.worlds import cup, history

pytestmark = pytest.mark.nightly


@pytest.fixture
def filed(tmp_path: Path) -> Path:
    """Give the file of a tournament of one prompt."""
    path = tmp_path / "cup.db"
    with Ledger.open(path) as ledger:
        ledger.append(STREAM, history(cup(1), "a", "b", "refused"))
    return path


def shown(file: Path, *pages: str) -> list[Any]:
    """Return what datasette answers on each page of a file, as JSON or else as text."""
    app = pytest.importorskip(
        "datasette.app", reason="datasette is not installed; `make test` installs it"
    )

    async def ask() -> list[Any]:
        client = app.Datasette([str(file)]).client
        replies = [await client.get(page) for page in pages]
        assert {reply.status_code for reply in replies} == {200}
        return [
            reply.json() if ".json" in page else reply.text
            for page, reply in zip(pages, replies, strict=True)
        ]

    return asyncio.run(ask())


def test_every_view_is_listed_and_opens(filed: Path) -> None:
    """Under each is its definition, with the meaning of each column."""
    pages = [f"/cup/{view.name}.json?_shape=objects" for view in VIEWS]
    listing, responses, *views = shown(filed, "/cup.json", "/cup/responses", *pages)

    assert {each["name"] for each in listing["views"]} == {view.name for view in VIEWS}
    assert "what it wrote; NULL once it was redacted" in responses
    for view, page in zip(VIEWS, views, strict=True):
        assert page["columns"] == [column.name for column in view.columns]
