"""Numbers, names and texts as people are shown them: in turns, and with words marked."""

import re
from collections.abc import Collection, Iterable, Sequence
from datetime import date
from difflib import SequenceMatcher
from itertools import zip_longest
from math import inf
from typing import Final, NamedTuple

from commands.errors import joined_names
from ledger.events.conversations import Messages, turns_in
from projections.results.columns import Column, columns_of

_MOST_WORDS: Final = 1_200  # of texts that are compared word by word: it takes the square of them
_WORD: Final = re.compile(r"\s*\S+\s*|\s+")
_LEFT_OUT: Final = " \N{HORIZONTAL ELLIPSIS} "  # in place of the middle of a long text
NOTHING: Final = "–"  # stands where there is no number  # noqa: RUF001


def points(value: float | None) -> str:
    """Return a rating as it is shown."""
    return NOTHING if value is None else f"{value:.0f}"


def percent(share: float | None) -> str:
    """Return a share as it is shown."""
    return NOTHING if share is None else f"{share:.0%}"


def decimal(value: float | None, digits: int | None = 2) -> str:
    """Return a number with a true minus sign; no digits: as many as it takes."""
    if value is None:
        return NOTHING
    return (f"{value:g}" if digits is None else f"{value:.{digits}f}").replace(
        "-", "\N{MINUS SIGN}"
    )


def interval(low: float | None, high: float | None, digits: int = 0) -> str:
    """Return two bounds, or nothing if one is not known."""
    if low is None or high is None:
        return NOTHING
    return f"{decimal(low, digits)} to {decimal(high, digits)}"


def listed(names: Sequence[str]) -> str:
    """Return names as people list them: a, b and c."""
    if len(names) <= 1:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def without_middle(text: str, longest: int) -> str:
    """Return a text without its middle, if it is too long: a question may stand at either end."""
    if len(text) <= longest:
        return text
    begin = (longest - len(_LEFT_OUT)) // 2
    return text[:begin].rstrip() + _LEFT_OUT + text[-begin:].lstrip()


class Piece(NamedTuple):
    """A stretch of a response: of both, or of this one only."""

    text: str
    is_own: bool


class ShownTurn(NamedTuple):
    """A turn of a conversation or of an agent's run; any other text is one, without a role."""

    role: str
    pieces: tuple[Piece, ...]

    @property
    def text(self) -> str:
        """All that is said in it."""
        return "".join(piece.text for piece in self.pieces)


class ShownText(NamedTuple):
    """A text as it is shown: its turns, perhaps without its end."""

    turns: tuple[ShownTurn, ...]
    n_left_out: int  # characters


def shown_text(text: str, most: int | None) -> ShownText:
    """Return a text as it is shown, cut at so many characters; None: whole."""
    return _in_turns(_turns(text), most)


def texts_beside(one: str, other: str, *, most: int | None) -> tuple[ShownText, ShownText]:
    """Return two texts as they are shown, the words marked that the other's turn lacks."""
    first, second = shown_text(one, most), shown_text(other, most)
    left, right = [], []
    for a, b in zip_longest(first.turns, second.turns, fillvalue=ShownTurn("", ())):
        pieces, others = word_difference(a.text, b.text)
        left.append(a._replace(pieces=pieces))
        right.append(b._replace(pieces=others))
    return (
        first._replace(turns=tuple(left[: len(first.turns)])),
        second._replace(turns=tuple(right[: len(second.turns)])),
    )


def shown_reply(text: str, most: int | None) -> ShownText:
    """Return a judge's reply as it is shown: whatever it looks like, it is one text."""
    return _in_turns([("", text)], most)


def _turns(text: str) -> Messages:
    """Return the turns of a transcript; any other text is one turn without a role."""
    return turns_in(text) or (("", text),)


def _in_turns(turns: Iterable[tuple[str, str]], most: int | None) -> ShownText:
    """Return turns up to so many characters."""
    shown, n_left_out, room = list[ShownTurn](), 0, inf if most is None else most
    for role, said in turns:
        text = said if len(said) <= room else said[: int(room)]
        room -= len(text)
        n_left_out += len(said) - len(text)
        if text or not said:
            shown.append(ShownTurn(role, (Piece(text, is_own=False),) if text else ()))
    return ShownText(tuple(shown), n_left_out)


def word_difference(
    one: str, other: str, most_words: int = _MOST_WORDS
) -> tuple[tuple[Piece, ...], tuple[Piece, ...]]:
    """Return both texts in pieces: what both have in common, and what is in one only."""
    left, right = _WORD.findall(one), _WORD.findall(other)
    if max(len(left), len(right)) > most_words:
        return (Piece(one, is_own=False),), (Piece(other, is_own=False),)
    compared = [word.strip() for word in left], [word.strip() for word in right]
    steps = SequenceMatcher(None, *compared, autojunk=False).get_opcodes()
    return (
        tuple(Piece("".join(left[i:j]), tag != "equal") for tag, i, j, _, _ in steps if i < j),
        tuple(Piece("".join(right[i:j]), tag != "equal") for tag, _, _, i, j in steps if i < j),
    )


_LONGEST: Final = 400  # characters of a text
_LESS: Final = 2  # an importance: a telephone has no room for numbers of less


class PageColumn(NamedTuple):
    """A column of a table with its cells."""

    heading: str
    kind: str  # "n": numbers; "n wide": not on a telephone; "name"; "said": a text, or a day
    cells: tuple[str, ...]


def page_columns(rows: Sequence[NamedTuple], without: Collection[str] = ()) -> list[PageColumn]:
    """Return the columns of rows, but for some fields, and those that count nothing."""
    declared = columns_of(type(rows[0])) if rows else ()
    columns = ((column, [getattr(row, column.key) for row in rows]) for column in declared)
    return [
        PageColumn(
            column.heading,
            _kind(column, values),
            tuple(_cell(value, column) for value in values),
        )
        for column, values in columns
        if column.key not in without and (any(values) or not column.is_counted)
    ]


def _kind(column: Column, values: Sequence[object]) -> str:
    if column.digits is not None or any(isinstance(value, int | float) for value in values):
        return "n wide" if column.importance < _LESS else "n"
    is_whole = column.longest is not None or any(isinstance(value, date) for value in values)
    return "said" if is_whole else "name"


def _cell(value: object, column: Column) -> str:
    match value:
        case None:
            return column.unknown
        case float():
            return decimal(value, column.digits)
        case int():
            return f"{value:,}"
        case tuple():
            return joined_names([str(each) for each in value if each is not None])
        case _:
            return without_middle(str(value), _LONGEST)
