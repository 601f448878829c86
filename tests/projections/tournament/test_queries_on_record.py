"""The keys of queries are taken from recorded outcomes, where names always meant the same."""

from msgspec.structs import replace

from ledger.events.judging import PairReconciled
from projections.tournament.folding import advance
from projections.tournament.matches import matches, queries_on_record
from projections.tournament.settlement import settle
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
