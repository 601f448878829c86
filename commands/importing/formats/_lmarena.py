"""LMArena's votes: what people preferred of two anonymous models, in its three public layouts.

Conversations of any length are imported; JudgeArena rates those of one turn only. The newer two
layouts have a language, categories and the tokens of both models' answers; of the oldest, the
characters of the answers are counted.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Final

from commands.importing.formats.rows import Cells, Fields, InvalidFields, row_by_row, shorten
from ledger.events.imports import ImportedBattle, Winner

_FLAGS: Final[Mapping[str, Winner]] = {
    "winner_model_a": "model_a",
    "winner_model_b": "model_b",
    "winner_tie": "tie",
}
_WINNERS: Final[Mapping[str, Winner]] = {
    "model_a": "model_a",
    "model_b": "model_b",
    "tie": "tie",
    "tie (bothbad)": "tie (bothbad)",  # arena-human-preference-100k
    "both_bad": "tie (bothbad)",  # arena-human-preference-140k
}


ABOUT: Final = ("language", "is_code", "category_tag", "conv_metadata")
"""Fields of the newer two layouts beside the result."""


@row_by_row
def read_55k(cells: Cells) -> Iterator[ImportedBattle]:
    yield _vote(cells, _flagged(cells), question_id="id")._replace(
        length_a=_characters(cells, "response_a"), length_b=_characters(cells, "response_b")
    )


@row_by_row
def read_100k(cells: Cells) -> Iterator[ImportedBattle]:
    yield _described(cells, "question_id")


@row_by_row
def read_140k(cells: Cells) -> Iterator[ImportedBattle]:
    yield _described(cells, "id")


def _described(cells: Cells, question_id: str) -> ImportedBattle:
    """Return the vote of a row that says more than the result."""
    counted = Cells(_nested(cells.fields, "conv_metadata"))
    return _vote(cells, cells.mapped_value("winner", _WINNERS), question_id=question_id)._replace(
        categories=_categories(cells.fields),
        language=cells.optional_text("language"),
        length_a=counted.optional_count("sum_assistant_a_tokens"),
        length_b=counted.optional_count("sum_assistant_b_tokens"),
    )


def _categories(fields: Fields) -> tuple[str, ...]:
    """Return the names of the flags that are set, in whatever group: math, creativity, code ..."""
    tags = _nested(fields, "category_tag")
    flags = {name: flag for group in tags for name, flag in _nested(tags, group).items()}
    found = [name for name, flag in flags.items() if flag is True]
    return (*found, "code") if fields.get("is_code") is True else tuple(found)


def _nested(fields: Fields, name: str) -> Fields:
    """Return a nested object, which some rows lack."""
    inner = fields.get(name)
    return inner if isinstance(inner, dict) else {}


def _characters(cells: Cells, name: str) -> int | None:
    """Return how many characters a model wrote; a field holds its answers as the text of JSON."""
    try:
        answers = json.loads(cells.optional_text(name) or "")
    except ValueError:
        return None
    is_list = isinstance(answers, list)
    return sum(len(answer) for answer in answers if isinstance(answer, str)) if is_list else None


def _vote(cells: Cells, winner: Winner, *, question_id: str) -> ImportedBattle:
    return ImportedBattle(
        model_a=cells.text("model_a"),
        model_b=cells.text("model_b"),
        winner=winner,
        pref=None,
        question_id=cells.text(question_id),
        source="human",
        judge_model=None,
    )


def _flagged(cells: Cells) -> Winner:
    """Return the winner whose flag is 1; a tie may mean that both were bad."""
    flags = {name: cells.optional_number(name) for name in _FLAGS}
    if sorted(flag for flag in flags.values() if flag is not None) != [0, 0, 1]:
        said = ", ".join(f"{name} {shorten(cells.fields.get(name))}" for name in _FLAGS)
        raise InvalidFields(f"{said}: one must be 1, the others 0")
    return next(winner for name, winner in _FLAGS.items() if flags[name])
