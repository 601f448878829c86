"""Tables of money: what is not known is shown as such, for people and for machines."""

import datetime as dt
from collections.abc import Sequence
from typing import Final

import pytest
from msgspec.structs import replace

from commands.cli.plan import prices_table
from commands.cli.project.outcomes import spend_table
from commands.cli.tables.table import Table
from commands.spending.price_table import price_table
from ledger.events.money import Usage
from ledger.events.registry import Event
from projections.fold import fold
from projections.tournament.spend import spend_of
from tests.support.builders.events import STREAM, key, recorded
from tests.support.builders.money import USED, paid, paid_in_vain, world
from tests.support.builders.worlds import failure, matches_of
from tests.support.goldens.screens import rendered
from tests.support.specification import after

DAY = dt.date(2026, 10, 8)


def spent(*events: Event) -> Table:
    """Return the table of what events spent."""
    spend = fold(spend_of(STREAM), recorded(events))
    return spend_table([*spend.bills.items()], spend.total)


FAILED: Final = matches_of(after(*world()))[0].forward
WRITTEN: Final = Usage(n_input=100, n_output=200, n_cache_write_1h=9_000)
LOST: Final = replace(failure(FAILED, "errored"), fate="perhaps billed", worst_usd=0.25)


@pytest.mark.parametrize(
    ("events", "notes"),
    [
        ((), ("nothing was spent",)),
        (
            (paid(key("q"), USED, by="opus"), paid_in_vain(FAILED, USED)),
            (
                "2 replies for $0.0092",
                "$0.0046 of it for 1 reply without a verdict",
                "the cache saved $0.0068",
            ),
        ),
        ((paid(key("q"), WRITTEN),), ("1 reply for $0.0764", "the cache cost $0.0360")),
        (
            (paid(key("q"), USED), paid_in_vain(FAILED, USED, None)),
            (
                "2 replies for $?",
                "$? of it for 1 reply without a verdict",
                "1 reply came while the model had no price, and the others for $0.0046: caps do",
                "the cache saved $0.0034",
            ),
        ),
        ((LOST,), ("1 request without an answer, or without its tokens, may be billed: $0.25",)),
        ((LOST, LOST), ("2 requests without an answer, or without its tokens, may be billed",)),
    ],
)
def test_what_was_spent_is_said_with_what_failed_and_what_the_cache_saved(
    events: Sequence[Event], notes: Sequence[str]
) -> None:
    """Per reply 100*4 + 900*0.2 + 200*20 = 4,580 millionths; a read saves 900*(4 - 0.2) = 3,420.

    What failed is looked at to save money: 900,000 tokens must not read as $0.00. Where nobody
    knows, `nothing was spent` would be a guess.
    """
    found = spent(*world(), *events).notes

    for note, said in zip(found, notes, strict=True):
        assert note.startswith(said)


def test_an_unknown_price_is_a_question_mark_and_null() -> None:
    """It must never read as $0."""
    table = spent(*world(), paid(key("q"), USED, None), paid(key("p"), USED))
    (row,) = table.rows

    assert (row["usd"], row["failed_usd"], row["cache_saved_usd"]) == (None, None, None)
    assert (row["n_unpriced"], row["n_input"]) == (1, 200)
    assert rendered(table).count("?") == 4
    assert "0.0000" not in rendered(table)


def test_requests_that_may_have_been_billed_are_counted() -> None:
    """In a column of their own, if there are any."""
    table = spent(*world(), LOST)

    assert [row["n_maybe_billed"] for row in table.rows] == [1]
    assert table.facts["total"]["n_maybe_billed"] == 1  # type: ignore[index, call-overload]  # JSON
    assert "Maybe billed" in rendered(table)
    assert "Maybe billed" not in rendered(spent(*world(), paid(key("q"), USED)))


def test_prices_are_shown_with_date_age_and_source() -> None:
    """Whoever decides by them must know how far to trust them: after 60 days they are doubted.

    What is counted as plain input, as no price was published, is not known to be that.
    """
    table, old = (prices_table(price_table(), day) for day in (DAY, dt.date(2026, 12, 31)))

    by_model = {row["model"]: row for row in table.rows}
    opus, fable = by_model["claude-opus-5-5"], by_model["claude-fable-5-2"]
    shown = ("input_usd", "batch_output_usd", "min_cacheable_tokens")
    assert [opus[key] for key in shown] == [4, 10, 512]
    assert (fable["cache_read_usd"], fable["min_cacheable_tokens"]) == (None, None)
    assert table.notes[-1].startswith("shipped prices of 2026-10-07, 1 day old; from platform.")
    assert "claude-haiku-5-5: prompts of more than 100,000 tokens cost 5 times" in table.notes[0]
    assert "85 days old: prices may have changed" in old.notes[-1]
    assert old.facts["sheets"][0]["is_stale"]  # type: ignore[index, call-overload]  # JSON
