"""The recipes for large models, each tried against a fake of its server."""

from pathlib import Path
from typing import Final

import pytest
from msgspec import UNSET

from ledger.events.requests import RequestsSubmitted
from ledger.events.responses import ResponseGenerated
from tests.docs import own
from tests.docs.pages import DOCS, blocks, shown
from tests.providers.dialects import DIALECTS
from tests.support.command_line.settled import events_in

_RECIPE: Final = "recipe: "
RECIPES: Final = {
    block.mark.removeprefix(_RECIPE): block.text
    for block in blocks(DOCS / "entrants.md")
    if block.mark.startswith(_RECIPE)
}
N_PROMPTS: Final = 2


def lay_out(folder: Path, recipe: str, url: str) -> None:
    """Write the tutorial's tournament, with the entrants of a recipe at the fake's address."""
    own.lay_out(folder, url)
    bank = folder / "bank.jsonl"
    bank.write_text("".join(bank.read_text().splitlines(keepends=True)[:N_PROMPTS]))
    settings = folder / "tournament.toml"
    before, _, after = settings.read_text().partition("[[entrants]]")
    _, rubrics, rest = after.partition("[[rubrics]]")
    settings.write_text(f"{before}{recipe.replace(own.ADDRESS, url)}\n{rubrics}{rest}")


def test_each_server_has_a_recipe() -> None:
    """A dialect without one, or a recipe that no test tries, would drift."""
    assert RECIPES.keys() == DIALECTS.keys()


@pytest.mark.parametrize("name", DIALECTS)
def test_a_recipe_does_what_its_page_says(name: str, tmp_path: Path) -> None:
    """The adapter is asked by its name, seeds arrive, and what the server tells is recorded."""
    dialect = DIALECTS[name]

    with dialect.server() as fake:
        lay_out(tmp_path, RECIPES[name], fake.url)
        shown(tmp_path, "tourney apply generate")

    responses = events_in(tmp_path, ResponseGenerated)
    models = {"base": dialect.base, "security": dialect.adapter}
    recorded = {(models[each.entrant_id], each.seed, each.text) for each in responses}
    assert recorded == {
        (body["model"], body["seed"], f"I am {body['model']}.") for body in fake.traffic.asked
    }
    assert len(recorded) == len(fake.traffic.asked) == 2 * N_PROMPTS
    asked = reversed(events_in(tmp_path, RequestsSubmitted))
    told = {each.entrant: each.server for each in asked}
    assert told == {
        "base": dialect.of_base or UNSET,
        "security": dialect.of_adapter or UNSET,
    }
