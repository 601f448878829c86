"""Deciding and recording: holds the state between appends, so that it is never read again."""

from collections.abc import Sequence
from typing import Final

from commands.command import (
    Command,
    DropBatch,
    EndBatch,
    ReceiveAnswer,
    ReconcilePair,
    RecordResponse,
    SubmitBatch,
)
from commands.tournament import decide
from ledger.errors import StaleVersion
from ledger.identity import StreamId
from ledger.store import Ledger
from projections.fold import fold
from projections.tournament.state import Tournament, advance, tournament_of

_HOLDS_ANYWAY: Final = (
    *(RecordResponse, ReceiveAnswer, SubmitBatch, DropBatch, EndBatch),  # it has happened
    ReconcilePair,  # it follows from what is known, be it more
)


class Recorder:
    """One tournament of a ledger, open for decisions."""

    def __init__(self, ledger: Ledger, stream: StreamId) -> None:
        self.ledger = ledger
        self._position = 0  # the last that the state knows of
        self.state: Tournament = Tournament(stream)
        self._catch_up()

    def record(self, *commands: Command) -> int:
        """Decide commands on the state in hand and append their events, all or none.

        Returns:
            How many events were appended; the commands must not be about the same thing.

        Raises:
            StaleVersion: The tournament got events since, by a merge say, and what was intended
                may not be wanted any more: they are known now, so look again.
        """
        try:
            return self._append(commands)
        except StaleVersion:
            self._catch_up()
            if all(isinstance(each, _HOLDS_ANYWAY) for each in commands):
                return self.record(*commands)
            raise

    def _append(self, commands: Sequence[Command]) -> int:
        events = [event for command in commands for event in decide(command, self.state)]
        if not events:
            return 0
        self.ledger.append(self.state.stream, events, expected_version=self.state.version)
        self._catch_up()
        return len(events)

    def as_of(self, position: int) -> Tournament:
        """Return what was known at an earlier position."""
        return fold(tournament_of(self.state.stream), self.ledger.read(until=position))

    def _catch_up(self) -> None:
        """Read on: other tournaments may have appended before us, and a state skips nothing."""
        until = self.ledger.head.position
        news = self.ledger.read(after=self._position, until=until)
        self.state, self._position = advance(self.state, news), until
