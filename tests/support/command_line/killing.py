"""Killing the command line on its way."""

import os
import random
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from ledger.auditing.audit import audit
from ledger.events.judging import PairReconciled, VerdictReceived
from ledger.events.responses import ResponseGenerated
from ledger.events.values import type_name
from ledger.identity import StreamId
from ledger.store import Ledger
from tests.support.command_line.warm import begin
from tests.support.faults.death import Death


class Held(NamedTuple):
    """What a ledger holds, places and times left out."""

    responses: dict[str, str]
    verdicts: dict[str, str]
    outcomes: dict[tuple[str, ...], str]
    n_by_type: Counter[str]


def held_by(path: Path) -> Held:
    """Read a ledger that must be without fault."""
    with Ledger.read_only(path) as ledger:
        assert audit(ledger) == ()
        events = [recorded.event for recorded in ledger.read(stream=StreamId("quickstart"))]
    return Held(
        {each.response_key: each.text for each in events if isinstance(each, ResponseGenerated)},
        {each.query_key: each.verdict for each in events if isinstance(each, VerdictReceived)},
        {each.natural_key: each.outcome for each in events if isinstance(each, PairReconciled)},
        Counter(type_name(each) for each in events),
    )


def kill(
    place: Path,
    *words: str,
    n_kills: int,
    furthest: int,
    after_each: Callable[[], None] = lambda: None,
) -> None:
    """Run a command in a folder so often, each time killed at a random step outside.

    Args:
        place: The folder.
        words: The command.
        n_kills: How often; no run may come to its end before.
        furthest: The last step that a kill may come at.
        after_each: What is done after each kill.
    """
    rng = random.Random(20260425)  # noqa: S311  # places, not secrets
    for _ in range(n_kills):
        death = Death(rng.randint(1, furthest))
        ended = begin(place, words, os.environ, death=death).wait()
        assert ended.code == -signal.SIGKILL, (death, ended)
        after_each()
