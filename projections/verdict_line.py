"""The verdict in a judge's reply, or none at all: by its final line, as JSON, or as once read."""

import json
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from ledger.events.judging import Verdict
from projections.score_lines import SCORE_PARSER, parse_score_verdict

PARSER: Final = "final-line@1"

# Judges wrap the line in emphasis, quotes or a bullet; they may not add a word to it.
# Each run of it is taken whole (`*+`): giving back would make long runs quadratic.
_DECORATION: Final = r"(?u:[\s*_`>#\-\u2022\"']*+)"
_VERDICT_LINE: Final = re.compile(
    rf"{_DECORATION}VERDICT{_DECORATION}:{_DECORATION}\[?(A|B|TIE)\]?{_DECORATION}\.?{_DECORATION}",
    re.IGNORECASE | re.ASCII,  # else I matches the Turkish \u0130 and \u0131 too
)
_VERDICTS: Final[dict[str, Verdict]] = {"A": "A", "B": "B", "TIE": "TIE"}
_LENIENT_ORDER: Final[tuple[Verdict, ...]] = ("TIE", "A", "B")


def parse_verdict(reply: str) -> Verdict | None:
    """Read the verdict; None when the last line says none, which is never a tie."""
    last_line = reply.rstrip().rpartition("\n")[2]
    match = _VERDICT_LINE.fullmatch(last_line)
    return None if match is None else _VERDICTS[match[1].upper()]


def parse_json_verdict(reply: str) -> Verdict | None:
    """Read the verdict of a reply that is one JSON object, fenced as code or not; else None.

    Where a provider guarantees the object's shape, it does not guarantee the case of its letters.
    """
    text = reply.strip()
    if text.startswith("```"):
        text = text.partition("\n")[2].removesuffix("```")
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        return None
    verdict = said.get("verdict") if isinstance(said, dict) else None
    if not isinstance(verdict, str) or not verdict.isascii():  # a dotless i is I in capitals
        return None
    return _VERDICTS.get(verdict.upper())


def parse_leniently(reply: str) -> Verdict:
    """Read the verdict as the scripts before tourney did, their faults included.

    The last line that begins with `VERDICT:` and goes on with TIE, A or B decides, whatever
    follows there or below; a reply without such a line is called a TIE, which it is not. So this
    is for reading stored replies again, to compare: it never reads a new one.
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
PARSER_OF: Final[Mapping[str, str]] = MappingProxyType({"line": PARSER, "schema": JSON_PARSER})
"""How replies are read, by how they were asked for."""

PARSERS: Final[Mapping[str, Callable[[str], Verdict | None]]] = MappingProxyType(
    {
        PARSER: parse_verdict,
        JSON_PARSER: parse_json_verdict,
        LENIENT_PARSER: parse_leniently,
        SCORE_PARSER: parse_score_verdict,
    }
)
"""Every rule that verdicts were ever read by; a stored verdict names its own."""

BLIND_TO_STOPS: Final = frozenset({LENIENT_PARSER})
"""Parsers that never looked at why a reply ended: they read refusals and what was cut off."""


def newest_parser(name: str) -> str | None:
    """Return a parser's full name: the newest version where none is named, None if unknown."""
    named = [each for each in PARSERS if name in {each, each.rpartition("@")[0]}]
    return max(named, key=_version, default=None)


def _version(parser: str) -> int:
    return int(parser.rpartition("@")[2])
