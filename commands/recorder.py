"""Deciding and recording: holds the state between appends, so that it is never read again."""

from commands.tournament import Command, decide
from ledger.identity import StreamId
from ledger.store import Ledger
from projections.fold import fold
from projections.tournament import Tournament, evolve, tournament_of


class Recorder:
    """One tournament of a ledger, open for decisions."""

    def __init__(self, ledger: Ledger, stream: StreamId) -> None:
        self._ledger = ledger
        self.state: Tournament = fold(tournament_of(stream), ledger.read())

    def record(self, *commands: Command) -> int:
        """Decide commands on the state in hand and append their events, all or none.

        Returns:
            How many events were appended; the commands must not be about the same thing.

        Raises:
            StaleVersion: Another process appended to the tournament since.
        """
        events = [event for command in commands for event in decide(command, self.state)]
        if not events:
            return 0
        recorded = self._ledger.append(
            self.state.stream, events, expected_version=self.state.version
        )
        for each in recorded:
            self.state = evolve(self.state, each)
        return len(recorded)
