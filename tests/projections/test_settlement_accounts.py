"""The account of a dimension: parts that add up to what was planned."""

from hypothesis import given

from ledger.events.registry import Event
from projections.tournament.settlement import Account, account_of, by_dimension
from tests.builders import known, opened, prompt
from tests.projections.strategies import histories
from tests.projections.worlds import RUBRICS, Fate, cup, history, planned, settled


def test_the_sentence_adds_up_to_what_was_planned() -> None:
    """It stands under every table, so that a reader can check that nothing is missing."""
    fates: list[Fate] = ["a", "b", "tie", "inconsistent", "refused"]

    account = account_of(settled(known(*history(cup(), *fates))))

    assert account.sentence() == (
        "6 pairs = 2 decided + 1 tied + 1 inconsistent + 1 refused + 1 pending"
    )
    assert account.n_failed == 1


def test_an_account_is_written_as_json_with_its_reasons() -> None:
    """Machines read the same account as people do."""
    account = account_of(settled(known(*history(cup(), "truncated", "refused", "truncated"))))

    assert account == Account(6, 0, 0, 0, (("refused", 1), ("truncated", 2)), 3)
    assert account.fields() == {
        "planned": 6,
        "decided": 0,
        "tie": 0,
        "inconsistent": 0,
        "failed": {"refused": 1, "truncated": 2},
        "pending": 3,
    }


def test_a_dimension_without_pairings_keeps_its_place() -> None:
    """A table with a dimension missing would look like another tournament."""
    tournament = known(*opened(prompts=[prompt(gold=None)], rubrics=RUBRICS))

    groups = by_dimension(tournament, settled(tournament))

    assert list(groups) == ["factuality", "utility"]
    assert [len(group) for group in groups.values()] == [0, 1]


@given(events=histories())
def test_every_planned_pairing_is_accounted_for(events: list[Event]) -> None:
    """Planned = decided + tie + inconsistent + failed + pending, whatever happened."""
    tournament = known(*events)
    found = settled(tournament)

    account = account_of(found)

    assert [settlement.pairing for settlement in found] == list(planned(tournament))
    assert account.planned == len(found)
    assert account.planned == (
        account.decided + account.tie + account.inconsistent + account.n_failed + account.pending
    )


@given(events=histories())
def test_dimensions_account_for_the_whole_tournament(events: list[Event]) -> None:
    """The tables by dimension together show each pairing once."""
    tournament = known(*events)
    found = settled(tournament)

    groups = by_dimension(tournament, found)

    assert sum(account_of(group).planned for group in groups.values()) == len(found)
    for dimension, group in groups.items():
        assert {each.pairing.rubric.dimension for each in group} <= {dimension}
