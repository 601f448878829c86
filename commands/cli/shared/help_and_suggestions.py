"""Groups of commands: help by panels, suggestions for a misspelt command, options given twice."""

import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Final

import click
from typer.core import TyperGroup

WITHDRAWN_COMMANDS: Final[Mapping[str, str]] = {
    "tourney show": "use `tourney log NAME`",
    "tourney checkpoint": "`tourney verify`, `status` and `backup` print the checkpoint",
    "tourney project progress": "use `tourney status --tournament NAME`",
    "tourney project samples": "use `tourney project metrics --samples all`",
    "tourney project temperature": "use `tourney project bt --fit-temperature NAME`",
    "tourney project imported": "see `tourney status`",
    "tourney import events": "use `tourney merge FILE`",
    "tourney prices": "`tourney doctor` names the price tables and their dates",
    "tourney batch adopt": "use `tourney batch wait ID`",
}
"""Commands that earlier versions had, and what to use instead."""
_RECORDED: Final = (
    "set [{section}] {key} and record it by `tourney run` or `tourney apply judge --limit 0`, or"
    " call `{section}` of `import tourney`"
)
_RATED_OTHERWISE: Final = (
    "intervals are cluster-robust, with prompts as clusters, at 95 %; for another one call"
    " `bradley_terry` of `import tourney`"
)
_BT: Final[Mapping[str, str]] = {
    "--prior-sd": _RECORDED.format(section="bradley_terry", key="prior_sd"),
    "--adjust": "p is adjusted by max-t; --pairs --json has the covariance for another method",
    **dict.fromkeys(
        ("--level", "--interval", "--unit", "--bootstraps", "--seed"), _RATED_OTHERWISE
    ),
}
WITHDRAWN_OPTIONS: Final[Mapping[str, Mapping[str, str]]] = {
    "tourney project elo": {
        "--k-sweep": "name several values of K, first the one that rates: `--k 16,1,4,8`",
        **{
            f"--{key.replace('_', '-')}": _RECORDED.format(section="elo", key=key)
            for key in ("permutations", "initial_rating", "seed", "bootstraps")
        },
    },
    "tourney project bt": {
        **_BT,
        "--made-at": "preferences count as made at 0.3; of others made at T, multiply --temperature"
        " by 0.3 / T",
    },
    "tourney import hydra-weights": dict.fromkeys(
        ("--heads", "--heads-depth"), "leave it out: the shards tell it"
    ),
    "tourney init": dict.fromkeys(("--from-csv", "--from-answers"), "use --from FILE"),
    "tourney import battles": {"--from": "call it --layout"},
    "tourney apply judge": {"--provider": "set [judge] provider, or TOURNEY_JUDGE_PROVIDER"},
    "tourney evaluate": {
        "--revision": "write it behind the name, as org/name@v1",
        "--system": "set `system` in [[evaluations]] of a tournament",
    },
    "tourney export elo-ratings": _BT,
    "tourney project matches": {
        f"--{column}": f"use `--where {column}={value}`"
        for column, value in (("prompt", "ID"), ("entrant", "ID"), ("outcome", "tie"))
    },
    "tourney project metrics": {"--wrong": "use `--samples wrong`"},
    "tourney log": {"--type": "use `tourney log TYPE`"},
    "tourney annotate": {"--seed": "every set is drawn by the same seed, which is recorded"},
    "tourney demo": dict.fromkeys(
        ("--open", "--no-open"), "the demo opens nothing; its last line names the report"
    ),
    "tourney gate": {"--better": "use `--margin 0`"},
}
"""Options that earlier versions had, by command, and what to do instead."""

_OTHERS = "Commands"  # the heading of commands without a panel
_SLIP: Final = 0.75  # how alike two words are of which one is the other misspelt


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

    def invoke(self, ctx: click.Context) -> object:
        """Call the command that the words name.

        Raises:
            click.NoSuchOption: It has no such option; the message suggests options that are spelt
                alike, or else those whose help speaks of the word.
            click.MissingParameter: An argument is missing; the message says what it is.
        """
        try:
            return super().invoke(ctx)
        except click.MissingParameter as error:
            meant = getattr(error.param, "help", None)
            if ctx.parent or error.message or not meant:
                raise
            raise click.MissingParameter(meant, error.ctx, error.param) from None
        except click.NoSuchOption as error:
            path = error.ctx.command_path if error.ctx else ""
            if instead := WITHDRAWN_OPTIONS.get(path, {}).get(error.option_name):
                why = f"{error.option_name} was withdrawn; {instead}."
                raise click.UsageError(why, error.ctx) from None
            options = error.possibilities or ()
            near = get_close_matches(error.option_name, options, cutoff=_SLIP)
            meant = [] if ctx.parent or near else _options_about(error)
            if not meant:
                raise
            hint = f"{error.message} Did you mean {' or '.join(map(repr, meant))}?"
            raise click.NoSuchOption(error.option_name, hint, ctx=error.ctx) from None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that the first word names.

        Raises:
            click.UsageError: There is none, and the message suggests commands of that name
                elsewhere, or else the nearest names, once; or an option that takes one value was
                given twice.
        """
        name = args[0]
        if name in self.commands or name.startswith("-") or ctx.resilient_parsing:
            found, command, words = super().resolve_command(ctx, args)
            if command is not None and not ctx.resilient_parsing:
                _refuse_repeated(click.Context(command, ctx, found), words)
            return found, command, words
        if instead := WITHDRAWN_COMMANDS.get(f"{ctx.command_path} {name}"):
            raise click.UsageError(f"{name!r} was withdrawn; {instead}.", ctx)
        close = " or ".join(map(repr, self._meant(name, ctx.find_root())))
        hint = f" Did you mean {close}?" if close else ""
        raise click.UsageError(f"No such command {name!r}.{hint}", ctx)

    def _meant(self, name: str, root: click.Context) -> list[str]:
        """Return what a word may stand for, as `elo` for `tourney project elo` wherever it is."""
        paths = sorted(root.obj)
        lasts = [path.split()[-1] for path in paths]
        if name in lasts:
            return [path for path, last in zip(paths, lasts, strict=True) if last == name]
        if near := get_close_matches(name, self.commands):
            return near
        near = get_close_matches(name, lasts, n=1)
        return [path for path, last in zip(paths, lasts, strict=True) if last in near]


def _refuse_repeated(ctx: click.Context, words: list[str]) -> None:
    """Refuse two values for an option that takes one: click would take the last and say nothing.

    Raises:
        click.UsageError: An option has two, or none; then the message lists its values.
    """
    try:
        _, _, given = ctx.command.make_parser(ctx).parse_args([*words])
    except click.BadOptionUsage as error:
        named = (param for param in ctx.command.params if error.option_name in param.opts)
        values = [value for each in named for value in getattr(each.type, "choices", ())]
        hint = f" Write {' or '.join(values)}." if values else ""
        raise click.BadOptionUsage(error.option_name, error.message + hint, ctx) from None
    for param in given:
        takes_one = isinstance(param, click.Option) and not (param.multiple or param.is_flag)
        if takes_one and given.count(param) > 1:
            twice = max(param.opts, key=len)
            raise click.UsageError(f"{twice} was given twice; it takes one value.", ctx)


def _options_about(error: click.NoSuchOption) -> list[str]:
    """Return the command's options whose help has the word: `--set` is about `--name`."""
    word = re.compile(rf"\b{re.escape(error.option_name.strip('-'))}\b", re.IGNORECASE)
    params = error.ctx.command.params if error.ctx else ()
    return [
        param.opts[0]
        for param in params
        if isinstance(param, click.Option) and word.search(param.help or "")
    ]
