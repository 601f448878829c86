"""Compare task files with EleutherAI's lm-evaluation-harness, token by token.

`python -m tests.benchmarks.texts.task_files PYTHON`, where PYTHON is of an environment with
lm-eval, which is none of the project's.
"""

import subprocess
from argparse import ArgumentParser
from collections.abc import Iterable, Mapping
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests.benchmarks.bench import ROOT, say
from tests.benchmarks.table import Row, machine, section
from tests.benchmarks.texts.task_files.data import N_DOCUMENTS, TASKS, write_tasks
from tests.benchmarks.texts.task_files.equality import number_rows
from tests.benchmarks.texts.task_files.speed import speed_rows
from tests.benchmarks.texts.task_files.weights import LARGER, TINY

_TABLE: Final = ROOT / "data" / "benchmarks-task-files.md"
_INTRODUCTION: Final = f"""\
# Task files, against lm-evaluation-harness

Made by `python -m tests.benchmarks.texts.task_files PYTHON`; PYTHON is that of an environment with
lm-eval. Both evaluate tiny random weights of four families in float32 on {len(TASKS)} of its own
task files and a group, each at its defaults, on data made here: as plain text, and all that ask
questions as two kinds of chat. Compared are the tokens that the weights read, and what follows. A
number is the largest difference, of log-likelihoods and perplexities relative to them.
"""
_HEADING: Final = "\n## Speed\n"
_SPEED: Final = f"""
Seconds of the processor for a whole evaluation of {N_DOCUMENTS} documents on one thread, each at
its default batch size, with all that is computed and recorded but not the reading of the task file
and its data. Medians over rounds in which both were measured in turn.
"""


def main() -> None:
    """Run the comparison, or one half of it, and write its table."""
    parser = ArgumentParser(prog="python -m tests.benchmarks.texts.task_files")
    parser.add_argument("python", help="of an environment with lm-eval")
    parser.add_argument("--rounds", type=int, default=3, help="of what is timed, in turn")
    parser.add_argument("--only", choices=("numbers", "speed"), help="and leave the rest as it was")
    options = parser.parse_args()
    with TemporaryDirectory() as name:
        folder = Path(name)
        write_tasks(folder, _installed_tasks(options.python))
        facts = {**machine(ROOT), **_versions(options.python)}
        before, heading, after = _TABLE.read_text(encoding="utf-8").partition(_HEADING)
        if options.only != "speed":
            before = _INTRODUCTION + _section(facts, number_rows(options.python, folder))
        if options.only != "numbers":
            facts["rounds"] = str(options.rounds)
            speeds = (speed_rows(options.python, folder, n, options.rounds) for n in (TINY, LARGER))
            heading, after = _HEADING, _SPEED + _section(facts, chain.from_iterable(speeds))
    _TABLE.write_text(before + heading + after, encoding="utf-8")


def _section(facts: Mapping[str, str], rows: Iterable[Row]) -> str:
    measured = [*rows]
    for row in measured:
        say(" | ".join(row))
    return section(facts, measured)


def _versions(python: str) -> dict[str, str]:
    names = ["lm-eval", "torch", "transformers"]
    code = f"import importlib.metadata as m; print(*map(m.version, {names}))"
    found = subprocess.check_output([python, "-c", code], text=True).split()
    return dict(zip(names, found, strict=True))


def _installed_tasks(python: str) -> Path:
    code = "import lm_eval, pathlib; print(pathlib.Path(lm_eval.__file__).parent / 'tasks')"
    return Path(subprocess.check_output([python, "-c", code], text=True).strip())


if __name__ == "__main__":
    main()
