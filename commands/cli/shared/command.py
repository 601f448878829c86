"""Build a command: its options, those of groups, and a signature that lists them."""

import inspect
from collections.abc import Callable, Collection, Sequence
from inspect import Parameter
from typing import TypeAlias

Command: TypeAlias = Callable[..., None]


def command(act: Command) -> Command:
    """Turn a function into a command: its own options come first, then those of groups."""
    return command_with(act, parameters_of(act))


def command_with(
    act: Command, parameters: Sequence[Parameter], without: Collection[str] = ()
) -> Command:
    """Return a command whose signature lists its options, since typer reads them there.

    A parameter is an option, or a NamedTuple with an option for each field.
    """
    groups = {each.name: each.annotation for each in parameters if _is_group(each.annotation)}
    own = [each for each in parameters if each.name not in groups]
    shared = [each for group in groups.values() for each in parameters_of(group)]
    options = [
        each.replace(kind=Parameter.KEYWORD_ONLY)
        for each in (*own, *shared)
        if each.name not in without
    ]

    def command(**given: object) -> None:
        for name, group in groups.items():
            given[name] = group(**{key: given.pop(key) for key in group._fields if key in given})
        act(**given)

    command.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]  # typer reads it
    command.__annotations__ = {each.name: each.annotation for each in options}
    command.__name__, command.__doc__ = act.__name__, act.__doc__
    return command


def parameters_of(function: Callable[..., object]) -> list[Parameter]:
    """Return the parameters that a function declares."""
    return list(inspect.signature(function).parameters.values())


def _is_group(annotation: object) -> bool:
    return isinstance(annotation, type) and hasattr(annotation, "_fields")
