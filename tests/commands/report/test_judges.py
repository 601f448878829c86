"""What the report shows of how far to trust judges and ratings."""

import pytest
from msgspec.structs import replace

from commands.report.judges import (
    calibration_of,
    diagram_of,
    fragile_pairs,
    health_of,
    named_prompts,
    sign_of,
    value_of,
)
from ledger.events.registry import Event
from ledger.events.responses import ResponseGenerated
from projections.results.judges import BiasRow
from tests.support.builders.events import opened
from tests.support.builders.reports import subject
from tests.support.builders.worlds import A, Fate, court, cup, heard, history


def named(rows: tuple[BiasRow, ...], measure: str) -> BiasRow:
    """Return the only row of a measure."""
    (row,) = [row for row in rows if row.measure == measure]
    return row


def test_a_judge_that_contradicts_itself_is_called_out_in_words() -> None:
    """A share alone asks the reader what is too low."""
    rows = health_of(subject(*history(cup(), "a", "inconsistent", "tie", "inconsistent")))

    consistent = named(rows, "order consistency")
    assert (value_of(consistent), consistent.n) == ("50%", 4)
    assert sign_of(consistent) == "depends on the order"
    opposite = named(rows, "opposite winners")
    assert (value_of(opposite), opposite.n) == ("50%", 4)
    assert sign_of(opposite) == "contradicts itself"
    assert not [row for row in rows if row.measure == "a tie beside a win"]
    assert value_of(named(rows, "share of A")) == "83%"
    assert value_of(named(rows, "tie rate")) == "25%"


def test_a_judge_that_is_unsure_does_not_contradict_itself() -> None:
    """A tie beside a win depends on the order, and names no other winner."""
    rows = health_of(subject(*heard(court(1), [A, ("A", "TIE"), ("TIE", "A")])))

    assert sign_of(named(rows, "order consistency")) == "depends on the order"
    beside = named(rows, "a tie beside a win")
    assert (value_of(beside), sign_of(beside)) == ("67%", None)


def test_replies_without_a_verdict_are_added_up() -> None:
    """Four rows of zeros say less than one."""
    rows = health_of(subject(*history(cup(), "a", "refused", "unreadable")))

    assert value_of(named(rows, "lost replies")) == "50%"
    assert value_of(named(rows, "refused rate")) == "25%"
    assert not [row for row in rows if row.measure in {"empty rate", "truncated rate"}]


def test_fragility_is_by_the_prompts_of_the_dimension() -> None:
    """One more win in three is turned by that one prompt."""
    fates: list[Fate] = [*("a", "a", "a", "b", "b", "b") * 2]
    fates[11] = "a"
    alone = subject(*history(opened(), "a"))

    (dimension,) = subject(*history(cup(4), *fates)).dimensions
    first, second = fragile_pairs(dimension)
    assert [(row.ahead, row.behind) for row in (first, second)] == [("amy", "zoe"), ("zoe", "kim")]
    assert named_prompts(first._replace(decisive=("p4", None, "p1"))) == "p4, p1"
    assert named_prompts(first._replace(decisive=None)) == ""
    (lone,) = alone.dimensions
    assert fragile_pairs(lone) == ()


def sure(event: Event) -> Event:
    """Return a response with how sure its entrant was."""
    if isinstance(event, ResponseGenerated) and event.entrant_id == "tuned":
        return replace(event, p_correct=0.8)
    return event


def test_an_entrant_that_says_how_sure_it_is_is_calibrated() -> None:
    """The others have no diagram."""
    (row,) = calibration_of(subject(*map(sure, history(opened(), "a"))))

    assert (row.entrant_id, len(row.cases)) == ("tuned", 1)
    assert row.ece == pytest.approx(0.8)
    assert "<title>Calibration of tuned</title>" in diagram_of(row)
    assert calibration_of(subject(*history(opened(), "a"))) == []
