"""Battles of others as columns: nothing is lost, little is added, and columns fit each other."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ledger.events.imports import (
    MAX_BATTLES,
    SIGNS,
    BattlesImported,
    CodedColumn,
    VoteSample,
    battles_stream,
    set_of,
)
from ledger.identity import Dimension, StreamId
from tests.support.builders.battles import imported_battles
from tests.support.strategies.events import battles_imported

DRAWN = VoteSample(
    tournament=StreamId("main"), dimension=Dimension("robustness"), design="random", seed=1
)


@given(cells=st.lists(st.sampled_from([None, "", "a", "β", "}", "\\"]) | st.text(), min_size=1))
def test_a_column_keeps_every_cell(cells: list[str | None]) -> None:
    """A battle must come out under the prompt that it went in under."""
    column = CodedColumn.of(cells)

    assert list(column.cells(len(cells))) == cells
    assert column.fits(len(cells))


@pytest.mark.parametrize("cells", [["q1"] * 3, ["q1", "q2", "q3"], ["q1"]])
def test_a_column_that_is_plain_has_no_codes(cells: list[str]) -> None:
    """A judge is named once an event, and an id that is its battle's own stands by itself."""
    assert CodedColumn.of(cells).codes == ""


def test_a_sign_takes_no_more_than_its_own_bytes() -> None:
    """JSON would write a quote or a control character in two or six; half a character, never."""
    assert len(set(SIGNS)) == len(SIGNS) >= 2 * MAX_BATTLES
    assert msgspec.json.encode(SIGNS) == f'"{SIGNS}"'.encode()
    assert json.dumps(SIGNS, ensure_ascii=False) == f'"{SIGNS}"'


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"a": "", "b": ""}, "`a` has 0 battles, `b` 0:"),
        ({"b": "$$"}, "`a` has 1 battles, `b` 2:"),
        (
            {"a": "#" * (MAX_BATTLES + 1), "b": "$" * (MAX_BATTLES + 1)},
            ": expected the same, 1 to 5000",
        ),
        ({"a": "%"}, "stands for no entrant"),
        ({"b": "#"}, "an entrant battles itself"),
        (
            {"winners": CodedColumn(("tie", "model_a"))},
            "these columns do not have 1 battles: winners",
        ),
        ({"winners": CodedColumn(("tie", "model_a"), "$#")}, "not have 1 battles: winners"),
        ({"prefs": CodedColumn((0.5,), "$")}, "not have 1 battles: prefs"),
        ({"prompts": CodedColumn(())}, "not have 1 battles: prompts"),
        ({"languages": CodedColumn(("en", "de"))}, "not have 1 battles: languages"),
        ({"a": "##", "b": "$$", "drawn": DRAWN}, "a vote is on one pair; these are 2"),
    ],
)
def test_columns_that_do_not_fit_are_refused(wrong: dict[str, object], why: str) -> None:
    """Read one off, every battle would be won by somebody else."""
    with pytest.raises(ValueError, match=why):
        replace(imported_battles(), **wrong)


@given(event=battles_imported())
def test_battles_are_the_same_in_rows_and_in_columns(event: BattlesImported) -> None:
    """Votes, categories and lengths stay with their battle."""
    again = event.holding([*event.battles()])

    assert [*again.battles()] == [*event.battles()]
    assert (again.natural_key, again.n_skipped) == (event.natural_key, event.n_skipped)


@pytest.mark.parametrize("name", ["arena", "battles:", "a.b-c_d"])
def test_a_set_of_battles_has_a_stream_to_itself(name: str) -> None:
    """Whoever looks for tournaments must know what is none."""
    assert set_of(battles_stream(name)) == name
    assert set_of(StreamId("battles")) is None
