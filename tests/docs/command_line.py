"""The site's page on the command line: every command and option, from the parser itself."""

from collections import Counter
from collections.abc import Collection, Iterator
from enum import Enum
from typing import Final, NamedTuple

import click
import typer.main

from commands.cli.app import command_line

_HEAD: Final = """\
# Command line

This page is made by `make docs` from the parser, so it says what `--help` says.

- Results go to standard output; progress and questions go to standard error.
- Tables round. `--json` gives full precision, and null for what is not known.
- A command of `project` only reads the ledger: it calls no model, costs nothing, writes nothing.

## Exit codes

| code | meaning |
|---|---|
| 0 | done, or nothing to do |
| 1 | failure |
| 2 | wrong usage or configuration |
| 3 | `gate`: the candidate is worse |
| 4 | no credentials |
| 5 | consent or budget refused |
| 6 | done, with gaps or contradictions; `gate`: not enough evidence |
| 7 | work still in flight: `--no-wait`, or a batch that another command must receive |
| 8 | an audit found a difference |
| 9 | something remains to be done (`plan --exit-code`) |
| 130 | interrupted |
"""
_OTHERS: Final = "Commands"  # of no group
_SHARED_BY: Final = 9  # commands: an option of so many is told once

Shown = tuple[str, str, str]  # how an option is written, its default, its help


class Leaf(NamedTuple):
    """A command that does something, as `tourney project elo`."""

    name: str
    group: str  # the heading that --help lists it under
    command: click.Command

    @property
    def options(self) -> list[click.Option]:
        """Its options, as declared."""
        return [each for each in self.command.params if isinstance(each, click.Option)]


def leaves() -> list[Leaf]:
    """List every command of the program, in the order of its help."""
    return list(_below(typer.main.get_command(command_line()), "tourney", _OTHERS))


def _below(command: click.Command, name: str, group: str) -> Iterator[Leaf]:
    if not isinstance(command, click.Group):
        yield Leaf(name, group, command)
        return
    for word, each in command.commands.items():
        yield from _below(each, f"{name} {word}", getattr(each, "rich_help_panel", None) or group)


def command_line_page() -> str:
    """Write the page."""
    found = leaves()
    uses = Counter(_shown(option) for leaf in found for option in leaf.options)
    shared = [option for option, n in uses.items() if n >= _SHARED_BY]
    common = f"## Common options\n\n{_table(shared)}"
    groups: dict[str, list[str]] = {}
    for leaf in found:
        groups.setdefault(leaf.group, []).append(_entry(leaf, shared))
    sections = (f"## {group}\n\n" + "\n".join(entries) for group, entries in groups.items())
    return "\n".join((_HEAD, common, *sections))


def _entry(leaf: Leaf, shared: Collection[Shown]) -> str:
    """Write a command: what it does, how it is called, and what it alone has."""
    context = click.Context(leaf.command, info_name=leaf.name)
    usage = " ".join(leaf.command.collect_usage_pieces(context))
    shown = [_shown(option) for option in leaf.options]
    own = [each for each in shown if each not in shared]
    also = [each[0].split(" ")[0].rstrip(",`") + "`" for each in shown if each in shared]
    parts = (
        f"### {leaf.name}\n",
        f"{_sentences(leaf.command)}\n",
        f"```text\n{leaf.name} {usage}\n```\n",
        *_arguments(leaf.command),
        *([_table(own)] if own else []),
        *([f"Also: {', '.join(also)}.\n"] if also else []),
    )
    return "\n".join(parts)


def _sentences(command: click.Command) -> str:
    """Return the help, the example at its end set as code."""
    told, _, example = " ".join((command.help or "").split()).partition("Example: ")
    return f"{told}Example: `{example}`."


def _arguments(command: click.Command) -> list[str]:
    named = [each for each in command.params if isinstance(each, click.Argument)]
    lines = [f"- `{each.human_readable_name}`: {getattr(each, 'help', '')}" for each in named]
    return ["\n".join(lines) + "\n"] if lines else []


def _table(options: Collection[Shown]) -> str:
    rows = (f"| {' | '.join(option)} |" for option in options)
    return "\n".join(("| option | default | meaning |", "|---|---|---|", *rows)) + "\n"


def _shown(option: click.Option) -> Shown:
    names = ", ".join(option.opts)
    value = "" if option.is_flag else f" {option.make_metavar(click.Context(click.Command('')))}"
    return (f"`{names}{value}`".replace("|", "\\|"), _default(option), option.help or "")


def _default(option: click.Option) -> str:
    value = option.default.value if isinstance(option.default, Enum) else option.default
    return "" if value in {None, "", False} else f"`{value}`"
