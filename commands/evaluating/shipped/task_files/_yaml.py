"""Read YAML task files with what they include; no code of theirs runs."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import yaml  # type: ignore[import-untyped]  # it has no types

from commands.errors import ConfigurationError
from commands.importing.formats.files import reading

Keys = Mapping[str, object]


class NamedFunction(NamedTuple):
    """A Python function that a `!function` tag names."""

    name: str


class _Loader(yaml.SafeLoader):  # type: ignore[misc]  # as above
    """Reads plain YAML, and functions as their names."""


def _function(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> NamedFunction:
    return NamedFunction(str(loader.construct_scalar(node)))


_Loader.add_constructor("!function", _function)


def read_keys(path: Path, including: tuple[Path, ...] = ()) -> dict[str, object]:
    """Return the keys of a file and of those that it includes; its own go before theirs.

    A key that is null is left out, as if it was not there.

    Raises:
        ConfigurationError: A file is missing, is no YAML mapping, or includes itself.
    """
    if path in including:
        raise ConfigurationError([f"{path}: it includes itself"])
    keys = _load(path)
    merged: dict[str, object] = {}
    for each in _included(path, keys):
        merged |= read_keys(each, (*including, path))
    keys.pop("include", None)
    return {key: value for key, value in {**merged, **keys}.items() if value is not None}


def included_files(path: Path) -> Iterator[Path]:
    """Yield the files that a readable file includes, and those that they include, resolved."""
    for each in _included(path, _load(path)):
        yield each.resolve()
        yield from included_files(each)


def _included(path: Path, keys: Keys) -> Sequence[Path]:
    found = keys.get("include") or []
    return [path.parent / str(each) for each in (found if isinstance(found, list) else [found])]


def _load(path: Path) -> dict[str, object]:
    with reading(path):
        content = path.read_bytes()
    try:
        found = yaml.load(content, _Loader)  # noqa: S506  # a SafeLoader
    except yaml.YAMLError as error:
        why = " ".join(str(error).split())
        raise ConfigurationError([f"{path}: not YAML: {why}"]) from error
    if not isinstance(found, dict):
        raise ConfigurationError([f"{path}: it must be a mapping of keys, as `task: name`"])
    return {str(key): value for key, value in found.items()}


_FUNCTION_REMEDY: Final = (
    "tourney runs no Python of a task file; set the key to null or to a template in a file that"
    " includes this one, with the data prepared, or write an evaluation of your own"
)


def function_faults(path: Path, keys: Keys) -> Iterator[str]:
    """Yield a fault for each key with a function."""
    for key, value in keys.items():
        for function in _functions(value):
            yield f"{path}: {key} is !function {function.name}; {_FUNCTION_REMEDY}"


def _functions(value: object) -> Iterator[NamedFunction]:
    match value:
        case NamedFunction():
            yield value
        case {}:
            for each in value.values():
                yield from _functions(each)
        case [*items]:
            for each in items:
                yield from _functions(each)
