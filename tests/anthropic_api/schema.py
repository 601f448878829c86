"""The JSON schemas that structured outputs take, and a value of one."""

from collections.abc import Iterator, Mapping
from typing import Final

from tests.anthropic_api.errors import invalid
from tests.anthropic_api.prompt import object_of

_REFUSED_KEYWORDS: Final = frozenset(
    {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}
    | {"minLength", "maxLength", "maxItems", "uniqueItems"}
)


def check_schema(schema: object, where: str = "output_config.format.schema") -> None:
    """Check a schema for what structured outputs do not take.

    Raises:
        ApiError: an object that allows more properties, or a limit of size or value (400).
    """
    fields = object_of(schema)
    if fields is None:
        return
    if fields.get("type") == "object" and fields.get("additionalProperties") is not False:
        raise invalid(f"{where}: 'additionalProperties' must be set to false")
    for keyword in sorted(_REFUSED_KEYWORDS & fields.keys()):
        raise invalid(f"{where}: property '{keyword}' is not supported")
    for name, below in _subschemas(fields):
        check_schema(below, f"{where}.{name}")


def _subschemas(fields: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    for keyword in ("properties", "$defs"):
        yield from (object_of(fields.get(keyword)) or {}).items()
    yield "items", fields.get("items")
    match fields.get("anyOf"):
        case [*choices]:
            yield from ((f"anyOf.{place}", choice) for place, choice in enumerate(choices))
        case _:
            pass


def value_of(schema: object, *, text: str, choice: str, number: int) -> object:
    """Return a value that a schema allows: texts are `text`, choices `choice` where it may be."""

    def within(below: object) -> object:
        return value_of(below, text=text, choice=choice, number=number)

    match schema:
        case {"enum": [*allowed]}:
            return choice if choice in allowed else allowed[number % len(allowed)]
        case {"const": value}:
            return value
        case {"anyOf": [first, *_]}:
            return within(first)
        case {"type": "object", "properties": properties}:
            return {name: within(below) for name, below in (object_of(properties) or {}).items()}
        case {"type": "array", "items": below}:
            return [within(below)]
        case {"type": str(kind)}:
            return {"boolean": number % 2 == 0, "integer": number % 10, "null": None}.get(
                kind, text
            )
        case _:
            return text
