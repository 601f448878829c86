"""Run a user's own evaluation code: import and digest its class, check values, attribute errors.

The class is in a file (`file.py:Class`) or in an importable module (`module:Class`). A value of
another type is a TypeError, one that makes no sense a ValueError; `blame_evaluation` names the
evaluation.
"""

import ast
import inspect
import operator
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.util import module_from_spec, resolve_name, spec_from_file_location
from math import isfinite
from numbers import Real
from pathlib import Path
from reprlib import repr as brief
from types import FunctionType, ModuleType
from typing import Final, SupportsIndex, get_args

import numpy as np
from numpy.typing import NDArray

from commands.errors import ConfigurationError, EvaluationFault
from commands.settings.sections import Reduce
from ledger.errors import TourneyError
from ledger.events.evaluations import ChoicesItem, PromptItem
from ledger.identity import Digest, digest_of


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


def class_in_file(path: Path, name: str) -> object:
    """Run a Python file, and return the class of that name.

    Raises:
        ConfigurationError: The file does not exist, or has no such class.
    """
    if not path.is_file():
        raise ConfigurationError([f"{path}: there is no such file; correct the path"])
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
    """Run a file as a module, under a unique name, so that its classes can find their module.

    It can import the files beside it, as a script can.
    """
    folder = path.resolve().parent
    name = f"{path.stem}_{digest_of(str(path.resolve()))[:16]}"
    spec = spec_from_file_location(name, path)
    assert spec is not None  # noqa: S101  # a file that ends in .py has one
    assert spec.loader is not None  # noqa: S101  # as above
    module = sys.modules[name] = module_from_spec(spec)
    for file in folder.iterdir():  # changed since, or of the same name in another folder
        if file.stem in _NEIGHBOURS:
            sys.modules.pop(file.stem, None)
    before = {*sys.modules}
    sys.path.insert(0, str(folder))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(folder))
        new = {name for name in {*sys.modules} - before if _folder(sys.modules[name]) == folder}
        _NEIGHBOURS.update(new)
    if str(folder) not in sys.path:  # for what is imported later, inside a function
        sys.path.append(str(folder))
    return module


_NEIGHBOURS: Final[set[str]] = set()  # modules that lay beside users' files


def _get_class(module: ModuleType, name: str, where: str) -> object:
    if not hasattr(module, name):
        classes = [key for key, each in vars(module).items() if isinstance(each, type)]
        there = f"its classes are {', '.join(classes)}" if classes else "it has no classes"
        raise ConfigurationError([f"{where} has no class {name!r}; {there}"])
    return getattr(module, name)


def code_digest(kind: type, package: str) -> Digest:
    """Digest the source of a class: of its module, of the modules beside it, and of its bases'.

    Args:
        kind: The class.
        package: Whose modules are left out, as are Python's own; a change there is no change of
            the evaluation.
    """
    modules = [sys.modules.get(each.__module__) for each in kind.__mro__]
    waiting = [each for each in modules if each and _is_own(each, package)]
    sources: dict[str, str] = {}
    while waiting:
        module = waiting.pop()
        if module.__name__ not in sources:
            sources[module.__name__] = _source(module)
            waiting += _neighbours(module)
    return digest_of([kind.__qualname__, *(sources[name] for name in sorted(sources))])


def _is_own(module: ModuleType, package: str) -> bool:
    is_ours = module.__name__.rpartition(".")[0] == package
    return not is_ours and module.__name__.partition(".")[0] not in sys.stdlib_module_names


def _neighbours(module: ModuleType) -> Iterator[ModuleType]:
    """Yield the modules in the folder of a module that it imports."""
    folder = _folder(module)
    near = (sys.modules.get(name) for name in (_imported(module) if folder else ()))
    yield from (each for each in near if each and _folder(each) == folder)


@cache
def _imported(module: ModuleType) -> Sequence[str]:
    """Return what a module imports, by name; of names in a module, each might be a module."""
    imported: list[str] = []
    for node in ast.walk(ast.parse(_source(module))):
        if isinstance(node, ast.Import):
            imported += [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom):
            place = resolve_name(f"{'.' * node.level}{node.module or ''}", module.__package__)
            imported += [place, *(f"{place}.{each.name}" for each in node.names)]
    return imported


def _folder(module: ModuleType) -> Path | None:
    file = getattr(module, "__file__", None)
    return None if file is None else _folder_of(file)


@cache  # by the name: what stands for a module in `sys.modules` may be unhashable
def _folder_of(file: str) -> Path:
    return Path(file).resolve().parent


@cache
def _source(module: ModuleType) -> str:
    """Return a module's source; of a notebook's, which is no file, that of its classes.

    It is read once: a file that changes later is not the code that runs.
    """
    try:
        return inspect.getsource(module)
    except (OSError, TypeError):
        classes = (each for each in vars(module).values() if isinstance(each, type))
        functions = (each for kind in classes for each in vars(kind).values())
        return "\n".join(sorted(map(_code, filter(inspect.isfunction, functions))))


def _code(function: FunctionType) -> str:
    try:
        return inspect.getsource(function)
    except OSError:  # it was typed into a shell that keeps no lines
        code = function.__code__
        constants = [each for each in code.co_consts if not inspect.iscode(each)]
        return f"{function.__qualname__} {code.co_code.hex()} {code.co_names} {constants}"


Scores = NDArray[np.float64]


def prompt_item(value: object, get: str) -> PromptItem:
    """Return what a rollout's `get` gives: a pair of texts."""
    prompt, expected = _parts(value, 2, f"{get} gives", "(prompt, expected answer)")
    return PromptItem(
        prompt=require_text(prompt, f"{get} gives the prompt"),
        expected=require_text(expected, f"{get} gives the expected answer"),
    )


def choices_item(value: object, get: str) -> ChoicesItem:
    """Return what a comparison's `get` gives."""
    form = "(prefix, continuations, index of the correct one)"
    prefix, continuations, correct = _parts(value, 3, f"{get} gives", form)
    texts = require_texts(continuations, f"{get} gives the continuations")
    if len(texts) < 2:  # noqa: PLR2004  # one alone would always be right
        raise ValueError(f"{get} gives {len(texts)} continuations; there must be two at least")
    right = require_integer(correct, f"{get} gives the index of the correct continuation:")
    if not 0 <= right < len(texts):
        where = f"of {len(texts)} counted from 0"
        raise ValueError(f"{get} gives index {right} for the correct continuation, {where}")
    context = require_text(prefix, f"{get} gives the prefix")
    return ChoicesItem(context=context, choices=texts, correct=right)


def _parts(value: object, n: int, what: str, form: str) -> Sequence[object]:
    if not isinstance(value, tuple | list) or len(value) != n:
        raise TypeError(f"{what} {brief(value)}; it must give {form}")
    return value


def require_text(value: object, what: str) -> str:
    """Return a value as Python's `str`, if it is a text that UTF-8 can encode."""
    if not isinstance(value, str):
        raise TypeError(f"{what} {brief(value)}, which is not a text")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        half = f"{value[error.start]!r} at {error.start}"
        raise ValueError(f"{what} {brief(value)} with {half}, half of a surrogate pair") from error
    return str.__str__(value)


def require_texts(value: object, what: str) -> tuple[str, ...]:
    """Return a sequence of texts as a tuple; a single text is rejected."""
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise TypeError(f"{what} {brief(value)}; write a tuple of texts, with its comma: ('a',)")
    return tuple(require_text(each, what) for each in value)


def require_integer(value: object, what: str) -> int:
    """Return a value as Python's `int`; True and False are rejected."""
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        raise TypeError(f"{what} {brief(value)}, which is not an integer")
    return operator.index(value)


def require_boolean(value: object, what: str) -> bool:
    """Return a value that is True or False, as Python's `bool`."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{what} {brief(value)}, which is neither True nor False")
    return bool(value)


def require_scores(values: object, n: int, what: str) -> list[float]:
    """Return n finite scores, of a sequence or an array."""
    if isinstance(values, str) or not isinstance(values, Sequence | np.ndarray):
        raise TypeError(f"{what} {brief(values)}; it must give a list of {n} numbers")
    if len(values) != n:
        raise ValueError(f"{what} {len(values)} scores for {n} samples; it must give one for each")
    return [_score(each, what) for each in values]


def _score(value: object, what: str) -> float:
    if not isinstance(value, Real | np.bool_):
        raise TypeError(f"{what} the score {brief(value)}, which is not a number")
    if not isfinite(score := float(value)):
        raise ValueError(f"{what} the score {score}; a score is a finite number")
    return score


def require_reduce(reduce: object) -> None:
    """Require a known way to combine scores.

    Raises:
        ConfigurationError: It is none.
    """
    if reduce not in get_args(Reduce):
        known = ", ".join(map(repr, get_args(Reduce)))
        raise ConfigurationError([f"reduce is {reduce!r}; choose one of {known}"])


def reduce_scores(scores: Sequence[float], reduce: Reduce) -> float | Scores:
    """Return the mean or the sum of the scores that are not NaN, or all of them, (n,)."""
    every = np.asarray(scores, dtype=np.float64)
    known = every[~np.isnan(every)]
    if reduce == "none":
        return every
    if not len(known):
        return float("nan")
    return float(known.mean() if reduce == "mean" else known.sum())
