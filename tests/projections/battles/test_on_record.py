"""Outcomes are found by the names in them, where names always meant the same."""

from ledger.events.judging import PairReconciled
from ledger.events.registry import Event
from projections.battles.on_record import OutcomesOnRecord, open_pairings, outcomes_on_record
from projections.verdicts.policies import DEFAULT_POLICY
from tests.support.builders.events import known, opened, prompt, recorded, registrations
from tests.support.builders.worlds import cup, history


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
