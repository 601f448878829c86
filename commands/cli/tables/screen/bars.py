"""Intervals as bars of characters, all on one scale."""

from collections.abc import Mapping, Sequence
from typing import Final

from ledger.identity import Json

_LINE: Final = "\N{BOX DRAWINGS LIGHT HORIZONTAL}"
_POINT: Final = "\N{BLACK CIRCLE}"
_LEAST, _MOST = 20, 40  # columns: a bar is neither shorter nor longer


def bars(
    rows: Sequence[Mapping[str, Json]], keys: tuple[str, str, str], room: int
) -> list[str] | None:
    """Return a bar for each row: its interval as a line, its value as a point; None: no room.

    Args:
        rows: What is shown.
        keys: Of the lower bound, the value and the upper bound.
        room: How many columns of characters there are.
    """
    width = min(room, _MOST)
    found = [[row.get(key) for key in keys] for row in rows]
    known = [float(each) for row in found for each in row if isinstance(each, int | float)]
    if width < _LEAST or not known or min(known) == max(known):
        return None
    start, step = min(known), (max(known) - min(known)) / (width - 1)

    def bar(low: Json, value: Json, high: Json) -> str:
        if not isinstance(value, int | float):
            return ""
        place = round((value - start) / step)
        cells = [" "] * width
        if isinstance(low, int | float) and isinstance(high, int | float):
            for n in range(round((low - start) / step), round((high - start) / step) + 1):
                cells[n] = _LINE
        cells[place] = _POINT
        return "".join(cells).rstrip()

    return [bar(*row) for row in found]
