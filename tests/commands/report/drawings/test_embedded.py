"""Drawings: where things are put, and that names in them are escaped."""

import re

import pytest

from commands.report.drawings.embedded import Spot, interval_bar, reliability, value_map
from commands.report.drawings.svg import RoundScale, scale_of


@pytest.mark.parametrize(
    ("values", "scale"),
    [
        ([], None),
        ([None], None),
        ([886.0, 1084.0], RoundScale(850.0, 1100.0, 50.0)),
        ([1000.0], RoundScale(950.0, 1050.0, 25.0)),
        ([0.0], RoundScale(-0.5, 0.5, 0.25)),
        ([0.0, 1.0], RoundScale(0.0, 1.0, 0.25)),
    ],
)
def test_a_scale_ends_at_round_numbers(
    values: list[float | None], scale: RoundScale | None
) -> None:
    """A reader takes a value off it."""
    found = scale_of(values)

    assert found == scale
    assert found is None or all(found.low <= each <= found.high for each in values if each)


def test_values_lie_between_the_ends_of_the_scale() -> None:
    """The margin keeps dots whole."""
    scale = RoundScale(0.0, 10.0, 5.0)

    assert [scale.at(each, 108) for each in (0.0, 5.0, 10.0)] == [4.0, 54.0, 104.0]
    assert scale.ticks == [0.0, 5.0, 10.0]


def test_a_bar_without_an_interval_is_a_dot_on_the_scale() -> None:
    """A bar of no width would look like certainty."""
    scale = RoundScale(900.0, 1100.0, 50.0)

    assert interval_bar(scale, 1000.0, None, None).count("<line") == 2
    assert interval_bar(scale, 1000.0, 950.0, 1050.0).count("<line") == 5


HOSTILE = "<script>alert(1)</script>\u202e"


def test_names_stay_in_the_plot_however_many_there_are() -> None:
    """Lower they would cover the axis; each spot has its number, and the table the names."""
    spots = [Spot(n, f"entrant {n}", 1.0, 1000.0 + n, n == 1) for n in range(40)]

    drawing = value_map(spots, "dollars", [(0.5, "$0.5"), (2.0, "$2")])

    places = [float(y) for y in re.findall(r'class="label name" x="[\d.]+" y="([\d.]+)"', drawing)]
    assert 0 < len(places) < len(spots)
    assert max(places) <= 300
    assert drawing.count("<circle") == len(spots)


def test_names_on_the_map_are_escaped_and_do_not_overlap() -> None:
    """Two that cost the same are rated alike often enough."""
    spots = [Spot(n, HOSTILE, 1.0, 1000.0 + n, n == 1) for n in (1, 2, 3)]

    drawing = value_map(spots, "dollars", [(0.5, "$0.5"), (2.0, "$2")])

    assert "<script" not in drawing
    assert drawing.count(r"&lt;script&gt;alert(1)&lt;/script&gt;\u202e") == 3
    heights = [float(each) for each in re.findall(r'y="([0-9.]+)"[^>]*>&lt;', drawing)]
    assert len(heights) == 3
    assert all(b - a >= 17 for a, b in zip(sorted(heights), sorted(heights)[1:], strict=False))


def test_the_diagonal_of_a_diagram_is_where_nobody_is_too_sure() -> None:
    """A bin's dot grows with its responses."""
    drawing = reliability([(0.5, 0.5, 100), (0.9, 0.1, 4)], HOSTILE)

    assert re.findall(r'cx="([0-9.]+)" cy="([0-9.]+)" r="([0-9.]+)"', drawing) == [
        ("121.0", "113.0", "7.0"),
        ("189.0", "181.0", "3.0"),
    ]
    assert "<script" not in drawing
