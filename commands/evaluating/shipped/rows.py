"""Read the rows of a data set: a file, or a folder that has one file or folder for each split.

A table names the fields of a row, and the choices and the answer in them. A name is a field, a
field within a field, or a Jinja template, which can reach nothing else.
"""

import difflib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from string import ascii_uppercase
from typing import Final, NamedTuple, TypeVar

from jinja2 import StrictUndefined, Template, TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from commands.errors import ConfigurationError, first_lines
from commands.importing.formats.files import records_of
from commands.importing.formats.rows import BadRow, Fields, uncompressed

_SUFFIXES: Final = {".csv", ".tsv", ".json", ".jsonl", ".parquet", ".arrow"}
Made = TypeVar("Made")


class DataRow(NamedTuple):
    """A row of a data set, and where it is; a field of which the file says nothing is None."""

    label: str  # file:line, different for each row
    fields: Fields
    place: str  # the same with the whole path


def read_rows(paths: Sequence[Path]) -> tuple[DataRow, ...]:
    """Read files as one table: each row has the columns of all.

    Raises:
        ConfigurationError: A file cannot be read, has a bad row or is named twice, or there are no
            rows.
        MissingExtra: A file is Parquet or Arrow, and pyarrow is not installed.
    """
    names = Counter(path.name for path in paths)
    if twice := [path for path, n in Counter(paths).items() if n > 1]:
        raise ConfigurationError([f"{path}: it is named twice" for path in twice])
    rows = [
        row
        for path in paths
        for row in _rows(path, path.name if names[path.name] == 1 else str(path))
    ]
    if not rows:
        raise ConfigurationError([f"{paths[0]}: there are no rows"])
    lacking = dict.fromkeys(name for row in rows for name in row.fields)
    return tuple(row._replace(fields={**lacking, **row.fields}) for row in rows)


def _rows(path: Path, name: str) -> Iterator[DataRow]:
    """Yield the rows of a file, each labelled with the file's name."""
    faults = []
    for record in records_of(path, None):
        if isinstance(record, BadRow):
            faults.append(f"{path}:{record.line}: {record.why}")
        else:
            line = record.line
            yield DataRow(f"{name}:{line}", record.fields, f"{path}:{line}")
    _require_none(faults)


def _require_none(faults: Sequence[str]) -> None:
    if faults:
        raise ConfigurationError([*first_lines(faults, len(faults), "fault")])


def made_of(rows: Sequence[DataRow], make: Callable[[Fields], Made]) -> Mapping[str, Made]:
    """Return what is made of each row, by its label.

    Raises:
        ConfigurationError: A row has a fault; all are listed, each with its line.
    """
    made, faults = {}, []
    for row in rows:
        try:
            made[row.label] = make(row.fields)
        except ValueError as error:
            faults.append(f"{row.place}: {error}")
    _require_none(faults)
    return made


def split_files(path: Path, split: str | None = None) -> tuple[Path, ...]:
    """Return the files of one split of a data set.

    A folder is what `save_to_disk` of the package datasets wrote, or has files that are named by
    their splits, such as test.jsonl or data/test-00000-of-00001.parquet. Of a file, any split is
    the whole.

    Raises:
        ConfigurationError: There is no such file or split, or the split is not said.
    """
    if path.is_file():
        return (path,)
    if not path.is_dir():
        raise ConfigurationError([f"{path}: there is no such file or folder"])
    if (path / "state.json").is_file():
        return _saved_files(path)
    splits = _splits(path)
    if split is None and len(splits) == 1:
        (split,) = splits
    if split not in splits:
        known = ", ".join(splits) or "none"
        why = "name a split" if split is None else f"there is no split {split!r}"
        raise ConfigurationError([f"{path}: {why}; the folder has: {known}"])
    files = splits[split]
    return _saved_files(files[0]) if files[0].is_dir() else files


def _splits(path: Path) -> dict[str, tuple[Path, ...]]:
    """Return the files, or the folder, of each split in a folder."""
    if (path / "dataset_dict.json").is_file():
        return {state.parent.name: (state.parent,) for state in sorted(path.glob("*/state.json"))}
    files = sorted(file for folder in (path, path / "data") for file in folder.glob("*"))
    splits: dict[str, tuple[Path, ...]] = {}
    for file in files:
        if uncompressed(file).suffix in _SUFFIXES:
            name = uncompressed(file).stem.partition("-")[0]
            splits[name] = (*splits.get(name, ()), file)
    return splits


def _saved_files(folder: Path) -> tuple[Path, ...]:
    """Return the files that `save_to_disk` wrote, in order."""
    state = folder / "state.json"
    try:
        listed = json.loads(state.read_text(encoding="utf-8"))["_data_files"]
        return tuple(folder / file["filename"] for file in listed)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigurationError([f"{state}: cannot be read: {error!r}"]) from error


_LETTERS: Final = ascii_uppercase
_TEXT_KEYS: Final = ("text", "value")
_LABEL_KEYS: Final = ("label", "key")


def value_of(name: str, fields: Fields) -> object:
    """Return a field, a field within a field (`choices.text`), or a template filled in.

    Raises:
        ValueError: There is no such field, or the template is wrong.
    """
    if _is_template(name):
        return _filled_in(name, fields)
    if name in fields:
        return fields[name]
    value: object = fields
    for part in name.split("."):
        if not isinstance(value, Mapping) or part not in value:
            close = difflib.get_close_matches(name, fields, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"the fields are {', '.join(fields)}"
            raise ValueError(f"no field {name!r}; {hint}")
        value = value[part]
    return value


def text_of(name: str, fields: Fields) -> str:
    """Return a field as a text; a number becomes its digits.

    Raises:
        ValueError: There is no such field, or it is neither a text nor a number.
    """
    value = value_of(name, fields)
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        return str(value)
    raise ValueError(f"{name} is {value!r:.60}, but must be a text")


def choices_of(
    name: str | Sequence[str], fields: Fields
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the choices of a field, and their labels if it gives some.

    It is a list of texts, or texts with labels in one of three layouts: `{"text": [...], "label":
    [...]}` (ARC), `{"A": "...", "B": "..."}` and `[{"key": "A", "value": "..."}]` (both of MedQA).
    Of several names each is a field; if none of them is, they are texts themselves.

    Raises:
        ValueError: The field is missing, or has another layout.
    """
    if not isinstance(name, str):
        is_named = any(_is_template(each) or each in fields for each in name)
        return tuple(text_of(each, fields) if is_named else each for each in name), ()
    value = value_of(name, fields)
    labels: Sequence[object]
    texts: Sequence[object]
    match value:
        case {"text": [*texts], "label": [*labels]}:
            pass
        case {}:
            labels, texts = [*value], [*value.values()]
        case [{}, *_]:
            labels = [_first_of(choice, _LABEL_KEYS) for choice in value]
            texts = [_first_of(choice, _TEXT_KEYS) for choice in value]
        case [*texts]:
            labels = []
        case _:
            raise ValueError(f"{name} is {value!r:.60}, but must be a list of choices")
    if not all(isinstance(text, str) for text in (*texts, *labels)):
        raise ValueError(f"{name} is {value!r:.60}, but its choices must be texts")
    return tuple(map(str, texts)), tuple(map(str, labels))


def _first_of(choice: object, keys: Sequence[str]) -> object:
    known = choice if isinstance(choice, Mapping) else {}
    return next((known[key] for key in keys if key in known), None)


def answer_index(answer: object, texts: Sequence[str], labels: Sequence[str]) -> int:
    """Return the index of the correct choice.

    A number counts from 0. A text is the choice's label, text, letter or index, whichever fits.
    """
    if isinstance(answer, int) and not isinstance(answer, bool):
        fitting = {answer} & {*range(len(texts))}
    else:
        given = str(answer).strip()
        readings = [labels] if labels else [texts, _LETTERS[: len(texts)]]
        fitting = {n for reading in readings for n, name in enumerate(reading) if name == given}
        if not fitting and given.isdecimal():
            fitting = {int(given)} & {*range(len(texts))}
    if len(fitting) != 1:
        why = "fits several of" if fitting else "is none of"
        raise ValueError(f"the answer {answer!r} {why} the choices {[*labels] or [*texts]}")
    return fitting.pop()


def _is_template(name: str) -> bool:
    return "{{" in name or "{%" in name


_ENVIRONMENT: Final = ImmutableSandboxedEnvironment(
    autoescape=False,  # the text is for a model, not for a browser
    undefined=StrictUndefined,
    keep_trailing_newline=True,
)
_FAULTS: Final = (
    TemplateError,
    ArithmeticError,
    LookupError,
    AttributeError,
    TypeError,
    ValueError,
)


def _regex_replace(text: str, pattern: str, by: str, count: int = 0) -> str:
    """Replace a pattern, as the filter of this name in lm-evaluation-harness."""
    return re.sub(pattern, by, text, count=count)


_ENVIRONMENT.filters["regex_replace"] = _regex_replace


def _filled_in(template: str, fields: Fields) -> str:
    try:
        return _compiled(template).render(fields)
    except _FAULTS as error:
        raise ValueError(f"{template!r}: {error}") from error


@cache
def _compiled(template: str) -> Template:
    return _ENVIRONMENT.from_string(template)
