"""Parsers: the verdict in a judge's reply, or None; and gold answers in responses.

A reply may end with a verdict line, be a JSON object, or hold two scores; old replies can be read
again leniently.
"""

import json
import re
import unicodedata
from collections.abc import Callable, Mapping
from functools import lru_cache
from math import isfinite
from typing import Final, NamedTuple

from ledger.events.judging import Verdict

_WORD: Final = re.compile(r"[^\W_]+")
_UNCOUNTED: Final = frozenset({"an", "the"})


def holds_gold(response: str, gold: str | None) -> bool | None:
    """Say whether a response contains the words of a gold answer, whole and in sequence.

    Words are runs of letters and digits, in Unicode's NFKC and without case; `an` and `the` do not
    count. SQuAD's evaluation (Rajpurkar et al. 2016) compares in the same way, with two
    differences: it also drops `a`, which occurs in names (haemophilia A), and joins words at
    hyphens and slashes. Whether the response calls the words wrong is not considered.

    Args:
        response: The whole text.
        gold: The words to find; without any the answer is None.
    """
    sought = words(gold or "")
    return sought in words(response) if sought.strip() else None


def is_gold(answer: str, gold: str) -> bool | None:
    """Say whether an answer has exactly the words of a gold answer; see `holds_gold`."""
    sought = words(gold)
    return sought == words(answer) if sought.strip() else None


def words(text: str) -> str:
    """Return a text's words as for `holds_gold`, with a space before, between and after."""
    found = _WORD.findall(unicodedata.normalize("NFKC", text).casefold())
    return f" {' '.join(word for word in found if word not in _UNCOUNTED)} "


SCORE_PARSER: Final = "judgearena-score@1"


class JudgeScores(NamedTuple):
    """A judge's scores for the responses in slots A and B; higher is better.

    It is asked for 0 to 10, which is not enforced.
    """

    a: float
    b: float


def _score_pattern(side: str) -> re.Pattern[str]:
    """Return the pattern of a side's score: "score", later on the line its letter, a number.

    A line is tried once, from its first "score" on, and what stands before the number is consumed
    possessively, so long replies are read in linear time.
    """
    return re.compile(
        rf'^(?>.*?score).*?{side}[": *\n]*+(-?(?u:\d)+)',
        re.IGNORECASE | re.MULTILINE | re.ASCII,  # else a long s would do for an s
    )


_SCORE_OF_A: Final = _score_pattern("a")
_SCORE_OF_B: Final = _score_pattern("b")


def parse_judge_scores(reply: str) -> JudgeScores | None:
    """Parse the first score of each side, a whole number; None if either has none.

    "8.5" is read as 8, "9/10" as 9.
    """
    said = _without_thoughts(reply)
    a, b = _SCORE_OF_A.search(said), _SCORE_OF_B.search(said)
    if a is None or b is None:
        return None
    marks = JudgeScores(float(a[1]), float(b[1]))
    return marks if all(map(isfinite, marks)) else None


def parse_score_verdict(reply: str) -> Verdict | None:
    """Parse the verdict: the side with the higher score, TIE if equal, None without both."""
    marks = parse_judge_scores(reply)
    if marks is None:
        return None
    if marks.a == marks.b:
        return "TIE"
    return "A" if marks.a > marks.b else "B"


def _without_thoughts(reply: str) -> str:
    """Drop every thought, and everything before the end of a thought without a beginning."""
    *ended, rest = reply.split("</think>")
    said = ""
    for each in ended:
        before, opened, _ = each.partition("<think>")
        said = said + before if opened else ""
    return said + rest


PARSER: Final = "final-line@1"

# Judges wrap the line in emphasis, quotes or a bullet; they may not add a word to it.
# Each run of it is taken whole (`*+`): giving back would make long runs quadratic.
DECORATION: Final = r"(?u:[\s*_`>#\-\u2022\"']*+)"
_VERDICT_LINE: Final = re.compile(
    rf"{DECORATION}VERDICT{DECORATION}:{DECORATION}\[?(A|B|TIE)\]?{DECORATION}\.?{DECORATION}",
    re.IGNORECASE | re.ASCII,  # else I matches the Turkish \u0130 and \u0131 too
)
_VERDICTS: Final[dict[str, Verdict]] = {"A": "A", "B": "B", "TIE": "TIE"}
_LENIENT_ORDER: Final[tuple[Verdict, ...]] = ("TIE", "A", "B")


def parse_verdict(reply: str) -> Verdict | None:
    """Parse the verdict in the last line; None if there is none, which is never a tie."""
    return _verdict_in(reply.rstrip().rpartition("\n")[2])


@lru_cache(maxsize=64)  # nearly all replies end in the same few lines
def _verdict_in(last_line: str) -> Verdict | None:
    match = _VERDICT_LINE.fullmatch(last_line)
    return None if match is None else _VERDICTS[match[1].upper()]


def parse_json_verdict(reply: str) -> Verdict | None:
    """Parse the verdict of a reply that is one JSON object, fenced as code or not; else None.

    A provider that guarantees the object's shape does not guarantee the case of its letters.
    """
    verdict = json_object(reply).get("verdict")
    if not isinstance(verdict, str) or not verdict.isascii():  # a dotless i is I in capitals
        return None
    return _VERDICTS.get(verdict.upper())


def json_object(reply: str) -> Mapping[str, object]:
    """Return the JSON object that a reply is, fenced as code or not; empty if it is none."""
    text = reply.strip()
    if text.startswith("```"):
        text = text.partition("\n")[2].removesuffix("```")
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}


def parse_leniently(reply: str) -> Verdict:
    """Parse the verdict as the scripts before tourney did, their faults included.

    The last line that begins with `VERDICT:` and goes on with TIE, A or B decides, whatever
    follows; a reply without such a line counts as a TIE, which it is not. So this is only for
    reading stored replies again, to compare.
    """
    for line in reversed(reply.splitlines()):
        label, _, said = line.strip().upper().partition(":")
        if label == "VERDICT":
            for verdict in _LENIENT_ORDER:
                if said.strip().startswith(verdict):
                    return verdict
    return "TIE"


JSON_PARSER: Final = "json-verdict@1"
LENIENT_PARSER: Final = "lenient-tap@1"
PARSER_OF: Final[Mapping[str, str]] = {"line": PARSER, "schema": JSON_PARSER}
"""How replies are read, by how they were asked for."""

PARSERS: Final[Mapping[str, Callable[[str], Verdict | None]]] = {
    PARSER: parse_verdict,
    JSON_PARSER: parse_json_verdict,
    LENIENT_PARSER: parse_leniently,
    SCORE_PARSER: parse_score_verdict,
}
"""Every rule that verdicts were ever read by; a stored verdict names its own."""

BLIND_TO_STOPS: Final = frozenset({LENIENT_PARSER})
"""Parsers that never looked at why a reply ended: they read refusals and what was cut off."""


def newest_parser(name: str) -> str | None:
    """Return a parser's full name, the newest version by default; None if unknown."""
    named = [each for each in PARSERS if name in {each, each.rpartition("@")[0]}]
    return max(named, key=lambda each: int(each.rpartition("@")[2]), default=None)
