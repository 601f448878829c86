"""`tourney init`: the files of a new tournament, from options, questions or an example."""

import shlex
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import typer

from commands.cli.plan import plan_generation
from commands.cli.shared import options
from commands.cli.shared.output import say
from commands.cli.shared.selection import Selection
from commands.errors import ConfigurationError, counted
from commands.importing.answer_tables import AnswersTable, PromptTable, read_table
from commands.importing.labelled_pairs import VOTES_FILE
from commands.settings.starting import (
    FIRST_PROMPTS,
    SETTINGS,
    Example,
    NewTournament,
    files_of,
    files_of_example,
    lay_out,
)

_FIELDS: Final = {"text": "the prompts", "gold_answer": "gold answers", "prompt_id": "ids"}
_SPELLING: Final = (
    "MAKER/MODEL as openai/gpt-5.6-luna, MODEL@URL for a server, or a folder of weights"
)


class Wanted(NamedTuple):
    """What a new tournament is made of, as its user says it; None: nothing was said."""

    source: Path | None = None  # of answers, or of prompts
    entrants: tuple[str, ...] = ()
    judge: str | None = None


def init(
    folder: Annotated[
        Path, typer.Argument(metavar="[DIR]", help="The folder to write the files to.")
    ] = Path(),
    source: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="What you have: answers, as a table with a column for each system, another tool's"
            " file or a folder; pairs of answers that people labelled, to check the judge; or a"
            " table of prompts.",
        ),
    ] = None,
    entrant: Annotated[
        list[str] | None,
        typer.Option(metavar="MODEL", help=f"An entrant: {_SPELLING}. Repeatable."),
    ] = None,
    judge: Annotated[
        str | None,
        typer.Option(metavar="MODEL", help=f"The judge: {_SPELLING}, or a model of Anthropic."),
    ] = None,
    example: Annotated[
        Example | None,
        typer.Option(
            help="Start from a tournament that is ready: answers of two systems, two models by"
            " name, or two prompts for one model."
        ),
    ] = None,
) -> None:
    """Write the files of a new tournament.

    These are settings, prompts, a rubric, the judge's instructions and a schema for editors. Other
    files are kept. On a terminal, without options, it asks what to compare.

    Example: tourney init mine --from prompts.csv --judge claude-sonnet-5-5
    """
    wanted = Wanted(source, tuple(entrant or ()), judge)
    if example is not None:
        names = _write_example(folder, example, wanted)
    else:
        is_asked = wanted == Wanted() and sys.stdin is not None and sys.stdin.isatty()
        names = _write_new(folder, _asked() if is_asked else wanted)
    _say_what_is_next(folder, is_labelled=VOTES_FILE in names)


def _write_example(folder: Path, example: Example, wanted: Wanted) -> tuple[str, ...]:
    if wanted != Wanted():
        raise ConfigurationError([f"--example {example} has its own prompts, entrants and judge"])
    return _written(folder, files_of_example(example))


def _written(folder: Path, files: Mapping[str, str]) -> tuple[str, ...]:
    names = lay_out(folder, files)
    say(f"written to {folder}: {', '.join(names)}")
    return names


def _asked() -> Wanted:
    """Ask what to compare; an empty answer takes what stands there without."""
    say("What do you compare? Press Enter where you have nothing yet.")
    named = _asked_for("A file of answers or of prompts (CSV, JSON, JSON lines, Parquet)")
    source = None if named is None else Path(named).expanduser()
    has_answers = source is not None and isinstance(read_table(source, 0), AnswersTable)
    entrants = () if has_answers else tuple(_asked_entrants())
    judge = _asked_for("The judge, as anthropic/claude-opus-5-5")
    return Wanted(source, entrants, judge)


def _asked_entrants() -> Iterator[str]:
    question = f"A model that competes: {_SPELLING}"
    while model := _asked_for(question):
        yield model
        question = "Another model that competes"


def _asked_for(question: str) -> str | None:
    answer: str = typer.prompt(question, default="", show_default=False, err=True)
    return answer.strip() or None


def _write_new(folder: Path, wanted: Wanted) -> tuple[str, ...]:
    new = _new_tournament(folder, wanted)
    names = _written(folder, files_of(folder, new))
    n_gold = sum("gold_answer" in prompt for prompt in new.prompts)
    if 0 < n_gold < len(new.prompts):
        say(
            f"Only {n_gold} of {len(new.prompts)} prompts have a gold answer, so the rubric does"
            " not use them. Add the others, or set needs_gold = true in the rubric to judge those"
            f" {n_gold} only."
        )
    if not new.entrants and not new.recorded:
        say(f"the entrants are examples: put your models into {folder / SETTINGS}")
    if new.entrants or not new.recorded:
        plan_generation(Selection(config=folder / SETTINGS))
    return names


def _new_tournament(folder: Path, wanted: Wanted) -> NewTournament:
    """Return what the files are made of; say what was found where it begins with a file."""
    if wanted.source is None:
        return NewTournament(FIRST_PROMPTS, wanted.entrants, wanted.judge)
    found = read_table(options.or_standard_input(wanted.source), len(wanted.entrants))
    if isinstance(found, PromptTable):
        _tell_of_prompts(wanted, found)
        return NewTournament(found.prompts, wanted.entrants, wanted.judge)
    _tell_of_answers(folder, found)
    files = {} if found.labelled is None else found.labelled.files()
    return NewTournament(found.prompts, wanted.entrants, wanted.judge, found.entrants, files)


def _tell_of_prompts(wanted: Wanted, table: PromptTable) -> None:
    """Say that a table was taken for prompts alone, and how its answers would be compared."""
    unused = f"; unused columns: {', '.join(table.unused)}" if table.unused else ""
    say(f"{wanted.source}: {counted(len(table.prompts), 'prompt')}, no answers{unused}")
    if len(table.unused) > 1 and len(wanted.entrants) > 1:
        say("to compare the answers in these columns, leave out --entrant")


def _tell_of_answers(folder: Path, answers: AnswersTable) -> None:
    """Say how answers were understood."""
    for field, column in answers.columns.items():
        say(f"{column!r} is the column of {_FIELDS.get(field, field)}")
    for fault in answers.unread:
        say(f"no answers: {fault}")
    if answers.labelled is None:
        entrants = answers.entrants
        say(f"answers of {counted(len(entrants), 'entrant')}: {', '.join(entrants)}")
        if any("column" in keys for keys in entrants.values()):
            settings = folder / SETTINGS
            say(f"if one of these columns holds no answers, remove its table from {settings}")
        if answers.n_empty:
            empty = counted(answers.n_empty, "empty cell counts", "empty cells count")
            say(
                f"{empty} as an answer without a text, which is judged. Where a system gave no"
                " answer, put its answers into a file of its own, without that row."
            )
        return
    pairs = answers.labelled
    n_pairs, n_votes = counted(len(pairs.pairs), "pair"), counted(len(pairs.votes), "vote")
    won = Counter(winner for _, _, winner in pairs.votes)
    read = f"{won['model_a']} for a, {won['model_b']} for b, {won['tie']} for a tie"
    say(f"{n_pairs} of answers with {n_votes}: {read}; a and b are the sides of the table")
    for n_rows, why in (
        (pairs.n_without, "without a prompt, two answers or a label that is understood"),
        (pairs.n_unlike, "with an earlier prompt and other answers"),
    ):
        if n_rows:
            say(f"left out: {counted(n_rows, 'row')} {why}")


def _say_what_is_next(folder: Path, *, is_labelled: bool) -> None:
    steps = {
        "doctor": "check servers, models and keys",
        "plan judge": "show what the judge will be asked, and what it costs",
        "run": "generate, judge and rate",
        "view": "show ratings and battles in the browser, at no cost",
    }
    if is_labelled:
        steps |= {
            f"import battles {VOTES_FILE} --name people": "record the votes",
            "project agreement --truth people": "say how good the judge is",
        }
        del steps["view"]
    say("Next:")
    if folder != Path():
        say(f"  cd {shlex.quote(str(folder))}")
    width = max(map(len, steps))
    for command, what in steps.items():
        say(f"  tourney {command.ljust(width)}  {what}")
