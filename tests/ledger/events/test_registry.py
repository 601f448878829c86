"""Events become bytes and events again."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.events.fact import type_name
from ledger.events.registry import EVENT_TYPES, Event, decode, encode
from tests.builders import key, verdict
from tests.strategies import BY_TYPE, events


@pytest.mark.parametrize("name", EVENT_TYPES)
@settings(deadline=None, max_examples=30)
@given(data=st.data())
def test_an_event_of_any_content_survives_being_stored(name: str, data: st.DataObject) -> None:
    """What is folded years later is what happened, to the last digit of a float."""
    event = data.draw(BY_TYPE[name])

    stored = encode(event)
    restored = decode(name, event.schema_version, stored)

    assert restored == event
    assert encode(restored) == stored


@settings(deadline=None, max_examples=30)
@given(event=events())
def test_a_stored_event_is_plain_json_without_its_type(event: Event) -> None:
    """The type is a column; told twice it could disagree with itself."""
    stored = json.loads(encode(event))

    assert stored.keys() == type(event).model_fields.keys() - {"type"}


@pytest.mark.parametrize("name", EVENT_TYPES)
def test_an_events_type_is_its_class_name(name: str) -> None:
    """Users read these names in the log and find the class by them."""
    event_type = EVENT_TYPES[name]

    assert event_type.__name__ == name
    assert type_name(event_type) == name


def test_an_unknown_type_is_named() -> None:
    """A ledger written by a later tourney says so instead of being half read."""
    with pytest.raises(LookupError, match="no event type 'PairSettled'; a later tourney may know"):
        decode("PairSettled", 1, b"{}")


def test_an_unknown_schema_version_is_named() -> None:
    """Fields of a later version may mean something else under the same name."""
    with pytest.raises(LookupError, match="VerdictReceived version 2, known here: 1; a later"):
        decode("VerdictReceived", 2, encode(verdict(key("query"))))


@pytest.mark.parametrize(
    ("stored", "complaint"),
    [
        (b"", "Invalid JSON"),
        (b"[]", "Input should be an object"),
        (b"{}", "Field required"),
        (b'{"verdict":"C"}', "Input should be 'A', 'B' or 'TIE'"),
        (b'{"confidence":1}', "Extra inputs are not permitted"),
    ],
)
def test_bytes_of_a_wrong_shape_are_refused(stored: bytes, complaint: str) -> None:
    """There is no default that could pass for what a judge said."""
    with pytest.raises(ValueError, match=complaint):
        decode("VerdictReceived", 1, stored)


def test_a_number_that_is_not_finite_is_no_fact() -> None:
    """NaN in a payload would be unequal to itself and refuse every retry."""
    stored = b'{"elapsed_s":NaN}'

    with pytest.raises(ValueError, match=r"elapsed_s\n +Input should be a finite number"):
        decode("ResponseGenerated", 1, stored)


def test_a_fact_cannot_be_changed_after_it_happened() -> None:
    """A frozen event can be shared by all projections of one reading."""
    event = verdict(key("query"))

    with pytest.raises(ValueError, match="frozen"):
        event.verdict = "B"  # type: ignore[misc]  # it is what the test is about
