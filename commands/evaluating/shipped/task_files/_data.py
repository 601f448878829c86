"""Find the files that a task's dataset_path names, and read their splits; nothing is downloaded."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from commands.errors import ConfigurationError
from commands.evaluating.shipped._tables import DataTable, read_table, split_files
from commands.evaluating.shipped.task_files._settings import TaskKeys
from commands.importing.formats.files import OpenParquet

_LOADERS: Final = ("json", "csv", "parquet", "arrow")


class TaskData:
    """The splits of a task's data set, each read when it is asked for."""

    def __init__(self, keys: TaskKeys, folder: Path, open_parquet: OpenParquet) -> None:
        """Read data for these keys of a file in a folder, where relative paths start."""
        self._keys, self._folder, self._open_parquet = keys, folder, open_parquet
        self._read: dict[str, DataTable] = {}

    def asked(self) -> DataTable:
        """Return the documents to ask: the test split, or else the validation split.

        Raises:
            ConfigurationError: The task names neither, or there are no such files.
        """
        split = self._keys.test_split or self._keys.validation_split
        if split is None:
            raise ConfigurationError(["test_split and validation_split are missing; name one"])
        return self._split(split)

    def examples(self) -> DataTable | None:
        """Return the documents that examples are drawn from; None if the file has them, or none.

        Raises:
            ConfigurationError: There are no such files.
        """
        keys = self._keys
        has_samples = keys.fewshot_config.samples is not None and keys.shots_split is None
        if not keys.num_fewshot or has_samples:
            return None
        splits = (keys.shots_split, keys.training_split, keys.validation_split, keys.test_split)
        return self._split(next(filter(None, splits)))

    def _split(self, split: str) -> DataTable:
        if split not in self._read:
            self._read[split] = read_table(self._files(split), self._open_parquet)
        return self._read[split]

    def _files(self, split: str) -> Sequence[Path]:
        path, named = self._keys.dataset_path, self._keys.dataset_kwargs.data_files
        if path in _LOADERS:
            if named is None:
                why = f"dataset_path is {path!r}, so dataset_kwargs.data_files must name its files"
                raise ConfigurationError([why])
            return self._named_files(named, split)
        folder = self._folder / path / (self._keys.dataset_name or "")
        if not folder.exists():
            why = (
                f"dataset_path is {path!r}, but there is no {folder}; tourney downloads no data:"
                " name a folder, or one of json, csv, parquet with dataset_kwargs.data_files"
            )
            raise ConfigurationError([why])
        return split_files(folder, split)

    def _named_files(
        self, named: str | tuple[str, ...] | dict[str, str | tuple[str, ...]], split: str
    ) -> Sequence[Path]:
        by_split = named if isinstance(named, dict) else {"train": named}  # as datasets does
        if split not in by_split:
            known = ", ".join(by_split)
            why = f"dataset_kwargs.data_files has no split {split!r}; it has {known}"
            raise ConfigurationError([why])
        patterns = by_split[split]
        patterns = (patterns,) if isinstance(patterns, str) else patterns
        files = [file for pattern in patterns for file in self._matching(pattern)]
        if not files:
            raise ConfigurationError([f"there is no file {', '.join(patterns)} in {self._folder}"])
        return files

    def _matching(self, pattern: str) -> Sequence[Path]:
        """Return a file, or those that match a pattern with stars, in order."""
        path = self._folder / pattern
        if "*" not in pattern:
            return [path]
        return sorted(Path(path.anchor).glob(str(path.relative_to(path.anchor))))
