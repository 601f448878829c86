"""Events become bytes and events again."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import fields

from ledger.events.registry import EVENTS, Event
from ledger.events.values import type_name
from tests.builders import key, verdict
from tests.strategies import BY_TYPE, events


@pytest.mark.parametrize("name", EVENTS.types)
@given(data=st.data())
def test_an_event_of_any_content_survives_being_stored(name: str, data: st.DataObject) -> None:
    """What is folded years later is what happened, to the last digit of a float."""
    event = data.draw(BY_TYPE[name])

    stored = EVENTS.encode(event)
    restored = EVENTS.decode(name, event.schema_version, stored)

    assert restored == event
    assert EVENTS.encode(restored) == stored


@given(event=events())
def test_a_stored_event_is_plain_json_without_its_type(event: Event) -> None:
    """The type is a column; told twice it could disagree with itself."""
    stored = json.loads(EVENTS.encode(event))

    assert stored.keys() == {field.name for field in fields(type(event))}


@pytest.mark.parametrize("name", EVENTS.types)
def test_an_events_type_is_its_class_name(name: str) -> None:
    """Users read these names in the log and find the class by them."""
    event_type = EVENTS.types[name]

    assert event_type.__name__ == name
    assert type_name(event_type) == name


def test_an_unknown_type_is_named() -> None:
    """A ledger written by a later tourney says so instead of being half read."""
    with pytest.raises(
        LookupError, match="unknown event type 'PairSettled'; a newer tourney may know"
    ):
        EVENTS.decode("PairSettled", 1, b"{}")


def test_an_unknown_schema_version_is_named() -> None:
    """Fields of a later version may mean something else under the same name."""
    with pytest.raises(
        LookupError, match=r"unknown version 2 of VerdictReceived \(known: 1\); a newer tour"
    ):
        EVENTS.decode("VerdictReceived", 2, EVENTS.encode(verdict(key("query"))))


@pytest.mark.parametrize(
    ("stored", "complaint"),
    [
        (b"", "truncated"),
        (b"[]", "Expected `object`, got `array`"),
        (b"{}", "missing required field `query_key`"),
        (b'{"verdict":"C"}', r"Invalid enum value 'C' - at `\$.verdict`"),
        (b'{"confidence":1}', "unknown field `confidence`"),
    ],
)
def test_bytes_of_a_wrong_shape_are_refused(stored: bytes, complaint: str) -> None:
    """There is no default that could pass for what a judge said."""
    with pytest.raises(ValueError, match=complaint):
        EVENTS.decode("VerdictReceived", 1, stored)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999", "null"])
def test_a_number_that_is_not_finite_is_not_read(number: str) -> None:
    """NaN in a payload would be unequal to itself and refuse every retry."""
    stored = b'{"diagnostics":{"entropies":[%s]}}' % number.encode()

    with pytest.raises(ValueError, match=r"malformed|out of range|Expected `float`, got `null`"):
        EVENTS.decode("ResponseGenerated", 1, stored)


def test_a_fact_cannot_be_changed_after_it_happened() -> None:
    """A frozen event can be shared by all projections of one reading."""
    event = verdict(key("query"))

    with pytest.raises(AttributeError, match="immutable"):
        event.verdict = "B"  # type: ignore[misc]  # it is what the test is about
