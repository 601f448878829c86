"""What pydantic found in a file, in words for its user."""

from pydantic import ValidationError


def in_one_line(error: ValidationError) -> str:
    """Say everything that was found, without pydantic's links."""
    return "; ".join(
        f"{'.'.join(map(str, each['loc']))!r}: {each['msg']}" if each["loc"] else each["msg"]
        for each in error.errors()
    )
