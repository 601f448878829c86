"""What is read for a report shows the same page as all events do."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commands.runs.choices import tournament_at
from commands.runs.judged_tournament import JudgedTournament, Perspective, judged_tournament
from commands.runs.outcomes import tournament_with_outcomes
from commands.runs.reading.results import results_now
from commands.runs.report.battles import WhichBattles
from commands.runs.report.page import page_of
from commands.runs.report.reading import with_verdicts
from commands.runs.report.subject import subject_of
from ledger.events.registration import Registered, TournamentOpened
from ledger.events.registry import Event
from ledger.identity import StreamId
from ledger.store import Ledger
from projections.fold import fold
from projections.tournament.spend import Spend, spend_of
from tests.support.builders.events import STREAM, key
from tests.support.builders.money import OPUS, USED
from tests.support.builders.scores import paid_score, put_answer, scored_plan
from tests.support.builders.worlds import SLOT_A, TIE, A, B, court, heard
from tests.support.strategies.tournaments import tournament_histories

OTHER = StreamId("other")
COURT = heard(court(2), [A, B, TIE, SLOT_A, A, A], [A, A, TIE, B, None, B])


def judged(ledger: Ledger, *, whole: bool) -> tuple[JudgedTournament, Spend]:
    """Return the tournament and its spend, from all events or from what a report reads."""
    last = ledger.head.position
    state = tournament_at(ledger, STREAM, last, settles_only=not whole)
    source = judged_tournament(state, Path("x"), last, Perspective())
    if whole:
        return source, fold(spend_of(STREAM), ledger.read())
    return with_verdicts(ledger, source, last)


def page(ledger: Ledger, *, whole: bool) -> str:
    """Return the page."""
    source, spend = judged(ledger, whole=whole)
    results = results_now(source, ledger.head)
    return page_of(subject_of(ledger, results, is_run=False, spend=spend), which=WhichBattles.ALL)


def test_the_page_is_that_of_all_events() -> None:
    """Of two judges, whose verdicts and replies it shows."""
    with Ledger.in_memory() as ledger:
        ledger.append(STREAM, COURT)

        assert page(ledger, whole=False) == page(ledger, whole=True)


def test_scores_are_spent_as_in_all_events() -> None:
    """The page's bill has every reply that was paid for."""
    planned = scored_plan()
    scored: list[Event] = [
        planned,
        put_answer(key("q"), planned, 0),
        paid_score(key("q"), USED, OPUS),
    ]
    with Ledger.in_memory() as ledger:
        ledger.append(STREAM, [*COURT, *scored])

        (_, expected), (_, found) = judged(ledger, whole=True), judged(ledger, whole=False)

    assert found == expected
    assert expected.total.usd > 0


def test_what_another_tournament_was_told_is_shown_too() -> None:
    """A query that it asked is not asked again, and its reply is on this ledger."""
    opening = court(2)
    with Ledger.in_memory() as ledger:
        ledger.append(OTHER, COURT)
        ledger.append(STREAM, [*opening, *COURT[len(opening) + 6 :]])

        found = page(ledger, whole=False)

        assert found == page(ledger, whole=True)
        assert "VERDICT: TIE" in found


@pytest.mark.parametrize("type_", ["ResponseGenerated", "VerdictReceived"])
def test_a_redacted_text_is_gone_from_the_same_page(tmp_path: Path, type_: str) -> None:
    """The outcome on record stays, and is found by the queries that were sent."""
    with Ledger.open(tmp_path / "x.db") as ledger:
        ledger.append(STREAM, COURT)
        chosen = next(each for each in ledger.read(types={type_}))
        ledger.redact(chosen.position, "a key")

        assert page(ledger, whole=False) == page(ledger, whole=True)


@settings(max_examples=20)
@given(events=tournament_histories(), data=st.data())
def test_verdicts_and_spend_are_those_of_all_events(
    events: list[Event], data: st.DataObject
) -> None:
    """Whichever tournament recorded what."""
    kinds = st.sampled_from([(STREAM,), (STREAM,), (OTHER,), (OTHER, STREAM), (STREAM, OTHER)])
    with Ledger.in_memory() as ledger:
        for event in events:
            is_setting = isinstance(event, TournamentOpened | Registered)
            for stream in (STREAM, OTHER) if is_setting else data.draw(kinds):
                ledger.append(stream, [event])
        if not tournament_with_outcomes(ledger, STREAM, None).panel:
            return

        (expected, spent), (found, told) = judged(ledger, whole=True), judged(ledger, whole=False)

    assert told == spent
    assert found.settlements == expected.settlements
    asked = [
        key
        for group in expected.settlements.values()
        for each in group
        if each.match
        for _, key in each.match.keys
    ]
    for query in asked:
        assert found.state.verdicts.get(query) == expected.state.verdicts.get(query)
        assert found.state.query_failures.get(query) == expected.state.query_failures.get(query)
