"""People's votes beside a judge's marks, by which the temperature of the marks is calibrated."""

from collections import defaultdict
from collections.abc import Hashable, Iterator
from typing import NamedTuple, TypeAlias

import numpy as np

from projections.battles import Battles
from projections.marked_battles import Marked
from projections.resamples import Floats
from projections.soft_scores import (
    TEMPERATURE,
    CannotCalibrate,
    Temperature,
    calibrate,
    log_likelihood,
)

_Meeting: TypeAlias = tuple[Hashable, frozenset[str]]
"""A prompt's name, and the two entrants."""


class _Named(NamedTuple):
    place: int
    a: str
    meeting: _Meeting


class Calibrated(NamedTuple):
    """The temperature found for a dimension or a set of battles, and how well marks tell votes."""

    name: str
    found: Temperature
    log_likelihood: float  # at what was found
    log_likelihood_usual: float  # at JudgeArena's


def calibrated(name: str, judged: Marked, votes: Battles) -> Calibrated:
    """Calibrate what a judge marked against people's votes.

    Raises:
        CannotCalibrate: As `beside_votes` and `projections.soft_scores.calibrate` say.
    """
    shared = beside_votes(judged, votes)
    found = calibrate(*shared)
    usual = log_likelihood(*shared, temperature=TEMPERATURE)
    return Calibrated(name, found, log_likelihood(*shared, temperature=found.value), usual)


def beside_votes(judged: Marked, votes: Battles) -> Marked:
    """Return people's votes, each as often as the judge marked what it is on, with those margins.

    So a judge that was asked in both orders has both of its answers held against a vote, as each
    of them is a battle where it is rated. Battles whose prompt has no name are left out.

    Raises:
        CannotCalibrate: No vote is on what the judge marked, or the margins are not finite.
    """
    marked: dict[_Meeting, list[tuple[str, float]]] = defaultdict(list)
    for each in _named(judged.battles):
        marked[each.meeting].append((each.a, float(judged.margin[each.place])))
    rows = [
        (vote.place, margin if a == vote.a else -margin)
        for vote in _named(votes)
        for a, margin in marked.get(vote.meeting, ())
    ]
    places = np.array([place for place, _ in rows], dtype=np.intp)
    margins = np.array([margin for _, margin in rows])
    _require_some(margins)
    return Marked(votes.take(places), margins)


def _named(battles: Battles) -> Iterator[_Named]:
    """Yield the battles on prompts that have a name."""
    names, prompts = battles.entrants, battles.prompts
    columns = (battles.a.tolist(), battles.b.tolist(), battles.cluster.tolist())
    for place, (a, b, prompt) in enumerate(zip(*columns, strict=True)):
        if prompt < len(prompts):
            yield _Named(place, names[a], (prompts[prompt], frozenset((names[a], names[b]))))


def _require_some(margins: Floats) -> None:
    if not len(margins):
        raise CannotCalibrate(
            "no vote is on a prompt and two entrants that the judge marked",
            "see that both sets name prompts and entrants alike",
        )
    if not np.isfinite(margins).all():
        n = int((~np.isfinite(margins)).sum())
        raise CannotCalibrate(
            f"{n} of {len(margins)} preferences are 0 or 1, which no finite marks make",
            "import battles that were judged by marks",
        )
