"""JSON as Python writes it: a number that is none is spelt NaN, for which JSON has no word."""

import json

import msgspec


def decoded(content: bytes) -> object:
    """Return what JSON says, and None for NaN.

    Raises:
        ValueError: It is no JSON, even so, or nested too deep to be read.
    """
    try:
        return _decoded(content)
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error


def _decoded(content: bytes) -> object:
    try:
        return msgspec.json.decode(content)
    except ValueError:
        return json.loads(content, parse_constant=_constant)


def _constant(name: str) -> float | None:
    return None if name == "NaN" else float(name)
