"""Votes of arenas: LMArena's by people, in its three public layouts, and orq-arena's by a jury.

Conversations of any length are imported; JudgeArena rates those of one turn only. LMArena's newer
two layouts have a language, categories and the tokens of both models' answers; of the oldest, and
of orq-arena, the characters of the answers are counted.

FastChat's clean_battle files are read as arena-human-preference-100k. Votes that the arena's own
ratings leave out are left out here, too: those of people who saw the models' names (FastChat's
elo_analysis.py rates `battles["anony"]` only), and repeated prompts beyond a sample (LMArena's
notebook keeps those whose `dedup_tag` says `sampled`).

orq-arena's battle log, of schema 2 or 3, has one round a row. Each judge saw both orders and
abstained if its verdicts disagreed; a row has the jury's verdict. A round that is inconclusive, or
void for lack of an answer, has no verdict. The votes of the judges are kept, so that their
agreement can be computed.
"""

import ast
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from hashlib import sha256
from typing import Final

from commands.importing.formats.plain import NEEDED
from commands.importing.formats.rows import (
    BattleFormat,
    Cells,
    Fields,
    InvalidFields,
    Unrated,
    row_by_row,
    shorten,
)
from ledger.events.imports import ImportedBattle, JurorSaid, JurorVote, Winner

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
_IDENTIFIES: Final = ("model_a", "model_b", "winner", "judge", "turn", "language", "tstamp")
_N_HEX: Final = 16  # of an id made from a row: 64 bits tell millions apart


def _vote(cells: Cells, winner: Winner, question_id: str | None) -> ImportedBattle:
    return ImportedBattle(
        cells.text("model_a"),
        cells.text("model_b"),
        winner,
        question_id=question_id,
        source="human",
    )


@row_by_row
def _read_55k(cells: Cells) -> Iterator[ImportedBattle]:
    yield _vote(cells, _flagged(cells), cells.text("id"))._replace(
        length_a=_characters(cells, "response_a"), length_b=_characters(cells, "response_b")
    )


def _flagged(cells: Cells) -> Winner:
    """Return the winner whose flag is 1; a tie may mean that both were bad."""
    flags = {name: cells.optional_number(name) for name in _FLAGS}
    if sorted(flag for flag in flags.values() if flag is not None) != [0, 0, 1]:
        said = ", ".join(f"{name} {shorten(cells.fields.get(name))}" for name in _FLAGS)
        raise InvalidFields(f"{said}: one must be 1, the others 0")
    return next(winner for name, winner in _FLAGS.items() if flags[name])


def _characters(cells: Cells, name: str) -> int | None:
    """Return how many characters a model wrote; a field holds its answers as the text of JSON."""
    try:
        answers = json.loads(cells.optional_text(name) or "")
    except ValueError:
        return None
    is_list = isinstance(answers, list)
    return sum(len(answer) for answer in answers if isinstance(answer, str)) if is_list else None


@row_by_row
def _read_100k(cells: Cells) -> Iterator[ImportedBattle]:
    yield _described(cells, _id_100k(cells))


@row_by_row
def _read_140k(cells: Cells) -> Iterator[ImportedBattle]:
    yield _described(cells, cells.text("id"))


def _id_100k(cells: Cells) -> str | None:
    """Return the id of a vote; FastChat's public files have none, so it follows from the row.

    Without the time of the vote the rows are too much alike: then it has no id.
    """
    if not cells.lacks("question_id"):
        return cells.text("question_id")
    if cells.lacks("tstamp"):
        return None
    said = [str(cells.fields.get(name)) for name in _IDENTIFIES]
    return sha256(json.dumps(said).encode()).hexdigest()[:_N_HEX]


def _described(cells: Cells, question_id: str | None) -> ImportedBattle:
    """Return the vote of a row that says more than the result, if the arena's ratings count it.

    Raises:
        Unrated: It is no blind vote, or its prompt was repeated too often.
    """
    if "anony" in cells.fields and not cells.optional_truth("anony"):
        raise Unrated("not blind (anony is not true); FastChat leaves such votes out, too")
    if not cells.lacks("dedup_tag") and not _dedup_tag(cells).optional_truth("sampled"):
        raise Unrated(
            "a prompt asked too often (dedup_tag is not sampled), as in LMArena's ratings"
        )
    counted = Cells(_nested(cells.fields, "conv_metadata"))
    return _vote(cells, cells.winner("winner", _WINNERS), question_id)._replace(
        categories=_categories(cells.fields),
        language=cells.optional_text("language"),
        length_a=counted.optional_count("sum_assistant_a_tokens"),
        length_b=counted.optional_count("sum_assistant_b_tokens"),
    )


def _dedup_tag(cells: Cells) -> Cells:
    """Return the tag; pandas writes an object into a CSV as Python does."""
    given = cells.fields["dedup_tag"]
    if isinstance(given, dict):
        return Cells(given)
    for read in (json.loads, ast.literal_eval):
        with suppress(ValueError, SyntaxError, TypeError, RecursionError):
            found = read(str(given))
            if isinstance(found, dict):
                return Cells(found)
    raise InvalidFields(f'dedup_tag is {shorten(given)}, but must be as {{"sampled": true}}')


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


_ABOUT: Final = (
    *("language", "is_code", "category_tag", "conv_metadata"),
    *("anony", "dedup_tag"),  # which decide whether a vote counts
)
_PAIR: Final = ("model_a", "model_b")

LMARENA: Final = (
    BattleFormat(
        "lmarena-55k",
        _read_55k,
        "LMArena's votes of arena-human-preference-55k",
        ("id", *_PAIR, *_FLAGS),
        ("response_a", "response_b"),
    ),
    BattleFormat(
        "lmarena-140k",
        _read_140k,
        "LMArena's votes of arena-human-preference-140k",
        ("id", *NEEDED),
        _ABOUT,
        mapping_version=2,
        tells=("conv_metadata", "evaluation_session_id"),
    ),
    BattleFormat(
        "lmarena-100k",
        _read_100k,
        "LMArena's votes of arena-human-preference-100k, and FastChat's clean_battle",
        tuple(NEEDED),
        ("question_id", "judge", "turn", "tstamp", *_ABOUT),
        mapping_version=2,
        tells=("anony", "dedup_tag", "tstamp"),
    ),
)

_SCHEMAS: Final = (2, 3)
_VERDICTS: Final[Mapping[str, Winner]] = {
    "A": "model_a",
    "B": "model_b",
    "tie": "tie",
    "inconclusive": "no verdict",
}


@row_by_row
def _read_orq_arena(cells: Cells) -> Iterator[ImportedBattle]:
    if cells.fields.get("schema_version") not in _SCHEMAS:
        said = shorten(cells.fields.get("schema_version"))
        raise InvalidFields(f"schema_version is {said}, but must be 2 or 3")
    verdict = cells.mapped_value("majority_verdict", _VERDICTS)
    _require_agreement(cells, verdict)
    given = [Cells(vote) for vote in cells.structured("judge_votes", list[dict[str, object]])]
    votes = tuple(JurorVote(vote.text("model"), _said(vote)) for vote in given)
    yield ImportedBattle(
        cells.text("model_a"),
        cells.text("model_b"),
        verdict,
        question_id=cells.text("prompt_hash"),
        source="llm-judge",
        judge_model="+".join(vote.judge for vote in votes) or None,
        votes=votes,
        categories=cells.labels("prompt_category"),
        length_a=cells.length("response_a"),
        length_b=cells.length("response_b"),
    )


def _require_agreement(cells: Cells, verdict: Winner) -> None:
    """Check the verdict against the field `winner`, which names an entrant."""
    named: Mapping[Winner, tuple[object, ...]] = {
        "model_a": (cells.fields.get("model_a"),),
        "model_b": (cells.fields.get("model_b"),),
        "tie": ("tie",),
        "no verdict": ("inconclusive", "void"),
    }
    winner = cells.fields.get("winner")
    if winner not in named[verdict]:
        said = shorten(cells.fields["majority_verdict"])
        raise InvalidFields(f"winner is {shorten(winner)}, but majority_verdict is {said}")


def _said(vote: Cells) -> JurorSaid:
    """Return what a judge said; one that failed, or abstained, has no verdict."""
    if vote.fields.get("flipped") is True:
        return "inconsistent"
    return "no verdict" if vote.lacks("vote") else vote.mapped_value("vote", _VERDICTS)


ORQ_ARENA: Final = BattleFormat(
    "orq-arena",
    _read_orq_arena,
    "orq-arena's battle log, schema 2 and 3",
    (*NEEDED, "schema_version", "prompt_hash", "majority_verdict", "judge_votes"),
    ("prompt_category", "response_a", "response_b"),
)
