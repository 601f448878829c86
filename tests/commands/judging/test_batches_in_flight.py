"""Batches that a command does not receive: it says so, and does not call judging done."""

import pytest

from commands.decisions.recorder import Recorder
from commands.errors import WorkInFlight
from commands.judging.judge import JudgeTask
from commands.judging.session import batches_not_received, require_none_in_flight
from ledger.events.registration import JudgeSettings
from ledger.identity import Digest, StreamId
from ledger.store import Ledger
from projections.tournament.remaining import AskingRules, open_queries
from tests.support.builders.batches import planned_batch, sent
from tests.support.builders.commands import JUDGE, P1, P2
from tests.support.builders.events import STREAM, judge, verdict

OTHER = StreamId("other")
BATCHED = judge("large", provider="anthropic-batch", model="large")


def keys(recorder: Recorder) -> list[Digest]:
    """Return the keys of the open queries."""
    queries = open_queries(recorder.state, [P1, P2], JUDGE, AskingRules(0))
    return [query.asked.query_key for query in queries]


def with_batch(ledger: Ledger, stream: StreamId, *queries: Digest) -> Recorder:
    """Return the tournament once a tournament has a batch of queries in flight."""
    plan = planned_batch(*queries)
    ledger.append(stream, [plan, sent(plan.batch_key)])
    return Recorder(ledger, STREAM)


def test_a_batch_of_this_tournament_is_received_by_the_batch_command(
    recorder: Recorder, ledger: Ledger
) -> None:
    """A judge that answers at once never looks at batches."""
    later = with_batch(ledger, STREAM, *keys(recorder))

    (said,) = batches_not_received(later.state, JUDGE)

    assert said == (
        "a batch to 'reference' is in flight; its queries are not sent again; `tourney batch wait`"
        " receives it"
    )


def test_a_judge_in_batches_receives_this_tournaments_own(
    recorder: Recorder, ledger: Ledger
) -> None:
    """There is nothing to tell."""
    later = with_batch(ledger, STREAM, *keys(recorder))

    assert not [*batches_not_received(later.state, BATCHED)]


@pytest.mark.parametrize("asked", [JUDGE, BATCHED])
def test_a_batch_of_another_tournament_is_received_by_that_ones_settings(
    recorder: Recorder, ledger: Ledger, asked: JudgeSettings
) -> None:
    """This tournament does not know its provider."""
    later = with_batch(ledger, OTHER, *keys(recorder))

    (said,) = batches_not_received(later.state, asked)

    assert said.startswith("a batch of tournament 'other' is in flight; ")
    assert said.endswith("; receive it with that tournament's settings")


@pytest.mark.parametrize(
    ("stream", "remedy"),
    [
        (STREAM, "`tourney batch wait` receives them"),
        (OTHER, "receive them with the settings of tournament 'other'"),
    ],
)
def test_judging_is_not_done_while_a_batch_holds_its_queries(
    recorder: Recorder, ledger: Ledger, stream: StreamId, remedy: str
) -> None:
    """Ratings would be published that lack them, and nobody would notice."""
    later = with_batch(ledger, stream, *keys(recorder)[:3])

    with pytest.raises(WorkInFlight) as caught:
        require_none_in_flight(later.state, JudgeTask(JUDGE, [P1, P2], AskingRules(0)))

    assert str(caught.value) == f"3 queries to 'reference' in batches with the provider; {remedy}"


def test_queries_with_a_verdict_keep_nobody_waiting(recorder: Recorder, ledger: Ledger) -> None:
    """A merge may bring the verdicts before the batch does."""
    asked = keys(recorder)
    with_batch(ledger, STREAM, *asked)
    ledger.append(OTHER, [verdict(each) for each in asked])

    require_none_in_flight(
        Recorder(ledger, STREAM).state, JudgeTask(JUDGE, [P1, P2], AskingRules(0))
    )


def test_queries_of_other_prompts_keep_nobody_waiting(recorder: Recorder, ledger: Ledger) -> None:
    """A pilot is done when its own prompts are."""
    first = [
        query.asked.query_key for query in open_queries(recorder.state, [P1], JUDGE, AskingRules(0))
    ]
    later = with_batch(ledger, STREAM, *first)

    require_none_in_flight(later.state, JudgeTask(JUDGE, [P2], AskingRules(0)))
    with pytest.raises(WorkInFlight, match=r"^2 queries to 'reference'"):
        require_none_in_flight(later.state, JudgeTask(JUDGE, [P1], AskingRules(0)))
