"""Run a user's own evaluation code: import its class, check its values, attribute its errors.

The class is in a file (`file.py:Class`) or in an importable module (`module:Class`).
"""

import operator
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from reprlib import repr as brief
from types import ModuleType
from typing import SupportsIndex

from commands.errors import ConfigurationError, EvaluationFault
from ledger.errors import TourneyError
from ledger.identity import digest_of


@contextmanager
def blame_evaluation(evaluation: str, doing: str) -> Iterator[None]:
    """Turn an error in an evaluation's own code into one that names the evaluation.

    Args:
        evaluation: The evaluation's name.
        doing: What its code was doing, such as "getting item 3".

    Raises:
        EvaluationFault: The code raised an error other than tourney's own, or called sys.exit.
    """
    try:
        yield
    except TourneyError:
        raise
    except SystemExit as ending:  # sys.exit(0) would look like success
        error = RuntimeError(f"it calls sys.exit({ending.code!r})")
        fault = error.with_traceback(ending.__traceback__)
        raise EvaluationFault(evaluation, doing, fault) from ending
    except Exception as error:
        raise EvaluationFault(evaluation, doing, error) from error


def require_text(value: object, what: str) -> str:
    """Return a value as Python's `str`, if it is a text that UTF-8 can encode.

    Raises:
        TypeError: The value is not a text.
        ValueError: The text contains half of a surrogate pair.
    """
    if not isinstance(value, str):
        raise TypeError(f"{what} {brief(value)}, which is not a text")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        half = f"{value[error.start]!r} at {error.start}"
        raise ValueError(f"{what} {brief(value)} with {half}, half of a surrogate pair") from error
    return str.__str__(value)


def require_texts(value: object, what: str) -> tuple[str, ...]:
    """Return a sequence of texts as a tuple; a single text is rejected.

    Raises:
        TypeError: The value is one text, or not a sequence of texts.
        ValueError: UTF-8 cannot encode one of the texts.
    """
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise TypeError(f"{what} {brief(value)}; write a tuple of texts, with its comma: ('a',)")
    return tuple(require_text(each, what) for each in value)


def require_integer(value: object, what: str) -> int:
    """Return a value as Python's `int`; True and False are rejected.

    Raises:
        TypeError: The value is not an integer.
    """
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        raise TypeError(f"{what} {brief(value)}, which is not an integer")
    return operator.index(value)


def require_boolean(value: object, what: str) -> bool:
    """Return a value that is True or False.

    Raises:
        TypeError: The value is neither.
    """
    if not isinstance(value, bool):
        raise TypeError(f"{what} {brief(value)}, which is neither True nor False")
    return value


def class_in_file(path: Path, name: str) -> object:
    """Run a Python file, and return the class of that name.

    Raises:
        ConfigurationError: The file does not exist, or has no such class.
    """
    if not path.is_file():
        raise ConfigurationError(
            [f"{path}: there is no such file; correct the path (from the settings)"]
        )
    return _get_class(_run(path), name, str(path))


def class_in_module(module: str, name: str) -> object:
    """Import a module, and return the class of that name.

    Raises:
        ConfigurationError: The module cannot be found, or has no such class.
    """
    try:
        return _get_class(import_module(module), name, f"module {module}")
    except ModuleNotFoundError as error:
        why = f"module {module!r} cannot be imported: {error}; install it, or name a file.py:Class"
        raise ConfigurationError([why]) from error


def _run(path: Path) -> ModuleType:
    """Run a file as a module, under a unique name, so that its classes can find their module."""
    name = f"{path.stem}_{digest_of(str(path.resolve()))[:16]}"
    spec = spec_from_file_location(name, path)
    assert spec is not None  # noqa: S101  # a file that ends in .py has one
    assert spec.loader is not None  # noqa: S101  # as above
    module = sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _get_class(module: ModuleType, name: str, where: str) -> object:
    if not hasattr(module, name):
        classes = [key for key, each in vars(module).items() if isinstance(each, type)]
        there = f"its classes are {', '.join(classes)}" if classes else "it has no classes"
        raise ConfigurationError([f"{where} has no class {name!r}; {there}"])
    return getattr(module, name)
