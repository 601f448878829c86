"""Find a question, its choices and its answer in the fields of a row, as a table names them."""

import difflib
from collections.abc import Mapping, Sequence
from string import ascii_uppercase
from typing import Final, NamedTuple

from commands.evaluating.shipped._templates import fill_in

LETTERS: Final = ascii_uppercase
_TEXT_KEYS: Final = ("text", "value")
_LABEL_KEYS: Final = ("label", "key")


class LabelledChoices(NamedTuple):
    """The texts of choices, and the labels that the data gives them; empty if it gives none."""

    texts: tuple[str, ...]
    labels: tuple[str, ...] = ()


def is_template(name: str) -> bool:
    """Return whether a name is a Jinja template rather than a field."""
    return "{{" in name or "{%" in name


def value_of(name: str, fields: Mapping[str, object]) -> object:
    """Return a field, a field within a field (`choices.text`), or a template filled in.

    Raises:
        ValueError: There is no such field.
    """
    if is_template(name):
        return fill_in(name, fields)
    if name in fields:
        return fields[name]
    found: object = fields
    for part in name.split("."):
        if not isinstance(found, Mapping) or part not in found:
            raise ValueError(f"no field {name!r}; {_nearest(name, fields)}")
        found = found[part]
    return found


def _nearest(name: str, fields: Mapping[str, object]) -> str:
    close = difflib.get_close_matches(name, fields, n=1)
    return f"did you mean {close[0]!r}?" if close else f"the fields are {', '.join(fields)}"


def text_of(name: str, fields: Mapping[str, object]) -> str:
    """Return a field as a text; a number becomes its digits.

    Raises:
        ValueError: There is no such field, or it is neither a text nor a number.
    """
    found = value_of(name, fields)
    if isinstance(found, str | int | float) and not isinstance(found, bool):
        return str(found)
    raise ValueError(f"{name} is {found!r:.60}, but must be a text")


def constant_or_fields(names: Sequence[str], fields: Mapping[str, object]) -> tuple[str, ...]:
    """Return the texts of several fields; names that are no fields at all are texts themselves.

    Raises:
        ValueError: Some are fields, and others are not.
    """
    are_fields = [is_template(name) or name in fields for name in names]
    if any(are_fields):
        return tuple(text_of(name, fields) for name in names)
    return tuple(names)


def choices_of(name: str, fields: Mapping[str, object]) -> LabelledChoices:
    """Return the choices of a field: a list of texts, or texts with labels in one of three layouts.

    These are `{"text": [...], "label": [...]}` (ARC), `{"A": "...", "B": "..."}` and
    `[{"key": "A", "value": "..."}]` (both of MedQA).

    Raises:
        ValueError: The field is missing, or has another layout.
    """
    found = value_of(name, fields)
    labels: Sequence[object]
    texts: Sequence[object]
    match found:
        case {"text": [*texts], "label": [*labels]}:
            pass
        case {}:
            labels, texts = [*found], [*found.values()]
        case [{}, *_]:
            labels = [_first_of(each, _LABEL_KEYS) for each in found]
            texts = [_first_of(each, _TEXT_KEYS) for each in found]
        case [*texts]:
            labels = []
        case _:
            raise ValueError(f"{name} is {found!r:.60}, but must be a list of choices")
    known = LabelledChoices(_texts(texts), _texts(labels))
    if (len(known.texts), len(known.labels)) != (len(texts), len(labels)):
        raise ValueError(f"{name} is {found!r:.60}, but its choices must be texts")
    return known


def _texts(values: Sequence[object]) -> tuple[str, ...]:
    return tuple(each for each in values if isinstance(each, str))


def _first_of(choice: object, keys: Sequence[str]) -> object:
    known = choice if isinstance(choice, Mapping) else {}
    return next((known[key] for key in keys if key in known), None)


def answer_index(answer: object, choices: LabelledChoices) -> int:
    """Return the index of the correct choice.

    A number counts from 0. A text is the choice's label, text, letter or index, whichever fits.

    Raises:
        ValueError: It is none of them, or fits several choices.
    """
    texts, labels = choices
    if isinstance(answer, int) and not isinstance(answer, bool):
        fitting = {answer} & {*range(len(texts))}
    else:
        given = str(answer).strip()
        readings = [labels] if labels else [texts, LETTERS[: len(texts)]]
        fitting = {n for reading in readings for n, each in enumerate(reading) if each == given}
        if not fitting and given.isdecimal():
            fitting = {int(given)} & {*range(len(texts))}
    if len(fitting) != 1:
        why = "fits several of" if fitting else "is none of"
        raise ValueError(f"the answer {answer!r} {why} the choices {[*labels] or [*texts]}")
    return fitting.pop()
