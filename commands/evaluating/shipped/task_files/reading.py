"""Read a task file, or a group of them, as evaluations."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, NonNegativeInt

from commands.errors import ConfigurationError
from commands.evaluating.evaluation import Evaluation
from commands.evaluating.shipped._questions import ChoiceQuestion
from commands.evaluating.shipped._tables import DataRow
from commands.evaluating.shipped.items import AskedQuestion
from commands.evaluating.shipped.layouts import made_of
from commands.evaluating.shipped.task_files._data import TaskData
from commands.evaluating.shipped.task_files._documents import ContextWriter, question_keys
from commands.evaluating.shipped.task_files._groups import FoundKeys, TaskIndex, is_aggregated
from commands.evaluating.shipped.task_files._settings import FilterKeys, TaskKeys, task_keys
from commands.evaluating.shipped.task_files._tasks import (
    ContextText,
    TaskAnswers,
    TaskChoices,
    TaskDocuments,
    TaskLikelihood,
)
from commands.evaluating.shipped.task_files._yaml import read_keys
from commands.importing.formats.files import OpenParquet

TaskItem = ChoiceQuestion | ContextText | AskedQuestion | str
Kind = TypeVar("Kind")


class TaskFileParameters(BaseModel):
    """Parameters of a task file in tournament.toml."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    num_fewshot: NonNegativeInt | None = None  # None: as the file says
    bos: bool = False  # as lm-evaluation-harness: only if the tokenizer adds it by itself


class LoadedTask(NamedTuple):
    """A task with its items, by label."""

    name: str
    keys: TaskKeys
    items: Mapping[str, TaskItem]


class NamedEvaluation(NamedTuple):
    """An evaluation of a task file, and how its name differs from the file's; empty: not at all."""

    suffix: str
    evaluation: Evaluation


def read_task_file(
    path: Path, parameters: TaskFileParameters, open_parquet: OpenParquet
) -> Sequence[NamedEvaluation]:
    """Return the evaluations of a task file.

    A task with several filters has one for each. A group has one for each of its tasks, before them
    one of all items, if aggregate_metric_list says so.

    Raises:
        ConfigurationError: A key is not supported, or the data is missing or wrong.
    """
    found = FoundKeys(path, read_keys(path))
    reader = _Reader(found, parameters, open_parquet)
    if not found.is_group:
        return reader.evaluations([reader.task(found)], "")
    made = [*reader.group(found, TaskIndex(path.parent), "")]
    names = [each.suffix for each in made]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ConfigurationError([f"{path}: several tasks are called {', '.join(twice)}"])
    return made


def _all_tasks(
    group: FoundKeys, index: TaskIndex, within: tuple[FoundKeys, ...]
) -> Sequence[FoundKeys]:
    """Return the tasks of a group and of the groups in it, each once."""
    found: list[FoundKeys] = []
    for member in index.members(group, within):
        inner = _all_tasks(member, index, (*within, group)) if member.is_group else [member]
        found += [each for each in inner if each not in found]
    return found


class _Reader:
    """Reads the tasks of one file."""

    def __init__(
        self, file: FoundKeys, parameters: TaskFileParameters, open_parquet: OpenParquet
    ) -> None:
        self._whole = file.name
        self._parameters, self._open_parquet = parameters, open_parquet
        self._tasks: dict[tuple[Path, str], LoadedTask] = {}
        self._told: list[FoundKeys] = []  # the members of groups that have their evaluations

    def group(
        self,
        found: FoundKeys,
        index: TaskIndex,
        suffix: str,
        within: tuple[FoundKeys, ...] = (),
    ) -> Iterator[NamedEvaluation]:
        """Yield the evaluation of a group's items, if it has metrics, and those of its members.

        A member of several groups is yielded for the first.
        """
        if is_aggregated(found):
            tasks = [self.task(each) for each in _all_tasks(found, index, within)]
            _require_alike(found, tasks)
            yield from self.evaluations(tasks, suffix)
        for member in index.members(found, within):
            if member in self._told:
                continue
            self._told.append(member)
            if member.is_group:
                yield from self.group(member, index, member.name, (*within, found))
            else:
                task = self.task(member)
                yield from self.evaluations([task], task.name)

    def task(self, found: FoundKeys) -> LoadedTask:
        """Read a task's data, once."""
        place = found.path, found.name
        if place not in self._tasks:
            keys = task_keys(found.path, found.keys)
            if self._parameters.num_fewshot is not None:
                keys = keys.model_copy(update={"num_fewshot": self._parameters.num_fewshot})
            try:
                data = TaskData(keys, found.path.parent, self._open_parquet)
                self._tasks[place] = LoadedTask(found.name, keys, _items(keys, data))
            except ConfigurationError as error:
                faults = [f"{found.path}: {each}" for each in error.faults]
                raise ConfigurationError(faults) from error
        return self._tasks[place]

    def evaluations(self, tasks: Sequence[LoadedTask], suffix: str) -> list[NamedEvaluation]:
        """Return the evaluations of the items of some tasks: one, or one for each filter."""
        filters = tasks[0].keys.filter_list or (FilterKeys(name="", filter=()),)
        made = []
        for each in filters:
            name = each.name if len(filters) > 1 else ""
            joined = ".".join(filter(None, (suffix, name)))
            made.append(NamedEvaluation(joined, self._evaluation(tasks, each)))
        return made

    def _evaluation(self, tasks: Sequence[LoadedTask], chosen: FilterKeys) -> Evaluation:
        evaluation = self._of_kind(tasks, tasks[0].keys, chosen)
        several = tasks if len(tasks) > 1 else ()
        return evaluation.divided([task.name for task in several for _ in task.items])

    def _of_kind(
        self, tasks: Sequence[LoadedTask], keys: TaskKeys, chosen: FilterKeys
    ) -> TaskChoices | TaskLikelihood | TaskDocuments | TaskAnswers:
        bos = self._parameters.bos
        match keys.output_type:
            case "multiple_choice":
                return TaskChoices(_together(tasks, ChoiceQuestion), keys, bos=bos)
            case "loglikelihood":
                return TaskLikelihood(_together(tasks, ContextText), keys, bos=bos)
            case "loglikelihood_rolling":
                return TaskDocuments(_together(tasks, str), bos=bos)
            case "generate_until":
                questions = _together(tasks, AskedQuestion)
                return TaskAnswers(questions, keys, chosen.filter, whole=self._whole, bos=bos)


def _together(tasks: Sequence[LoadedTask], kind: type[Kind]) -> dict[str, Kind]:
    """Return the items of tasks of one kind; those of several are labelled with their task."""
    return {
        f"{task.name} {label}" if len(tasks) > 1 else label: item
        for task in tasks
        for label, item in task.items.items()
        if isinstance(item, kind)
    }


_ALIKE: Final = (
    "output_type", "target_delimiter", "fewshot_delimiter", "metric_list", "stop", "filter_list"
)  # fmt: skip


def _require_alike(group: FoundKeys, tasks: Sequence[LoadedTask]) -> None:
    """Require that tasks are asked and scored alike, so that they have common metrics."""
    for name in _ALIKE:
        if len({repr(getattr(task.keys, name)) for task in tasks}) > 1:
            why = f"aggregate_metric_list is not supported for tasks that differ in {name}"
            raise ConfigurationError([f"{group.path}: {why}"])


def _items(keys: TaskKeys, data: TaskData) -> Mapping[str, TaskItem]:
    """Return what a task asks of each document, by label."""
    table, examples = data.asked(), data.examples()
    samples = keys.fewshot_config.samples or ()
    shots = [row.fields for row in examples.rows] if examples else samples
    shown = question_keys(keys, table.columns)
    context = ContextWriter(keys, table.columns, shots)

    def item(row: DataRow) -> TaskItem:
        document = row.fields
        match keys.output_type:
            case "multiple_choice":
                choices = shown.choices(document)
                correct = shown.correct(document, choices)
                return ChoiceQuestion(context.write(document), choices, correct)
            case "loglikelihood":
                return ContextText(context.write(document), shown.expected(document))
            case "loglikelihood_rolling":
                return shown.expected(document)
            case "generate_until":
                return AskedQuestion(context.write(document), shown.expected(document))

    return made_of(table, item)
