"""Fill in Jinja templates with the fields of a row; a template can reach nothing else."""

import re
from collections.abc import Mapping
from functools import cache
from typing import Final

from jinja2 import StrictUndefined, Template, TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

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


def fill_in(template: str, fields: Mapping[str, object]) -> str:
    """Return a template's text for one row.

    Raises:
        ValueError: The template is wrong, or asks for a field that the row lacks.
    """
    try:
        return _compiled(template).render(fields)
    except _FAULTS as error:
        raise ValueError(f"{template!r}: {error}") from error


@cache
def _compiled(template: str) -> Template:
    return _ENVIRONMENT.from_string(template)
