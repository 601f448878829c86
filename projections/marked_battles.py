"""Battles as a judge's marks tell them, which say by how much, and not only who won."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from ledger.events.judging import Order
from projections.battle_table import BattleTable
from projections.battles import Battles
from projections.matches import Match
from projections.reconcile import CONCATENATE
from projections.replies import reply_of
from projections.resamples import Floats
from projections.rule import Rule
from projections.score_lines import SCORE_PARSER, parse_marks
from projections.settled_battles import fought, settled_battles
from projections.settlement import Settlement
from projections.soft_scores import margin_of, soft_scores
from projections.tournament import Tournament

BY_MARKS: Final = Rule(CONCATENATE, SCORE_PARSER)
"""The rule by which each order is decided by the marks in its reply."""


class Marked(NamedTuple):
    """Battles, and by how much a judge's mark of a is above that of b in each, (n,)."""

    battles: Battles
    margin: Floats

    def soft(self, temperature: float) -> Battles:
        """Return the battles with soft scores: a takes as much as its marks make probable."""
        scores = soft_scores(self.margin, 0.0, temperature=temperature)
        return replace(self.battles, score=scores)


def marked_in_orders(tournament: Tournament, settlements: Iterable[Settlement]) -> Marked:
    """Return the orders that were decided or tied by marks.

    Two identical responses that nobody was asked about have the same marks.

    Args:
        tournament: What the judge replied.
        settlements: By the rule BY_MARKS.
    """
    battles = fought(settlements)
    margin = [
        _margin(tournament, each.match, each.order) for each in battles if each.match is not None
    ]
    return Marked(settled_battles(battles, ties="half"), np.array(margin, dtype=np.float64))


def marked_by_preferences(table: BattleTable, *, made_at: float) -> Marked:
    """Return what judges gave preferences on; where these are 0 or 1, margins are infinite.

    Args:
        table: Imported battles.
        made_at: The temperature that turned marks into preferences.
    """
    given = table.where(table.has_verdict & ~table.is_human & ~np.isnan(table.pref))
    return Marked(given.battles(soft=False), margin_of(given.pref, made_at=made_at))


def _margin(tournament: Tournament, match: Match, order: Order | None) -> float:
    question = match.forward if order == "forward" else match.swapped
    reply = reply_of(tournament, question.query_key, SCORE_PARSER)
    marks = None if reply is None else parse_marks(reply)
    if marks is None:
        return 0.0  # a tie that nobody was asked about
    return marks.a - marks.b if order == "forward" else marks.b - marks.a
