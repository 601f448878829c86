"""When an answer has the words of another in it."""

import re
from typing import Final

from projections.verdicts.parsers import holds_gold

_ASIDE: Final = re.compile(r"\([^()]*\)")


def holds(text: str, wanted: str) -> bool:
    """Say whether a text has the words of a wanted one, as verdicts/parsers.py finds them.

    What the wanted text has in parentheses may be left out.
    """
    return any(holds_gold(text, form) for form in (wanted, _ASIDE.sub(" ", wanted)))
