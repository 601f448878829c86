"""Groups of commands: their help by panels, and suggestions for a misspelt command."""

from difflib import get_close_matches

import click
from typer.core import TyperGroup

_OTHERS = "Commands"  # the heading of commands without a panel


class PanelGroup(TyperGroup):
    """A group whose help lists commands under the headings of their panels, in plain text."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write each panel with its commands; their names share one column."""
        width = max(map(len, self.commands), default=0)
        panels: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            command = self.commands[name]
            panel = getattr(command, "rich_help_panel", None) or _OTHERS
            line = command.get_short_help_str(formatter.width - width - 6)
            panels.setdefault(panel, []).append((name.ljust(width), line))
        for panel, rows in panels.items():
            with formatter.section(panel):
                formatter.write_dl(rows)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that the first word names.

        Raises:
            click.UsageError: There is none; the message suggests the nearest names, once.
        """
        name = args[0]
        if name in self.commands or name.startswith("-") or ctx.resilient_parsing:
            return super().resolve_command(ctx, args)
        close = " or ".join(map(repr, get_close_matches(name, self.commands)))
        hint = f" Did you mean {close}?" if close else ""
        raise click.UsageError(f"No such command {name!r}.{hint}", ctx)
