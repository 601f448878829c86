"""Strategies of the values that events are made of."""

from datetime import UTC, datetime
from typing import Any, Final, TypeVar, cast

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from msgspec.structs import fields

from ledger.events.money import Price, Usage
from ledger.events.values import MAX_POINTS, MAX_REPEATS, MIN_SPREAD, Value
from ledger.identity import Digest, digest_of

_Element = TypeVar("_Element")
_Model = TypeVar("_Model", bound=Value)

TEXTS: Final = st.text(max_size=20)
LABELS: Final = st.text(min_size=1, max_size=8)
COUNTS: Final = st.integers(min_value=0)
FEW: Final = st.integers(min_value=0, max_value=2)
ORDINALS: Final = st.integers(min_value=1)
FINITE: Final = st.floats(allow_nan=False, allow_infinity=False)
DOLLARS: Final = st.floats(min_value=0, max_value=1e9)
POSITIVE: Final = st.floats(min_value=0, exclude_min=True, allow_infinity=False)
STEPS: Final = st.floats(min_value=0, exclude_min=True, max_value=MAX_POINTS)
SPREADS: Final = st.floats(min_value=MIN_SPREAD, max_value=MAX_POINTS)
RATINGS: Final = st.floats(min_value=-MAX_POINTS, max_value=MAX_POINTS)
REPEATS: Final = st.integers(min_value=1, max_value=MAX_REPEATS)


def tuples(of: SearchStrategy[_Element]) -> SearchStrategy[tuple[_Element, ...]]:
    """Return tuples of up to three elements."""
    return st.lists(of, max_size=3).map(tuple)


def built(model: type[_Model], **known: SearchStrategy[Any]) -> SearchStrategy[_Model]:
    """Fill the fields that are not named from their annotations, which say no limits."""
    inferred = {
        field.name: st.from_type(cast("type[Any]", field.type))
        for field in fields(model)
        if field.name not in known
    }
    return st.builds(model, **inferred, **known)


def digests() -> SearchStrategy[Digest]:
    """Return digests of this and that; two are often the same."""
    return st.integers(min_value=0, max_value=99).map(digest_of)


def moments() -> SearchStrategy[datetime]:
    """Return times in UTC."""
    start = datetime(1970, 1, 1)  # noqa: DTZ001  # Hypothesis wants its limits naive
    return st.datetimes(min_value=start, timezones=st.just(UTC))


def usages() -> SearchStrategy[Usage]:
    """Return counts of tokens."""
    counts = dict.fromkeys(Usage.__struct_fields__, COUNTS)
    return built(Usage, **counts)


def prices() -> SearchStrategy[Price]:
    """Return prices, of which some are nothing."""
    dollars = {name: DOLLARS for name in Price.__struct_fields__ if name != "table"}
    return built(Price, **dollars)
