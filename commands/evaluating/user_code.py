"""Evaluations of a user's own, in a file or in a module that can be imported."""

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
def blaming(evaluation: str, doing: str) -> Iterator[None]:
    """Say of what an evaluation's own code raises that it is this evaluation's.

    Args:
        evaluation: Its name.
        doing: What it was asked for, as "getting item 3".

    Raises:
        EvaluationFault: Its code raised anything that is no error of tourney's, or called sys.exit.
    """
    try:
        yield
    except TourneyError:
        raise
    except SystemExit as ending:  # with code 0 the command would end as if all were done
        error = RuntimeError(f"it calls sys.exit({ending.code!r})")
        fault = error.with_traceback(ending.__traceback__)
        raise EvaluationFault(evaluation, doing, fault) from ending
    except Exception as error:
        raise EvaluationFault(evaluation, doing, error) from error


def text(value: object, says: str) -> str:
    """Return a text that can be kept; numpy's, say, as Python's own.

    Raises:
        TypeError: It is no text.
        ValueError: It has half of a surrogate pair in it, which UTF-8 cannot say.
    """
    if not isinstance(value, str):
        raise TypeError(f"{says} {brief(value)}, which is no text")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        half = f"{value[error.start]!r} at {error.start}"
        raise ValueError(f"{says} {brief(value)} with {half}, half of a surrogate pair") from error
    return str.__str__(value)


def texts(value: object, says: str) -> tuple[str, ...]:
    """Return several texts; one alone would be taken for its letters.

    Raises:
        TypeError: It is one text, or no sequence of texts.
        ValueError: UTF-8 cannot say one of them.
    """
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise TypeError(f"{says} {brief(value)}; write a tuple of texts, with its comma: ('a',)")
    return tuple(text(each, says) for each in value)


def whole(value: object, says: str) -> int:
    """Return a whole number, of numpy's too; True is none: it is no place among choices.

    Raises:
        TypeError: It is no whole number.
    """
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        raise TypeError(f"{says} {brief(value)}, which is no whole number")
    return operator.index(value)


def truth(value: object, says: str) -> bool:
    """Return True or False.

    Raises:
        TypeError: It is neither.
    """
    if not isinstance(value, bool):
        raise TypeError(f"{says} {brief(value)}, which is neither True nor False")
    return value


def class_in_file(path: Path, name: str) -> object:
    """Run a file, and return what it calls by a name.

    Raises:
        ConfigurationError: There is no such file, or nothing in it is called so.
    """
    if not path.is_file():
        raise ConfigurationError([f"{path}: there is no such file; name one from the settings"])
    return _named(_run(path), name, str(path))


def class_in_module(module: str, name: str) -> object:
    """Import a module, and return what it calls by a name.

    Raises:
        ConfigurationError: It cannot be found, or nothing in it is called so.
    """
    try:
        return _named(import_module(module), name, f"module {module}")
    except ModuleNotFoundError as error:
        why = f"module {module!r} cannot be imported: {error}; install it, or name a file.py:Class"
        raise ConfigurationError([why]) from error


def _run(path: Path) -> ModuleType:
    """Run a file as a module, under a name that no other has: classes look their module up."""
    name = f"{path.stem}_{digest_of(str(path.resolve()))[:16]}"
    spec = spec_from_file_location(name, path)
    assert spec is not None  # noqa: S101  # a file that ends in .py has one
    assert spec.loader is not None  # noqa: S101  # as above
    module = sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _named(module: ModuleType, name: str, where: str) -> object:
    if not hasattr(module, name):
        classes = [key for key, each in vars(module).items() if isinstance(each, type)]
        there = f"its classes are {', '.join(classes)}" if classes else "there is no class in it"
        raise ConfigurationError([f"{where}: nothing is called {name!r}; {there}"])
    return getattr(module, name)
