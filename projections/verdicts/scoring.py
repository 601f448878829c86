"""Answers scored by a judge: what it is asked, and how its reply becomes a score.

The system text is the same for every answer that a rubric scores. The user text holds the prompt,
the expected answer if the rubric needs it, and the answer, between fences as those of a pair.
"""

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Final, NamedTuple

from ledger.events.evaluations import PromptItem, SampleName
from ledger.events.judging import query_key
from ledger.events.registration import JudgeSettings, Rubric, ScoreScale
from ledger.identity import Digest, digest_of_bytes
from projections.verdicts.parsers import (
    DECORATION,
    json_object,
    json_objects,
    line_that,
    said_lines,
)
from projections.verdicts.queries import FENCES, ScoreQuery

_GUIDANCE: Final = """\
You score one answer to a question, as a careful expert on its subject who reviews the work of
others. Judge by the rubric alone. Neither length nor style, fluency or a tone of authority is
evidence. An answer that breaks off is judged by what is there.
"""
_PROTOCOLS: Final[Mapping[str, str]] = {
    "line": "End with one line, alone, and nothing after it:\n{forms}\n",
    "schema": 'Reply with one JSON object: your assessment as "reasoning", then your "score":'
    " {said}.\n",
}
_DEMAND: Final = "\n\nScore the answer by the rubric, {end}"
_ENDS: Final[Mapping[str, str]] = {
    "line": "then end with the line SCORE: {said}.",
    "schema": "then give your score: {said}.",
}


class ScoreQuestion(NamedTuple):
    """A query about an answer, and the samples that have the answer."""

    asked: ScoreQuery
    judge: JudgeSettings
    evaluation: str  # of the first sample
    scoring: Digest
    samples: tuple[SampleName, ...]


def score_query(judge: JudgeSettings, rubric: Rubric, item: PromptItem, answer: str) -> ScoreQuery:
    """Build the query that puts an answer to a judge.

    Raises:
        ValueError: The rubric gives no score.
    """
    if not rubric.scale:
        raise ValueError(f"rubric {rubric.dimension!r} gives no score")
    system = _system_text(rubric, rubric.scale, judge.protocol)
    gold = item.expected if rubric.needs_gold else None
    demand = _DEMAND.format(end=_ENDS[judge.protocol].format(said=_said(rubric.scale)))
    user = _user_text(item.prompt, gold, answer, demand)
    key = query_key(judge.digest, digest_of_bytes(system.encode()), user)
    return ScoreQuery(key, system, user, answer, gold, rubric.scale)


@cache
def _system_text(rubric: Rubric, scale: ScoreScale, protocol: str) -> str:
    """Return the system text that all queries of a rubric share."""
    forms = f"SCORE: N\nwhere N is {_said(scale)}"
    if scale.limits is None:
        forms = "SCORE: PASS\nor\nSCORE: FAIL"
    how_to_end = _PROTOCOLS[protocol].format(forms=forms, said=_said(scale))
    return f"{_GUIDANCE}\n{FENCES}\n{how_to_end}\nThe rubric:\n\n{rubric.guidance}\n"


def _said(scale: ScoreScale) -> str:
    """Return what a score may be, in words."""
    if scale.limits is None:
        return "PASS or FAIL"
    lowest, highest = scale.limits
    return f"a number from {lowest:g} to {highest:g}"


def _user_text(question: str, gold: str | None, answer: str, demand: str) -> str:
    """Return the texts between fences whose token no text can know, and what is wanted."""
    texts = {"question": question, "reference answer": gold, "answer": answer}
    token = digest_of_bytes(f"{question}\0{answer}".encode())[:16]
    fenced = (
        f"<<< {name} {token}\n{text}\n>>> end of {name} {token}"
        for name, text in texts.items()
        if text is not None
    )
    return "\n\n".join(fenced) + demand


_SCORE: Final = r"(PASS|FAIL|\d+(?:\.\d+)?)(?:\ ?/\ ?(\d+))?"
_SCORE_LINE: Final = line_that("SCORE", _SCORE)
_PASSES: Final[Mapping[str, float]] = {"PASS": 1.0, "FAIL": 0.0}


def parse_score(reply: str, scale: ScoreScale) -> float | None:
    """Parse the score in the last line; None if there is none, it is not on the scale, or two.

    "7/10" is read as 7 if 10 is the highest score.
    """
    matches = [_SCORE_LINE.fullmatch(line) for line in said_lines(reply)]
    scores = {_on_scale(match, scale) for match in matches if match}
    return scores.pop() if matches and matches[-1] and len(scores) == 1 else None


def _on_scale(match: re.Match[str], scale: ScoreScale) -> float | None:
    said, of = match[1], match[2]
    if scale.limits is None:
        return None if of else _PASSES.get(said.upper())
    is_of_scale = of is None or float(of) == scale.limits[1]
    return _within(float(said), scale.limits) if said[0].isdigit() and is_of_scale else None


def parse_json_score(reply: str, scale: ScoreScale) -> float | None:
    """Parse the score of the JSON object in a reply; None without one, or with two scores."""
    objects, around = json_objects(reply)
    given = [_of_object(found["score"], scale) for found in objects if "score" in found]
    beside = map(_SCORE_LINE.fullmatch, around.split("\n"))
    scores = {*given, *(_on_scale(match, scale) for match in beside if match)}
    return given[0] if given and len(scores) == 1 else None


def _of_object(said: object, scale: ScoreScale) -> float | None:
    if scale.limits is None:
        return _PASSES.get(said.strip().upper()) if isinstance(said, str) else None
    if not isinstance(said, int | float) or isinstance(said, bool):
        return None
    return _within(said, scale.limits)


# What replies were read by before; scores that name these rules are checked by them for ever.
_BARE_LINE: Final = re.compile(
    rf"{DECORATION}SCORE{DECORATION}:{DECORATION}\[?{_SCORE}\]?{DECORATION}\.?{DECORATION}",
    re.IGNORECASE | re.ASCII,
)


def parse_bare_line(reply: str, scale: ScoreScale) -> float | None:
    """Parse the score in the very last line, whatever stands before it."""
    match = _BARE_LINE.fullmatch(reply.rstrip().rpartition("\n")[2])
    return None if match is None else _on_scale(match, scale)


def parse_bare_json(reply: str, scale: ScoreScale) -> float | None:
    """Parse the score of a reply that is one JSON object; else None."""
    said = json_object(reply).get("score")
    if scale.limits is None:
        return _PASSES.get(said.upper()) if isinstance(said, str) else None
    return _of_object(said, scale)


def _within(score: float, limits: tuple[float, float]) -> float | None:
    lowest, highest = limits
    return float(score) if lowest <= score <= highest else None


LINE_PARSER: Final = "score-line@2"
SCHEMA_PARSER: Final = "json-score@2"
SCORE_PARSER_OF: Final[Mapping[str, str]] = {"line": LINE_PARSER, "schema": SCHEMA_PARSER}
"""How scores are read, by how they were asked for."""

SCORE_PARSERS: Final[Mapping[str, Callable[[str, ScoreScale], float | None]]] = {
    LINE_PARSER: parse_score,
    SCHEMA_PARSER: parse_json_score,
    "score-line@1": parse_bare_line,
    "json-score@1": parse_bare_json,
}
"""Every rule that scores were ever read by; a stored score names its own."""
