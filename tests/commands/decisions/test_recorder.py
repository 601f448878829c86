"""The recorder: decisions on what is known, appended all or none, or only told of."""

import pytest

from commands.decisions.commands import RecordResponse, SettleRequests
from commands.decisions.recorder import (
    MissingResponses,
    MissingVerdicts,
    Recorder,
    count_missing_responses,
    count_missing_verdicts,
    rehearse,
)
from commands.ports import GenerationTask
from ledger.errors import StaleVersion
from ledger.events.registry import Event
from ledger.identity import Dimension, EntrantId, StreamId
from ledger.store import Ledger
from projections.fold import fold
from projections.tournament.folding import tournament_of
from projections.tournament.matches import planned_responses
from projections.tournament.remaining import open_queries
from projections.tournament.state import Tournament
from tests.support.builders.batches import planned_batch
from tests.support.builders.commands import (
    JUDGE,
    P1,
    P2,
    echoing,
    failed,
    open_tournament,
    record_answers,
    types_of,
)
from tests.support.builders.events import STREAM, opened, prompt, responses, rubric, verdict
from tests.support.specification import after


def responses_of(recorder: Recorder) -> list[RecordResponse]:
    """Return commands that record an echo for each response to the first prompt."""
    commands = []
    for cell in planned_responses(recorder.state, [P1]):
        task = GenerationTask(cell.response_key, cell.entrant, cell.prompt.text, cell.seed)
        commands += [RecordResponse(cell, r) for (r,) in echoing().generate([task])]
    return commands


def test_the_state_in_hand_is_what_the_ledger_folds_to(ledger: Ledger, recorder: Recorder) -> None:
    """It is never read again, so it must not drift from what is on the disk."""
    record_answers(recorder)

    assert recorder.state == fold(tournament_of(STREAM), ledger.read())


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
    record_answers(Recorder(ledger, StreamId("other")))

    recorder.record(open_tournament(opened(judges=[])))

    assert len(recorder.state.responses) == 2
    assert recorder.state == fold(tournament_of(STREAM), ledger.read())


OPENED = opened(prompts=[prompt("p1"), prompt("p2", gold=None)])
BASE, TUNED = EntrantId("base"), EntrantId("tuned")
FACTUALITY = Dimension("factuality")


def test_a_rehearsal_knows_what_the_real_thing_would_know() -> None:
    """`plan` looks at a tournament that nobody has opened yet."""
    rehearsed = rehearse(Tournament(STREAM), open_tournament(OPENED))

    real = after(*OPENED)
    assert (rehearsed.bank, rehearsed.roster) == (real.bank, real.roster)
    assert (rehearsed.dimensions, rehearsed.panel) == (real.dimensions, real.panel)
    assert rehearsed.version == real.version


def test_rehearsing_what_is_known_changes_nothing() -> None:
    """A second plan is of the same tournament."""
    known = after(*OPENED)

    assert rehearse(known, open_tournament(OPENED)) == known


def test_every_entrant_owes_what_it_has_not_answered() -> None:
    """Tokens are told as the most that it can come to."""
    state = after(*OPENED)
    answers = responses(state)

    assert count_missing_responses(state, [P1, P2]) == (
        MissingResponses(BASE, n_responses=2, n_tokens_at_most=64),
        MissingResponses(TUNED, n_responses=2, n_tokens_at_most=64),
    )
    assert count_missing_responses(after(*OPENED, *answers[:3]), [P1, P2]) == (
        MissingResponses(BASE, n_responses=0, n_tokens_at_most=0),
        MissingResponses(TUNED, n_responses=1, n_tokens_at_most=32),
    )


READY = (*OPENED, *responses(after(*OPENED)))
ALIKE = {(name, "p1"): "aspirin" for name in ("base", "tuned")}
FORWARD, SWAPPED = (
    query.asked.query_key for query in open_queries(after(*READY), [P1], JUDGE, retries=0)
)


@pytest.mark.parametrize(
    ("events", "retries", "n_queries", "n_waiting"),
    [
        pytest.param(OPENED, 1, 0, 1, id="without its responses it waits"),
        pytest.param(READY, 1, 2, 0, id="both orders are asked, where there is the gold"),
        pytest.param((*READY, verdict(FORWARD), failed(SWAPPED)), 0, 0, 0, id="given up"),
        pytest.param((*READY, verdict(FORWARD), failed(SWAPPED)), 1, 1, 0, id="asked again"),
        pytest.param((*READY, planned_batch(FORWARD)), 0, 1, 0, id="what is in flight is not owed"),
        pytest.param(
            (*OPENED, *responses(after(*OPENED), ALIKE)), 0, 0, 0, id="alike, it costs nothing"
        ),
    ],
)
def test_what_a_run_would_ask_of_a_pair_is_what_a_plan_says(
    events: tuple[Event, ...], retries: int, n_queries: int, n_waiting: int
) -> None:
    """A second run beside a batch must not be told that there is something to pay."""
    queries = open_queries(after(*events), [P1, P2], JUDGE, retries)
    rows = count_missing_verdicts(after(*events), [P1, P2], JUDGE, queries)

    assert rows == (MissingVerdicts(FACTUALITY, 1, n_queries, n_waiting),)


def test_each_dimension_is_planned_apart() -> None:
    """A dimension on which nothing can be compared is shown with nothing."""
    rubrics = [rubric("factuality"), rubric("calibration", needs_gold=False)]
    opening = opened(prompts=[prompt("p2", gold=None)], rubrics=rubrics)
    state = after(*opening, *responses(after(*opening)))

    queries = open_queries(state, [P2], JUDGE, retries=1)
    rows = count_missing_verdicts(state, [P2], JUDGE, queries)

    assert rows == (
        MissingVerdicts(FACTUALITY, n_pairs=0, n_queries=0, n_waiting=0),
        MissingVerdicts(Dimension("calibration"), n_pairs=1, n_queries=2, n_waiting=0),
    )


def test_a_deferred_command_is_recorded_with_the_next_ones(recorder: Recorder) -> None:
    """All or none; it is recorded once, and also where another process was first."""
    recorder.record(open_tournament(opened()))
    before = recorder.state.version
    settled = SettleRequests(EntrantId("base"), "m", ())

    recorder.defer(settled)
    is_held_back = recorder.state.version == before
    recorder.ledger.append(STREAM, opened(prompts=[prompt("late")])[1:2])
    n_recorded = recorder.record(SettleRequests(EntrantId("tuned"), "m", ()))

    assert is_held_back
    assert n_recorded == 2
    assert recorder.record() == 0
    assert types_of(recorder.ledger)[-2:] == ["RequestsSettled", "RequestsSettled"]
