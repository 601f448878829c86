"""Fit columns to a width: headings and prose wrap, unimportant columns go, or rows are stacked.

Numbers, ids and words are never broken. Where there is room, intervals are drawn as bars.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Final, NamedTuple

from rich.cells import cell_len, chop_cells

from ledger.identity import Json
from projections.results.columns import KEPT, Column

GAP: Final = "  "  # between columns
_ITEM_GAP: Final = "   "  # between the items of a stacked row
_PROSE: Final = 24  # columns that prose has at least
_LONGEST: Final = 40  # columns: a longer word of prose may be broken


@dataclass(frozen=True)
class ShownColumn:
    """A column with the text of each row."""

    column: Column
    is_number: bool
    texts: tuple[str, ...]

    @cached_property
    def is_prose(self) -> bool:
        """Say whether its texts may be broken between words."""
        return not self.is_number and any(" " in text for text in self.texts)

    @cached_property
    def widest(self) -> int:
        """The width at which nothing wraps."""
        return max(map(cell_len, (self.column.heading, *self.texts)))

    @cached_property
    def least(self) -> int:
        """The width below which something would be broken."""
        words = [*self.column.heading.split()]
        if not self.is_prose:
            return max(map(cell_len, (*words, *self.texts)))
        longest = max((cell_len(word) for text in self.texts for word in text.split()), default=0)
        return max(*map(cell_len, words), min(longest, _LONGEST), min(self.widest, _PROSE))


class Fitted(NamedTuple):
    """The columns that are shown, and their widths; none if rows must be stacked."""

    cells: Sequence[ShownColumn]
    widths: Sequence[int]
    hidden: Sequence[str] = ()  # headings of the columns left out

    @property
    def width(self) -> int:
        """The width of a whole row."""
        return sum(self.widths) + len(GAP) * (len(self.widths) - 1)


def fitted(cells: Sequence[ShownColumn], width: int) -> Fitted | None:
    """Return the columns that fit: the first and the most important ones; None: not even those."""
    shown = [*cells]
    while _total([cell.least for cell in shown]) > width:
        dispensable = [cell for cell in shown[1:] if cell.column.importance < KEPT]
        if not dispensable:
            return None
        least = min(reversed(dispensable), key=lambda cell: cell.column.importance)
        group = least.column.group
        shown = [
            cell for cell in shown if cell is not least and cell.column.group != (group or None)
        ]
    hidden = [cell.column.heading for cell in cells if cell not in shown]
    return Fitted(shown, _shrunk(shown, width), hidden)


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(GAP) * (len(widths) - 1)


def _shrunk(cells: Sequence[ShownColumn], width: int) -> list[int]:
    """Return widths that fit, taken from whatever has most to spare."""
    widths, least = [cell.widest for cell in cells], [cell.least for cell in cells]
    for _ in range(_total(widths) - width):
        widest = max(range(len(cells)), key=lambda n: widths[n] - least[n])
        widths[widest] -= 1
    return widths


def heading_lines(fit: Fitted) -> Iterator[str]:
    """Yield the lines of the headings."""
    return _lines([cell.column.heading for cell in fit.cells], fit, is_at_bottom=True)


def row_lines(fit: Fitted, row: int) -> Iterator[str]:
    """Yield the lines of a row."""
    return _lines([cell.texts[row] for cell in fit.cells], fit)


def _lines(texts: Sequence[str], fit: Fitted, *, is_at_bottom: bool = False) -> Iterator[str]:
    parts = [_wrapped(text, width) for text, width in zip(texts, fit.widths, strict=True)]
    height = max(map(len, parts))
    for part in parts:
        padding = [""] * (height - len(part))
        part[:] = padding + part if is_at_bottom else part + padding
    for line in zip(*parts, strict=True):
        yield GAP.join(
            _aligned(text, width, cell)
            for text, width, cell in zip(line, fit.widths, fit.cells, strict=True)
        )


def _wrapped(text: str, width: int) -> list[str]:
    """Return the lines of a text of so many columns; only too long a word is broken."""
    lines, width = [""], max(1, width)
    for word in text.split(" "):
        for part in chop_cells(word, width) or [""]:
            longer = f"{lines[-1]} {part}" if lines[-1] else part
            if cell_len(longer) <= width:
                lines[-1] = longer
            else:
                lines.append(part)
    return lines


def _aligned(text: str, width: int, cells: ShownColumn) -> str:
    padding = " " * max(0, width - cell_len(text))
    return padding + text if cells.is_number else text + padding


def stacked_lines(
    cells: Sequence[ShownColumn], names: Sequence[ShownColumn], row: int, width: int
) -> Iterator[str]:
    """Yield a row as its name, and below it each heading with its value."""
    yield from _flowing([cell.texts[row] for cell in names], "", width)
    others = [cell for cell in cells if cell not in names]
    yield from _flowing([f"{cell.column.heading} {cell.texts[row]}" for cell in others], GAP, width)


def _flowing(items: Sequence[str], indent: str, width: int) -> Iterator[str]:
    """Yield lines of as many items as they have room for."""
    line, room = "", width - len(indent)
    for item in chain.from_iterable(_wrapped(text, room) for text in items):
        longer = f"{line}{_ITEM_GAP}{item}" if line else f"{indent}{item}"
        if line and cell_len(longer) > width:
            yield line
            longer = f"{indent}{item}"
        line = longer
    if line:
        yield line


_LINE: Final = "\N{BOX DRAWINGS LIGHT HORIZONTAL}"
_POINT: Final = "\N{BLACK CIRCLE}"
_LEAST, _MOST = 20, 40  # columns: a bar is neither shorter nor longer


def bars(
    rows: Sequence[Mapping[str, Json]], keys: tuple[str, str, str], room: int
) -> list[str] | None:
    """Return a bar for each row: its interval as a line, its value as a point; None: no room.

    The keys are those of the lower bound, the value and the upper bound.
    """
    width = min(room, _MOST)
    values = [[row.get(key) for key in keys] for row in rows]
    known = [float(number) for row in values for number in row if isinstance(number, int | float)]
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

    return [bar(*row) for row in values]
