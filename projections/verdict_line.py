"""The verdict in a judge's reply: the final non-empty line, or none at all."""

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from ledger.events.judging import Verdict

PARSER: Final = "final-line@1"

# Judges wrap the line in emphasis, quotes or a bullet; they may not add a word to it.
# Each run of it is taken whole (`*+`): giving back would make long runs quadratic.
_DECORATION: Final = r"(?u:[\s*_`>#\-\u2022\"']*+)"
_VERDICT_LINE: Final = re.compile(
    rf"{_DECORATION}VERDICT{_DECORATION}:{_DECORATION}\[?(A|B|TIE)\]?{_DECORATION}\.?{_DECORATION}",
    re.IGNORECASE | re.ASCII,  # else I matches the Turkish \u0130 and \u0131 too
)
_VERDICTS: Final[dict[str, Verdict]] = {"A": "A", "B": "B", "TIE": "TIE"}


def parse_verdict(reply: str) -> Verdict | None:
    """Read the verdict; None when the last line says none, which is never a tie."""
    last_line = reply.rstrip().rpartition("\n")[2]
    match = _VERDICT_LINE.fullmatch(last_line)
    return None if match is None else _VERDICTS[match[1].upper()]


PARSERS: Final[Mapping[str, Callable[[str], Verdict | None]]] = MappingProxyType(
    {PARSER: parse_verdict}
)
"""Every rule that verdicts were ever read by; a stored verdict names its own."""
