"""Style features of responses, their length and markdown, standardised for a fit.

Judges and people like long responses that are laid out well. The effect of such features can be
estimated apart from the entrants, as covariates of a rating: style control of Chatbot Arena (Li,
Angelopoulos and Chiang 2024); with the length alone, length control.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from projections.intervals import Floats


class Features(NamedTuple):
    """Standardised features.

    names: (k,); values: (n, k) in standard deviations; deviations: (k,) what was divided by;
    left_out: the names of those that are the same in all battles.
    """

    names: tuple[str, ...]
    values: Floats
    deviations: Floats
    left_out: tuple[str, ...]


def standardised(
    features: Mapping[str, Floats], chosen: NDArray[np.bool_], weight: Floats
) -> Features:
    """Divide features, (n,) each, by their standard deviations among the chosen battles.

    The mean is taken as 0, as it is once each battle is told both ways: which entrant is a is
    arbitrary. A feature that is the same in all battles explains nothing, and is left out.
    """
    varied = {name: column[chosen] for name, column in features.items() if np.ptp(column[chosen])}
    columns = list(varied.values())
    values = np.array(columns, dtype=np.float64).reshape(len(columns), chosen.sum()).T
    deviations = np.sqrt(np.average(values**2, axis=0, weights=weight[chosen]))
    left_out = tuple(name for name in features if name not in varied)
    return Features(tuple(varied), values / deviations, deviations, left_out)


_HEADER: Final = re.compile(r"^ {0,3}#{1,6}(?=\s|$)", re.MULTILINE)
_LIST_ITEM: Final = re.compile(r"^[ \t]*+(?:[-*+]|\d{1,9}[.)])[ \t]", re.MULTILINE)
_BOLD: Final = re.compile(r"\*\*(?=\S)[^*\n]+(?<=\S)\*\*|__(?=\S)[^_\n]+(?<=\S)__")
_FENCE: Final = re.compile(r"[ \t]*+(`{3,}+(?!.*`)|~{3,}+)")  # ```this``` is code in a line


class Style(NamedTuple):
    """A text's length and markdown counts; of fenced code, the length alone."""

    n_characters: int
    n_headers: int
    n_list_items: int
    n_bold: int


_KEPT: Final = 2**14  # texts: those of a tournament, which several figures look at


@lru_cache(maxsize=_KEPT)
def style_of(text: str) -> Style:
    """Count a text's characters, and the headers, list items and bold spans of its markdown."""
    prose = "\n".join(_prose(text))
    return Style(
        len(text),
        n_headers=len(_HEADER.findall(prose)),
        n_list_items=len(_LIST_ITEM.findall(prose)),
        n_bold=len(_BOLD.findall(prose)),
    )


def differences_in_style(a: Sequence[str], b: Sequence[str]) -> dict[str, Floats]:
    """Return by name how the responses of a and b differ in length and markdown, (n,) each.

    length: (l_a - l_b) / (l_a + l_b), 0 if both are empty; in characters, since tokenizers differ.
    headers, lists and bold: (d_a - d_b) / (d_a + d_b + 1), where d is the count per length + 1
    (Arena-Hard 2.0). Each text is looked at once, however many battles show it.
    """
    place = {text: n for n, text in enumerate(dict.fromkeys((*a, *b)))}
    styles = np.array([style_of(text) for text in place], np.float64)
    counts = styles.reshape(-1, len(Style._fields))
    counts_a, counts_b = (
        counts[np.array([place[text] for text in texts], np.intp)] for texts in (a, b)
    )
    length_a, length_b = counts_a[:, 0], counts_b[:, 0]
    density_a, density_b = (counts[:, 1:] / (counts[:, :1] + 1) for counts in (counts_a, counts_b))
    headers, lists, bold = ((density_a - density_b) / (density_a + density_b + 1)).T
    length = (length_a - length_b) / np.maximum(length_a + length_b, 1)
    return {"length": length, "headers": headers, "lists": lists, "bold": bold}


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
