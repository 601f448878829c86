"""What the report shows of money and time."""

import dataclasses
from datetime import date

import pytest
from immutables import Map
from msgspec.structs import replace

from commands.report.money import spending_of, value_map_of
from ledger.events.money import Usage
from ledger.events.registry import Event
from ledger.events.responses import ResponseGenerated
from ledger.identity import Dimension, EntrantId, JudgeId
from projections.tournament.requests import Bill, EntrantKey, EntrantRequests
from projections.tournament.spend import Spend, SpendKey
from tests.support.builders.events import STREAM, entrant, judge, known, opened
from tests.support.builders.reports import subject
from tests.support.builders.worlds import Fate, cup, history

FATES: tuple[Fate, ...] = (*("a", "a", "a") * 3, "b", "b", "b")
PAID = Bill(n_replies=4, tokens=Usage(n_input=100, n_output=20), usd=0.5)


AT_HOME = "The judges run on the user's machine, which costs no dollars."


def spent(bill: Bill, *, by_entrants: dict[str, Bill] | None = None) -> Spend:
    """Return the bills of a judge on a day, and those of entrants behind a server."""
    key = SpendKey(JudgeId("sonnet"), Dimension("utility"), date(2026, 4, 27))
    bills = {
        EntrantKey(EntrantId(name), "small-3b"): each for name, each in (by_entrants or {}).items()
    }
    return Spend(
        STREAM,
        settled=Map({key: bill}),
        settled_by_day=Map({key._replace(dimension=None): bill}),
        entrants=EntrantRequests(settled=Map(bills)),
    )


def test_money_is_told_by_whom_and_for_what() -> None:
    """Whoever pays wants to know which half to save on."""
    served = {"zoe": PAID, "amy": PAID}
    spend = spent(Bill(n_replies=9, usd=3.25, n_maybe_billed=1, maybe_usd=0.25), by_entrants=served)

    found = spending_of(known(*cup()), spend)

    assert (found.entrants, found.judges, found.total) == ("$1.00", "$3.25", "$4.25")
    assert [(row.entrant, row.model, row.n_answers, row.usd) for row in found.by_entrant] == [
        ("amy", "small-3b", 4, 0.5),
        ("zoe", "small-3b", 4, 0.5),
    ]
    (judged,) = found.by_judge
    assert (judged.judge, judged.dimension, judged.n_replies, judged.usd) == (
        ("sonnet", "utility", 9, 3.25)
    )
    assert found.notes == "Beside this, 1 request may have been billed: $0.2500 at most."


@pytest.mark.parametrize(
    ("loader", "provider", "note"),
    [
        (
            "hf",
            "reference",
            "Entrants and judges run on the user's machine, which costs no dollars.",
        ),
        ("hf", "anthropic", "The entrants run on the user's machine, which costs no dollars."),
        (
            "recorded",
            "reference",
            f"The answers were given in files. {AT_HOME}",
        ),
        ("endpoint", "reference", AT_HOME),
        ("endpoint", "anthropic", ""),
    ],
)
def test_before_anything_is_asked_it_is_known_what_will_cost(
    loader: str, provider: str, note: str
) -> None:
    """A judge that is paid runs nowhere else just because it was not asked yet."""
    opening = opened(entrants=[entrant(loader=loader)], judges=[judge(provider=provider)])

    found = spending_of(known(*opening), Spend(STREAM))

    assert (found.total, found.by_judge, found.by_entrant, found.notes) == ("$0.00", (), (), note)


def slower(event: Event) -> Event:
    """Return a response of zoe's that took ten times as long as others'."""
    if isinstance(event, ResponseGenerated) and event.entrant_id == "zoe":
        return replace(event, elapsed_s=1.0)
    return event


def mostly(fate: Fate, otherwise: Fate, n_prompts: int = 40) -> tuple[Fate, ...]:
    """Return fates by which zoe fares alike against both others, nine times in ten."""
    return tuple(
        each
        for n in range(n_prompts)
        for each in (
            otherwise if n % 10 == 0 else fate,
            otherwise if n % 10 == 5 else fate,
            "a" if n % 2 else "b",
        )
    )


@pytest.mark.parametrize(
    ("fates", "zoe"),
    [(mostly("a", "b"), "yes"), (mostly("b", "a"), "no"), (FATES, "not shown")],
    ids=["better", "worse", "unclear"],
)
def test_the_map_shows_who_is_worth_its_time(fates: tuple[Fate, ...], zoe: str) -> None:
    """A few points with an interval of hundreds are neither for nor against a slower entrant."""
    played = subject(*map(slower, history(cup(len(fates) // 3), *fates)))
    (dimension,) = played.dimensions

    found = value_map_of(played, dimension)

    assert found is not None
    assert found.unit == "mean seconds for a response"
    assert {row.entrant: (row.cost, row.best_value) for row in found.rows} == {
        "zoe": ("1 s", zoe),
        "amy": ("0.1 s", "not shown"),
        "kim": ("0.1 s", "not shown"),
    }
    assert found.drawing.count('class="best"') == (zoe == "yes")


def test_dollars_come_before_seconds_where_they_are_known() -> None:
    """A server's time is not the entrant's."""
    dearer = Bill(n_replies=2, tokens=PAID.tokens, usd=0.5)
    spend = spent(PAID, by_entrants={"zoe": PAID, "amy": dearer})
    played = dataclasses.replace(subject(*history(cup(4), *FATES)), spend=spend)
    (dimension,) = played.dimensions

    found = value_map_of(played, dimension)

    assert found is not None
    assert found.unit == "US dollars a response"
    assert [row.cost for row in found.rows] == ["$0.12", "$0.25"]


def test_recorded_answers_are_placed_by_their_own_dollars() -> None:
    """Beside entrants whose bills are here; an answer of no price is left out of the mean."""
    prices = {"zoe": 0.5, "amy": 0.25}
    events = [
        replace(event, usd=prices[event.entrant_id])
        if isinstance(event, ResponseGenerated) and event.entrant_id in prices
        else event
        for event in history(cup(4), *FATES)
    ]
    billed = spent(PAID, by_entrants={"kim": PAID})
    played = dataclasses.replace(subject(*events), spend=billed)
    (dimension,) = played.dimensions

    found = value_map_of(played, dimension)

    assert found is not None
    assert {row.entrant: row.cost for row in found.rows} == {
        "zoe": "$0.5",
        "amy": "$0.25",
        "kim": "$0.12",
    }


def test_there_is_no_map_where_all_take_the_same() -> None:
    """It would be a line."""
    played = subject(*history(cup(4), *FATES))
    (dimension,) = played.dimensions

    assert value_map_of(played, dimension) is None


@pytest.mark.parametrize("fates", [(), ("a",)])
def test_there_is_no_map_of_fewer_than_two(fates: tuple[Fate, ...]) -> None:
    """One point compares with nothing."""
    played = subject(*history(cup(), *fates))
    (dimension,) = played.dimensions

    assert value_map_of(played, dimension) is None
