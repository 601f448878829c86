"""How a response is written, whatever it says: its length and its markdown.

Judges and people like long responses that are laid out well. How two responses differ in that can
be told apart from whose they are, as covariates of a rating: style control of Chatbot Arena (Li,
Angelopoulos and Chiang 2024); with the length alone, length control.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from projections.resamples import Floats

_HEADER: Final = re.compile(r"^ {0,3}#{1,6}(?=\s|$)", re.MULTILINE)
_LIST_ITEM: Final = re.compile(r"^[ \t]*+(?:[-*+]|\d{1,9}[.)])[ \t]", re.MULTILINE)
_BOLD: Final = re.compile(r"\*\*(?=\S)[^*\n]+(?<=\S)\*\*|__(?=\S)[^_\n]+(?<=\S)__")
_FENCE: Final = re.compile(r"[ \t]*+(`{3,}+(?!.*`)|~{3,}+)")  # ```this``` is code in a line


class Style(NamedTuple):
    """What is counted of a text; of fenced code, the length alone."""

    n_characters: int
    n_headers: int
    n_list_items: int
    n_bold: int


class _Lengths(NamedTuple):
    """Of n texts: length, (n,), in characters; marks, (n, 3), of each kind."""

    length: Floats
    marks: Floats


def style_of(text: str) -> Style:
    """Count a text's characters, and the headers, list items and bold spans of its markdown."""
    prose = "\n".join(_prose(text))
    return Style(
        len(text),
        n_headers=len(_HEADER.findall(prose)),
        n_list_items=len(_LIST_ITEM.findall(prose)),
        n_bold=len(_BOLD.findall(prose)),
    )


def style_features(a: Sequence[Style], b: Sequence[Style]) -> dict[str, Floats]:
    """Return by how much each response of a is longer, and more laid out, than that of b.

    length: (l_a - l_b) / (l_a + l_b), 0 if both are empty; in characters, which a reader sees:
    entrants that have not one tokenizer count the same text differently. headers, lists and bold:
    (d_a - d_b) / (d_a + d_b + 1), where d is how many there are per length + 1 (Arena-Hard 2.0).

    Args:
        a: (n,) styles.
        b: (n,) styles of the other responses.

    Returns:
        By name, (n,) each.
    """
    length_a, marks_a = _lengths(a)
    length_b, marks_b = _lengths(b)
    density_a, density_b = marks_a / (length_a + 1)[:, None], marks_b / (length_b + 1)[:, None]
    headers, lists, bold = ((density_a - density_b) / (density_a + density_b + 1)).T
    length = (length_a - length_b) / np.maximum(length_a + length_b, 1)
    return {"length": length, "headers": headers, "lists": lists, "bold": bold}


def _lengths(styles: Sequence[Style]) -> _Lengths:
    length = [each.n_characters for each in styles]
    marks = [(each.n_headers, each.n_list_items, each.n_bold) for each in styles]
    return _Lengths(
        np.array(length, dtype=np.float64),
        np.array(marks, dtype=np.float64).reshape(len(styles), 3),
    )


def _prose(text: str) -> Iterator[str]:
    """Yield the lines outside fenced code; a fence that is never closed reaches to the end."""
    fence = ""
    for line in text.split("\n"):
        mark = line.strip()
        if fence:
            if len(mark) >= len(fence) and set(mark) == {fence[0]}:
                fence = ""
        elif opened := _FENCE.match(line):
            fence = opened[1]
        else:
            yield line
