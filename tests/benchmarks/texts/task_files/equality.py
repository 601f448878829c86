"""What task files give here and in lm-evaluation-harness: prompts, log-likelihoods, answers."""

import json
import os
import subprocess
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from commands.settings.sections import EvaluationOptions
from tests.benchmarks.bench import say
from tests.benchmarks.table import Row, at_most, stated
from tests.benchmarks.texts.task_files.data import GROUP, MEMBERS, TASKS, write_rows
from tests.benchmarks.texts.task_files.ours import (
    Ids,
    NotingInference,
    TaskResults,
    evaluated,
    noting,
    planned_files,
)
from tests.benchmarks.texts.task_files.weights import made_weights

_THEIRS: Final = Path(__file__).with_name("theirs.py")
_GENERATED: Final = {"gsm8k": "answer", "nq_open": "answer", "logieval": "ideal"}
_SYSTEM: Final = "You are asked by a clinic."


class WayToAsk(NamedTuple):
    """A way to ask, by our options and by theirs."""

    name: str
    options: EvaluationOptions
    settings: Mapping[str, Any]
    left_out: Sequence[str] = ("pile_10k",)  # a chat needs questions


_WAYS: Final = (
    WayToAsk("", EvaluationOptions(), {}, ()),
    WayToAsk(
        ", chat with turns and a system prompt",
        EvaluationOptions(chat="turns", system=_SYSTEM),
        {"apply_chat_template": True, "system_instruction": _SYSTEM},
    ),
    WayToAsk(
        ", chat of one turn",
        EvaluationOptions(chat="one-turn"),
        {"apply_chat_template": True, "fewshot_as_multiturn": False},
    ),
)


def number_rows(python: str, folder: Path) -> Iterator[Row]:
    """Yield how far the results of each family of weights are apart, asked in each way."""
    for family, weights in made_weights(folder):
        _let_some_be_right(folder, weights)
        for way in _WAYS:
            tasks = [each for each in (*TASKS, GROUP) if each not in {*MEMBERS, *way.left_out}]
            files = [folder / f"{task}.yaml" for task in tasks]
            noted = noting(weights)
            planned = planned_files(noted.inference, files, way.options)
            ours = evaluated(planned, weights / f"{way.name}.db")
            theirs = _theirs(python, weights, folder, way.settings, tasks)
            yield from _compared(f"{family}{way.name}", noted, ours, theirs)


def _let_some_be_right(folder: Path, weights: Path) -> None:
    """Make what these weights generate the expected answer of every second document."""
    files = [folder / f"{task}.yaml" for task in _GENERATED]
    found = evaluated(planned_files(noting(weights).inference, files), weights / "first.db")
    for task, key in _GENERATED.items():
        file = folder / f"{task}-asked.jsonl"
        answers = next(each.answers for name, each in found.items() if name.startswith(task))
        documents = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        for n, document in enumerate(documents):
            _, kept = answers[n]
            if n % 2 and kept:
                document[key] = kept
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
    family: str, noted: NotingInference, ours: Mapping[str, TaskResults], theirs: Mapping[str, Any]
) -> Iterator[Row]:
    """Yield how many tokens and answers are unequal, and the largest difference of each number."""
    texts = {(tuple(ids), n_context): value for ids, n_context, value in theirs["texts"]}
    yield _unequal(f"{family}: tokens of {len(texts)} texts", noted.texts.keys() ^ texts.keys())
    worst = max(
        abs(value - texts[key]) / max(1.0, abs(value))
        for key, value in noted.texts.items()
        if key in texts
    )
    what = f"{family}: log-likelihoods of {len(texts)} texts"
    yield stated(what, f"{worst:.1e}", worst, at_most(1e-4))
    prompts: set[Ids] = {*map(tuple, theirs["prompts"])}
    yield _unequal(f"{family}: tokens of {len(prompts)} prompts", noted.prompts ^ prompts)
    pairs = [*_answers(ours, theirs["answers"])]
    unequal = [each for each in pairs if each[0] != each[1]]
    yield _unequal(f"{family}: {len(pairs)} answers", unequal)
    yield from _metric_rows(family, ours, theirs)


def _unequal(what: str, unequal: Collection[object]) -> Row:
    return stated(f"{what}, unequal", str(len(unequal)), len(unequal), at_most(0))


def _metric_rows(
    family: str, ours: Mapping[str, TaskResults], theirs: Mapping[str, Any]
) -> Iterator[Row]:
    differences: defaultdict[str, list[float]] = defaultdict(list)
    for task, metric, filter_name in _metrics(theirs):
        own = ours.get(task) or ours[f"{GROUP}.{task}"]
        key = f"{metric},{filter_name}"
        value = theirs["results"][task][key]
        mine = own.metrics[metric if filter_name == "none" else key]
        assert mine is not None
        scale = abs(value) if "perplexity" in metric else 1.0
        differences[metric].append(abs(mine - value) / scale)
        say(f"{family} | {task} | {metric},{filter_name} | {mine:.7g} | {value:.7g}")
    for metric, every in differences.items():
        worst = max(every)
        yield stated(f"{family}: {metric} of {len(every)}", f"{worst:.1e}", worst, at_most(1e-4))


def _metrics(theirs: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield each task's metrics with their filters."""
    for task, results in theirs["results"].items():
        for key, value in results.items():
            metric, _, filter_name = key.partition(",")
            if not filter_name or metric.endswith("_stderr") or not isinstance(value, float | int):
                continue
            yield task, metric, filter_name


def _answers(
    ours: Mapping[str, TaskResults], theirs: Mapping[str, Sequence[Any]]
) -> Iterator[tuple[str, str]]:
    for task, samples in theirs.items():
        for number, _, whole, _ in samples:
            yield ours[task].answers[number][0], whole
