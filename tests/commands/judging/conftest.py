"""A ledger, a clock and a provider of batches whose time a test moves on."""

from collections.abc import Iterator

import pytest

from commands.decisions.recorder import Recorder
from ledger.store import Ledger
from tests.support.builders.clock import Clock
from tests.support.builders.commands import prefer_tuned, record_answers
from tests.support.builders.events import STREAM, opened, prompt
from tests.support.scripted import ScriptedBatchJudge


@pytest.fixture
def clock() -> Clock:
    """Give a clock that stands at noon."""
    return Clock()


@pytest.fixture
def ledger(clock: Clock) -> Iterator[Ledger]:
    """Give a ledger in memory that records by that clock."""
    with Ledger.in_memory(now=clock.now) as ledger:
        yield ledger


@pytest.fixture
def recorder(ledger: Ledger) -> Recorder:
    """Give a tournament of two entrants and two prompts, all answered."""
    return record_answers(Recorder(ledger, STREAM), opened(prompts=[prompt("p1"), prompt("p2")]))


@pytest.fixture(params=[False, True], ids=["Anthropic", "OpenAI"])
def port(clock: Clock, request: pytest.FixtureRequest) -> ScriptedBatchJudge:
    """Give a provider whose batches end at once; OpenAI's tell their queries before they end."""
    return ScriptedBatchJudge(prefer_tuned, tells_queries=request.param, now=clock.now)
