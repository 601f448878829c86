"""What is wrong with a file's or an option's values, in words for its user."""

import re

import msgspec
from pydantic import ValidationError


def place_and_fault(error: msgspec.ValidationError) -> tuple[str, str]:
    """Return the dotted name of the field, empty for the whole, and what is wrong with it."""
    why, _, place = str(error).partition(" - at `$")
    return re.sub(r"^\.|`$", "", place), why.replace("`", "")


def in_one_line(error: ValidationError) -> str:
    """Say everything that was found, without pydantic's links."""
    return "; ".join(
        f"{'.'.join(map(str, each['loc']))!r}: {each['msg']}" if each["loc"] else each["msg"]
        for each in error.errors()
    )
