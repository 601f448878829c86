"""Replies that nobody could read are counted, one is shown, and the remedy is named."""

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from commands.judging.unreadable import gold_notes, nothing_judged, tell_unreadable
from ledger.events.judging import FailureReason
from ledger.events.registration import JudgeSettings
from ledger.events.registry import Event
from ledger.identity import Dimension
from projections.tournament.remaining import WithoutGold
from projections.tournament.state import Tournament
from projections.verdicts.queries import JudgeQuery
from tests.support.builders.events import judge, known, verdict
from tests.support.builders.worlds import JURORS, court, everything, failure, matches_for

ANN = JURORS[0]


def queries(n_judges: int = 1) -> tuple[JudgeQuery, ...]:
    """Return the first judge's twelve queries."""
    found = matches_for(known(*court(n_judges)), ANN)
    return tuple(query for match in found for query in (match.forward, match.swapped))


def replied(query: JudgeQuery, text: str, reason: FailureReason = "unreadable") -> Event:
    """Return the event of a reply without a verdict."""
    return replace(failure(query, reason), reply=text)


def told(*events: Event, by: JudgeSettings = ANN, n_judges: int = 1) -> Sequence[str]:
    """Return what is told after events."""
    state: Tournament = known(*court(n_judges), *events)
    lines: list[str] = []
    tell_unreadable(state, everything(state), by, lines.append)
    return lines


def test_how_many_of_how_many_and_one_of_them_are_told() -> None:
    """Whether it is one odd reply, or a judge that never gives a verdict."""
    first, second, third, fourth, fifth, *_ = queries()
    events = [
        verdict(first.query_key),
        replied(second, "Both\nare fine."),
        replied(third, "A" * 200, "refused"),
        replied(fourth, "", "errored"),
        replied(fifth, "VERDICT: A"),
        verdict(fifth.query_key),  # a retry was read
    ]

    _, what, remedy = told(*events)

    assert what == (
        "1 of 4 answered queries to 'ann' got no readable verdict; one reply reads 'Both are fine.'"
    )
    assert remedy == (
        "no --parser can read them (lenient-tap counts them as ties);"
        " ask again: `tourney apply judge --retry unreadable`"
    )


def test_a_query_that_got_no_answer_is_told_with_the_error() -> None:
    """Otherwise its user sees a gap, and nothing of why."""
    first, second, third, *_ = queries()
    errors = (replace(failure(each, "errored"), detail="HTTP 500") for each in (first, second))

    (what,) = told(*errors, failure(third, "errored"), verdict(third.query_key))

    assert what == (
        "2 queries to 'ann' got no answer; one error: 'HTTP 500';"
        " the next `tourney apply judge` asks again"
    )


def test_of_a_long_reply_the_end_is_shown() -> None:
    """The verdict should stand there."""
    (query, *_) = queries()

    what, _ = told(replied(query, f"{'reason ' * 100}I cannot decide"))

    assert what.endswith("reason I cannot decide'")
    assert len(what) < 200
    assert "one reply ends with ' reason reason" in what


@pytest.mark.parametrize(
    ("texts", "remedy"),
    [
        pytest.param(
            [
                "**VERDICT**: A\nThat is all.",
                '{"verdict": "A", "reasoning": ""}',
                '{"verdict": "B", "reasoning": ""}',
            ],
            "read 2 of them: `tourney project elo --parser json-verdict`; ask",
            id="the parser that reads most",
        ),
        pytest.param(
            ["VERDICT: [[A]]", "VERDICT: B</s>"],
            "read 2 of them: `tourney project elo --parser final-line`; ask",
            id="replies of yesterday, by the newest rule",
        ),
        pytest.param(
            ["VERDICT: A\nVERDICT: B"], "no --parser can read them", id="no rule that guesses"
        ),
    ],
)
def test_a_parser_that_reads_the_replies_is_named(texts: Sequence[str], remedy: str) -> None:
    """Reading again costs nothing, asking again does."""
    *_, told_of = told(*map(replied, queries(), texts))

    assert told_of.startswith(remedy)


def test_a_query_that_was_asked_twice_counts_once() -> None:
    """Queries are counted, and so the sentence says: of their replies there are more."""
    first, second, *_ = queries()
    events = [replied(first, "Hm."), replace(replied(first, "Hm."), attempt=2)]

    what, _ = told(*events, verdict(second.query_key))

    assert what.startswith("1 of 2 answered queries to 'ann' got no readable verdict")


def test_empty_replies_are_named_as_such() -> None:
    """There is nothing to show, and nothing to read again."""
    first, second, *_ = queries()

    only = told(replied(first, " ", "empty"))
    both = told(replied(first, "", "empty"), replied(second, "Hm."))

    assert only[0].endswith("one reply is empty")
    assert only[1].endswith("--retry empty`")
    assert both[0].endswith("one reply reads 'Hm.'")
    assert both[1].endswith("--retry empty,unreadable`")


def test_of_a_panel_the_judge_is_named() -> None:
    """Without its name another judge would be asked."""
    (query, *_) = queries(2)

    _, remedy = told(replied(query, "Hm."), n_judges=2)

    assert remedy.endswith("`tourney apply judge --judge ann --retry unreadable`")


def test_of_a_judge_that_is_readable_nothing_is_told() -> None:
    """Nor of one that was never asked."""
    (query, *_) = queries()

    assert told(verdict(query.query_key)) == []
    assert told(by=judge("nobody")) == []


def test_missing_gold_answers_are_told_in_the_same_words_everywhere() -> None:
    """`plan judge`, `run`, `apply judge` and `status` show these notes."""
    counts = ((0, 3), (1, 3), (2, 3), (3, 3))

    one, some, all_of_them = gold_notes(WithoutGold(Dimension("truth"), *each) for each in counts)

    assert one == "truth: 1 prompt has no gold answer, and is left out"
    assert some == "truth: 2 prompts have no gold answer, and are left out"
    assert all_of_them.startswith("truth: nothing can be judged: the rubric needs gold answers")


def test_gold_answers_are_blamed_only_where_no_prompt_has_one() -> None:
    """One entrant alone has no opponent, whatever the prompts hold."""
    counts = ((0, 3), (1, 3), (3, 3), (0, 0))

    none, some, all_of_them, of_none = nothing_judged(
        WithoutGold(Dimension("truth"), *each) for each in counts
    )

    assert "no prompt has one" in all_of_them
    assert {none, some, of_none} == {
        "truth: nothing can be judged: there are no two entrants to compare, or no prompts"
    }
