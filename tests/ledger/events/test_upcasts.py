"""Reading what older versions of an event said, step by step."""

import json
from functools import reduce
from itertools import product
from typing import ClassVar

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from ledger.errors import BrokenUpcasts
from ledger.events.registry import EVENTS, Fields, Registry, Upcast
from ledger.events.values import Fact
from tests.ledger.weighed import STEPS, Weighed, named

LATEST = 6


class Noted(Fact, frozen=True):
    """Something was noted; its first version."""

    what: str


class Counted(Fact, frozen=True):
    """Something was counted often enough to have many versions."""

    schema_version: ClassVar[int] = LATEST

    count: int
    steps: tuple[int, ...]


TYPES: tuple[type[Fact], ...] = (Weighed, Noted)


def registry(upcasts: dict[tuple[str, int], Upcast]) -> Registry[Fact]:
    """Return the registry of the events above."""
    return Registry(TYPES, upcasts)


@pytest.mark.parametrize(
    ("version", "stored"),
    [
        (1, b'{"name":"salt","kilograms":0.5}'),
        (2, b'{"what":"salt","kilograms":0.5}'),
        (3, b'{"what":"salt","grams":500.0}'),
    ],
)
def test_an_event_of_any_version_is_read_as_it_is_now(version: int, stored: bytes) -> None:
    """Projections know one version of each event, however old the ledger is."""
    event = registry(STEPS).decode("Weighed", version, stored)

    assert event == Weighed("salt", 500.0)


def test_what_is_read_from_an_older_version_is_written_in_the_newest() -> None:
    """Stored bytes are never rewritten; a new append speaks as the program does now."""
    events = registry(STEPS)
    read = events.decode("Weighed", 1, b'{"name":"salt","kilograms":0.5}')

    stored = events.encode(read)

    assert stored == b'{"what":"salt","grams":500.0}'


def affine(step: int, factor: int, summand: int) -> Upcast:
    """Return a step that changes the count so, and notes that it was taken."""

    def upcast(fields: Fields) -> Fields:
        count, steps = fields["count"], fields["steps"]
        assert isinstance(count, int)
        assert isinstance(steps, list)
        return {"count": count * factor + summand, "steps": [*steps, step]}

    return upcast


def chains() -> SearchStrategy[list[Upcast]]:
    """Return a step from every version but the last, no two of which may change places."""
    few = st.integers(min_value=-9, max_value=9)
    return st.tuples(*[st.builds(affine, st.just(n), few, few) for n in range(1, LATEST)]).map(list)


@given(steps=chains(), version=st.integers(1, LATEST), count=st.integers(-99, 99))
def test_reading_an_older_version_is_taking_every_step(
    steps: list[Upcast], version: int, count: int
) -> None:
    """No step is left out, taken twice or taken out of order, from wherever one starts."""
    events = Registry([Counted], {("Counted", n): step for n, step in enumerate(steps, start=1)})
    fields: Fields = {"count": count, "steps": []}

    read = events.decode("Counted", version, json.dumps(fields).encode())

    expected = reduce(lambda said, step: step(said), steps[version - 1 :], fields)
    assert read == msgspec.convert(expected, Counted)
    assert read.steps == tuple(range(version, LATEST))


@pytest.mark.parametrize("missing", [*STEPS])
def test_a_missing_step_is_found_before_any_event_is_read(missing: tuple[str, int]) -> None:
    """A program that cannot read its own old ledgers must not start."""
    steps = {place: step for place, step in STEPS.items() if place != missing}

    with pytest.raises(BrokenUpcasts, match=r"missing upcasts: \[\('Weighed', \d\)\]") as caught:
        registry(steps)

    assert (set(caught.value.missing), set(caught.value.extra)) == ({missing}, set())


@pytest.mark.parametrize("extra", [("Weighed", 0), ("Weighed", 3), ("Noted", 1), ("Lost", 1)])
def test_a_step_that_leads_nowhere_is_found(extra: tuple[str, int]) -> None:
    """A new step without the new version, or a misspelt type, would never be taken."""
    with pytest.raises(BrokenUpcasts, match=r"unknown upcasts: \[\('") as caught:
        registry({**STEPS, extra: named})

    assert (set(caught.value.missing), set(caught.value.extra)) == (set(), {extra})


def test_a_newer_version_says_which_are_known() -> None:
    """The user learns that another tourney is needed, not that the ledger is broken."""
    with pytest.raises(LookupError) as caught:
        registry(STEPS).decode("Weighed", 4, b"{}")

    needed = "unknown version 4 of Weighed (known: 1 to 3); a newer tourney may know it"
    assert caught.value.args == (needed,)


def test_a_version_before_the_first_is_unknown() -> None:
    """There is no such thing, so nothing can be guessed from it."""
    with pytest.raises(LookupError, match=r"unknown version 0 of Weighed \(known: 1 to 3\)"):
        registry(STEPS).decode("Weighed", 0, b'{"name":"salt","kilograms":0.5}')


@pytest.mark.parametrize(
    ("version", "stored"),
    [
        *product((1, 2, 3), (b"", b"[]", b'"salt"', b"{}", b"\xff")),
        (1, b'{"name":7,"kilograms":0.5}'),
        (2, b'{"what":null,"kilograms":0.5}'),
    ],
)
def test_damaged_bytes_of_any_version_do_not_fit(version: int, stored: bytes) -> None:
    """An audit goes on behind them, so they must not be taken for a bug or an unknown type."""
    with pytest.raises(ValueError, match=r"."):
        registry(STEPS).decode("Weighed", version, stored)


def test_every_version_that_was_ever_written_can_be_read() -> None:
    """The registry of the program itself: checked whenever it starts, and here."""
    versions = {(name, n) for name, each in EVENTS.types.items() for n in versions_of(each)}

    assert set(EVENTS.decoders) == versions


def versions_of(event_type: type[Fact]) -> range:
    """Return the versions that an event has had."""
    return range(1, event_type.schema_version + 1)
