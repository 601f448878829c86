"""The golden ledger: a tournament that published two runs, as lines of JSON.

The lines that are there hold every later tourney to what was published: their publications are of
version 1, which no tourney of today writes.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Final

from commands.decisions.recorder import Recorder
from commands.runs.run import publish
from ledger.events.ratings import BradleyTerryParameters, EloParameters
from ledger.exchange import export_lines
from ledger.identity import EntrantId
from ledger.store import Ledger
from tests.support.builders.commands import terms
from tests.support.builders.events import NOON, STREAM, entrant, opened, prompt
from tests.support.builders.worlds import RUBRICS, Fate, history

PUBLISHED: Final = Path(__file__).parents[2] / "golden" / "ledgers" / "published.jsonl"

_ENTRANTS: Final = ("zoe", "amy", "kim", "bob")
_PROMPTS: Final = ("p1", "p2", "p3", "p4", "p5", "p6")
_FATES: Final[Mapping[str, Fate]] = MappingProxyType(
    {"a": "a", "b": "b", "=": "tie", "!": "inconsistent"}
)
_HISTORY: Final = "aaaaabaa==abaaaaabaa!!b==aaaaabbaa=!baaaab==aa!aaaaaa=!!bbaaaabaa=ab!aaa"
"""What became of each match, in the order of the match list."""


def published() -> Iterator[bytes]:
    """Yield the lines of the ledger."""
    with Ledger.in_memory(now=lambda: NOON) as ledger, TemporaryDirectory() as runs:
        opening = opened(
            entrants=[entrant(each) for each in _ENTRANTS],
            prompts=[prompt(each) for each in _PROMPTS],
            rubrics=RUBRICS,
        )
        ledger.append(STREAM, history(opening, *(_FATES[each] for each in _HISTORY)))
        for fields in (_headline(), _pilot()):
            publish(Recorder(ledger, STREAM), terms(**fields), runs=Path(runs), now=NOON)
        yield from export_lines(ledger.rows())


def _headline() -> dict[str, object]:
    return {
        "entrants": _ENTRANTS,
        "prompts": _PROMPTS,
        "elo": EloParameters(permutations=30, bootstraps=40),
    }


def _pilot() -> dict[str, object]:
    """Return terms that differ from the headline's wherever they can."""
    return {
        "mode": "pilot",
        "entrants": _ENTRANTS,
        "prompts": _PROMPTS[:3],
        "elo": EloParameters(
            k=24.0, k_sweep=(2.0,), initial_rating=1000.0, permutations=7, ties="half"
        ),
        "bradley_terry": BradleyTerryParameters(
            ties="davidson",
            anchor=EntrantId("amy"),
            anchor_rating=1200.0,
            interval="bayesian",
            resamples=50,
        ),
    }
