"""Battles in the plain format, as JudgeArena writes them, and of whole runs of ours and tap's.

The plain format has one battle per row, in columns that are easy to write by hand or program.

JudgeArena's battles.parquet, and battles.jsonl of its first draft, have the same columns. If a
judge's reply was unreadable, JudgeArena writes a tie without a preference: it becomes no verdict.
The draft and people's votes have no preferences; their ties are ties.

A row of verdicts/{dimension}.jsonl of `tourney run` is a reconciled pair. It becomes one battle,
as it counts in the run's ratings: by the outcome of its two orders, or by the mean of their
verdicts where they disagree. Of the responses, the number of characters is kept.

A row of tap's cache judgments_{dimension}.jsonl is one order of a pair. A row of its runs'
verdicts/{dimension}.jsonl is a pair with both orders under `raw`, which are read one by one, since
tourney reconciles them itself. Each becomes a battle in the order shown. Both files hold the same
judgments, so import only one; its name gives the dimension.
"""

import ast
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from statistics import fmean
from typing import Final, get_args

from commands.importing.formats.rows import (
    BadRow,
    BattleFormat,
    Cells,
    Fields,
    InvalidFields,
    Records,
    row_by_row,
    shorten,
)
from ledger.events.imports import MAX_WEIGHT, MIN_WEIGHT, ImportedBattle, JurorVote, Source, Winner
from projections.artifacts.judgearena import winner_by
from projections.battles.columns import TIE

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


_OUTCOMES: Final[Mapping[str, Winner]] = {
    "a": "model_a",
    "b": "model_b",
    "tie": "tie",
    "inconsistent": "no verdict",
}
_TOOK: Final[Mapping[str, float]] = {"A": 1.0, "B": 0.0, "TIE": TIE}


@row_by_row
def _read_verdicts(cells: Cells) -> Iterator[ImportedBattle]:
    replies = [Cells(reply) for reply in cells.structured("raw", list[dict[str, object]])]
    judges = dict.fromkeys(reply.text("judge_model") for reply in replies)
    pair = replies[0].structured("pair", dict[str, object]) if replies else {}
    winner = cells.mapped_value("outcome", _OUTCOMES)
    pref = _mean_preference(replies) if replies and winner == "no verdict" else None
    yield ImportedBattle(
        cells.text("entrant_a"),
        cells.text("entrant_b"),
        winner if pref is None else winner_by(1 - pref),
        pref,
        question_id=cells.text("prompt_id"),
        source="llm-judge",
        judge_model="+".join(judges) or None,
        categories=Cells(pair).labels("source"),
        length_a=Cells(pair).length("response_a"),
        length_b=Cells(pair).length("response_b"),
    )


def _mean_preference(replies: Iterable[Cells]) -> float:
    """Return how much the verdicts of both orders prefer b."""
    took = [
        (reply.mapped_value("verdict", _TOOK), reply.fields.get("position_swap") is True)
        for reply in replies
    ]
    return fmean(score if is_swapped else 1 - score for score, is_swapped in took)


VERDICTS: Final = BattleFormat(
    "verdicts",
    _read_verdicts,
    "verdicts/*.jsonl of `tourney run`",
    ("prompt_id", "entrant_a", "entrant_b", "outcome", "raw"),
    set_by_file=lambda file: f"verdicts-{file.stem}",  # each dimension has its own
    mapping_version=2,
)

_VERDICTS: Final[Mapping[str, Winner]] = {"A": "model_a", "B": "model_b", "TIE": "tie"}
_SAYS_TIE: Final = re.compile(r"\s*VERDICT:\s*TIE", re.IGNORECASE)


def _read_tap(records: Records) -> Iterator[ImportedBattle | BadRow]:
    """Read judgments; of two with one cache key, the later counts."""
    latest: dict[str | int, tuple[ImportedBattle | BadRow, ...]] = {}
    for record in records:
        rows = tuple(_each_order([record]))
        if isinstance(record, BadRow) or any(isinstance(row, BadRow) for row in rows):
            yield from rows
        else:
            key = record.fields.get("cache_key")
            latest[record.line if Cells(record.fields).lacks("cache_key") else repr(key)] = rows
    for rows in latest.values():
        yield from rows


@row_by_row
def _each_order(cells: Cells) -> Iterator[ImportedBattle]:
    if "raw" in cells.fields:
        for order in cells.structured("raw", tuple[dict[str, object], dict[str, object]]):
            yield _battle_of_order(order, "pair")
    else:
        yield _battle_of_order(cells.fields, "metadata")


def _battle_of_order(fields: Fields, inner: str) -> ImportedBattle:
    """Return the battle of a judgment, some fields of which are in one of them."""
    judgment = Cells({**fields, **Cells(fields).structured(inner, dict[str, object])})
    first, second = judgment.text("entrant_a"), judgment.text("entrant_b")
    swap = judgment.fields.get("position_swap")
    if not isinstance(swap, bool):
        raise InvalidFields(f"position_swap is {shorten(swap)}, but must be true or false")
    return ImportedBattle(
        second if swap else first,
        first if swap else second,
        _winner(judgment),
        question_id=judgment.text("prompt_id"),
        source="llm-judge",
        judge_model=judgment.text("judge_model"),
    )


def _winner(judgment: Cells) -> Winner:
    """Return the winner; a tie that the reply does not state is no verdict.

    tap recorded a tie for every reply in which it found no verdict.
    """
    winner = judgment.mapped_value("verdict", _VERDICTS)
    reply = judgment.optional_text("reasoning")
    if winner == "tie" and reply is not None and not any(map(_SAYS_TIE.match, reply.splitlines())):
        return "no verdict"
    return winner


TAP: Final = BattleFormat(
    "tap",
    _read_tap,
    "tap's judgments_*.jsonl, or its verdicts/*.jsonl",
    (),
    ("cache_key", "verdict", "judge_model", "reasoning", "metadata", "raw"),
    lambda file: f"tap-{file.stem.removeprefix('judgments_')}",  # each dimension has its own
    tells=("cache_key", "raw"),
)
