"""The laws of folding, kept by the projections."""

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ledger.events.registry import EVENTS, Event
from ledger.events.values import type_name
from ledger.identity import StreamId
from ledger.recorded import Recorded
from ledger.store import Ledger
from projections.battles.imported_sets import IMPORTED_BATTLES, IMPORTED_RATINGS
from projections.evaluations.samples import asked_evaluations_of
from projections.fold import Projection, both, fold
from projections.tournament.folding import advance, tournament_of
from projections.tournament.spend import spend_of
from tests.support.builders.events import NOON, STREAM, opened, recorded
from tests.support.strategies.events import histories as any_histories
from tests.support.strategies.tournaments import tournament_histories

OTHER = StreamId("other")
TOURNAMENT = tournament_of(STREAM)
SPEND = spend_of(STREAM)
PROJECTIONS: tuple[Projection[Any], ...] = (
    TOURNAMENT,
    IMPORTED_BATTLES,
    IMPORTED_RATINGS,
    both(TOURNAMENT, SPEND),
    asked_evaluations_of(STREAM),
)


def copied(event: Event) -> Event:
    """Return an equal event that shares no object with it."""
    return EVENTS.decode(type_name(event), type(event).schema_version, EVENTS.encode(event))


def interleaved(ours: list[Event], theirs: list[Event], turns: list[bool]) -> tuple[Recorded, ...]:
    """Record two tournaments in one ledger, taking turns until one of them has no more."""
    streams = {True: (STREAM, iter(ours)), False: (OTHER, iter(theirs))}
    with Ledger.in_memory(now=lambda: NOON) as ledger:
        for turn in [*turns, *[True] * len(ours), *[False] * len(theirs)]:
            stream, events = streams[turn]
            ledger.append(stream, [event for event in (next(events, None),) if event])
        return tuple(ledger.read())


@given(history=tournament_histories() | any_histories(), data=st.data())
def test_a_fold_may_stop_and_resume(history: list[Event], data: st.DataObject) -> None:
    """A run folds on from the state in hand after each append, and never reads it all again."""
    events = recorded(history)
    at = data.draw(st.integers(min_value=0, max_value=len(events)))

    for projection in PROJECTIONS:
        in_hand = fold(projection, events[:at])
        resumed = fold(projection, events[at:], start=in_hand)

        assert resumed == fold(projection, events)


@given(history=tournament_histories())
def test_two_states_of_one_reading_are_those_of_two(history: list[Event]) -> None:
    """A report needs both, and a long ledger is read in seconds."""
    events = recorded(history)

    assert fold(both(TOURNAMENT, SPEND), iter(events)) == (
        fold(TOURNAMENT, events),
        fold(SPEND, events),
    )


@given(history=tournament_histories() | any_histories())
def test_an_earlier_state_is_left_as_it_was(history: list[Event]) -> None:
    """A draft changes in place what it was given; nobody else may see that."""
    events = recorded(history)
    states = [TOURNAMENT.initial]
    for event in events:
        states.append(advance(states[-1], (event,)))

    advance(states[0], events)

    assert states == [fold(TOURNAMENT, events[:n]) for n in range(len(events) + 1)]
    for projection in PROJECTIONS:
        before = fold(projection, events[: len(events) // 2])
        fold(projection, events[len(events) // 2 :], start=before)
        assert before == fold(projection, events[: len(events) // 2])


@given(history=tournament_histories() | any_histories())
def test_equal_events_give_equal_states(history: list[Event]) -> None:
    """A replay on another machine reads other objects with the same content."""
    events = recorded(history)
    read_again = [each._replace(event=copied(each.event)) for each in events]

    for projection in PROJECTIONS:
        assert fold(projection, read_again) == fold(projection, events)


@given(
    ours=tournament_histories(),
    theirs=tournament_histories(),
    turns=st.lists(st.booleans(), max_size=20),
)
def test_another_tournament_adds_only_what_content_names(
    ours: list[Event], theirs: list[Event], turns: list[bool]
) -> None:
    """Tournaments in one ledger share paid answers, and nothing else may leak between them."""
    events = interleaved(ours, theirs, turns)

    alone = fold(TOURNAMENT, [each for each in events if each.stream == STREAM])
    together = fold(TOURNAMENT, events)

    assert set(alone.responses) <= set(together.responses)
    assert set(alone.verdicts) <= set(together.verdicts)
    assert set(alone.batches) <= set(together.batches)
    assert dict(alone.query_failures).items() <= dict(together.query_failures).items()
    assert alone == replace(
        together,
        responses=alone.responses,
        verdicts=alone.verdicts,
        batches=alone.batches,
        query_failures=alone.query_failures,
        newest=alone.newest,
    )


def test_any_function_of_state_and_events_can_be_folded() -> None:
    """A projection of one's own needs a start and a step, and no class to inherit from."""
    versions: Projection[tuple[int, ...]] = Projection(
        initial=(), advance=lambda seen, events: (*seen, *(each.version for each in events))
    )

    seen = fold(versions, recorded(opened()[:2]))

    assert seen == (1, 2)
