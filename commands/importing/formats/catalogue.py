"""The formats that battles can be imported from, by name."""

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from commands.importing.formats import _alpaca_eval as alpaca_eval
from commands.importing.formats import _arena_hard as arena_hard
from commands.importing.formats import _judgearena as judgearena
from commands.importing.formats import _lmarena as lmarena
from commands.importing.formats import _mt_bench as mt_bench
from commands.importing.formats import _orq_arena as orq_arena
from commands.importing.formats import _tap as tap
from commands.importing.formats import _verdicts as verdicts
from commands.importing.formats import plain
from commands.importing.formats.rows import Reader

_BATTLE: Final = tuple(plain.NEEDED)
_PAIR: Final = ("model_a", "model_b")
_BESIDE: Final = tuple(plain.OPTIONAL)


def uncompressed(file: Path) -> Path:
    """Return the path of a file without .gz."""
    return file.with_suffix("") if file.suffix == ".gz" else file


class BattleFormat(NamedTuple):
    """How to turn the rows of a program's files into battles, whatever the kind of file."""

    name: str
    read: Reader
    description: str  # for the help
    required: tuple[str, ...]  # fields that every row must have
    optional: tuple[str, ...] = ()  # fields that are read if present
    set_by_file: Callable[[Path], str] | None = None  # if the file name decides the set
    mapping_version: int = 1  # raise it when rows are interpreted differently
    or_required: tuple[str, ...] = ()  # fields that every row of another layout must have
    tells: tuple[str, ...] = ()  # where others need the same fields: each of these is its own

    @property
    def columns(self) -> tuple[str, ...]:
        """The fields that are read."""
        return tuple(dict.fromkeys((*self.required, *self.or_required, *self.optional)))

    def missing_from(self, header: Collection[str]) -> tuple[str, ...]:
        """Return the required fields that are not there."""
        layouts = [each for each in (self.required, self.or_required) if each]
        missing = [tuple(name for name in each if name not in header) for each in layouts]
        return min(missing, key=len, default=())

    def is_told_by(self, header: Collection[str]) -> bool:
        """Say whether only the format's own files have such a header."""
        if self.tells and not any(name in header for name in self.tells):
            return False
        return not self.missing_from(header)

    def set_of(self, file: Path) -> str:
        """Return the default set to import a file into."""
        return self.name if self.set_by_file is None else self.set_by_file(uncompressed(file))


_ALL: Final = (
    BattleFormat(
        "verdicts",
        verdicts.read,
        "verdicts/*.jsonl of `tourney run`",
        ("prompt_id", "entrant_a", "entrant_b", "outcome", "raw"),
        set_by_file=verdicts.set_of,
        mapping_version=2,
    ),
    BattleFormat(
        "orq-arena",
        orq_arena.read,
        "orq-arena's battle log, schema 2 and 3",
        (*_BATTLE, "schema_version", "prompt_hash", "majority_verdict", "judge_votes"),
        ("prompt_category", "response_a", "response_b"),
    ),
    BattleFormat(
        "lmarena-55k",
        lmarena.read_55k,
        "LMArena's votes of arena-human-preference-55k",
        ("id", *_PAIR, "winner_model_a", "winner_model_b", "winner_tie"),
        ("response_a", "response_b"),
    ),
    BattleFormat(
        "lmarena-140k",
        lmarena.read_140k,
        "LMArena's votes of arena-human-preference-140k",
        ("id", *_BATTLE),
        lmarena.ABOUT,
        mapping_version=2,
        tells=("conv_metadata", "evaluation_session_id"),
    ),
    BattleFormat(
        "lmarena-100k",
        lmarena.read_100k,
        "LMArena's votes of arena-human-preference-100k, and FastChat's clean_battle",
        _BATTLE,
        lmarena.ABOUT_100K,
        mapping_version=2,
        tells=("anony", "dedup_tag", "tstamp"),
    ),
    BattleFormat(
        "mt-bench",
        mt_bench.read,
        "FastChat's pairwise model_judgment, and votes on it by people and by GPT-4",
        ("question_id", "model_1", "model_2", "g1_winner", "g2_winner", "judge"),
        or_required=("question_id", *_BATTLE, "judge"),
        tells=("g1_winner", "turn"),
    ),
    BattleFormat(
        "arena-hard",
        arena_hard.read,
        "arena-hard-auto's model_judgment, v0.1 and v2.0",
        ("model", "judge", "games"),
        ("uid", "question_id", "baseline", "category"),
    ),
    BattleFormat(
        "alpaca-eval",
        alpaca_eval.read,
        "AlpacaEval's annotations.json",
        ("instruction", "generator_1", "generator_2", "preference"),
        ("annotator", "dataset", "output_1", "output_2"),
    ),
    BattleFormat(
        "tap",
        tap.read,
        "tap's judgments_*.jsonl, or its verdicts/*.jsonl",
        (),
        ("cache_key", "verdict", "judge_model", "reasoning", "metadata", "raw"),
        tap.set_of,
        tells=("cache_key", "raw"),
    ),
    BattleFormat("plain", plain.read, "a table of battles", _BATTLE, _BESIDE, mapping_version=2),
    BattleFormat(
        "judgearena",
        judgearena.read,
        "JudgeArena's battles",
        _BATTLE,
        _BESIDE,
        mapping_version=2,
    ),
)
"""A file is of the first format that its columns tell."""

FORMATS: Final[Mapping[str, BattleFormat]] = {each.name: each for each in _ALL}


def format_of(header: Collection[str]) -> BattleFormat:
    """Return the format that columns tell: of a program, or else a plain table of battles."""
    return next((of for of in _ALL if of.is_told_by(header)), FORMATS["plain"])
