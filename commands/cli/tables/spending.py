"""Prices and spend as tables."""

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, NamedTuple

from commands.cli.tables.table import Table, table_of
from commands.errors import counted
from commands.spending.offer import dollars, no_price
from commands.spending.price_table import PricedModel, PriceTable
from ledger.events.money import Usage
from ledger.identity import Json
from projections.results.columns import KEPT, Column, Shown
from projections.results.money import FRACTIONS, EntrantSpendRow, SpendRow
from projections.tournament.requests import Bill
from projections.tournament.spend import SpendKey

_SHORT = Usage(n_input=0, n_output=0)


def _usd(heading: str, importance: int) -> Column:
    return Column(heading, FRACTIONS, unknown="?", importance=importance)


class PriceRow(NamedTuple):
    """The price of a model, in dollars per million tokens."""

    model: Shown[str]
    input_usd: Annotated[float | None, _usd("Input", KEPT)]
    output_usd: Annotated[float | None, _usd("Output", KEPT)]
    cache_write_5m_usd: Annotated[float | None, _usd("Write 5m", 1)]
    cache_write_1h_usd: Annotated[float | None, _usd("Write 1h", 1)]
    cache_read_usd: Annotated[float | None, _usd("Read", 1)]
    batch_input_usd: Annotated[float | None, _usd("Batch in", 2)]
    batch_output_usd: Annotated[float | None, _usd("Batch out", 2)]
    min_cacheable_tokens: Annotated[int | None, Column("Caches from", unknown="?", importance=0)]
    long_prompt_tokens: int | None
    long_prompt_factor: float | None
    source: Annotated[str, Column("From", importance=0)]


def prices_table(prices: PriceTable, today: dt.date) -> Table:
    """Return the valid price of each model, in dollars per million tokens."""
    held: dict[str, PricedModel] = {}
    for priced in prices.rows:
        held.setdefault(priced.row.id, priced)
    return table_of(
        PriceRow,
        map(_price_row, held.values()),
        "tourney/prices@1",
        "Dollars per million tokens",
        notes=(*_long_prompts(held.values()), *age_notes(prices, today)),
        facts={"today": today.isoformat(), "sheets": [*_sheets(prices, today)]},
    )


def age_notes(prices: PriceTable, today: dt.date) -> Iterator[str]:
    """Yield the age of each price table, with a warning where it may be out of date."""
    for named in prices.sheets:
        days = counted(named.sheet.age_days(today), "day")
        stale = ": prices may have changed, check them" if named.sheet.is_stale(today) else ""
        yield f"{named.title}, {days} old{stale}; from {', '.join(named.sheet.sources) or '?'}"


def _price_row(priced: PricedModel) -> PriceRow:
    price, row = priced.price(_SHORT, in_batch=False), priced.row
    batch = priced.price(_SHORT, in_batch=True)
    return PriceRow(
        model=row.id,
        input_usd=price.input,
        output_usd=price.output,
        cache_write_5m_usd=price.cache_write_5m,
        cache_write_1h_usd=price.cache_write_1h,
        cache_read_usd=None if row.cache_read_factor is None else price.cache_read,
        batch_input_usd=batch.input,
        batch_output_usd=batch.output,
        min_cacheable_tokens=row.min_cacheable_tokens,
        long_prompt_tokens=row.long_prompt_tokens,
        long_prompt_factor=row.long_prompt_factor,
        source=priced.source.title,
    )


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


def spend_table(
    bills: Sequence[tuple[SpendKey, Bill]], served: Sequence[EntrantSpendRow] = ()
) -> Table:
    """Return a row for each judge, dimension and day; notes tell the spend of endpoint entrants."""
    total = sum((bill for _, bill in bills), Bill())
    return table_of(
        SpendRow,
        (SpendRow(**key._asdict(), **bill.fields) for key, bill in bills),
        "tourney/spend@1",
        "Spent",
        notes=(*_notes(total), *_on_served(served)) or ("nothing was spent",),
        facts={"total": total.fields, "entrants": [*map(_entrant_fields, served)]},
    )


def _entrant_fields(row: EntrantSpendRow) -> dict[str, Json]:
    fields = row._asdict()
    return {"entrant_id": fields.pop("entrant"), **fields}


def _notes(total: Bill) -> Iterator[str]:
    if total.n_replies:
        yield from _on_replies(total)
    if total.n_maybe_billed:
        yield _maybe_billed(total.n_maybe_billed, total.most_usd)


def _on_replies(total: Bill) -> Iterator[str]:
    is_known = not total.n_unpriced
    yield f"{_replies(total.n_replies)} for {dollars(total.usd if is_known else None)}"
    if total.n_failed:
        failed = dollars(total.failed_usd if is_known else None)
        yield f"{failed} of it for {_replies(total.n_failed)} without a verdict"
    if total.n_unpriced:
        others = total.n_replies > total.n_unpriced
        rest = f", and the others for {dollars(total.usd)}" if others else ""
        yield (
            f"{_replies(total.n_unpriced)} came while the model had no price{rest}: caps do not"
            " count them, and a price added later does not change that"
        )
    saved = round(total.saved_usd, FRACTIONS)
    if saved:
        yield f"the cache {'saved' if saved > 0 else 'cost'} {dollars(abs(saved))}"


def _on_served(served: Sequence[EntrantSpendRow]) -> Iterator[str]:
    """Yield the spend of each endpoint entrant."""
    for each in served:
        answers = f"{counted(each.n_answers, 'answer')} by {each.model}"
        took = f"{each.n_input:,} tokens in, {each.n_output:,} out"
        by = f" by {each.price_table}" if each.price_table else ""
        who = f"{each.entrant} (endpoint)"
        yield f"{who}: {answers}, {took}: {dollars(each.usd)}{by}"
        if each.n_maybe_billed:
            yield f"{who}: {_maybe_billed(each.n_maybe_billed, each.maybe_usd)}"
    if unpriced := dict.fromkeys(each.model for each in served if each.usd is None):
        yield no_price(*unpriced)


def _maybe_billed(n_requests: int, usd: float | None) -> str:
    requests = counted(n_requests, "request")
    return (
        f"{requests} without an answer, or without its tokens, may be billed:"
        f" {'$? (the price was unknown)' if usd is None else f'{dollars(usd)} at most'}"
    )


def _replies(n: int) -> str:
    return "1 reply" if n == 1 else f"{n:,} replies"
