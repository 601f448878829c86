"""Read the fields of a row, and the choices and the answer in them, as a table names them.

A name is a field, a field within a field, or a Jinja template, which can reach nothing else.
"""

import difflib
import re
from collections.abc import Mapping, Sequence
from functools import cache
from string import ascii_uppercase
from typing import Final

from jinja2 import StrictUndefined, Template, TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from commands.importing.formats.rows import Fields

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
