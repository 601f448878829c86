"""JudgeArena's battles: battles.parquet, and battles.jsonl of its first draft.

Where a judge's reply could not be read, JudgeArena writes a tie without a preference: no verdict.
Its draft has no preferences at all, and people give none; their ties are ties.
"""

from collections.abc import Iterator

from commands.importing.formats.plain import battle
from commands.importing.formats.rows import BattleRow, Fields, InvalidFields, is_missing, row_by_row


def _battles(fields: Fields) -> Iterator[BattleRow]:
    if "ratings" in fields:
        raise InvalidFields(
            "these are ratings, no battles; `tourney import elo-ratings` takes them in"
        )
    row = battle(fields)
    is_unread = row.winner == "tie" and "pref" in fields and is_missing(fields["pref"])
    if is_unread and row.source == "llm-judge":
        row = row._replace(winner="no verdict")
    yield row


read = row_by_row(_battles)
