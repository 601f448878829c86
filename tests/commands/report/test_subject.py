"""What is read for a report shows the same page as all events do."""

from itertools import chain
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commands.reading.judged_tournament import JudgedTournament, Perspective, judged_tournament
from commands.reading.outcomes import tournament_with_outcomes
from commands.reading.resolve import tournament_at
from commands.reading.results import results_now
from commands.report.battles import WhichBattles
from commands.report.page import page_of
from commands.report.subject import Subject, subject_now, subject_of
from ledger.events.registration import Registered, TournamentOpened
from ledger.events.registry import Event
from ledger.identity import StreamId
from ledger.store import Ledger
from projections.tournament.settlement import verdict_of
from tests.support.builders.events import STREAM, key
from tests.support.builders.money import OPUS, USED
from tests.support.builders.scores import paid_score, put_answer, scored_plan
from tests.support.builders.worlds import SLOT_A, TIE, A, B, court, heard
from tests.support.strategies.tournaments import tournament_histories

OTHER = StreamId("other")
COURT = heard(court(2), [A, B, TIE, SLOT_A, A, A], [A, A, TIE, B, None, B])


def judged(ledger: Ledger, *, whole: bool) -> JudgedTournament:
    """Return the tournament, from all events or from its outcomes."""
    last = ledger.head.position
    state = tournament_at(ledger, STREAM, last, settles_only=not whole)
    return judged_tournament(state, Path("x"), last, Perspective())


def subject(ledger: Ledger, *, whole: bool) -> Subject:
    """Return what the page shows, from all events or from what a report reads."""
    source, head = judged(ledger, whole=whole), ledger.head
    if whole:
        return subject_of(ledger, results_now(source, head), is_run=False)
    return subject_now(ledger, source, head)


def page(ledger: Ledger, *, whole: bool) -> str:
    """Return the page."""
    return page_of(subject(ledger, whole=whole), which=WhichBattles.ALL)


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

        expected, found = (subject(ledger, whole=each).spend for each in (True, False))

    assert found.bills == expected.bills
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

        expected, found = subject(ledger, whole=True), subject(ledger, whole=False)
        groups = expected.results.settlements
        battles = [each for each in chain(*groups.values()) if each.match]
        of_all, replied = expected.results.tournament, found.with_replies(battles)

    assert found.spend.bills == expected.spend.bills
    assert found.spend.entrants == expected.spend.entrants
    assert found.results.settlements == groups
    queries = (keys for each in battles if each.match for keys in each.match.keys)
    for _, query in queries:
        assert replied.verdicts.get(query) == of_all.verdicts.get(query)
        assert replied.query_failures.get(query) == of_all.query_failures.get(query)
        if found.said:
            assert found.said(query) == verdict_of(of_all, query, None)
