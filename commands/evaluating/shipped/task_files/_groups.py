"""Find the tasks of a group among the task files beside it."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from commands.errors import ConfigurationError, fault_of_pydantic
from commands.evaluating.shipped.task_files._settings import METRICS
from commands.evaluating.shipped.task_files._yaml import Keys, included_files, read_keys

_MEANS = frozenset(name for each in METRICS.values() for name in each if each[name] == "mean")


class FoundKeys(NamedTuple):
    """The keys of a task or a group, and the file that they are in."""

    path: Path
    keys: Keys

    @property
    def name(self) -> str:
        """The name of the task or group."""
        return str(self.keys.get("group" if self.is_group else "task", self.path.stem))

    @property
    def is_group(self) -> bool:
        """Whether it names several tasks."""
        return isinstance(self.keys.get("task"), list)


class _AggregateKeys(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    metric: str
    aggregation: str = "mean"
    weight_by_size: bool = True
    filter_list: str | tuple[str, ...] = ()


_GROUP_KEYS = frozenset(
    {"group", "group_alias", "task", "tag", "metadata", "aggregate_metric_list"}
)


def is_aggregated(group: FoundKeys) -> bool:
    """Return whether a group has metrics of its own: means over all items of its tasks.

    Raises:
        ConfigurationError: A key of the group, or how a metric is aggregated, is not supported.
    """
    faults = [f"{key} is not supported in a group" for key in group.keys if key not in _GROUP_KEYS]
    listed = group.keys.get("aggregate_metric_list", [])
    for each in listed if isinstance(listed, list) else [listed]:
        faults += _aggregate_faults(each)
    if faults:
        raise ConfigurationError([f"{group.path}: {each}" for each in faults])
    return bool(listed)


def _aggregate_faults(entry: object) -> Iterator[str]:
    try:
        found = _AggregateKeys.model_validate(entry)
    except ValidationError as error:
        for each in error.errors():
            place = ".".join(map(str, each["loc"]))
            yield f"aggregate_metric_list.{place}: {fault_of_pydantic(each)}"
        return
    if found.metric not in _MEANS or found.aggregation != "mean":
        yield (
            f"aggregate_metric_list.{found.metric} by {found.aggregation} is not supported; means"
            f" of {', '.join(sorted(_MEANS))} are"
        )
    if not found.weight_by_size:
        yield (
            "aggregate_metric_list.weight_by_size is false, which is not supported: all items count"
            " the same; leave aggregate_metric_list out, and read the tasks' own metrics"
        )


class TaskIndex:
    """The tasks, groups and tags of all task files in a folder and below it, by name."""

    def __init__(self, folder: Path) -> None:
        """Read every file that ends in .yaml; a faulty one is named when a task is missing."""
        self._folder = folder
        self._named: dict[str, list[FoundKeys]] = {}
        self._tagged: dict[str, list[FoundKeys]] = {}
        self._unread: list[str] = []
        for path in sorted(folder.rglob("*.yaml")):
            try:
                self._add(FoundKeys(path, read_keys(path)))
            except ConfigurationError as error:
                self._unread += error.faults

    def _add(self, found: FoundKeys) -> None:
        if "task" not in found.keys:
            return
        self._named.setdefault(found.name, []).append(found)
        tags = found.keys.get("tag", [])
        for tag in tags if isinstance(tags, list) else [tags]:
            self._tagged.setdefault(str(tag), []).append(found)

    def members(self, group: FoundKeys, within: Sequence[FoundKeys] = ()) -> Sequence[FoundKeys]:
        """Return the tasks and groups of a group that is within others, each once.

        Raises:
            ConfigurationError: There is none of a name, or several, or the group is within itself.
        """
        if group in within:
            raise ConfigurationError([f"{group.path}: group {group.name!r} contains itself"])
        entries = group.keys["task"]
        if not isinstance(entries, list) or not entries:
            raise ConfigurationError([f"{group.path}: task is {entries!r}; list names of tasks"])
        found: list[FoundKeys] = []
        for each in (member for entry in entries for member in self._entry(group, entry)):
            if each not in found:
                found.append(each)
        return found

    def _entry(self, group: FoundKeys, entry: object) -> Iterator[FoundKeys]:
        if not isinstance(entry, Mapping):
            yield from self._called(group, str(entry))
        elif isinstance(entry.get("task"), str) and entry["task"] in self._named:
            base = self._only(group, entry["task"])
            yield FoundKeys(base.path, {**base.keys, **entry})
        else:
            yield FoundKeys(group.path, {str(key): value for key, value in entry.items()})

    def _called(self, group: FoundKeys, name: str) -> Iterator[FoundKeys]:
        if name in self._named:
            yield self._only(group, name)
        elif name in self._tagged:
            yield from self._tagged[name]
        else:
            why = f"{group.path}: task is {name!r}, but no file in {self._folder} has that name"
            raise ConfigurationError([why, *self._unread])

    def _only(self, group: FoundKeys, name: str) -> FoundKeys:
        """Return the task or group of a name; a file goes before those that it includes.

        Raises:
            ConfigurationError: Several files have the name.
        """
        found = self._named[name]
        if len(found) > 1:
            included = {file for each in found for file in included_files(each.path)}
            found = [each for each in found if each.path.resolve() not in included]
        if len(found) > 1:
            files = ", ".join(str(each.path) for each in found)
            why = f"{group.path}: task is {name!r}, which several files are called: {files}"
            raise ConfigurationError([why])
        return found[0]
