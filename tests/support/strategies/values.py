"""Strategies of values, made from the annotations by which msgspec checks them, limits included."""

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from types import MappingProxyType, NoneType, UnionType
from typing import Annotated, Any, Final, Literal, TypeVar, Union, get_args, get_origin

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import fields

from ledger.events.money import Price
from ledger.identity import (
    Digest,
    Dimension,
    EntrantId,
    JudgeId,
    PromptId,
    StreamId,
    digest_of,
)

Anything = SearchStrategy[Any]
_Model = TypeVar("_Model", bound=Struct)

TEXTS: Final = st.text(max_size=20)
LABELS: Final = st.text(min_size=1, max_size=8)
_WIDEST: Final = 1e9  # of a number with a lower limit alone: sums stay finite


def digests(n: int = 100) -> SearchStrategy[Digest]:
    """Return so many digests of this and that; two are often the same."""
    return st.integers(min_value=0, max_value=n - 1).map(digest_of)


def prices() -> SearchStrategy[Price]:
    """Return prices, of which some are nothing."""
    return built(Price)


def moments() -> SearchStrategy[datetime]:
    """Return times in UTC."""
    start = datetime(1970, 1, 1)  # noqa: DTZ001  # Hypothesis wants its limits naive
    return st.datetimes(min_value=start, timezones=st.just(UTC))


def tuples(of: SearchStrategy[Any]) -> SearchStrategy[tuple[Any, ...]]:
    """Return tuples of up to three elements."""
    return st.lists(of, max_size=3).map(tuple)


_LEAVES: Final[Mapping[object, Anything]] = MappingProxyType(
    {
        Digest: digests(),
        **dict.fromkeys((Dimension, EntrantId, JudgeId, PromptId, StreamId), LABELS),
        str: TEXTS,
        float: st.floats(allow_nan=False, allow_infinity=False),
        bool: st.booleans(),
        int: st.integers(),
        datetime: moments(),
        NoneType: st.none(),
        UnsetType: st.just(UNSET),
    }
)

# What is said of these is mostly of one that is there: few values for fields of these names.
_FEW: Final[Mapping[str, Anything]] = MappingProxyType(
    {
        "run_key": digests(2),
        "item": digests(3),
        "batch_key": digests(3),
        "query_key": digests(6),
        "sample": st.integers(min_value=0, max_value=2),
        "n_samples": st.integers(min_value=1, max_value=3),
        "attempt": st.integers(min_value=1),
        "limits": st.just((1.0, 10.0)),
    }
)


def built(model: type[_Model], **known: Anything) -> SearchStrategy[_Model]:
    """Fill the fields that are not named from their annotations."""
    inferred = {
        field.name: _field(field.name, field.type)
        for field in fields(model)
        if field.name not in known
    }
    return st.builds(model, **inferred, **known)


def _field(name: str, hint: Any) -> Anything:  # noqa: ANN401  # an annotation
    few = _FEW.get(name)
    if few is None:
        return of_annotation(hint)
    return st.none() | few if NoneType in get_args(hint) else few


@cache
def of_annotation(hint: Any) -> Anything:  # noqa: ANN401  # an annotation
    """Return values of an annotation."""
    parts = get_args(hint)
    match get_origin(hint):
        case None:
            return _LEAVES[hint] if hint in _LEAVES else built(hint)
        case origin if origin is Annotated:
            return _within(parts[0], parts[1])
        case origin if origin is Literal:
            return st.sampled_from(parts)
        case origin if origin in {Union, UnionType}:
            return st.one_of(*map(of_annotation, parts))
        case _ if parts[-1] is ...:
            return tuples(of_annotation(parts[0]))
        case _:
            return st.tuples(*map(of_annotation, parts))


def _within(of: Any, limits: Meta) -> Anything:  # noqa: ANN401  # an annotation
    lowest: Any = limits.gt if limits.ge is None else limits.ge
    if of is int:
        highest: Any = limits.le if limits.lt is None else limits.lt - 1
        return st.integers(min_value=lowest, max_value=highest)
    if of is float:
        return st.floats(lowest, limits.le or _WIDEST, exclude_min=limits.gt is not None)
    if limits.pattern is not None:
        return st.from_regex(limits.pattern, fullmatch=True)
    return LABELS if limits.min_length else of_annotation(of)
