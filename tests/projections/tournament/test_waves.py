"""Waves are equal parts of the bank, and what a look stopped is asked no more while it holds."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ledger.events.registration import TournamentOpened
from ledger.events.registry import Event
from ledger.identity import PromptId
from projections.tournament.bank import recorded_pilot
from projections.tournament.matches import pairings, planned_responses
from projections.tournament.state import Tournament
from projections.tournament.waves import (
    judging_order,
    looks_at,
    n_spared,
    not_asked,
    open_wave,
    prompts_so_far,
    waves_to_come,
    widening_of,
)
from tests.support.builders.events import entrant, instructions, judge, prompt, rubric
from tests.support.builders.waves import FOUR, Names, bank, look, opening
from tests.support.builders.worlds import RUBRICS, everything
from tests.support.specification import after


@pytest.fixture(autouse=True, scope="module")
def small_waves() -> Iterator[None]:
    """Let a wave have one prompt, so that banks here can be small."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("projections.tournament.waves.FEWEST_IN_A_WAVE", 1)
        yield


def after_looks(events: Sequence[Event], *stops: Sequence[Names]) -> list[Event]:
    """Return events, and looks after them that found these pairs futile."""
    known = [*events]
    for futile in stops:
        known.append(look(after(*known), futile=futile))
    return known


def reopened(events: Sequence[Event], changed: Sequence[Event]) -> Tournament:
    """Return a tournament that is opened again, otherwise, after events."""
    first, *others = changed
    assert isinstance(first, TournamentOpened)
    return after(*events, replace(first, opening=2), *others)


def asked(state: Tournament, dimension: str = "factuality") -> Counter[frozenset[str]]:
    """Count on how many prompts each pair is planned."""
    return Counter(
        frozenset((each.a.entrant.entrant_id, each.b.entrant.entrant_id))
        for each in pairings(state, everything(state))
        if each.rubric.dimension == dimension
    )


def waves(events: Sequence[Event]) -> list[tuple[PromptId, ...]]:
    """Return all waves, each looked at without a stop."""
    known, found = [*events], list[tuple[PromptId, ...]]()
    while wave := open_wave(after(*known)):
        found.append(wave)
        known.append(look(after(*known)))
    return found


@given(n_prompts=st.integers(1, 30), n_looks=st.integers(2, 6), n_samples=st.integers(1, 3))
def test_waves_are_equal_parts_of_the_bank(n_prompts: int, n_looks: int, n_samples: int) -> None:
    """Each prompt is in one, with all its samples."""
    prompts = bank(n_prompts, n_samples)
    found = waves(
        opening(prompts, n_looks=n_looks, sections={"generation": {"samples": n_samples}})
    )

    every = [name for wave in found for name in wave]
    sizes = [len(wave) // n_samples for wave in found]
    assert sorted(every) == sorted(each.prompt_id for each in prompts)
    assert len(found) == min(n_looks, n_prompts)
    assert max(sizes) - min(sizes) <= 1
    for wave in found:
        assert {*Counter(name.split("#")[0] for name in wave).values()} == {n_samples}


@pytest.mark.no_cover
def test_each_wave_has_its_share_of_every_source() -> None:
    """Of three sources, on four looks, each wave has a quarter of each, give or take one."""
    prompts = bank(60, sources=("recall", "recall", "vignette", "recall", "code", "vignette"))
    in_all = Counter(each.source for each in prompts)

    for wave in waves(opening(prompts)):
        here = Counter(each.source for each in prompts if each.prompt_id in wave)
        assert all(abs(here[source] - n / 4) <= 1 for source, n in in_all.items())


@pytest.mark.no_cover
def test_the_pilot_is_judged_first() -> None:
    """Its verdicts may be there already: of each source its prompts come before the others."""
    prompts = bank(40, sources=("recall", "vignette"))
    events = opening(prompts, sections={"pilot": {"size": 16, "strata": {}, "seed": 3}})
    state = after(*events)
    pilot = recorded_pilot(prompts, state.configuration)

    found = waves(events)

    assert len(pilot) == 16
    assert {*found[0]} <= pilot <= {*found[0], *found[1]}


@pytest.mark.no_cover
def test_another_seed_draws_other_waves() -> None:
    """And the order of the bank has no say."""
    events, backwards = opening(bank(20)), opening(bank(20)[::-1])
    first, *others = events
    assert isinstance(first, TournamentOpened)
    reseeded = (replace(first, generation_seed=5), *others)

    assert [*map(set, waves(events))] == [*map(set, waves(backwards))]
    assert open_wave(after(*events)) != open_wave(after(*reseeded))


def test_a_bank_that_grows_leaves_the_waves_taken_as_they_were() -> None:
    """What was added is divided among the looks to come; after the last one it is one wave."""
    events = opening(bank(8))
    two, four = after_looks(events, [], []), after_looks(events, [], [], [], [])
    larger = opening(bank(20))

    after_two, after_four = reopened(two, larger), reopened(four, larger)

    seen = {name for each in after_two.looks for name in each.prompts}
    assert len(seen) == 4
    assert len(open_wave(after_two)) == 8
    assert seen.isdisjoint(open_wave(after_two))
    assert open_wave(after(*four)) == ()
    assert {*open_wave(after_four)} == {f"p{n}" for n in range(8, 20)}


def test_the_waves_to_come_are_those_that_are_judged() -> None:
    """As long as nothing changes."""
    events = opening(bank(10), n_looks=4)

    assert waves_to_come(after(*events)) == waves(events)


@pytest.mark.no_cover
def test_more_looks_divide_what_is_left() -> None:
    """Eight instead of four, after two of them: the second half is looked at six times."""
    two = after_looks(opening(bank(24)), [], [])

    later = waves([*two, *_again(opening(bank(24), n_looks=8))])

    assert [len(wave) for wave in later] == [2] * 6


def _again(events: Sequence[Event]) -> Sequence[Event]:
    first, *others = events
    assert isinstance(first, TournamentOpened)
    return replace(first, opening=2), *others


def test_further_samples_of_prompts_looked_at_are_judged_at_once() -> None:
    """They are in no wave to come; a pair that was futile may be decided by so many more."""
    two = after_looks(opening(bank(8)), [("zoe", "amy")], [])
    state = reopened(two, opening(bank(8, 2), sections={"generation": {"samples": 2}}))

    now = {*prompts_so_far(state, everything(state))}

    seen = {prompt.label for each in state.looks for prompt in each.prompts}
    assert {f"{name}#2" for name in seen} <= now
    assert len(now) == 2 * len(seen) + len(open_wave(state)) == 12
    assert asked(state)[frozenset(("zoe", "amy"))] == 16
    assert {*asked(state).values()} == {16}


def test_a_part_of_the_bank_is_judged_whatever_the_wave() -> None:
    """As in a pilot, or where there are no looks."""
    part, whole = [PromptId("p7")], everything(after(*opening()))

    assert prompts_so_far(after(*opening()), part) == part
    assert prompts_so_far(after(*opening(n_looks=None)), whole) == whole
    assert open_wave(after(*opening(n_looks=None))) == ()
    assert open_wave(after()) == judging_order(after()) == ()


def test_a_stopped_pair_is_asked_on_the_waves_until_then() -> None:
    """Here two of eight prompts a wave: decided after the first, futile after the second."""
    events = opening()
    first = look(after(*events), decided=[("zoe", "amy")])
    second = look(after(*events, first), futile=[("kim", "bob"), ("zoe", "amy")])

    state = after(*events, first, second)

    n_asked = asked(state)
    assert n_asked[frozenset(("zoe", "amy"))] == 2
    assert n_asked[frozenset(("kim", "bob"))] == 4
    assert sorted(n_asked.values()) == [2, 4, 8, 8, 8, 8]
    assert n_spared(state) == 10
    assert not_asked(state) == (
        ("factuality: 2 of 4 looks taken: 1 of 6 pairs decided, 1 futile; 10 comparisons spared"),
    )
    assert not_asked(after(*events)) == (
        "4 looks are planned; they may spare comparisons and responses",
    )


def test_who_meets_nobody_any_more_needs_no_response() -> None:
    """On prompts of later waves: elsewhere, and on dimensions that go on, it does."""
    rubrics = [rubric(), rubric("style", needs_gold=False)]
    events = opening(rubrics=rubrics)
    of_zoe = [("zoe", "amy"), ("zoe", "kim"), ("zoe", "bob")]
    one = [*events, look(after(*events), futile=of_zoe)]
    both = [*one, look(after(*one), futile=of_zoe, dimension="style")]

    def n_responses(known: Sequence[Event]) -> dict[str, int]:
        cells = planned_responses(after(*known), everything(after(*known)))
        return dict(Counter(cell.entrant.entrant_id for cell in cells))

    assert n_responses(one) == {"zoe": 8, "amy": 8, "kim": 8, "bob": 8}
    assert n_responses(both) == {"zoe": 4, "amy": 8, "kim": 8, "bob": 8}


def test_prompts_that_nobody_is_compared_on_keep_their_responses() -> None:
    """A prompt without a gold answer is answered with looks as without: others may ask for it."""
    prompts = [*bank(6), prompt("open", gold=None)]
    stopped = after_looks(opening(prompts), [("zoe", "amy"), ("zoe", "kim"), ("zoe", "bob")])

    cells = planned_responses(after(*stopped), [PromptId("open")])

    assert len(cells) == 4


def test_without_looks_all_that_was_spared_is_owed() -> None:
    """And with them again, it is spared again: what was decided stays on record."""
    stopped = after_looks(opening(), [("zoe", "amy"), ("kim", "bob")])

    without = reopened(stopped, opening(n_looks=None))
    again = reopened(stopped, opening())

    assert {*asked(without).values()} == {8}
    assert sum(asked(without).values()) - sum(asked(again).values()) == 12
    assert widening_of(without, judge(), RUBRICS[0].dimension) == 1
    assert not_asked(without) == ()


RENAMED = [replace(FOUR[0], entrant_id="zoë"), *FOUR[1:]]
OTHERWISE = [entrant("zoe", max_new_tokens=64), *FOUR[1:]]


@pytest.mark.parametrize(
    ("fields", "n_stopped"),
    [
        ({"entrants": FOUR[::-1]}, 2),
        ({"entrants": RENAMED}, 2),
        ({"entrants": [*FOUR, entrant("new")]}, 2),
        ({"entrants": OTHERWISE}, 1),
        ({"entrants": FOUR[1:]}, 1),
        ({"rubrics": [rubric(text="Judge otherwise.")]}, 0),
        ({"judges": [judge(judge_id="renamed")]}, 2),
        ({"judges": [judge(model="other")]}, 0),
        ({"told": instructions("Compare otherwise.")}, 0),
    ],
    ids=[
        "reordered",
        "renamed",
        "one more",
        "configured otherwise",
        "one left",
        "another rubric",
        "renamed judge",
        "another judge",
        "other instructions",
    ],
)
def test_a_look_holds_for_what_it_saw(fields: dict[str, Any], n_stopped: int) -> None:
    """Labels have no say; what is compared, and how, does."""
    stopped = after_looks(opening(), [("zoe", "amy"), ("kim", "bob")])

    n_asked = asked(reopened(stopped, opening(**fields)))

    assert sum(n == 2 for n in n_asked.values()) == n_stopped
    assert {*n_asked.values()} <= {2, 8}


def test_entrants_that_left_are_not_counted() -> None:
    """Nor are pairs that the design of today leaves out."""
    events = opening()
    first = look(after(*events), decided=[("zoe", "amy"), ("kim", "bob")])

    left = reopened([*events, first], opening(entrants=FOUR[1:]))
    star = reopened([*events, first], opening(design={"baseline": "zoe"}))

    assert "1 of 3 pairs decided, 0 futile; 6 comparisons spared" in not_asked(left)[0]
    assert "1 of 3 pairs decided, 0 futile; 6 comparisons spared" in not_asked(star)[1]


def test_intervals_are_widened_for_the_judge_that_was_looked_at() -> None:
    """By the most that a look said of the dimension."""
    judges = [judge(), judge("second", model="other")]
    events = [*opening(judges=judges)]
    events.append(look(after(*events), widening=1.05))
    events.append(look(after(*events), widening=1.03))

    state = after(*events)

    factuality = RUBRICS[0].dimension
    assert widening_of(state, judges[0], factuality) == 1.05
    assert widening_of(state, judges[1], factuality) == 1
    assert widening_of(state, judges[0], RUBRICS[1].dimension) == 1


def test_looks_at_another_dimension_are_told_apart() -> None:
    """A pair may be decided on one and go on with the other."""
    rubrics = [rubric(), rubric("style", needs_gold=False)]
    events = opening(rubrics=rubrics)

    state = after(*events, look(after(*events), decided=[("zoe", "amy")], dimension="style"))

    assert {*asked(state).values()} == {8}
    assert asked(state, "style")[frozenset(("zoe", "amy"))] == 2
    assert [len(looks_at(state, each)) for each in state.dimensions] == [0, 1]


@given(
    stops=st.lists(
        st.lists(st.sampled_from([("zoe", "amy"), ("zoe", "kim"), ("kim", "bob")]), max_size=3),
        max_size=4,
    ),
    design=st.sampled_from([{}, {"baseline": "zoe"}, {"sparse": 2}]),
)
def test_looks_only_take_away_from_waves_to_come(
    stops: list[list[Names]], design: dict[str, object]
) -> None:
    """What was planned on a wave that was looked at stays planned, whatever later looks say."""
    events = [*opening(bank(10), design=design)]
    planned = pairings(after(*events), everything(after(*events)))
    for futile in stops:
        state = after(*events)
        so_far = prompts_so_far(state, everything(state))
        events.append(look(state, futile=futile))
        later = after(*events)

        assert {*pairings(later, so_far)} == {*pairings(state, so_far)}
        assert {*pairings(later, everything(later))} <= {*planned}
