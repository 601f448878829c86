"""The formats that battles can be imported from, by name."""

from collections.abc import Collection, Mapping
from typing import Final

from commands.importing.formats.arenas import LMARENA, ORQ_ARENA
from commands.importing.formats.benchmarks import ALPACA_EVAL, ARENA_HARD, MT_BENCH
from commands.importing.formats.plain import JUDGEARENA, PLAIN, TAP, VERDICTS
from commands.importing.formats.rows import BattleFormat

_ALL: Final = (
    *(VERDICTS, ORQ_ARENA, *LMARENA),
    *(MT_BENCH, ARENA_HARD, ALPACA_EVAL, TAP),
    *(PLAIN, JUDGEARENA),
)
"""A file is of the first format that its columns tell."""

FORMATS: Final[Mapping[str, BattleFormat]] = {
    battle_format.name: battle_format for battle_format in _ALL
}


def format_of(header: Collection[str]) -> BattleFormat:
    """Return the format that columns tell: of a program, or else a plain table of battles."""
    return next((of for of in _ALL if of.is_told_by(header)), PLAIN)
