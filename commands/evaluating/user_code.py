"""Run a user's own evaluation code: import its class, digest it, attribute its errors.

The class is in a file (`file.py:Class`) or in an importable module (`module:Class`).
"""

import ast
import inspect
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.util import module_from_spec, resolve_name, spec_from_file_location
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Final

from commands.errors import ConfigurationError, EvaluationFault
from ledger.errors import TourneyError
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
