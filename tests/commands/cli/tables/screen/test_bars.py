"""Bars of intervals can be compared by eye: they have one scale."""

import pytest

from commands.cli.tables.screen.bars import bars

OF = ("low", "rating", "high")


def row(low: float | None, rating: float | None, high: float | None) -> dict[str, float | None]:
    """Return a row of a table."""
    return {"low": low, "rating": rating, "high": high}


def test_all_bars_have_one_scale() -> None:
    """From the lowest bound of all to the highest."""
    found = bars([row(100, 110, 119), row(100, 100, 119), row(None, 119, None)], OF, 20)

    assert found == ["──────────●─────────", "●───────────────────", "                   ●"]


def test_what_has_no_value_has_no_bar() -> None:
    """Its row stays in its place."""
    assert bars([row(0, 1, 2), row(None, None, None)], OF, 80) == ["─" * 20 + "●" + "─" * 19, ""]


@pytest.mark.parametrize(
    ("rows", "room"),
    [([row(0, 1, 2)], 19), ([row(None, 1, None)], 80), ([row(None, None, None)], 80)],
)
def test_where_nothing_can_be_compared_there_are_no_bars(
    rows: list[dict[str, float | None]], room: int
) -> None:
    """Ten characters show nothing, nor does one value alone."""
    assert bars(rows, OF, room) is None
