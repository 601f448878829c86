"""The views tell what the events say, in words that SQL can use."""

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from typing import Any

import pytest
from msgspec.structs import replace

from ledger.events.evaluations import ChoicesItem, TextItem
from ledger.events.judging import Verdict
from ledger.events.ratings import RatingsPublished
from ledger.events.registration import EntrantRegistered, Reference
from ledger.events.registry import EVENTS, Event
from ledger.events.responses import ResponseGenerated
from ledger.storage.connection import differences
from ledger.storage.schema import TYPES, VIEWS
from ledger.storage.views.view import LedgerView
from ledger.store import Ledger
from projections.fold import fold
from projections.tournament.spend import spend_of
from tests.support.builders.evaluations import (
    answer,
    choice,
    choices,
    item,
    observed,
    plan,
    unscorable,
)
from tests.support.builders.events import (
    STREAM,
    entrant,
    key,
    known,
    opened,
    prompt,
    recorded,
    responses,
    verdict,
)
from tests.support.builders.money import OPUS, USED, paid, paid_in_vain, put, requests_of
from tests.support.builders.scores import paid_score, put_answer, scored_plan, shared
from tests.support.builders.worlds import (
    answered,
    cup,
    failure_of,
    history,
    matches_of,
    publication,
    reconciled,
)

Row = dict[str, Any]


def rows(ledger: Ledger, query: str) -> list[Row]:
    """Return the rows of a query by the names of their columns."""
    cursor = ledger.connection.cursor()
    cursor.row_factory = sqlite3.Row
    ledger.connection.execute("PRAGMA trusted_schema = ON")  # as in every tool that reads it
    return [dict(row) for row in cursor.execute(query)]


def told(ledger: Ledger, events: Iterable[Event], query: str) -> list[Row]:
    """Record events, and ask."""
    ledger.append(STREAM, [*events])
    return rows(ledger, query)


@pytest.mark.no_cover
@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
def test_a_view_has_its_columns_and_none_of_an_empty_ledger_fails(
    ledger: Ledger, view: LedgerView
) -> None:
    """A view is checked by SQLite when it is read, not when it is made."""
    cursor = ledger.connection.execute("PRAGMA trusted_schema = ON")
    cursor.execute(f"SELECT * FROM {view.name}")  # noqa: S608 (constants)

    assert [name for name, *_ in cursor.description] == [column.name for column in view.columns]
    assert cursor.fetchall() == []
    assert differences(ledger.connection) == []


def test_prompts_and_entrants_are_those_of_the_newest_opening(ledger: Ledger) -> None:
    """A corrected prompt stands once, and who left is not there."""
    ledger.append(STREAM, opened(prompts=[prompt("p1"), prompt("p2", text="Old?")]))
    again = opened(prompts=[prompt("p2", text="New?")], entrants=[entrant("kim")], opening=2)
    ledger.append(STREAM, again)

    assert rows(ledger, "SELECT prompt, text, gold_answer FROM prompts") == [
        {"prompt": "p2", "text": "New?", "gold_answer": "aspirin"}
    ]
    assert rows(ledger, "SELECT entrant, loader FROM entrants") == [
        {"entrant": "kim", "loader": "hf"}
    ]
    assert rows(ledger, "SELECT tournament, opening, n_prompts, n_entrants FROM tournaments") == [
        {"tournament": STREAM, "opening": 2, "n_prompts": 1, "n_entrants": 1}
    ]
    assert rows(ledger, "SELECT dimension, needs_gold FROM rubrics") == [
        {"dimension": "factuality", "needs_gold": 1}
    ]
    assert rows(ledger, "SELECT judge, provider FROM judges") == [
        {"judge": "reference", "provider": "reference"}
    ]


def test_a_response_is_whole_with_a_visible_character_for_nul(ledger: Ledger) -> None:
    """SQLite alone would end it at the NUL, and take an escaped backslash before u0000 for one."""
    text = "a\0b \\u0000 \\\0 \"'\n\U0001f600"
    said = replace(responses(known(*opened()))[0], text=text)

    (row,) = told(ledger, [*opened(), said], "SELECT text, entrant, prompt FROM responses")

    assert row == {"text": text.replace("\0", "\ufffd"), "entrant": "base", "prompt": "p1"}


@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("order", "said", "winner"),
    [(0, "A", "zoe"), (0, "B", "amy"), (1, "A", "amy"), (1, "B", "zoe"), (0, "TIE", None)],
)
def test_a_verdict_names_the_entrant_that_it_prefers(
    ledger: Ledger, order: int, said: Verdict, winner: str | None
) -> None:
    """The slots alone say nothing without the order."""
    events = answered(cup(1))
    match = matches_of(known(*events))[0]
    asked = (match.forward, match.swapped)[order]

    (row,) = told(
        ledger,
        [*events, put(match, asked), verdict(asked.query_key, said)],
        "SELECT entrant_a, entrant_b, slot_order, verdict, winner, reply FROM verdicts",
    )

    assert row == {
        "entrant_a": "zoe",
        "entrant_b": "amy",
        "slot_order": ("forward", "swapped")[order],
        "verdict": said,
        "winner": winner,
        "reply": f"VERDICT: {said}",
    }


def test_outcomes_are_the_newest_of_each_pair(ledger: Ledger) -> None:
    """A prompt that was corrected is judged again; its pair counts once."""
    events = history(cup(1), "a", "tie", "inconsistent")
    match = matches_of(known(*events))[0]
    again = replace(
        reconciled(match, "a"),
        forward=match.swapped.query_key,
        swapped=match.forward.query_key,
        entrant_a=match.pairing.b.entrant.entrant_id,
        entrant_b=match.pairing.a.entrant.entrant_id,
    )

    before = told(ledger, events, "SELECT outcome, winner FROM outcomes ORDER BY position")
    after = told(ledger, [again], "SELECT outcome, winner FROM outcomes ORDER BY position")

    expected = [("a", "zoe"), ("tie", None), ("inconsistent", None)]
    assert [tuple(row.values()) for row in before] == expected
    assert [tuple(row.values()) for row in after] == [
        ("tie", None),
        ("inconsistent", None),
        ("a", "amy"),
    ]


def test_spend_adds_up_to_what_the_projection_says(ledger: Ledger) -> None:
    """Two sums of the same money may not differ."""
    events = answered(cup(1))
    first, second, third = matches_of(known(*events))
    lost = replace(
        paid_in_vain(third.forward, USED, None), usage=None, fate="perhaps billed", worst_usd=0.5
    )
    events = (
        *events,
        put(first, first.forward),
        paid(first.forward.query_key, USED),
        verdict(first.swapped.query_key),  # free
        paid(second.forward.query_key, USED, None),
        paid_in_vain(second.swapped, USED),
        lost,
        *requests_of("zoe", 0.25),
    )
    spend = fold(spend_of(STREAM), recorded(events))

    found = told(
        ledger,
        events,
        "SELECT role, count(*) AS n, sum(usd) AS usd, sum(maybe_usd) AS maybe, sum(n_input) AS sent"
        " FROM spend GROUP BY role",
    )

    assert found == [
        {"role": "entrant", "n": 1, "usd": 0.25, "maybe": None, "sent": 3},
        {
            "role": "judge",
            "n": 4,
            "usd": pytest.approx(spend.total.usd),
            "maybe": spend.total.maybe_usd,
            "sent": spend.total.tokens.n_input,
        },
    ]
    assert spend.total.usd > 0
    assert rows(ledger, "SELECT DISTINCT dimension FROM spend ORDER BY position LIMIT 1") == [
        {"dimension": "factuality"}
    ]


def test_samples_have_their_scores_under_each_name_of_their_run(ledger: Ledger) -> None:
    """The same run may be planned by two names; a tie of the likeliest choices is shared."""
    planned = plan(n_items=4)
    other = replace(planned, entrant=replace(planned.entrant, label="same"), number=1)
    seen = observed(
        planned,
        [
            answer(0.5, "aspirin"),
            choices(choice(-1.0), choice(-2.0), correct=0),
            choices(choice(-1.0), choice(-1.0), correct=1),
        ],
    )
    events: list[Event] = [planned, other, *seen, unscorable(planned, 3)]

    found = told(
        ledger, events, "SELECT entrant, observed, score, text, unscorable FROM samples LIMIT 8"
    )

    assert [tuple(row.values()) for row in found if row["entrant"] == "base"] == [
        ("base", "answer", 0.5, "aspirin", None),
        ("base", "choices", 1.0, None, None),
        ("base", "choices", 0.5, None, None),
        ("base", None, None, None, "too_long"),
    ]
    assert sum(row["entrant"] == "same" for row in found) == 4
    assert rows(ledger, "SELECT entrant, evaluation, n_items FROM evaluations") == [
        {"entrant": "base", "evaluation": "recall", "n_items": 4},
        {"entrant": "same", "evaluation": "recall", "n_items": 4},
    ]


def test_a_score_stands_under_each_sample_with_its_answer(ledger: Ledger) -> None:
    """A repeated query, and an answer found again later, count once each, in dollars, too."""
    planned = scored_plan()
    events: list[Event] = [
        planned,
        put_answer(key("q"), planned, 0, 1),
        failure_of(key("q")),
        put_answer(key("q"), planned, 0, 1, attempt=2),
        paid_score(key("q"), USED, OPUS),
        shared(key("q"), planned, 2),
    ]

    found = told(ledger, events, "SELECT entrant, evaluation, item, score, reply FROM scores")

    said = ("base", "recall", 7.0, "Fine.\nSCORE: 7")
    assert [tuple(row.values()) for row in sorted(found, key=lambda row: row["item"])] == [
        (*said[:2], item, *said[2:]) for item in sorted(planned.items[:3])
    ]
    assert rows(ledger, "SELECT failed, judge FROM failures") == [
        {"failed": "score", "judge": "reference"}
    ]
    spent = fold(spend_of(STREAM), recorded(events)).total.usd
    assert rows(ledger, "SELECT name, dimension, usd FROM spend") == [
        {"name": "ann", "dimension": "recall", "usd": pytest.approx(spent)}
    ]
    assert spent > 0


def test_items_are_told_whole_until_they_are_redacted(ledger: Ledger) -> None:
    """What was asked stands beside what was answered; without its text it keeps its name."""
    ending = ChoicesItem(context="a dose", choices=(" of", " a"), correct=1)
    asked = [item(0), item(1, ending), item(2, TextItem(text="a patient"))]
    query = "SELECT asks, text, choices, correct, expected FROM items ORDER BY position"

    found = told(ledger, asked, query)
    ledger.redact(1, "a name")

    assert [tuple(row.values()) for row in found] == [
        ("prompt", "Which is number 0?", None, None, "aspirin"),
        ("choices", "a dose", '[" of"," a"]', 1, None),
        ("text", "a patient", None, None, None),
    ]
    [redacted] = rows(ledger, "SELECT item, text, expected FROM items LIMIT 1")
    assert redacted == {"item": asked[0].item, "text": None, "expected": None}


def test_evaluations_have_the_weights_that_were_evaluated(ledger: Ledger) -> None:
    """The steps of a training stand under one name; an entrant may be unknown."""
    who = entrant("probe", weights="out", dtype="float32", step=30)
    known_by = Reference(label="probe", digest=who.content_digest)
    events: list[Event] = [
        EntrantRegistered(digest=who.content_digest, entrant=who),
        replace(plan("probe"), entrant=known_by),
        plan("other"),
    ]

    found = told(ledger, events, "SELECT entrant, weights, dtype, step FROM evaluations")

    assert [tuple(row.values()) for row in found] == [
        ("probe", "out", "float32", 30),
        ("other", None, None, None),
    ]


def test_runs_and_failures_are_listed(ledger: Ledger) -> None:
    """What was published, and what brought nothing."""
    events = history(cup(1), "refused")
    run = publication(known(*events))

    found = told(
        ledger,
        [*events, RatingsPublished(run, ())],
        "SELECT run, mode, judge, rated_by, n_prompts FROM runs",
    )

    assert found == [
        {
            "run": run.run,
            "mode": run.terms.mode,
            "judge": run.terms.judge,
            "rated_by": run.terms.rated_by,
            "n_prompts": 1,
        }
    ]
    assert rows(ledger, "SELECT failed, reason, entrant, judge FROM failures") == [
        {"failed": "verdict", "reason": "refused", "entrant": None, "judge": "reference"}
    ]


def test_a_redacted_text_is_null_and_the_rest_stays() -> None:
    """A tombstone begins with the digest of what it stands for."""
    with closing(sqlite3.connect(":memory:")) as plain:
        plain.execute("CREATE TABLE event (position, stream, type, version, recorded_us, data)")
        plain.execute(TYPES)
        for view in VIEWS:
            plain.execute(f"CREATE VIEW {view.name} AS {view.select}")
        data = b'{"redacted":"00","prompt_id":"p1","text":"[redacted]","n_generated_tokens":3}'
        kind = ResponseGenerated.__name__
        plain.execute("INSERT INTO event VALUES (1, 's', ?, 1, 0, ?)", (kind, data))

        found = plain.execute("SELECT text, prompt, n_generated_tokens FROM responses").fetchall()

    assert found == [(None, "p1", 3)]


def test_events_of_a_type_are_found_without_reading_the_others(ledger: Ledger) -> None:
    """Of a long ledger a view reads only its own events."""
    steps = [
        str(step["detail"])
        for step in rows(ledger, "EXPLAIN QUERY PLAN SELECT entrant FROM responses")
    ]

    assert "SEARCH event USING COVERING INDEX type_in_stream (stream=? AND type=?)" in steps
    assert "SCAN event" not in steps


def test_the_types_in_the_views_are_types_of_events() -> None:
    """A misspelt type would find nothing, and nobody would notice."""
    named = {
        name
        for view in VIEWS
        for part in view.select.split("type IN (")[1:]
        for name in part.split(")")[0].replace("'", "").split(", ")
    }

    assert named <= EVENTS.types.keys()
    assert len(named) >= 10
