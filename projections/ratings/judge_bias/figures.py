"""A figure about a judge: what was measured, its 95 % interval, and on how much it rests."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from projections.results.judges import BiasRow

_ELO_POINTS: Final = ("Elo points", "verdicts")
_COUNTED_IN: Final[Mapping[str, tuple[str, str]]] = {
    "slot preference": ("share", "verdicts"),
    "length": _ELO_POINTS,
    "headers": _ELO_POINTS,
    "lists": _ELO_POINTS,
    "bold": _ELO_POINTS,
    "length control": ("Elo points", "pairs"),
    "self-preference": _ELO_POINTS,
    "flips": ("share", "pairs"),
    "retest flips": ("share", "repeats"),
    "skill": ("factor", "verdicts"),
    "transitivity": ("p", "pairs of entrants"),
}
"""The unit of each measure, and what its n counts."""

MEANING: Final[Mapping[str, str]] = {
    "slot preference": (
        "Slot preference: the share of verdicts for slot A minus that for slot B, over both orders."
        " 0 is fair; 0.1 means that the judge says A in 10 % of its verdicts whatever it reads."
    ),
    "flips": (
        "Flips: pairs on which the verdict changes when the slots are exchanged: opposite winners,"
        " or a tie beside a win. Each verdict counts by itself; Elo leaves them out."
    ),
    "retest flips": (
        "Retest flips: repeated queries (`tourney apply judge --repeat N`) whose verdict changed,"
        " although nothing else did. As often, flips are noise, and no preference for a slot."
    ),
    "length": (
        "Length, headers, lists, bold: what a response gains with this judge, beside its strength,"
        " if it is twice as long, or has one standard deviation more of the others. 0: the judge"
        " has no preference."
    ),
    "length control": (
        "Length control: the largest change of a rating once length is accounted for;"
        " `tourney project bt --control length` shows all ratings."
    ),
    "self-preference": (
        "Self-preference: what models of the judge's own family gain with it, beyond what the other"
        " judges see in the same pairs."
    ),
    "skill": (
        "Skill: how reliably a judge distinguishes strong from weak, relative to the first judge's"
        " (1). At 0 it guesses."
    ),
    "transitivity": (
        "Transitivity: Pearson's chi-square of pairs over Bradley-Terry's expectation; p by a score"
        " bootstrap over prompts. Below 0.05 one number for each entrant does not explain who beats"
        " whom."
    ),
}
"""What each measure means, in plain words."""


class Bounded(NamedTuple):
    """A number and its 95 % interval; None: there is none."""

    value: float | None
    low: float | None
    high: float | None


def figure(measure: str, bounded: Bounded, n: int, *, of: str | None = None) -> BiasRow:
    """Return a figure that rests on n, of a judge and a dimension that are named later."""
    unit, n_of = _COUNTED_IN[measure]
    return BiasRow("", "", measure, of, *bounded, unit=unit, n=n, n_of=n_of, reason=None)


def missing(measure: str, why: str, *, of: str | None = None) -> BiasRow:
    """Return a figure that has no value, and why."""
    return figure(measure, Bounded(None, None, None), 0, of=of)._replace(reason=why)
