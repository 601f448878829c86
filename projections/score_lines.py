"""A judge's marks for either side, and the verdict that they make, as JudgeArena reads them.

There a judge ends by two lines, `score_A: 7` and `score_B: 9`. What it wrote while thinking does
not count.
"""

import re
from math import isfinite
from typing import Final, NamedTuple

from ledger.events.judging import Verdict

SCORE_PARSER: Final = "judgearena-score@1"


class Marks(NamedTuple):
    """What a judge gave to the responses in slots A and B, the more the better.

    It is asked for 0 to 10, and not held to it.
    """

    a: float
    b: float


def _mark_of(side: str) -> re.Pattern[str]:
    """Return what finds a side's mark: "score", later on the line the side's letter, a number.

    A line is tried once, from its first "score" on, and what stands before the number is taken
    whole: so long replies are read in linear time.
    """
    return re.compile(
        rf'^(?>.*?score).*?{side}[": *\n]*+(-?(?u:\d)+)',
        re.IGNORECASE | re.MULTILINE | re.ASCII,  # else a long s would do for an s
    )


_MARK_OF_A: Final = _mark_of("a")
_MARK_OF_B: Final = _mark_of("b")


def parse_marks(reply: str) -> Marks | None:
    """Read the first mark of each side, a whole number; None where either has none.

    "8.5" is read as 8, "9/10" as 9.
    """
    said = _without_thoughts(reply)
    a, b = _MARK_OF_A.search(said), _MARK_OF_B.search(said)
    if a is None or b is None:
        return None
    marks = Marks(float(a[1]), float(b[1]))
    return marks if all(map(isfinite, marks)) else None


def parse_score_verdict(reply: str) -> Verdict | None:
    """Read the verdict: the side with the higher mark, TIE if equal, None without both."""
    marks = parse_marks(reply)
    if marks is None:
        return None
    if marks.a == marks.b:
        return "TIE"
    return "A" if marks.a > marks.b else "B"


def _without_thoughts(reply: str) -> str:
    """Drop every thought, and all before the end of a thought that has no beginning."""
    *ended, rest = reply.split("</think>")
    said = ""
    for each in ended:
        before, opened, _ = each.partition("<think>")
        said = said + before if opened else ""
    return said + rest
