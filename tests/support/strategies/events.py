"""Strategies of events: any valid event, and histories that a ledger takes."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, TypeVar, get_args

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from ledger.events.evaluations import EvaluationItem, EvaluationPlanned, ItemRegistered, item_digest
from ledger.events.imports import (
    MAX_WEIGHT,
    MIN_WEIGHT,
    BattlesImported,
    CodedColumn,
    JurorSaid,
    JurorVote,
    Source,
    VoteSample,
    Winner,
    encode_cells,
)
from ledger.events.registration import Registration
from ledger.events.registry import EVENTS, Event
from ledger.events.values import EventRedacted, type_name
from tests.support.strategies.values import (
    LABELS,
    TEXTS,
    built,
    digests,
    of_annotation,
    tuples,
)

_Cell = TypeVar("_Cell")
_LENGTHS: Final = st.integers(min_value=0, max_value=10**9)


def registered(event: type[Registration]) -> SearchStrategy[Registration]:
    """Return registrations under their true digests."""
    name, _ = event.label_at
    contents: SearchStrategy[Any] = of_annotation(event.__annotations__[name])
    return contents.map(lambda each: event(**{name: each, "digest": each.content_digest}))


def item_registered() -> SearchStrategy[ItemRegistered]:
    """Return registrations of items, under their true digests."""
    return st.builds(
        lambda each, copy: ItemRegistered(
            item=item_digest(each.content, copy), copy=copy, asked=each
        ),
        of_annotation(EvaluationItem),
        st.integers(min_value=1),
    )


@st.composite
def battles_imported(draw: DrawFn) -> BattlesImported:
    """Draw battles; who won and what was preferred need not go together."""
    entrants = tuple(draw(st.lists(LABELS, min_size=2, max_size=4, unique=True)))
    pair = st.permutations(entrants).map(lambda each: each[:2])
    a, b = zip(*draw(st.lists(pair, min_size=1, max_size=6)), strict=True)

    def column(cells: SearchStrategy[_Cell]) -> CodedColumn[_Cell]:
        return CodedColumn.of(draw(st.lists(cells, min_size=len(a), max_size=len(a))))

    said = st.builds(JurorVote, LABELS, st.sampled_from(get_args(JurorSaid)))
    return draw(
        built(
            BattlesImported,
            entrants=st.just(entrants),
            a=st.just(encode_cells(a, entrants)),
            b=st.just(encode_cells(b, entrants)),
            winners=st.just(column(st.sampled_from(get_args(Winner)))),
            prefs=st.just(column(st.none() | st.floats(min_value=0, max_value=1))),
            prompts=st.just(column(st.none() | TEXTS)),
            sources=st.just(column(st.sampled_from(get_args(Source)))),
            judges=st.just(column(st.none() | TEXTS)),
            weights=st.just(column(st.floats(min_value=MIN_WEIGHT, max_value=MAX_WEIGHT))),
            votes=st.just(column(tuples(said))),
            categories=st.just(column(st.sampled_from(((), ("math",), ("a b", "math"))))),
            languages=st.just(column(st.none() | LABELS)),
            lengths_a=st.just(column(st.none() | _LENGTHS)),
            lengths_b=st.just(column(st.none() | _LENGTHS)),
            drawn=st.none() | built(VoteSample) if len(a) == 1 else st.none(),
        )
    )


BY_TYPE: Final[Mapping[str, SearchStrategy[Any]]] = MappingProxyType(
    {
        **{name: built(each) for name, each in EVENTS.types.items() if each is not BattlesImported},
        **{type_name(each): registered(each) for each in get_args(Registration)},
        "BattlesImported": battles_imported(),
        "ItemRegistered": item_registered(),
        "EvaluationPlanned": built(
            EvaluationPlanned, items=st.lists(digests(3), unique=True).map(tuple)
        ),
    }
)


def histories(max_size: int = 8) -> SearchStrategy[list[Event]]:
    """Return events that one stream takes: no two under the same key, and nothing redacted."""
    untold = [each for name, each in BY_TYPE.items() if name != type_name(EventRedacted)]
    return st.lists(
        st.one_of(untold),
        max_size=max_size,
        unique_by=lambda event: (type_name(event), tuple(event.natural_key)),
    )
