"""Read a question, its choices and its answer from the fields of a row, as a table names them.

A name is a field, a field within a field, or a Jinja template, which can reach nothing else.
"""

import difflib
import re
from collections.abc import Mapping, Sequence
from functools import cache
from string import ascii_uppercase
from typing import Final, NamedTuple

from jinja2 import StrictUndefined, Template, TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from commands.importing.formats.rows import Fields

_LETTERS: Final = ascii_uppercase
_TEXT_KEYS: Final = ("text", "value")
_LABEL_KEYS: Final = ("label", "key")


class ChoiceQuestion(NamedTuple):
    """A question, its choices, and the index of the correct one."""

    text: str
    choices: tuple[str, ...]
    correct: int

    def lettered(self) -> "ChoiceQuestion":
        """Return the question with its choices listed by letter, and the letters as choices."""
        letters = tuple(_LETTERS[: len(self.choices)])
        lines = (f"{letter}. {text}" for letter, text in zip(letters, self.choices, strict=True))
        return ChoiceQuestion("\n".join([self.text, *lines]), letters, self.correct)


def choice_question(
    fields: Fields, *, question: str, choices: str | Sequence[str], answer: str
) -> ChoiceQuestion:
    """Return a row's question.

    Raises:
        ValueError: A field is missing, or does not make sense.
    """
    if isinstance(choices, str):
        texts, labels = choices_of(choices, fields)
    else:
        texts, labels = _constant_or_fields(choices, fields), ()
    if not 2 <= len(texts) <= len(_LETTERS):  # noqa: PLR2004  # one alone is always right
        raise ValueError(f"there are {len(texts)} choices; it takes 2 to {len(_LETTERS)}")
    if not all(texts):
        raise ValueError("a choice is empty")
    correct = _answer_index(value_of(answer, fields), texts, labels)
    return ChoiceQuestion(text_of(question, fields), texts, correct)


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


def choices_of(name: str, fields: Fields) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the choices of a field, and their labels if it gives some.

    It is a list of texts, or texts with labels in one of three layouts: `{"text": [...], "label":
    [...]}` (ARC), `{"A": "...", "B": "..."}` and `[{"key": "A", "value": "..."}]` (both of MedQA).

    Raises:
        ValueError: The field is missing, or has another layout.
    """
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


def _constant_or_fields(names: Sequence[str], fields: Fields) -> tuple[str, ...]:
    """Return the texts of several fields; names that are no fields at all are texts themselves."""
    if any(_is_template(name) or name in fields for name in names):
        return tuple(text_of(name, fields) for name in names)
    return tuple(names)


def _answer_index(answer: object, texts: Sequence[str], labels: Sequence[str]) -> int:
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
