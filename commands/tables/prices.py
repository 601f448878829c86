"""The price table, as a table."""

import datetime as dt
from collections.abc import Iterable, Iterator

from commands.counted import counted
from commands.prices import PricedModel, PriceTable
from commands.tables.table import Column, Table
from ledger.events.values import Usage
from ledger.identity import Json

_FRACTIONS = 4  # of a dollar: a cached token is cheap
_SHORT = Usage(n_input=0, n_output=0)


def prices_table(prices: PriceTable, today: dt.date) -> Table:
    """Show the row that holds for each model, in dollars for a million tokens."""
    held: dict[str, PricedModel] = {}
    for priced in prices.rows:
        held.setdefault(priced.row.id, priced)
    money = [
        ("input_usd", "Input"),
        ("output_usd", "Output"),
        ("cache_write_5m_usd", "Write 5m"),
        ("cache_write_1h_usd", "Write 1h"),
        ("cache_read_usd", "Read"),
        ("batch_input_usd", "Batch in"),
        ("batch_output_usd", "Batch out"),
    ]
    return Table(
        schema="tourney/prices@1",
        title="Dollars for a million tokens",
        columns=(
            Column("model", "Model"),
            *(Column(key, heading, _FRACTIONS, unknown="?") for key, heading in money),
            Column("min_cacheable_tokens", "Caches from", unknown="?"),
            Column("source", "From"),
        ),
        rows=tuple(_fields(priced) for priced in held.values()),
        notes=(*_long_prompts(held.values()), *age_notes(prices, today)),
        facts={"today": today.isoformat(), "sheets": [*_sheets(prices, today)]},
    )


def age_notes(prices: PriceTable, today: dt.date) -> Iterator[str]:
    """Say how old each sheet is, and which may be out of date."""
    for named in prices.sheets:
        days = counted(named.sheet.age_days(today), "day")
        stale = ": prices may have changed, compare them" if named.sheet.is_stale(today) else ""
        yield f"{named.title}, {days} old{stale}; from {', '.join(named.sheet.sources) or '?'}"


def _fields(priced: PricedModel) -> dict[str, Json]:
    price, row = priced.price(_SHORT, in_batch=False), priced.row
    batch = priced.price(_SHORT, in_batch=True)
    return {
        "model": row.id,
        "input_usd": price.input,
        "output_usd": price.output,
        "cache_write_5m_usd": price.cache_write_5m,
        "cache_write_1h_usd": price.cache_write_1h,
        "cache_read_usd": None if row.cache_read_factor is None else price.cache_read,
        "batch_input_usd": batch.input,
        "batch_output_usd": batch.output,
        "min_cacheable_tokens": row.min_cacheable_tokens,
        "long_prompt_tokens": row.long_prompt_tokens,
        "long_prompt_factor": row.long_prompt_factor,
        "source": priced.source.title,
    }


def _long_prompts(rows: Iterable[PricedModel]) -> Iterator[str]:
    for _, row in rows:
        if row.long_prompt_tokens is not None:
            n, factor = row.long_prompt_tokens, row.long_prompt_factor
            yield f"{row.id}: prompts of more than {n:,} tokens cost {factor:g} times as much"


def _sheets(prices: PriceTable, today: dt.date) -> Iterator[dict[str, Json]]:
    for named in prices.sheets:
        yield {
            "name": named.name,
            "date": named.sheet.date.isoformat(),
            "age_days": named.sheet.age_days(today),
            "is_stale": named.sheet.is_stale(today),
            "sources": list(named.sheet.sources),
        }
