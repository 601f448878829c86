"""Compare task files with EleutherAI's lm-evaluation-harness, metric by metric.

`python -m tests.benchmarks.texts.task_files PYTHON`, where PYTHON is of an environment with
lm-eval, which is none of the project's.
"""

import json
import os
import subprocess
from argparse import ArgumentParser
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

from commands.settings.sections import EvaluationOptions
from tests.benchmarks.bench import say
from tests.benchmarks.table import Row, at_most, machine, section, stated
from tests.benchmarks.texts.harness.items import ROOT
from tests.benchmarks.texts.task_files.data import (
    GROUP,
    MEMBERS,
    N_DOCUMENTS,
    TASKS,
    write_rows,
    write_tasks,
)
from tests.benchmarks.texts.task_files.ours import TaskResults, evaluate
from tests.benchmarks.texts.task_files.speed import speed_rows
from tests.benchmarks.texts.task_files.weights import LARGER, TINY, made_weights

_TABLE: Final = ROOT / "data" / "benchmarks-task-files.md"
_THEIRS: Final = Path(__file__).with_name("theirs.py")
_GENERATED: Final = {"gsm8k": "answer", "nq_open": "answer", "logieval": "ideal"}
_SYSTEM: Final = "You are asked by a clinic."


class _Way(NamedTuple):
    """A way to ask, by our options and by theirs."""

    name: str
    options: EvaluationOptions
    settings: Mapping[str, Any]
    left_out: Sequence[str] = ("pile_10k",)  # a chat needs questions


_WAYS: Final = (
    _Way("", EvaluationOptions(), {}, ()),
    _Way(
        ", chat with turns and a system prompt",
        EvaluationOptions(chat="turns", system=_SYSTEM),
        {"apply_chat_template": True, "system_instruction": _SYSTEM},
    ),
    _Way(
        ", chat of one turn",
        EvaluationOptions(chat="one-turn"),
        {"apply_chat_template": True, "fewshot_as_multiturn": False},
    ),
)
_INTRODUCTION: Final = f"""\
# Task files, against lm-evaluation-harness

Made by `python -m tests.benchmarks.texts.task_files PYTHON`; PYTHON is that of an environment with
lm-eval. Both evaluate tiny random weights of four families in float32 on {len(TASKS)} of its own
task files and a group, each at its defaults, on data made here, and again with a chat template.
A number is the largest difference over a family's task files; a perplexity's is relative to it.
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
            before = _INTRODUCTION + _section(facts, _numbers(options.python, folder))
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


def _numbers(python: str, folder: Path) -> Iterator[Row]:
    """Yield how far the metrics of each family of weights are apart, asked in each way."""
    for family, weights in made_weights(folder):
        _let_some_be_right(folder, weights)
        for way in _WAYS:
            tasks = [each for each in (*TASKS, GROUP) if each not in {*MEMBERS, *way.left_out}]
            files = [folder / f"{task}.yaml" for task in tasks]
            ours = evaluate(weights, files, weights / f"{way.name}.db", way.options)
            theirs = _theirs(python, weights, folder, way.settings, tasks)
            yield from _compared(f"{family}{way.name}", ours, theirs)


def _versions(python: str) -> dict[str, str]:
    names = ["lm-eval", "torch", "transformers"]
    code = f"import importlib.metadata as m; print(*map(m.version, {names}))"
    found = subprocess.check_output([python, "-c", code], text=True).split()
    return dict(zip(names, found, strict=True))


def _installed_tasks(python: str) -> Path:
    code = "import lm_eval, pathlib; print(pathlib.Path(lm_eval.__file__).parent / 'tasks')"
    return Path(subprocess.check_output([python, "-c", code], text=True).strip())


def _let_some_be_right(folder: Path, weights: Path) -> None:
    """Make what these weights generate the expected answer of every second document."""
    files = [folder / f"{task}.yaml" for task in _GENERATED]
    found = evaluate(weights, files, weights / "first.db")
    for task, key in _GENERATED.items():
        file = folder / f"{task}-asked.jsonl"
        answers = next(each.answers for name, each in found.items() if name.startswith(task))
        documents = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        for n, document in enumerate(documents):
            if n % 2 and answers[n]:
                document[key] = answers[n]
        write_rows(file, documents)


def _theirs(
    python: str, weights: Path, folder: Path, settings: Mapping[str, Any], tasks: Sequence[str]
) -> Mapping[str, Any]:
    environment = {**os.environ, "HF_HOME": str(folder / "cache"), "HF_HUB_OFFLINE": "1"}
    environment.pop("PYTHONPATH", None)
    told = subprocess.check_output(
        [python, str(_THEIRS), str(weights), str(folder), json.dumps(settings), *tasks],
        text=True,
        env=environment,
    )
    return dict(json.loads(told))


def _compared(
    family: str, ours: Mapping[str, TaskResults], theirs: Mapping[str, Any]
) -> Iterator[Row]:
    """Yield the largest difference of each metric, and the share of answers that are equal."""
    differences: defaultdict[str, list[float]] = defaultdict(list)
    for task, metric, name, filter_name in _metrics(theirs):
        own = ours.get(f"{task}.{filter_name}") or ours.get(task) or ours[f"{GROUP}.{task}"]
        value = theirs["results"][task][f"{metric},{filter_name}"]
        mine = own.metrics[name]
        assert mine is not None
        scale = abs(value) if "perplexity" in metric else 1.0
        differences[metric].append(abs(mine - value) / scale)
        say(f"{family} | {task} | {metric},{filter_name} | {mine:.7g} | {value:.7g}")
    for metric, every in differences.items():
        worst = max(every)
        yield stated(f"{family}: {metric} of {len(every)}", f"{worst:.1e}", worst, at_most(1e-4))
    pairs = [*_answers(ours, theirs["answers"])]
    n_unequal = sum(mine != value for mine, value in pairs)
    yield stated(
        f"{family}: {len(pairs)} filtered answers, unequal", str(n_unequal), n_unequal, at_most(0)
    )


def _metrics(theirs: Mapping[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    """Yield each task's metrics with their names here and their filters."""
    for task, results in theirs["results"].items():
        for key, value in results.items():
            metric, _, filter_name = key.partition(",")
            if not filter_name or metric.endswith("_stderr") or not isinstance(value, float | int):
                continue
            is_generated = task in _GENERATED
            yield task, metric, "score" if is_generated else metric, filter_name


def _answers(
    ours: Mapping[str, TaskResults], theirs: Mapping[str, Sequence[Any]]
) -> Iterator[tuple[str, str]]:
    for task, samples in theirs.items():
        for number, filter_name, (answer,) in samples:
            own = ours.get(f"{task}.{filter_name}") or ours[task]
            yield own.answers[number], answer


if __name__ == "__main__":
    main()
