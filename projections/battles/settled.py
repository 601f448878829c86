"""Battles of a tournament, with the judge's scores where it gave any.

Where people voted on the same prompts and pairs, the temperature of soft scores can be calibrated.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from operator import attrgetter
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from ledger.events.judging import Order
from projections.battles.columns import Battles, battles_of
from projections.battles.imported import BattlesOfSet
from projections.battles.soft_scores import (
    TEMPERATURE,
    CannotCalibrate,
    ScoredBattles,
    Temperature,
    calibrate,
    log_likelihood,
    margin_of,
)
from projections.intervals import Floats
from projections.tournament.matches import Match
from projections.tournament.settlement import Settlement, reply_of
from projections.tournament.state import Tournament
from projections.verdicts.parsers import SCORE_PARSER, parse_judge_scores
from projections.verdicts.policies import CONCATENATE, Rule

BY_SCORES: Final = Rule(CONCATENATE, SCORE_PARSER)
"""The rule by which each order is decided by the marks in its reply."""


def scored_orders(tournament: Tournament, settlements: Iterable[Settlement]) -> ScoredBattles:
    """Return the orders that the judge's scores decided or tied.

    They are clustered by prompt id, so that votes can be matched; group by text afterwards.
    Two identical responses that the judge was not asked about have equal scores.

    Args:
        tournament: The judge's replies.
        settlements: By the rule BY_SCORES.
    """
    rated = [settlement for settlement in settlements if settlement.score is not None]
    margin = [
        _margin(tournament, settlement.match, settlement.order)
        for settlement in rated
        if settlement.match is not None
    ]
    battles = battles_of(rated, attrgetter("prompt_id"))
    return ScoredBattles(battles, np.array(margin, dtype=np.float64))


def scored_preferences(table: BattlesOfSet) -> ScoredBattles:
    """Return the battles for which a judge gave a preference; 0 or 1 makes an infinite margin."""
    given = table.take(~table.is_human & ~np.isnan(table.pref)).rated(soft=False)
    return ScoredBattles(given, margin_of(given.pref))


def _margin(tournament: Tournament, match: Match, order: Order | None) -> float:
    key = match.forward_key if order == "forward" else match.swapped_key
    reply = reply_of(tournament, key, SCORE_PARSER)
    marks = None if reply is None else parse_judge_scores(reply)
    if marks is None:
        return 0.0  # a tie that nobody was asked about
    lead = marks[0] - marks[1]
    return lead if order == "forward" else -lead


Meeting: TypeAlias = tuple[Hashable, frozenset[str]]
"""A prompt's name, and the two entrants."""


class JudgeCalibration(NamedTuple):
    """A calibrated temperature, and the log-likelihood of people's votes at it."""

    name: str
    found: Temperature
    log_likelihood: float  # at what was found
    log_likelihood_usual: float  # at JudgeArena's


def calibrate_judge(
    name: str,
    judged: ScoredBattles,
    votes: Battles,
    same: Mapping[Hashable, Hashable] | None = None,
) -> JudgeCalibration:
    """Calibrate a judge's scores against people's votes.

    Args:
        name: Of the dimension or set.
        judged: What the judge scored.
        votes: What people said.
        same: By a prompt's id that of the first prompt of the same text, if known.

    Raises:
        CannotCalibrate: As for `votes_with_margins` and `soft_scores.calibrate`.
    """
    shared = votes_with_margins(judged, votes)
    shared = shared._replace(battles=shared.battles.grouped(same or {}))
    temperature = calibrate(*shared)
    usual = log_likelihood(*shared, temperature=TEMPERATURE)
    return JudgeCalibration(
        name, temperature, log_likelihood(*shared, temperature=temperature.value), usual
    )


def votes_with_margins(judged: ScoredBattles, votes: Battles) -> ScoredBattles:
    """Return people's votes with the judge's margins, once for each battle that it scored.

    So both orders of a judge are compared with a vote, as each of them is a battle in its rating.
    Battles without a prompt id are left out.

    Raises:
        CannotCalibrate: No vote is on what the judge scored, or the margins are not finite.
    """
    marked: dict[Meeting, list[tuple[str, float]]] = defaultdict(list)
    for place, a, meeting in named_battles(judged.battles):
        marked[meeting].append((a, float(judged.margin[place])))
    rows = [
        (place, margin if a == first else -margin)
        for place, first, meeting in named_battles(votes)
        for a, margin in marked.get(meeting, ())
    ]
    places = np.array([place for place, _ in rows], dtype=np.intp)
    margins = np.array([margin for _, margin in rows])
    _require_some(margins)
    return ScoredBattles(votes.take(places), margins)


def named_battles(battles: Battles) -> Iterator[tuple[int, str, Meeting]]:
    """Yield the place, a, and what met where, of the battles whose prompt has an id."""
    names, prompts = battles.entrants, battles.prompts
    columns = (battles.a.tolist(), battles.b.tolist(), battles.cluster.tolist())
    for place, (a, b, prompt) in enumerate(zip(*columns, strict=True)):
        if prompt < len(prompts):
            yield place, names[a], (prompts[prompt], frozenset((names[a], names[b])))


def _require_some(margins: Floats) -> None:
    if not len(margins):
        raise CannotCalibrate(
            "no human vote has a prompt and two entrants in common with the judge's scores",
            "check that both sets use the same names for prompts and entrants",
        )
    if not np.isfinite(margins).all():
        n = int((~np.isfinite(margins)).sum())
        raise CannotCalibrate(
            f"{n} of {len(margins)} preferences are 0 or 1, which no finite scores give",
            "import battles that were judged by scores",
        )
