"""How replies of a judge without a readable verdict count: programs differ in it.

By default such a battle is left out, as in arena-hard v0.1 and in JudgeArena's soft ratings.
arena-hard v2.0 leaves out both games of the prompt, and JudgeArena's hard ratings count a tie.
"""

from collections.abc import Sequence
from typing import Literal, TypeAlias

from ledger.events.imports import BattlesImported, ImportedBattle

Unread: TypeAlias = Literal["drop", "drop-pair", "tie"]
_Games: TypeAlias = tuple[str | None, frozenset[str], str | None]  # prompt, entrants, judge


def with_unread(events: Sequence[BattlesImported], rule: Unread) -> Sequence[BattlesImported]:
    """Return events whose battles without a judge's verdict are as a rule counts them.

    Args:
        events: Imported battles.
        rule: drop: as they are; tie: as ties; drop-pair: with them, what the same judge said of
            the same two entrants on the same prompt has no verdict.
    """
    if rule == "drop":
        return events
    unread = {
        _games(battle) for event in events for battle in event.battles() if _is_unread(battle)
    }
    return [
        event.holding([_counted(battle, rule, unread) for battle in event.battles()])
        for event in events
    ]


def _counted(battle: ImportedBattle, rule: Unread, unread: set[_Games]) -> ImportedBattle:
    """Return a battle as a rule other than drop counts it."""
    if rule == "tie":
        return battle._replace(winner="tie") if _is_unread(battle) else battle
    is_dropped = battle.source == "llm-judge" and _games(battle) in unread
    return battle._replace(winner="no verdict", pref=None) if is_dropped else battle


def _is_unread(battle: ImportedBattle) -> bool:
    return battle.winner == "no verdict" and battle.source == "llm-judge"


def _games(battle: ImportedBattle) -> _Games:
    entrants = frozenset((battle.model_a, battle.model_b))
    return battle.question_id, entrants, battle.judge_model
