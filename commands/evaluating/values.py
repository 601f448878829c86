"""Check every value that an evaluation's own code returns, and reduce its scores.

A value of another type is a TypeError, one that makes no sense a ValueError: `blame_evaluation` of
`user_code` names the evaluation.
"""

import operator
from collections.abc import Sequence
from math import isfinite
from numbers import Real
from reprlib import repr as brief
from typing import SupportsIndex, get_args

import numpy as np
from numpy.typing import NDArray

from commands.errors import ConfigurationError
from commands.settings.sections import Reduce
from ledger.events.evaluations import ChoicesItem, PromptItem

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
