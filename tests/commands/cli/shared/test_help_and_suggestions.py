"""Help by panels, and what is said to a misspelt command or option."""

from collections import defaultdict
from pathlib import Path

import click
import pytest
import typer.main
from click.testing import CliRunner, Result

from commands.cli.app import COMMANDS, command_line
from commands.cli.shared.help_and_suggestions import WITHDRAWN_COMMANDS, WITHDRAWN_OPTIONS
from commands.settings.version import VERSION
from tests.docs.command_line import leaves
from tests.support.command_line.launching import launch


def said(*words: str) -> Result:
    """Run the command line as it is for these words."""
    names = [word for word in words if not word.startswith("-")]
    return CliRunner().invoke(typer.main.get_command(command_line(names)), words, "tourney")


def test_no_command_takes_the_last_of_several_values() -> None:
    """Each option of each command takes all values that it is given, or refuses the second."""
    app = typer.main.get_command(command_line())

    def is_silent(words: list[str], option: click.Option) -> bool:
        twice = [option.opts[0], *["1"] * option.nargs] * 2
        return "was given twice" not in CliRunner().invoke(app, [*words, *twice]).stderr

    takes_last = [
        (leaf.name, option.opts[0])
        for leaf in leaves()
        for option in leaf.options
        if not (option.multiple or option.is_flag) and is_silent(leaf.name.split()[1:], option)
    ]

    assert not takes_last
    assert "given twice" not in said("project", "elo", "--json", "--json").stderr


def test_commands_stand_under_the_headings_of_their_panels() -> None:
    """From running a tournament to exchanging it, each with its line unshortened."""
    lines = said("--help").stdout.splitlines()
    headings = [f"{heading}:" for heading in COMMANDS]

    assert [line for line in lines if line in headings] == headings
    assert headings == ["Run:", "Read:", "Money:", "Audit:", "Exchange:"]
    for heading, entries in COMMANDS.items():
        first = lines.index(f"{heading}:") + 1
        shown = lines[first : first + len(entries)]
        assert [line[2:12].rstrip() for line in shown] == [each.name for each in entries]
        assert all(line.endswith(".") for line in shown)


@pytest.mark.parametrize("words", [(), ("project",), ("project", "elo"), ("battle",)])
def test_help_has_a_short_spelling(words: tuple[str, ...]) -> None:
    """Of the program, of its groups, and of each command; arguments are explained there.

    A release of click that this typer does not know leaves their help out.
    """
    done = said(*words, "-h")

    assert done.exit_code == 0
    assert done.stdout == said(*words, "--help").stdout
    argument = "  [A B]      The two entrants; not needed with an ID"
    assert (argument in done.stdout) == (words == ("battle",))


@pytest.mark.parametrize(("before", "after"), [((), "run"), (("import",), "battles")])
def test_help_that_is_asked_before_a_command_lists_all(
    tmp_path: Path, before: tuple[str, ...], after: str
) -> None:
    """What follows it is not called, and would stand there alone."""
    asked = (launch(tmp_path, *before, "--help", *called) for called in ((after,), ()))

    assert len({each.stdout for each in asked}) == 1


def test_the_version_has_a_short_spelling() -> None:
    """It says the same."""
    assert said("-V").stdout == said("--version").stdout == f"tourney {VERSION}\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("stat", "No such command 'stat'. Did you mean 'status'?"),
        ("project winrate", "No such command 'winrate'. Did you mean 'winrates'?"),
        ("plan genrate", "No such command 'genrate'. Did you mean 'generate'?"),
        ("xyzzy", "No such command 'xyzzy'."),
        ("elo", "No such command 'elo'. Did you mean 'tourney project elo'?"),
        ("apply elo", "No such command 'elo'. Did you mean 'tourney project elo'?"),
        ("project status", "No such command 'status'. Did you mean 'tourney status'?"),
        ("winrate", "No such command 'winrate'. Did you mean 'tourney project winrates'?"),
        (
            "judge",
            "No such command 'judge'. Did you mean 'tourney apply judge' or 'tourney plan judge'?",
        ),
        (
            "battle",
            (
                "Missing argument 'PROMPT|ID'. A prompt, or the start of an id that"
                " `tourney project matches` lists."
            ),
        ),
        ("gate --candidat x", "No such option '--candidat'. Did you mean '--candidate'?"),
        (
            "project metrics --samples",
            "Option '--samples' requires an argument. Write all or wrong.",
        ),
        ("project metrics --limit", "Option '--limit' requires an argument."),
        (
            "replay --out x",
            "No such option '--out'. (Did you mean one of: '--format', '--output'?)",
        ),
        ("--versoin", "No such option '--versoin'. Did you mean '--version'?"),
        ("import battles b --set x", "No such option '--set'. Did you mean '--name'?"),
        ("project bt --rating 9", "No such option '--rating'. Did you mean '--anchor'?"),
        ("import battles b --xyzzy x", "No such option '--xyzzy'."),
        (
            "project elo --tournament a --tournament b",
            "--tournament was given twice; it takes one value.",
        ),
        ("project bt --ledger a -l b", "--ledger was given twice; it takes one value."),
        ("project elo --as-of=1 --k 2 --as-of 2", "--as-of was given twice; it takes one value."),
    ],
)
def test_a_slip_is_told_what_was_meant_once(words: str, message: str) -> None:
    """A misspelt word, one of another program, a missing argument, or a second value.

    Whoever comes from another program spells nothing wrong: options whose help has the word.
    """
    done = said(*words.split())

    assert done.exit_code == 2
    assert done.stderr.splitlines()[-1] == f"Error: {message}"


def test_an_option_is_spelt_in_one_way() -> None:
    """What one command calls --output no other calls --out; a short name means one long name."""
    longs: defaultdict[str, set[str]] = defaultdict(set)
    for option in (each for leaf in leaves() for each in leaf.options):
        long = next(name for name in option.opts if name.startswith("--"))
        for name in option.opts:
            longs[name].add(long)

    assert {name: found for name, found in longs.items() if len(found) > 1} == {}
    assert longs.keys() >= {"--output", "-o", "--name", "--tournament"}
    assert longs.keys().isdisjoint({"--resamples", "--out", "--set", "--stream"})


OLD_WORDS = [
    *WITHDRAWN_COMMANDS.items(),
    *(
        (f"{path} {option} x", instead)
        for path, options in WITHDRAWN_OPTIONS.items()
        for option, instead in options.items()
    ),
]


@pytest.mark.parametrize(("words", "instead"), OLD_WORDS, ids=[words for words, _ in OLD_WORDS])
def test_an_old_word_says_what_to_do_instead(words: str, instead: str) -> None:
    """It stands in somebody's script; a near word would be another one."""
    ending = said(*words.split()[1:])

    assert ending.exit_code == 2
    assert f"was withdrawn; {instead}" in " ".join(ending.stderr.split())
