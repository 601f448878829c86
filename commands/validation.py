"""What is wrong with a file's or an option's values, in words for its user."""

import re

import msgspec


def place_and_fault(error: msgspec.ValidationError) -> tuple[str, str]:
    """Return the dotted name of the field, empty for the whole, and what is wrong with it."""
    why, _, place = str(error).partition(" - at `$")
    return re.sub(r"^\.|`$", "", place), why.replace("`", "")
