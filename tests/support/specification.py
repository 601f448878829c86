"""The decider's tests as sentences: given these events, when this command, then those events."""

from dataclasses import dataclass

import pytest

from commands.decisions.commands import Command
from commands.decisions.decide import decide
from ledger.events.registry import Event
from ledger.recorded import Recorded, microseconds
from projections.tournament.folding import advance
from projections.tournament.state import Tournament
from tests.support.builders.events import NOON, STREAM, key


def given(*events: Event) -> "Given":
    """Start from what a tournament knows after events; no ledger is needed for that."""
    return Given(after(*events))


def after(*events: Event) -> Tournament:
    """Fold events, each placed as the next of ledger and stream."""
    recorded = (
        Recorded(n, STREAM, n, microseconds(NOON), bytes.fromhex(key(f"link {n}")), event)
        for n, event in enumerate(events, start=1)
    )
    return advance(Tournament(STREAM), recorded)


@dataclass(frozen=True)
class Given:
    """What is known."""

    state: Tournament

    def when(self, command: Command) -> "When":
        """Say what is commanded."""
        return When(self.state, command)


@dataclass(frozen=True)
class When:
    """What is known and what is commanded."""

    state: Tournament
    command: Command

    def then(self, *events: Event) -> None:
        """Require that exactly these events follow."""
        assert decide(self.command, self.state) == events

    def then_raises(self, error: type[Exception], match: str) -> None:
        """Require that the command is refused."""
        with pytest.raises(error, match=match):
            decide(self.command, self.state)
