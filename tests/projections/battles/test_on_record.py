"""Outcomes are found by the names in them, where names always meant the same."""

from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace

from ledger.events.judging import PairReconciled
from ledger.events.registry import Event
from projections.battles.comparisons import comparisons_of
from projections.battles.on_record import (
    OutcomesOnRecord,
    comparisons_on_record,
    open_pairings,
    outcomes_on_record,
    queries_on_record,
)
from projections.tournament.folding import advance
from projections.tournament.matches import matches
from projections.tournament.settlement import by_dimension, settle
from projections.verdicts.policies import DEFAULT_POLICY
from tests.support.builders.events import (
    instructions,
    key,
    known,
    opened,
    prompt,
    recorded,
    registrations,
)
from tests.support.builders.worlds import cup, everything, history
from tests.support.strategies.tournaments import tournament_histories


def found_in(*events: Event) -> OutcomesOnRecord:
    """Return the outcomes among all events of a tournament."""
    found = outcomes_on_record(known(*events), recorded(events))
    assert found is not None
    return found


def test_every_outcome_has_a_place() -> None:
    """By dimension, prompt and pair; what has none is open."""
    events = history(cup(), "a", "b", "refused", "tie")
    state = known(*events)

    found = found_in(*events)

    assert found.codes(state.panel[0].judge_id, DEFAULT_POLICY).tolist() == [
        [[0, 1, 255], [2, 255, 255]]
    ]
    unknown = open_pairings(state, found, state.panel[0], DEFAULT_POLICY)
    assert [(each.prompt.prompt_id, sorted(each.entrants)) for each in unknown] == [
        ("p1", ["amy", "kim"]),
        ("p2", ["kim", "zoe"]),
        ("p2", ["amy", "kim"]),
    ]
    assert found.doubtful == ()


def test_a_name_with_two_meanings_is_doubtful() -> None:
    """The prompt was corrected, so an outcome that names it may be of the other text."""
    events = [*history(cup(), "a", "b", "tie", "a"), *registrations([prompt("p1", text="Else?")])]

    found = found_in(*events)

    doubtful = [each.event for each in found.doubtful if isinstance(each.event, PairReconciled)]
    assert [each.prompt_id for each in doubtful] == ["p1"] * 3


def test_without_entrants_nothing_has_a_place() -> None:
    """Nobody was registered yet."""
    found = found_in(*opened(entrants=[])[:1])

    assert found.axes.shape == (0, 0, 0)


@given(events=tournament_histories(), more=st.booleans())
def test_every_pairing_ended_as_its_texts_say(events: list[Event], *, more: bool) -> None:
    """Names are a short cut: keys of texts find the same."""
    if more:
        events = [*events, *registrations([prompt("p1", text="Else?")])]
    state, judge = known(*events), known(*events).panel[0]
    found = outcomes_on_record(state, recorded(events))
    assume(found is not None)
    assert found is not None

    unknown = open_pairings(state, found, judge, DEFAULT_POLICY)
    ended = comparisons_on_record(state, found, judge, DEFAULT_POLICY, unknown)

    settled = by_dimension(state, settle(state, everything(state), judge))
    assert set(settled) == set(ended)
    for dimension, each in ended.items():
        expected = comparisons_of(settled[dimension])
        assert each.account == expected.account
        assert [*each.battles(ties="half").score] == [*expected.battles(ties="half").score]
        assert each.n_judged_prompts == expected.n_judged_prompts


def test_where_names_cannot_tell_nothing_is_found() -> None:
    """Judges were told something else in between, or a pair has two outcomes."""
    events = history(cup(), "a", "b", "tie")
    told = opened(opening=2, told=instructions(text="Judge as a librarian."))
    outcome = next(each for each in events if isinstance(each, PairReconciled))

    assert outcomes_on_record(known(*events, *told), recorded([*events, *told])) is None
    assert outcomes_on_record(known(*events), recorded([*events, outcome])) is None


def test_keys_on_record_are_those_that_texts_give() -> None:
    """So they need not be computed."""
    events = history(cup(), "a", "b", "refused", "tie")
    state, fresh = known(*events), known(*events)
    judge = state.panel[0]

    on_record = queries_on_record(state)
    state.trust(on_record)

    assert len(on_record[judge.judge_id]) == 3
    assert settle(state, everything(state), judge) == settle(fresh, everything(fresh), judge)


def test_trusted_keys_are_not_computed() -> None:
    """Most of the time that a long tournament takes to settle goes into them."""
    state = known(*history(cup(), "a"))
    judge = state.panel[0]
    ((names, _),) = queries_on_record(state)[judge.judge_id].items()
    keys = key("forward"), key("swapped")

    state.trust({judge.judge_id: {names: keys}})

    match = next(match for _, match in matches(state, everything(state), judge) if match)
    assert (match.forward_key, match.swapped_key) == keys


def test_a_later_state_trusts_nothing() -> None:
    """A name may have been registered anew in between."""
    state = known(*history(cup(), "a"))
    state.trust(queries_on_record(state))

    assert not advance(state, recorded(registrations([prompt("p1", text="Else?")]))).trusted_queries


def test_where_names_cannot_tell_no_key_is_on_record() -> None:
    """A prompt was corrected, judges were told something else, or keys of a pair differ."""
    events = history(cup(), "a", "b", "tie")
    outcome = next(each for each in events if isinstance(each, PairReconciled))
    other = replace(outcome, forward=outcome.swapped, swapped=outcome.forward)
    told = opened(opening=2, told=instructions(text="Judge as a librarian."))

    for more in (registrations([prompt("p1", text="Else?")]), told, [other]):
        assert queries_on_record(known(*events, *more)) == {}
