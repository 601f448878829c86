"""The recorder: decisions on what is known, appended all or none."""

import pytest

from commands.decisions.commands import RecordResponse
from commands.decisions.recorder import Recorder
from commands.ports import GenerationTask
from ledger.errors import StaleVersion
from ledger.identity import StreamId
from ledger.store import Ledger
from projections.fold import fold
from projections.tournament.matches import planned_responses
from projections.tournament.state import tournament_of
from tests.builders import STREAM, opened
from tests.commands.builders import P1, answered, echoing, open_tournament, types_of


def responses_of(recorder: Recorder) -> list[RecordResponse]:
    """Return commands that record an echo for each response to the first prompt."""
    commands = []
    for cell in planned_responses(recorder.state, [P1]):
        task = GenerationTask(cell.response_key, cell.entrant, cell.prompt.text, cell.seed)
        commands += [RecordResponse(cell, r) for (r,) in echoing().generate([task])]
    return commands


def test_the_state_in_hand_is_what_the_ledger_folds_to(ledger: Ledger, recorder: Recorder) -> None:
    """It is never read again, so it must not drift from what is on the disk."""
    answered(recorder)

    assert recorder.state == fold(tournament_of(STREAM), ledger.read())


def test_recording_what_is_there_appends_nothing(ledger: Ledger, recorder: Recorder) -> None:
    """A run that changes nothing leaves the file as it was, byte for byte."""
    n_first = recorder.record(open_tournament())

    n_again = recorder.record(open_tournament())

    assert (n_first, n_again) == (len(opened()), 0)
    assert ledger.head.position == n_first


def test_several_commands_are_one_transaction(ledger: Ledger, recorder: Recorder) -> None:
    """A batch is on the disk whole or not at all."""
    recorder.record(open_tournament())

    n_appended = recorder.record(*responses_of(recorder))

    assert n_appended == 2
    assert types_of(ledger)[-2:] == ["ResponseGenerated", "ResponseGenerated"]


def test_what_was_intended_before_a_merge_is_refused(ledger: Ledger, recorder: Recorder) -> None:
    """It was decided on what is no longer the newest; it might pay for what came meanwhile."""
    recorder.record(open_tournament())
    other = Recorder(ledger, STREAM)
    recorder.record(*responses_of(recorder))

    with pytest.raises(StaleVersion, match="another process appended to it"):
        other.record(open_tournament(opened(judges=[])))

    assert other.state == recorder.state


def test_what_has_happened_is_recorded_whatever_a_merge_brought(
    ledger: Ledger, recorder: Recorder
) -> None:
    """A reply in hand is paid for; losing it to a merge would pay for it again."""
    recorder.record(open_tournament())
    other = Recorder(ledger, STREAM)
    first, second = responses_of(recorder)
    recorder.record(first)

    n_appended = other.record(first, second)

    assert n_appended == 1
    assert other.state == fold(tournament_of(STREAM), ledger.read())
    assert len(other.state.responses) == 2


def test_what_another_tournament_appended_is_known_too(ledger: Ledger, recorder: Recorder) -> None:
    """A publication claims everything up to its position, so the state may skip nothing."""
    recorder.record(open_tournament())
    answered(Recorder(ledger, StreamId("other")))

    recorder.record(open_tournament(opened(judges=[])))

    assert len(recorder.state.responses) == 2
    assert recorder.state == fold(tournament_of(STREAM), ledger.read())
