"""Reading a rubric: a version on the first line, TOML front matter, then Markdown for the judge.

<!-- version: 1 -->
+++
needs_gold = true
+++
# Factuality
"""

import re
import tomllib
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from commands.errors import ConfigurationError
from commands.section import Section
from ledger.events.registration import Rubric
from ledger.identity import Dimension

_VERSION: Final = re.compile(r"<!--\s*version:\s*(\S+)\s*-->")
_FRONT_MATTER: Final = re.compile(r"\+\+\+\n(.*?)\n\+\+\+\n", re.DOTALL)


class FrontMatter(Section):
    """What of the prompt the judge is shown beside the question."""

    needs_gold: bool
    shows_expected_behavior: bool = False


def read_rubric(path: Path, dimension: Dimension) -> Rubric:
    """Read a rubric file.

    Raises:
        ConfigurationError: The file is missing, has no version, or its front matter is wrong.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError([f"{path}: the rubric cannot be read: {error}"]) from error
    first_line, _, rest = text.partition("\n")
    version = _VERSION.fullmatch(first_line.strip())
    if version is None:
        raise ConfigurationError(
            [f"{path}:1: a rubric begins with its version, as in <!-- version: 1 -->"]
        )
    front_matter = _front_matter(path, rest)
    return Rubric(
        dimension=dimension,
        version=version[1],
        needs_gold=front_matter.needs_gold,
        shows_expected_behavior=front_matter.shows_expected_behavior,
        text=text,
    )


def _front_matter(path: Path, rest: str) -> FrontMatter:
    block = _FRONT_MATTER.match(rest)
    if block is None:
        raise ConfigurationError(
            [f"{path}:2: front matter is missing: +++, then needs_gold = true or false, then +++"]
        )
    try:
        return FrontMatter.model_validate(tomllib.loads(block[1]))
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError([f"{path}:2: the front matter is not TOML: {error}"]) from error
    except ValidationError as error:
        raise ConfigurationError(
            [f"{path}:2: the front matter is wrong: {_in_one_line(error)}"]
        ) from error


def _in_one_line(error: ValidationError) -> str:
    """Say everything that was found, without pydantic's links."""
    return "; ".join(
        f"{'.'.join(map(str, each['loc']))!r}: {each['msg']}" if each["loc"] else each["msg"]
        for each in error.errors()
    )
