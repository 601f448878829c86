"""Pairs of answers that people have labelled, as a tournament that tells how good a judge is.

Both sides of the table become entrants, `a` and `b`, whose answers a judge compares; the labels
become votes, with which its verdicts are compared.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from types import NoneType
from typing import Final, NamedTuple

from commands.errors import ConfigurationError
from commands.importing.bank import bank_row
from commands.importing.formats.rows import BadRow, Fields, Record, is_missing, unpacked
from ledger.events.imports import Winner
from projections.artifacts.escaping import guarded
from projections.reliability.alternative_annotator import GOLD
from projections.results.columns import csv_of

PAIRS_FILE: Final = "pairs.csv"
VOTES_FILE: Final = "votes.csv"
SIDES: Final = ("a", "b")

_ASKED: Final = ("prompt", "question", "instruction", "text", "input")
_CONVERSATIONS: Final = ("conversation_a", "conversation_b")  # which have the prompt, too
_ANSWERS: Final = (
    *((f"{name}_a", f"{name}_b") for name in ("response", "answer", "output", "completion")),
    ("response_A", "response_B"),
    *((f"{name}1", f"{name}2") for name in ("response", "response ", "response_", "output_")),
    _CONVERSATIONS,
)
_SIDES_OF_TALK: Final = frozenset({"user", "assistant"})
_LABELS: Final = ("winner", "label", "preference", "vote")
_ANNOTATORS: Final = ("annotator", "judge_model", "rater", "user")
_ANNOTATOR: Final = re.compile(r"annotator_?\d+")
_OF_AUTO_J: Final = "response 1"  # which numbers from 0, and calls a tie 2

_WINNERS: Final[Mapping[str, Winner]] = {
    **dict.fromkeys(("a", "model_a", "response_a", "a>b", "a>>b", "1", "1.0", "[[a]]"), "model_a"),
    **dict.fromkeys(("b", "model_b", "response_b", "b>a", "b>>a", "2", "2.0", "[[b]]"), "model_b"),
    **dict.fromkeys(("tie", "a=b", "b=a", "0", "0.0", "1.5", "tie (bothbad)", "[[c]]"), "tie"),
}
_BY_AUTO_J: Final[Mapping[str, Winner]] = {"0": "model_a", "1": "model_b", "2": "tie"}
_ONE_HOT: Final[Mapping[str, Winner]] = {
    "winner_model_a": "model_a",
    "winner_model_b": "model_b",
    "winner_tie": "tie",
}
_YES: Final = frozenset({"1", "1.0", "true"})  # in one of those columns
_OTHER: Final[Mapping[Winner, Winner]] = {"model_a": "model_b", "model_b": "model_a"}


class LabelledPairs(NamedTuple):
    """Prompts with two answers each, and votes on them."""

    prompts: tuple[dict[str, object], ...]
    pairs: Mapping[str, tuple[str, str]]  # of answers, by the prompt's id
    votes: tuple[tuple[str, str, Winner], ...]  # the prompt's id, the annotator, who won
    n_unlike: int  # rows that repeat a prompt with other answers, which are left out
    n_without: int  # rows without a prompt, an answer or a label that is understood

    def files(self) -> dict[str, str]:
        """Return the texts of the files of answers and of votes."""
        pairs = ((name, *map(guarded, answers)) for name, answers in self.pairs.items())
        votes = ((name, *SIDES, won, "human", guarded(who)) for name, who, won in self.votes)
        header = ("question_id", "model_a", "model_b", "winner", "source", "judge_model")
        return {
            PAIRS_FILE: csv_of(("prompt_id", *SIDES), pairs),
            VOTES_FILE: csv_of(header, votes),
        }


def answer_columns(header: Sequence[str]) -> tuple[str, str] | None:
    """Return the columns of both answers of a table of labelled pairs; None: it is none."""
    is_labelled = any(_is_label(name) for name in header)
    found = (columns for columns in _ANSWERS if not {*columns}.difference(header))
    return next(found, None) if is_labelled else None


def _is_label(name: str) -> bool:
    return name in _LABELS or name in _ONE_HOT or _ANNOTATOR.fullmatch(name) is not None


def labelled_pairs(rows: Sequence[Record | BadRow], columns: tuple[str, str]) -> LabelledPairs:
    """Read labelled pairs: of one prompt the first answers, and all votes on those.

    Raises:
        ConfigurationError: Labels are numbers that may mean another thing.
    """
    prompts: dict[str, dict[str, object]] = {}
    pairs: dict[str, tuple[str, str]] = {}
    votes: list[tuple[str, str, Winner]] = []
    records = [row for row in rows if isinstance(row, Record)]
    _require_plain(records, columns)
    n_unlike, n_without = 0, len(rows) - len(records)
    for record in records:
        asked = _asked(record.fields, columns)
        a, b = (_answer(record.fields.get(column), len(asked)) for column in columns)
        found = [*_votes(record.fields, columns)]
        if not asked or a is None or b is None or not found:
            n_without += 1
            continue
        prompt = bank_row({"text": asked[0]} if len(asked) == 1 else {"turns": [*asked]})
        name = str(prompt["prompt_id"])
        first = pairs.setdefault(name, (a, b))
        prompts.setdefault(name, prompt)
        if {a, b} != {*first}:
            n_unlike += 1
            continue
        is_swapped = (a, b) != first
        votes += ((name, who, _OTHER.get(won, won) if is_swapped else won) for who, won in found)
    return LabelledPairs(tuple(prompts.values()), pairs, tuple(votes), n_unlike, n_without)


def _asked(fields: Fields, columns: tuple[str, str]) -> tuple[str, ...]:
    """Return what the user asks, turn by turn; of an instruction and its input, both as one."""
    if columns == _CONVERSATIONS:
        asked, other = (_texts(fields.get(column), "user") for column in columns)
        return asked if asked == other else ()
    given = [texts for name in _ASKED if (texts := _texts(fields.get(name), "user"))]
    if "instruction" in fields and "input" in fields:
        return ("\n\n".join(texts[0] for texts in given),) if given else ()
    return next(iter(given), ())


def _votes(fields: Fields, columns: tuple[str, str]) -> Iterator[tuple[str, Winner]]:
    """Yield the annotators of a row, each with who won."""
    words = _BY_AUTO_J if columns[0] == _OF_AUTO_J else _WINNERS
    chosen = (won for name, won in _ONE_HOT.items() if _label(fields.get(name)) in _YES)
    if won := next(chosen, None):
        yield _annotator(fields), won
    for name in fields:
        label = words.get(_label(fields[name]))
        if label is not None and (name in _LABELS or _ANNOTATOR.fullmatch(name)):
            yield _annotator(fields) if name in _LABELS else name, label


def _label(cell: object) -> str:
    return str(cell).strip().casefold()


def _require_plain(records: Sequence[Record], columns: tuple[str, str]) -> None:
    """Refuse numbers that may mean another thing: 0 beside 1 is a tie here, and elsewhere b.

    Raises:
        ConfigurationError: There are such labels.
    """
    labels = {
        _label(cell).removesuffix(".0")
        for record in records
        for name, cell in record.fields.items()
        if name in _LABELS or _ANNOTATOR.fullmatch(name)
    }
    is_open = columns[0] != _OF_AUTO_J and "0" in labels and "2" not in labels
    if "-1" in labels or is_open:
        there = ", ".join(sorted(labels)[:5])
        remedy = "write model_a, model_b or tie; of numbers, 1 is the first, 2 the second, 0 a tie"
        raise ConfigurationError([f"the labels are {there}: {remedy}"])


def _annotator(fields: Fields) -> str:
    given = (fields.get(name) for name in _ANNOTATORS)
    return next((str(each) for each in given if not is_missing(each)), GOLD)


def _answer(cell: object, n_questions: int) -> str | None:
    """Return the answer of a cell: to one question its text, to several a list of texts as JSON."""
    texts = _texts(cell, "assistant")
    if not texts or len(texts) != n_questions:
        return None
    return texts[0] if n_questions == 1 else json.dumps(texts, ensure_ascii=False)


def _texts(cell: object, role: str) -> tuple[str, ...]:
    """Return the text of a cell, or of a conversation those of one side; nothing if one is none."""
    found = unpacked(cell)
    turns = found if isinstance(found, list) and _is_talk(found) else [cell]
    roles = [turn["role"] for turn in turns if isinstance(turn, dict)]
    if not all(isinstance(name, str) and name in _SIDES_OF_TALK for name in roles):
        return ()
    own = [turn for turn in turns if not isinstance(turn, dict) or turn["role"] == role]
    texts = tuple(map(_said, own))
    return texts if all(text.strip() for text in texts) else ()


def _is_talk(turns: list[object]) -> bool:
    """Say whether a list is of turns, not a text that looks like a list."""
    kinds = {type(turn) for turn in turns if not (isinstance(turn, dict) and "role" in turn)}
    return bool(turns) and kinds <= {str, NoneType} and kinds != {NoneType}


def _said(turn: object) -> str:
    """Return the text of a turn, or an empty one if it says something else."""
    content = turn.get("content") if isinstance(turn, dict) else turn
    parts = content if isinstance(content, list) else [content]
    texts = [each.get("text") if isinstance(each, dict) else each for each in parts]
    is_text = all(isinstance(text, str) for text in texts)
    return "\n".join(map(str, texts)) if is_text else ""
