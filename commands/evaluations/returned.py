"""What an evaluation's own code returns, looked at before anything is asked on its strength.

`says` begins each complaint, as "Doses.get(3) gives the prompt".
"""

import operator
from collections.abc import Sequence
from reprlib import repr as brief
from typing import SupportsIndex


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
