"""What a user reads of a wrong value is in our words, not in those of pydantic or msgspec."""

import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import Meta
from pydantic import BaseModel, ValidationError

from commands.errors import fault_of_pydantic, place_and_fault
from commands.settings.schema import Settings
from commands.settings.sections import LOADERS
from ledger.events.registration import Prompt

WRONG: tuple[object, ...] = (
    *(None, True, -1, 0, 1.5, 10**30, float("inf"), float("nan")),
    *("", "a b!", "x", [], [1], {}, {"a": 1}),
)
THEIRS = re.compile(r"Input should|should|Expected|Invalid|valid |Object|Extra inputs|\btype\b")


class Limited(msgspec.Struct):
    """Every limit that msgspec knows and a file of ours has."""

    text: Annotated[str, Meta(min_length=1)] = "x"
    long: Annotated[str, Meta(min_length=3)] = "xyz"
    name: Annotated[str, Meta(pattern=r"^[\w-]+$")] = "x"
    share: Annotated[float, Meta(gt=0, le=1)] = 0.5
    count: Annotated[int, Meta(ge=0, lt=1000)] = 0
    word: Literal["a", "b"] = "a"
    both: tuple[str, int] = ("x", 1)
    maybe: bool | None = None
    inner: dict[str, float] = {}  # msgspec copies it


def fault(**fields: object) -> tuple[str, str]:
    """Return what is wrong with some fields."""
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.convert(fields, Limited, str_keys=True)
    return place_and_fault(caught.value)


@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        ("text", "", "must not be empty"),
        ("text", 3, "must be a text, not a whole number"),
        ("text", None, "must be a text, not null"),
        ("long", "x", "must have 3 characters or more"),
        ("name", "a b", "must have letters, digits, dashes and underscores only"),
        ("share", 0.0, "must be above 0"),
        ("share", 1.5, "must be at most 1"),
        ("share", "x", "must be a number, not a text"),
        ("count", -1, "must be 0 or more"),
        ("count", 1000, "must be at most 999"),
        ("word", "c", "'c' is none of its values"),
        ("both", ["x"], "must have 2 entries, not 1"),
        ("maybe", 1, "must be true or false or null, not a whole number"),
        ("inner", [], "must be an object, not a list"),
    ],
)
def test_a_field_out_of_its_limits_is_told_plainly(field: str, value: object, why: str) -> None:
    """`Expected str of length >= 1` is for who wrote the program."""
    assert fault(**{field: value}) == (field, why)


def test_fields_that_are_missing_or_unknown_are_told_plainly() -> None:
    """They are the most frequent faults of a file."""
    with pytest.raises(msgspec.ValidationError) as missing:
        msgspec.convert({}, Prompt)

    assert place_and_fault(missing.value) == ("", "'prompt_id' is missing")


def wrong_settings() -> Iterator[tuple[type[BaseModel], str, object]]:
    """Yield every key of every section with every wrong value."""
    sections = [
        kind
        for field in Settings.model_fields.values()
        for kind in (field.annotation, *getattr(field.annotation, "__args__", ()))
        if isinstance(kind, type) and issubclass(kind, BaseModel)
    ]
    for section in (*sections, *LOADERS.values()):
        for key in section.model_fields:
            for value in WRONG:
                yield section, key, value


def test_no_key_of_the_settings_answers_in_pydantics_words() -> None:
    """Whatever is written there, by whoever adds the next key."""
    told: set[str] = set()
    for section, key, value in wrong_settings():
        try:
            section.model_validate({key: value})
        except ValidationError as error:
            of_key = [each for each in error.errors() if each["loc"][0] == key]
            told |= {fault_of_pydantic(each) for each in of_key if each["type"] != "missing"}

    assert len(told) > 20
    assert [each for each in told if THEIRS.search(each) or "pattern" in each] == []


@pytest.mark.parametrize(
    ("error", "why"),
    [
        ({"type": "missing", "msg": "Field required"}, "it is missing"),
        (
            {"type": "extra_forbidden", "msg": "Extra inputs are not permitted"},
            "it is not known here",
        ),
        ({"type": "greater_than", "ctx": {"gt": 0}}, "must be above 0"),
        ({"type": "less_than_equal", "ctx": {"le": 0.5}}, "must be at most 0.5"),
        ({"type": "less_than", "ctx": {"lt": 2**32}}, "must be below 4,294,967,296"),
        ({"type": "ours", "msg": "greedy decoding ignores it"}, "greedy decoding ignores it"),
    ],
)
def test_what_pydantic_says_is_said_plainly(error: dict[str, Any], why: str) -> None:
    """What it does not know itself is ours already."""
    assert fault_of_pydantic(error) == why
