"""What is read for ratings settles every pairing as the whole ledger does."""

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commands.reading.outcomes import tournament_with_outcomes
from ledger import reader
from ledger.events.registration import Registered, TournamentOpened
from ledger.events.registry import Event
from ledger.identity import StreamId
from ledger.reader import Columns
from ledger.recorded import Recorded
from ledger.store import Ledger
from projections.fold import fold
from projections.tournament.folding import tournament_of
from projections.tournament.state import Tournament
from tests.support.builders.events import STREAM, known, verdict
from tests.support.builders.worlds import (
    answered,
    cup,
    failure,
    history,
    questions_of,
    settled,
)
from tests.support.strategies.tournaments import tournament_histories

OTHER = StreamId("other")


@pytest.fixture
def ledger() -> Iterator[Ledger]:
    """Give a ledger in memory."""
    with Ledger.in_memory() as ledger:
        yield ledger


def whole(ledger: Ledger, until: int) -> Tournament:
    """Return the state after all events."""
    return fold(tournament_of(STREAM), ledger.read(until=until))


@settings(max_examples=25)
@given(events=tournament_histories(), data=st.data())
def test_every_pairing_is_settled_as_by_all_events(
    events: list[Event], data: st.DataObject
) -> None:
    """Whichever tournament recorded what, and up to any position."""
    kinds = st.sampled_from([(STREAM,), (STREAM,), (OTHER,), (OTHER, STREAM), (STREAM, OTHER)])
    with Ledger.in_memory() as ledger:
        for event in events:
            is_setting = isinstance(event, TournamentOpened | Registered)
            for stream in (STREAM, OTHER) if is_setting else data.draw(kinds):
                ledger.append(stream, [event])
        until = data.draw(st.integers(1, ledger.head.position))

        expected, found = whole(ledger, until), tournament_with_outcomes(ledger, STREAM, until)

    assert settled(found) == settled(expected) if expected.panel else found.panel == ()
    assert found.outcomes == expected.outcomes
    assert found.newest == expected.newest
    assert (found.roster, found.bank, found.opening) == (
        expected.roster,
        expected.bank,
        expected.opening,
    )


QUESTION = questions_of(known(*answered(cup())))[0]
REFUSED, UNREADABLE = failure(QUESTION, "refused"), failure(QUESTION, "unreadable", attempt=2)
SAID = verdict(QUESTION.query_key, "A")


@pytest.mark.parametrize(
    ("told", "status"),
    [
        ([(OTHER, REFUSED)], "refused"),
        ([(OTHER, UNREADABLE)], "pending"),
        ([(STREAM, UNREADABLE)], "unreadable"),
        ([(STREAM, UNREADABLE), (OTHER, SAID)], "pending"),
        ([(STREAM, UNREADABLE), (STREAM, SAID)], "pending"),
        ([(OTHER, REFUSED), (STREAM, SAID)], "pending"),
        ([(OTHER, REFUSED), (OTHER, UNREADABLE)], "refused"),
    ],
)
def test_a_failure_counts_while_no_verdict_is_known(
    ledger: Ledger, told: list[tuple[StreamId, Event]], status: str
) -> None:
    """Only then is the verdict of a failed query looked for, in every tournament."""
    ledger.append(STREAM, answered(cup()))
    for stream, event in told:
        ledger.append(stream, [event])

    expected = whole(ledger, ledger.head.position)
    found = tournament_with_outcomes(ledger, STREAM, None)

    assert settled(found)[0].status == status
    assert settled(found) == settled(expected)
    assert found.newest == expected.newest


def test_verdicts_that_agree_and_queries_are_not_read(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are three quarters of a ledger, and most of its bytes."""
    ledger.append(OTHER, history(cup(), "a", "b", "tie"))
    ledger.append(STREAM, history(cup(), "a", "inconsistent", "unreadable"))
    read: list[str] = []
    decoded = reader._recorded  # which all that is read goes through

    def noting(page: Sequence[Columns]) -> Iterator[Recorded]:
        read.extend(type_ for _, _, type_, *_ in page)
        return decoded(page)

    monkeypatch.setattr(reader, "_recorded", noting)

    tournament_with_outcomes(ledger, STREAM, None)

    assert read.count("PairReconciled") == 2
    of_judges = [each for each in read if each in {"VerdictReceived", "JudgeQuerySubmitted"}]
    # the newest; both tournaments' on the inconsistent pair; the other's on the unreadable one
    assert of_judges == ["VerdictReceived"] * (1 + 4 + 2)
