"""What was spent, as a table."""

from collections.abc import Iterable

from commands.consent import dollars
from commands.tables.table import Column, Table
from ledger.identity import Json
from projections.spend import Bill, Spend, SpendKey

_FRACTIONS = 4  # of a dollar: a query costs less than a cent


def spend_table(spend: Spend, keys: Iterable[SpendKey]) -> Table:
    """Show the bills of some keys, by judge, dimension and day."""
    chosen = sorted(keys, key=lambda key: (key.judge, key.dimension or "", key.day))
    bills = [(key, spend.bills[key]) for key in chosen]
    total = sum((bill for _, bill in bills), Bill())
    return Table(
        schema="tourney/spend@1",
        title="Spent",
        columns=(
            Column("judge", "Judge"),
            Column("dimension", "Dimension"),
            Column("day", "Day"),
            Column("n_replies", "Replies"),
            Column("n_failed", "No verdict"),
            Column("n_input", "Input"),
            Column("n_output", "Output"),
            Column("n_cache_write_5m", "Write 5m"),
            Column("n_cache_write_1h", "Write 1h"),
            Column("n_cache_read", "Read"),
            Column("usd", "Dollars", _FRACTIONS, unknown="?"),
            Column("failed_usd", "On no verdict", _FRACTIONS, unknown="?"),
            Column("cache_saved_usd", "Cache saved", _FRACTIONS, unknown="?"),
        ),
        rows=tuple({**_named(key), **_fields(bill)} for key, bill in bills),
        notes=_notes(total),
        facts={"total": _fields(total)},
    )


def _named(key: SpendKey) -> dict[str, Json]:
    return {"judge": key.judge, "dimension": key.dimension, "day": key.day.isoformat()}


def _fields(bill: Bill) -> dict[str, Json]:
    """Return a bill; where a reply's price is not known, neither is any sum that it is in."""
    is_known = not bill.n_unpriced
    return {
        "n_replies": bill.n_replies,
        "n_failed": bill.n_failed,
        "n_unpriced": bill.n_unpriced,
        **bill.tokens.fields,
        "usd": bill.usd if is_known else None,
        "priced_usd": bill.usd,
        "failed_usd": bill.failed_usd if is_known else None,
        "cache_saved_usd": bill.saved_usd if is_known else None,
    }


def _notes(total: Bill) -> tuple[str, ...]:
    if not total.n_replies:
        return ("nothing was spent",)
    is_known = not total.n_unpriced
    notes = [f"{_replies(total.n_replies)} for {dollars(total.usd if is_known else None)}"]
    if total.n_failed:
        notes.append(
            f"of these {dollars(total.failed_usd)} for {_replies(total.n_failed)} without a verdict"
        )
    if total.n_unpriced:
        notes.append(
            f"of these {_replies(total.n_unpriced)} at an unknown price, and the others for"
            f" {dollars(total.usd)}: add a row by [judge] prices = FILE before the next"
        )
    saved = round(total.saved_usd, _FRACTIONS)
    if saved:
        notes.append(f"the cache {'saved' if saved > 0 else 'cost'} {dollars(abs(saved))}")
    return tuple(notes)


def _replies(n: int) -> str:
    return "1 reply" if n == 1 else f"{n:,} replies"
