"""Parsers: the verdict in a judge's reply, or None; and gold answers in responses.

A reply may end with a verdict line, be a JSON object, or hold two scores; old replies can be read
again leniently.
"""

import json
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import Final, NamedTuple, TypeAlias

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


JudgeScores: TypeAlias = tuple[float, float]
"""A judge's scores for the responses in slots A and B: asked for from 0 to 10, not enforced."""


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
    marks = float(a[1]), float(b[1])
    return marks if all(map(isfinite, marks)) else None


def parse_score_verdict(reply: str) -> Verdict | None:
    """Parse the verdict: the side with the higher score, TIE if equal, None without both."""
    marks = parse_judge_scores(reply)
    if marks is None:
        return None
    a, b = marks
    if a == b:
        return "TIE"
    return "A" if a > b else "B"


def _without_thoughts(reply: str) -> str:
    """Drop every thought, and everything before the end of a thought without a beginning."""
    *ended, rest = reply.split("</think>")
    said = ""
    for thought in ended:
        before, opened, _ = thought.partition("<think>")
        said = said + before if opened else ""
    return said + rest


PARSER: Final = "final-line@2"

# Marks around a verdict say nothing: emphasis, quotes, bullets, rules, fences, dollars of LaTeX.
# Each run of marks is taken whole (`*+`): giving back would make long runs quadratic.
_MARKS: Final = r"\s*_`>#\-\u2022\"'$"
# Nor do zero-width characters, tokens that end a text, and LaTeX's brackets around mathematics.
_SILENT: Final = re.compile(
    r"[\u200b-\u200d\u2060\ufeff]"
    r"|<(?:[|\uff5c][\w\u2581-]{1,40}[|\uff5c]|/s|eos|end_of_turn)>|\\[()\[\]]"
)
_OPENS: Final = rf"(?:\\(?:boxed|text|textbf|mathbf|mathrm)\{{|(?u:[{_MARKS}\[(]))*"
_CLOSES: Final = rf"(?u:[{_MARKS}\])}}]*+)"
_LABELLED: Final = rf"(?u:[{_MARKS}]*+)[:\uff1a]{_OPENS}"
_ENDS: Final = rf"{_CLOSES}[.\u3002]?{_CLOSES}"
_BLANK: Final = re.compile(rf"[{_MARKS}]*+")
_VERDICT_LINE: Final = re.compile(
    rf"(?P<opens>{_OPENS})(?:(?P<label>VERDICT){_LABELLED})?"
    rf"(?:(?P<response>RESPONSE)\b{_OPENS})?(?P<verdict>A|B|TIE){_ENDS}",
    re.IGNORECASE | re.ASCII,  # else I matches the Turkish \u0130 and \u0131 too
)
_VERDICTS: Final[dict[str, Verdict]] = {"A": "A", "B": "B", "TIE": "TIE"}
_LENIENT_ORDER: Final[tuple[Verdict, ...]] = ("TIE", "A", "B")


def line_that(name: str, values: str) -> re.Pattern[str]:
    """Return the pattern of a line that says one of some values behind a name, however marked."""
    unsigned = r"(?<![-\u2212])"  # -3 is no 3
    return re.compile(
        rf"{_OPENS}{name}{_LABELLED}{unsigned}(?:{values}){_ENDS}", re.IGNORECASE | re.ASCII
    )


def said_lines(reply: str) -> Sequence[str]:
    """Return the lines of a reply up to the last that says anything; thoughts are left out."""
    lines = _spoken(reply).split("\n")
    while lines and _BLANK.fullmatch(lines[-1]):
        lines.pop()
    return lines


def _spoken(reply: str) -> str:
    """Return a reply without thoughts and without what says nothing."""
    said = _SILENT.sub("", _without_thoughts(reply))
    return "" if said.lstrip().startswith("<think>") else said  # a thought without an end


def parse_verdict(reply: str) -> Verdict | None:
    """Parse the verdict in the last line; None if there is none, which is never a tie.

    `VERDICT: A` may be marked, fenced or boxed; `[[A]]`, `(A)` and `Response A` do without the
    label. A reply with two different verdicts has none. `(A)` and `Response A` may also be
    headings, so before the last line they count only beside another of their kind.
    """
    *before, last = said_lines(reply) or [""]
    said = _said_in(last)
    if said is None:
        return None
    others = [
        other for other in map(_said_in, before) if other and other.is_certain >= said.is_certain
    ]
    return said.verdict if all(other.verdict == said.verdict for other in others) else None


class _Said(NamedTuple):
    verdict: Verdict
    is_certain: bool  # it can be nothing but a verdict


def _said_in(line: str) -> _Said | None:
    """Return the verdict that a line is, if it is one."""
    match = _VERDICT_LINE.fullmatch(line)
    if match is None:
        return None
    opens, verdict = match["opens"], _VERDICTS[match["verdict"].upper()]
    if match["label"] or "[[" in opens or r"\boxed" in opens:
        return _Said(verdict, is_certain=True)
    is_verdict = "(" in opens or (match["response"] and "#" not in opens)  # no heading
    return _Said(verdict, is_certain=False) if is_verdict else None


def parse_json_verdict(reply: str) -> Verdict | None:
    """Parse the verdict of the JSON object in a reply; None without one, or with two verdicts.

    A provider that guarantees the object's shape does not guarantee the case of its letters, nor
    that nothing stands around it.
    """
    objects, around = json_objects(reply)
    given = [_value_of(found["verdict"]) for found in objects if "verdict" in found]
    beside = [
        said.verdict for said in map(_said_in, around.split("\n")) if said and said.is_certain
    ]
    return given[0] if given and len({*given, *beside}) == 1 else None


def _value_of(said: object) -> Verdict | None:
    match = _VERDICT_LINE.fullmatch(said) if isinstance(said, str) else None
    return None if match is None else _VERDICTS[match["verdict"].upper()]


def _unequivocal(pairs: Sequence[tuple[str, object]]) -> Mapping[str, object]:
    """Return an object's keys and values.

    Raises:
        ValueError: A key has two values.
    """
    said = dict(pairs)
    if any(said[key] is not value and said[key] != value for key, value in pairs):
        raise ValueError("a key has two values")
    return said


_JSON: Final = json.JSONDecoder(strict=False, object_pairs_hook=_unequivocal)
_OBJECT: Final = re.compile(r'\{\s*"')


def json_objects(reply: str) -> tuple[Sequence[Mapping[str, object]], str]:
    """Return the JSON objects in a reply, and the text around them; none if one is broken.

    A broken object may quote another, which is not the judge's.
    """
    text = reply if reply.lstrip().startswith(("{", "```")) else _spoken(reply)
    objects, around, at = [], [], 0
    while begins := _OBJECT.search(text, at):
        try:
            found, ends = _JSON.raw_decode(text, begins.start())
        except (ValueError, RecursionError):
            return (), text
        objects.append(found)
        around.append(text[at : begins.start()])
        at = ends
    return objects, "\n".join([*around, text[at:]])


def section_of(reply: str, dimension: str) -> str | None:
    """Return what the JSON of a reply says under a dimension's name; None without one, or with two.

    So each dimension has its own part of a reply about several, to be read as a reply of its own.
    """
    objects, _ = json_objects(reply)
    sections = [found[dimension] for found in objects if dimension in found]
    if not sections or any(section != sections[0] for section in sections):
        return None
    return json.dumps(sections[0], ensure_ascii=False) if isinstance(sections[0], dict) else None


# What replies were read by before; verdicts that name these rules are checked by them for ever.
DECORATION: Final = r"(?u:[\s*_`>#\-\u2022\"']*+)"
_BARE_LINE: Final = re.compile(
    rf"{DECORATION}VERDICT{DECORATION}:{DECORATION}\[?(A|B|TIE)\]?{DECORATION}\.?{DECORATION}",
    re.IGNORECASE | re.ASCII,
)


def parse_bare_line(reply: str) -> Verdict | None:
    """Parse the verdict in the very last line, whatever stands before it."""
    match = _BARE_LINE.fullmatch(reply.rstrip().rpartition("\n")[2])
    return None if match is None else _VERDICTS[match[1].upper()]


def parse_bare_json(reply: str) -> Verdict | None:
    """Parse the verdict of a reply that is one JSON object, fenced as code or not; else None."""
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


JSON_PARSER: Final = "json-verdict@2"
LENIENT_PARSER: Final = "lenient-tap@1"
PARSER_OF: Final[Mapping[str, str]] = {"line": PARSER, "schema": JSON_PARSER}
"""How replies are read, by how they were asked for."""

PARSERS: Final[Mapping[str, Callable[[str], Verdict | None]]] = {
    PARSER: parse_verdict,
    JSON_PARSER: parse_json_verdict,
    "final-line@1": parse_bare_line,
    "json-verdict@1": parse_bare_json,
    LENIENT_PARSER: parse_leniently,
    SCORE_PARSER: parse_score_verdict,
}
"""Every rule that verdicts were ever read by; a stored verdict names its own."""

BLIND_TO_STOPS: Final = frozenset({LENIENT_PARSER})
"""Parsers that never looked at why a reply ended: they read refusals and what was cut off."""


def newest_parser(name: str) -> str | None:
    """Return a parser's full name, the newest version by default; None if unknown."""
    named = [parser for parser in PARSERS if name in {parser, parser.rpartition("@")[0]}]
    return max(named, key=lambda each: int(each.rpartition("@")[2]), default=None)
