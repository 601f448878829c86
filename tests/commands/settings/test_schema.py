"""The schema for editors takes what the reader of settings takes, and marks a misspelt key."""

import json
import tomllib
from pathlib import Path
from typing import Any, Final

import pytest
from jsonschema import Draft202012Validator

from commands.settings.inputs import shipped_data
from commands.settings.reader import read_settings
from commands.settings.schema import SCHEMA_LINE, schema_of_settings
from commands.settings.starting import NewTournament, files_of
from tests.docs import own

SCHEMA: Final = json.loads(schema_of_settings())
SHIPPED: Final = sorted(shipped_data().rglob("*.toml"))
VALID: Final = Draft202012Validator(SCHEMA)
EXAMPLE: Final = shipped_data() / "examples" / "prompts" / "tournament.toml"


def table(text: str) -> dict[str, Any]:
    """Return settings as an editor sees them."""
    return tomllib.loads(text)


def test_it_is_a_schema() -> None:
    """An editor refuses another without a word."""
    Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize(
    "file",
    [file for file in SHIPPED if file.name != "prices.toml"],
    ids=lambda file: file.parent.name,
)
def test_every_tournament_that_ships_is_valid(file: Path) -> None:
    """The demos, the examples, and the one of large weights."""
    VALID.validate(table(file.read_text("utf-8")))


def test_new_tournaments_and_that_of_the_tutorial_are_valid(tmp_path: Path) -> None:
    """With models by name, behind a server, and judged by Anthropic's."""
    models = ("openai/gpt-5.6-luna", "small@http://localhost:8000/v1")
    new = files_of(tmp_path, NewTournament(entrants=models, judge="claude-sonnet-5-5"))

    VALID.validate(table(new["tournament.toml"]))
    VALID.validate(table(own.files()["tournament.toml"]))
    assert new["tournament.toml"].startswith(SCHEMA_LINE)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("max_usd", "max_dollars"),
        ("dimension", "dimensions"),
        ("[judge]", "[judges]"),
        ("system", "sytem"),
        ("10.0", '"ten"'),
        ('model = "openai/gpt-5.6-luna"', ""),
    ],
)
def test_a_mistake_is_marked(before: str, after: str, tmp_path: Path) -> None:
    """By the schema, as by the reader."""
    wrong = EXAMPLE.read_text("utf-8").replace(before, after)
    (tmp_path / "tournament.toml").write_text(wrong, encoding="utf-8")

    assert not VALID.is_valid(table(wrong))
    with pytest.raises(Exception, match=r"tournament\.toml"):
        read_settings(tmp_path / "tournament.toml", {})
