"""The plain format: one battle per row, in columns that are easy to write by hand or program.

JudgeArena's battles.parquet, and battles.jsonl of its first draft, have the same columns. If a
judge's reply was unreadable, JudgeArena writes a tie without a preference: it becomes no verdict.
The draft and people's votes have no preferences; their ties are ties.
"""

import ast
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Final, get_args

from commands.importing.formats.rows import (
    BattleFormat,
    Cells,
    Fields,
    InvalidFields,
    row_by_row,
    shorten,
)
from ledger.events.imports import MAX_WEIGHT, MIN_WEIGHT, ImportedBattle, JurorVote, Source, Winner

WINNERS: Final[Mapping[str, Winner]] = {each: each for each in get_args(Winner)}
_SOURCES: Final[Mapping[str, Source]] = {each: each for each in get_args(Source)}

NEEDED: Final[Mapping[str, str]] = {
    "model_a": "an entrant",
    "model_b": "another",
    "winner": " | ".join(WINNERS),
}
"""The required columns, and what each holds."""

OPTIONAL: Final[Mapping[str, str]] = {
    "pref": "probability that model_b is better, from 0 to 1",
    "question_id": "id of the prompt",
    "source": f"{' | '.join(_SOURCES)}; default: llm-judge if a judge is named, else unknown",
    "judge_model": "the judge",
    "judge": "the same, as MT-bench names it: expert_1 and arena_user_5 are people",
    "weight": f"weight of the battle, from {MIN_WEIGHT:g} to {MAX_WEIGHT:,.0f}; default: 1",
    "category": "category of the prompt, or several with ; between them",
    "language": "language of the prompt",
    "length_a": "length of model_a's answer, in tokens or characters",
    "length_b": "length of model_b's answer",
    "votes": 'votes of a jury, whose verdict is the winner: [["judge", "model_a"], ...]',
}
"""The optional columns, and what each holds; their cells may be empty."""

COLUMNS: Final[Mapping[str, type]] = {
    **dict.fromkeys(("model_a", "model_b", "winner"), str),
    "pref": float,
    **dict.fromkeys(("question_id", "source", "judge_model"), str),
    "weight": float,
    **dict.fromkeys(("category", "language"), str),
    **dict.fromkeys(("length_a", "length_b"), int),
    "votes": str,
}
"""All columns, with the type of their cells in a file that has types."""


def _battle(cells: Cells) -> ImportedBattle:
    """Return the battle of a row.

    Without a `source`, a battle is its judge's; if it names none, it is unknown whose it is.
    """
    judge_model, by_default = _judge(cells)
    is_said = not cells.lacks("source")
    return ImportedBattle(
        cells.text("model_a"),
        cells.text("model_b"),
        cells.winner("winner", WINNERS),
        cells.optional_share("pref"),
        cells.optional_text("question_id"),
        cells.mapped_value("source", _SOURCES) if is_said else by_default,
        judge_model,
        _weight(cells),
        votes=_votes(cells),
        categories=cells.labels("category"),
        language=cells.optional_text("language"),
        length_a=cells.optional_count("length_a"),
        length_b=cells.optional_count("length_b"),
    )


def _judge(cells: Cells) -> tuple[str | None, Source]:
    """Return the judge that a row names, if any, and who that is."""
    if not cells.lacks("judge_model"):
        return cells.text("judge_model"), "llm-judge"
    return (None, "unknown") if cells.lacks("judge") else named_judge(cells)


_PEOPLE: Final = ("expert", "author", "arena_user")
"""How MT-bench's names of people begin, as FastChat's compute_agreement.py tells them."""


def named_judge(cells: Cells) -> tuple[str, Source]:
    """Return the judge of a vote on MT-bench: a name, or a model with the name of its prompt.

    Raises:
        InvalidFields: It is neither.
    """
    given = cells.fields.get("judge")
    if isinstance(given, str) and given.startswith("["):  # in a CSV, as Python or JSON writes it
        with suppress(ValueError, SyntaxError):
            given = ast.literal_eval(given)
    if isinstance(given, list) and given:
        return Cells({"judge": given[0]}).text("judge"), "llm-judge"
    judge = cells.text("judge")
    return judge, "human" if judge.startswith(_PEOPLE) else "llm-judge"


def _weight(cells: Cells) -> float:
    given = cells.optional_number("weight")
    if given is not None and not MIN_WEIGHT <= given <= MAX_WEIGHT:
        limits = f"from {MIN_WEIGHT:g} to {MAX_WEIGHT:,.0f}"
        raise InvalidFields(f"weight is {given!r}, but must be {limits}")
    return 1.0 if given is None else given


def _votes(cells: Cells) -> tuple[JurorVote, ...]:
    """Return the votes of a jury, which a CSV has as the text of JSON."""
    if cells.lacks("votes"):
        return ()
    given = cells.fields["votes"]
    try:
        found = json.loads(given) if isinstance(given, str) else given
    except ValueError as error:
        raise InvalidFields(f"votes is {shorten(given)}, but must be JSON: {error}") from error
    votes = Cells({"votes": found}).structured("votes", tuple[JurorVote, ...])
    return tuple(JurorVote(Cells({"votes": judge}).text("votes"), vote) for judge, vote in votes)


def row_of(record: Fields) -> Fields:
    """Return an exported battle as a row of a plain table.

    JudgeArena's shape has a tie without a preference where a judge's reply was unreadable; a table,
    where a missing preference is an empty cell, says so in words.
    """
    row = dict(record)
    if "pref" in record and record["pref"] is None:
        row["winner"] = "no verdict"
    if isinstance(categories := record.get("category"), list):
        row["category"] = ";".join(categories)
    if "votes" in record:
        row["votes"] = json.dumps(record["votes"])
    return row


@row_by_row
def _read_plain(cells: Cells) -> Iterator[ImportedBattle]:
    yield _battle(cells)


@row_by_row
def _read_judgearena(cells: Cells) -> Iterator[ImportedBattle]:
    if "ratings" in cells.fields:
        raise InvalidFields("these are ratings, not battles; use `tourney import elo-ratings`")
    row = _battle(cells)
    is_unread = row.winner == "tie" and "pref" in cells.fields and cells.lacks("pref")
    if is_unread and row.source == "llm-judge":
        row = row._replace(winner="no verdict")
    yield row


PLAIN: Final = BattleFormat(
    "plain",
    _read_plain,
    "a table of battles",
    tuple(NEEDED),
    tuple(OPTIONAL),
    mapping_version=2,
)
JUDGEARENA: Final = PLAIN._replace(
    name="judgearena", read=_read_judgearena, description="JudgeArena's battles"
)
