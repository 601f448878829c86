"""What the pages say is so: commands, options, settings, links and figures."""

import re
import shlex
import tomllib
from functools import cache
from pathlib import Path

import click
import pytest
import typer.main
from pydantic import TypeAdapter

from commands.cli.app import command_line
from commands.settings.schema import Settings
from commands.spending.price_table import price_table
from ledger.events.registry import EVENTS
from tests.docs.pages import DOCS, PAGES, README, ROOT, Block, blocks, named_commands
from tests.docs.renew import COMMITTED, ON_THE_SITE

_LINK = re.compile(r"\]\(([^)#]+)(?:#[^)]*)?\)")
_PATH = re.compile(r"`((?:ledger|projections|commands|rubrics|data|docs|tests)/[\w./-]*)`")
_FIGURE = re.compile(r"\*\*([\d.,]+[^*]*)\*\*")
IN_TOML = [block for block in blocks(*PAGES) if block.language == "toml"]
TABLES = [block for block in IN_TOML if block.mark != "prices"]


@pytest.mark.parametrize("page", COMMITTED, ids=lambda page: page.name)
def test_a_generated_page_is_as_it_would_be_generated_now(page: Path) -> None:
    """An option or a key that is on no page is not found; `make docs` writes them."""
    assert page.read_text(encoding="utf-8") == COMMITTED[page]()


def test_the_readme_names_every_command_and_can_be_read_in_five_minutes() -> None:
    """A command that it does not name is not found by a newcomer."""
    text = README.read_text(encoding="utf-8")
    (table,) = re.findall(r"## Commands\n(.*?)\n\n`", text, re.DOTALL)

    assert len(text.splitlines()) <= 150
    assert len(text.split()) <= 1000
    named = {word for code in re.findall(r"`([^`]+)`", table) for word in code.split()}

    program = whole()
    assert isinstance(program, click.Group)
    assert named == {"tourney", *program.commands}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_names_only_what_exists(page: Path) -> None:
    """Commands, options, links and files: what was renamed or moved is looked for in vain."""
    text = page.read_text(encoding="utf-8")

    links = [link for link in _LINK.findall(text) if ":" not in link]
    lines = [line for line in named_commands(page) if line.startswith("tourney")]
    assert not [line for line in lines if strange(line)]
    assert not [link for link in links if not (page.parent / link).is_file()]
    assert not [path for path in _PATH.findall(text) if not (ROOT / path).exists()]


def test_what_shows_a_cost_is_named_whole() -> None:
    """`tourney plan` alone prints how it is used; what shows a cost is `tourney plan judge`."""
    sources = (*PAGES, *(ROOT / "commands").glob("**/*.py"))

    wrong = [
        path
        for path in sources
        for line in path.read_text(encoding="utf-8").splitlines()
        if "`tourney plan`" in line and not line.startswith('"""')
    ]

    assert not wrong


@pytest.mark.parametrize("block", TABLES, ids=lambda block: block.text.partition("\n")[0])
def test_tables_on_a_page_are_settings(block: Block) -> None:
    """An example that is refused costs its reader the first hour."""
    tables = tomllib.loads(block.text)

    for name, value in tables.items():
        kind = Settings.model_fields[name].annotation
        assert kind is not None
        TypeAdapter(kind).validate_python(value)

    assert tables


def test_the_price_table_on_a_page_is_read(tmp_path: Path) -> None:
    """Who copies it has prices for a model of their own."""
    (block,) = [block for block in IN_TOML if block.mark == "prices"]
    (tmp_path / "prices.toml").write_text(block.text, encoding="utf-8")

    priced = price_table(tmp_path / "prices.toml").of("judge-70b")

    assert priced is not None
    assert (priced.row.input, priced.row.output) == (0.60, 1.80)


def test_the_figures_of_the_claims_were_measured() -> None:
    """A number that nobody measured is an advertisement."""
    measured = "".join(
        path.read_text(encoding="utf-8") for path in (ROOT / "data").glob("benchmarks*.md")
    )
    (claims,) = re.findall(r"## What it claims\n(.*?)\n## ", README.read_text("utf-8"), re.DOTALL)

    figures = _FIGURE.findall(claims)

    assert len(figures) >= 3
    assert not [figure for figure in figures if f" {figure} " not in measured]


def test_the_reference_says_of_every_event_what_happened() -> None:
    """Whoever reads a ledger finds there what an event says."""
    page = ON_THE_SITE[DOCS / "sql.md"]()

    assert not [name for name in EVENTS.types if not re.search(rf"\| {name} \| .+\. \|", page)]


def strange(line: str) -> list[str]:
    """Return the words of a command line that the program does not know."""
    command = whole()
    unknown = []
    for word in shlex.split(line)[1:]:
        if isinstance(command, click.Group) and not word.startswith("-"):
            if word not in command.commands:
                return [word]
            command = command.commands[word]
        elif word.startswith("-") and word.partition("=")[0] not in options_of(command):
            unknown.append(word)
    return unknown


@cache
def whole() -> click.Command:
    """Return the command line with every command imported."""
    return typer.main.get_command(command_line())


def options_of(command: click.Command) -> set[str]:
    """Return how the options of a command are written, and those of all commands."""
    return {"--help", "--version", *(name for each in command.params for name in each.opts)}


def test_strange_words_are_noticed() -> None:
    """A check that accepts everything would pass for ever."""
    assert strange("tourney project elo --k=32 --json") == []
    assert strange("tourney project elos") == ["elos"]
    assert strange("tourney project elo --kk 32") == ["--kk"]
