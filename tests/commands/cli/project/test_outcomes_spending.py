"""Tables of money: what is not known is shown as such, for people and for machines."""

import datetime as dt
import io

from msgspec.structs import replace
from rich.console import Console

from commands.cli.plan import prices_table
from commands.cli.project.outcomes import spend_table
from commands.cli.tables.render import Format, print_table
from commands.cli.tables.table import Table
from commands.spending.price_table import price_table
from ledger.events.money import Usage
from ledger.events.registry import Event
from projections.fold import fold
from projections.tournament.spend import spend_of
from tests.support.builders.events import STREAM, key, opened, recorded
from tests.support.builders.money import USED, paid, paid_in_vain, world
from tests.support.builders.worlds import failure, matches_of
from tests.support.specification import after

DAY = dt.date(2026, 10, 8)


def spent(*events: Event) -> Table:
    """Return the table of what events spent."""
    spend = fold(spend_of(STREAM), recorded(events))
    return spend_table([*spend.bills.items()], spend.total)


def screen(table: Table) -> str:
    """Return a table as it is printed."""
    file = io.StringIO()
    print_table(table, Format.TABLE, Console(file=file, width=200, _environ={}))
    return file.getvalue()


def test_spending_is_shown_with_what_failed_and_what_the_cache_saved() -> None:
    """Per reply 100*4 + 900*0.2 + 200*20 = 4,580 millionths; a read saves 900*(4 - 0.2) = 3,420."""
    question = matches_of(after(*world()))[0].forward
    table = spent(*world(), paid(key("q"), USED, by="opus"), paid_in_vain(question, USED))

    assert [row["judge"] for row in table.rows] == ["opus", "reference"]
    assert table.notes == (
        "2 replies for $0.0092",
        "$0.0046 of it for 1 reply without a verdict",
        "the cache saved $0.0068",
    )


def test_a_cache_that_costs_more_than_it_saves_is_told() -> None:
    """Writes without reads are a loss, and somebody must say so."""
    written = Usage(n_input=100, n_output=200, n_cache_write_1h=9_000)

    assert spent(*world(), paid(key("q"), written)).notes[1] == "the cache cost $0.0360"


def test_an_unknown_price_is_a_question_mark_and_null() -> None:
    """It must never read as $0."""
    table = spent(*world(), paid(key("q"), USED, None), paid(key("p"), USED))
    (row,) = table.rows

    assert (row["usd"], row["failed_usd"], row["cache_saved_usd"]) == (None, None, None)
    assert (row["n_unpriced"], row["n_input"]) == (1, 200)
    assert table.notes[0] == "2 replies for $?"
    assert "1 reply came while the model had no price" in table.notes[1]
    assert screen(table).count("?") == 4
    assert "0.0000" not in screen(table)


def test_a_reply_without_verdict_or_price_did_not_cost_nothing() -> None:
    """What failed is looked at to save money: 900,000 tokens must not read as $0.00."""
    question = matches_of(after(*world()))[0].forward
    table = spent(*world(), paid(key("q"), USED), paid_in_vain(question, USED, None))

    assert table.notes[1] == "$? of it for 1 reply without a verdict"


def test_requests_that_may_have_been_billed_are_counted() -> None:
    """Where nobody knows, `nothing was spent` would be a guess."""
    question = matches_of(after(*world()))[0].forward
    lost = replace(failure(question, "errored"), fate="perhaps billed", worst_usd=0.25)
    table = spent(*world(), lost)

    (note,) = table.notes
    said = "1 request without an answer, or without its tokens, may be billed: $0.2500 at most"
    assert note == said
    assert [row["n_maybe_billed"] for row in table.rows] == [1]
    assert table.facts["total"]["n_maybe_billed"] == 1  # type: ignore[index, call-overload]  # JSON
    assert "Maybe billed" in screen(table)
    assert "Maybe billed" not in screen(spent(*world(), paid(key("q"), USED)))
    assert spent(*world(), lost, lost).notes[-1].startswith("2 requests without an answer")


def test_nothing_spent_is_said() -> None:
    """An empty table alone would leave a doubt."""
    assert spent(*opened()).notes == ("nothing was spent",)


def test_prices_are_shown_with_date_age_and_source() -> None:
    """Whoever decides by them must know how far to trust them."""
    table = prices_table(price_table(), DAY)

    opus = next(row for row in table.rows if row["model"] == "claude-opus-5-5")
    assert (opus["input_usd"], opus["batch_output_usd"], opus["min_cacheable_tokens"]) == (
        4,
        10,
        512,
    )
    assert table.notes[-1].startswith("shipped prices of 2026-10-07, 1 day old; from platform.")
    assert "claude-haiku-5-5: prompts of more than 100,000 tokens cost 5 times" in table.notes[0]


def test_a_price_that_was_not_published_is_a_question_mark() -> None:
    """What is counted as plain input is not known to be that."""
    fable = next(
        row for row in prices_table(price_table(), DAY).rows if row["model"] == "claude-fable-5-2"
    )

    assert (fable["cache_read_usd"], fable["min_cacheable_tokens"]) == (None, None)


def test_prices_of_long_ago_are_doubted() -> None:
    """After 60 days a user is told to compare."""
    table = prices_table(price_table(), dt.date(2026, 12, 31))

    assert "85 days old: prices may have changed" in table.notes[-1]
    assert table.facts["sheets"][0]["is_stale"]  # type: ignore[index, call-overload]  # JSON
