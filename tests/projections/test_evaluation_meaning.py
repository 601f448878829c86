"""Do the events of evaluations follow from what they cite?"""

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from ledger.events.registry import Event
from ledger.identity import StreamId
from ledger.recorded import Recorded
from projections.consistency import ConsistencyCheck
from tests.builders import key, opened, recorded
from tests.evaluations import answer, choice, choices, completed, observed, plan, unscorable

PLANNED = plan(n_items=2)
SEEN = observed(PLANNED, [answer()])
OTHER = StreamId("other")


def faults_of(events: Sequence[Recorded]) -> list[str]:
    """Return what is wrong with events, in order."""
    meaning = ConsistencyCheck()
    return [fault for each in events for fault in meaning.faults_of(each)]


def faults(*events: Event) -> list[str]:
    """Return what is wrong with events of one tournament."""
    return faults_of(recorded(events))


def test_a_run_that_was_planned_observed_and_counted_has_no_fault() -> None:
    """The sound case, beside events that are none of this."""
    assert not faults(*opened(), PLANNED, *SEEN, unscorable(PLANNED, 1), completed(PLANNED, 1, 1))


@pytest.mark.parametrize("event", [SEEN[0], unscorable(PLANNED)])
def test_what_was_not_planned_is_a_fault(event: Event) -> None:
    """Nobody could say which entrant it is of."""
    [fault] = faults(event, PLANNED)

    assert "was not planned before it" in fault


def test_the_end_of_what_was_not_planned_is_a_fault() -> None:
    """Nobody could say what it counts."""
    [fault] = faults(completed(PLANNED, 2), PLANNED)

    assert fault == "no plan 1 of base on recall was recorded before it"


@pytest.mark.parametrize("event", [replace(SEEN[0], item=key("?")), replace(SEEN[0], sample=1)])
def test_a_sample_that_is_not_of_the_plan_is_a_fault(event: Event) -> None:
    """It would be in no metric, and yet look as if it were."""
    [fault] = faults(PLANNED, event)

    assert "is not in its run's plan" in fault


def test_more_tries_at_an_item_may_be_planned_later() -> None:
    """The same run goes on: both plans hold."""
    more = replace(PLANNED, number=2, n_samples=2)
    fewer = replace(PLANNED, number=3)

    assert not faults(PLANNED, *SEEN, more, fewer, replace(SEEN[0], sample=1))


def test_an_observation_of_another_kind_is_a_fault() -> None:
    """A rollout observes answers; choices are in none of its metrics."""
    [fault] = faults(PLANNED, replace(SEEN[0], observation=choices()))

    assert fault == "its observation does not fit its run, a rollout"


def test_a_right_choice_that_is_not_there_is_a_fault() -> None:
    """No metric can count it."""
    asked = plan(kind="comparison", n_items=1)

    [fault] = faults(asked, *observed(asked, [choices(choice(-1.0), correct=1)]))

    assert fault == "its correct choice is number 1 of 1, counted from 0"


@pytest.mark.parametrize(
    ("claimed", "seen"),
    [((2, 0), SEEN), ((1, 0), SEEN), ((2, 0), (*SEEN, unscorable(PLANNED, 1)))],
)
def test_counts_that_are_not_true_are_a_fault(
    claimed: tuple[int, int], seen: Sequence[Event]
) -> None:
    """Whoever trusts the end of a run would not look for what is missing."""
    [fault] = faults(PLANNED, *seen, completed(PLANNED, *claimed))

    assert fault.endswith(f"; the event says {claimed[0]} and {claimed[1]}")
    assert fault.startswith("samples observed: 1, ")


def test_an_observation_counts_where_it_was_given_up_before() -> None:
    """Later there was memory enough."""
    small = plan(n_items=1)

    assert not faults(small, unscorable(small), *observed(small, [answer()]), completed(small, 1))


def test_what_another_tournament_observed_counts() -> None:
    """A run is what its key says: what one tournament has observed, none owes."""
    ours = recorded([PLANNED, *observed(PLANNED, [answer(), answer()])])
    theirs = recorded([PLANNED, completed(PLANNED, 2)], stream=OTHER)

    assert not faults_of([*ours, *theirs])


def test_a_merged_tournament_is_held_to_what_it_saw() -> None:
    """It gave up what we observed; what it claims of itself was true there, and is no fault."""
    small = plan(n_items=1)
    ours = recorded([small, *observed(small, [answer()]), completed(small, 1)])
    theirs = recorded([small, unscorable(small), completed(small, 0, 1)], stream=OTHER)

    assert not faults_of([*ours, *theirs])
    assert not faults_of([*theirs, *ours])


GAVE_UP: list[Event] = [
    PLANNED,
    unscorable(PLANNED),
    unscorable(PLANNED, 1),
    completed(PLANNED, 0, 2),
]
MORE = plan(n_items=3, number=2)
THIRD = observed(MORE, [answer()], start=2)


@pytest.mark.parametrize("claimed", [(3, 0), (2, 1), (1, 2)])
def test_a_tournament_that_goes_on_after_a_merge_may_count_what_others_observed(
    claimed: tuple[int, int],
) -> None:
    """It gave two samples up, and now knows of their observations; before it did not."""
    ours = recorded(GAVE_UP)
    theirs = recorded([PLANNED, *observed(PLANNED, [answer(), answer()])], stream=OTHER)
    on = recorded([MORE, *THIRD, completed(MORE, *claimed)])

    assert not faults_of([*ours, *theirs, *on])


@pytest.mark.parametrize("claimed", [(0, 3), (4, 0), (3, 1), (1, 1)])
def test_what_it_never_can_have_known_is_a_fault_after_a_merge(claimed: tuple[int, int]) -> None:
    """Less than it observed itself, more than all did, or another number of samples."""
    ours = recorded(GAVE_UP)
    theirs = recorded([PLANNED, *observed(PLANNED, [answer(), answer()])], stream=OTHER)
    on = recorded([MORE, *THIRD, completed(MORE, *claimed)])

    [fault] = faults_of([*ours, *theirs, *on])

    assert fault.startswith(
        "samples observed: 1 to 3, unscorable: 0 to 2, neither: 0; the event says"
    )


def test_what_a_third_tournament_gave_up_counts_as_given_up() -> None:
    """Two ledgers: in theirs nobody had observed the sample, and in ours somebody has."""
    small = plan(n_items=1)
    ours = recorded([small, *observed(small, [answer()]), completed(small, 1)])
    third = recorded([small, unscorable(small)], stream=StreamId("third"))
    theirs = recorded([small, completed(small, 0, 1)], stream=OTHER)

    assert not faults_of([*ours, *third, *theirs])
