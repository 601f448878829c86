"""JudgeArena's battles: battles.parquet, and battles.jsonl of its first draft.

If a judge's reply was unreadable, JudgeArena writes a tie without a preference: it becomes no
verdict. The draft and people's votes have no preferences; their ties are ties.
"""

from collections.abc import Iterator

from commands.importing.formats.plain import battle
from commands.importing.formats.rows import Cells, InvalidFields, row_by_row
from ledger.events.imports import ImportedBattle


@row_by_row
def read(cells: Cells) -> Iterator[ImportedBattle]:
    if "ratings" in cells.fields:
        raise InvalidFields("these are ratings, not battles; use `tourney import elo-ratings`")
    row = battle(cells)
    is_unread = row.winner == "tie" and "pref" in cells.fields and cells.lacks("pref")
    if is_unread and row.source == "llm-judge":
        row = row._replace(winner="no verdict")
    yield row
