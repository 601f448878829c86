"""The price table: dated sheets read from files; a user's own rows go before the shipped ones."""

import datetime as dt
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Final, NamedTuple, TypeAlias

import msgspec
from msgspec import Meta

from commands.errors import ConfigurationError, place_and_fault
from commands.settings.inputs import shipped_data
from commands.settings.toml import read_toml
from ledger.events.money import Price, Usage
from ledger.events.values import FilledText, Ordinal

STALE_AFTER: Final = dt.timedelta(days=60)

Amount: TypeAlias = Annotated[float, Meta(ge=0, le=1e6)]
Discount: TypeAlias = Annotated[float, Meta(ge=0, le=1)]
Surcharge: TypeAlias = Annotated[float, Meta(ge=1, le=1e3)]


class ModelPrices(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A model's prices, in US dollars per million tokens; None: unknown."""

    id: FilledText
    input: Amount
    output: Amount
    cache_read_factor: Discount | None = None
    min_cacheable_tokens: Ordinal | None = None
    caches_unasked: bool = False
    long_prompt_tokens: Ordinal | None = None
    long_prompt_factor: Surcharge = 1.0

    def factor(self, usage: Usage) -> float:
        """Return the factor on all prices for a prompt of this length."""
        is_long = self.long_prompt_tokens is not None and usage.n_prompt > self.long_prompt_tokens
        return self.long_prompt_factor if is_long else 1.0


class PriceSheet(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One file of prices and their date."""

    date: dt.date
    batch_factor: Discount
    cache_write_5m_factor: Surcharge
    cache_write_1h_factor: Surcharge
    models: tuple[ModelPrices, ...]
    sources: tuple[str, ...] = ()

    def age_days(self, today: dt.date) -> int:
        """Return the age of the prices in days."""
        return (today - self.date).days

    def is_stale(self, today: dt.date) -> bool:
        """Return whether the prices are too old to rely on."""
        return today - self.date > STALE_AFTER


@dataclass(frozen=True)
class NamedSheet:
    """A sheet, with its file and what the file is called."""

    name: str
    path: Path
    sheet: PriceSheet

    @property
    def title(self) -> str:
        """Its name in events."""
        return f"{self.name} of {self.sheet.date}"


class PricedModel(NamedTuple):
    """A model's prices, and the sheet that they are on."""

    source: NamedSheet
    row: ModelPrices

    def price(self, usage: Usage, *, in_batch: bool) -> Price:
        """Return the price of a reply with this usage."""
        sheet = self.source.sheet
        scale = self.row.factor(usage) * (sheet.batch_factor if in_batch else 1.0)
        plain = self.row.input * scale
        read = self.row.cache_read_factor
        return Price(
            input=plain,
            output=self.row.output * scale,
            cache_write_5m=plain * sheet.cache_write_5m_factor,
            cache_write_1h=plain * sheet.cache_write_1h_factor,
            cache_read=plain if read is None else plain * read,
            table=self.source.title,
        )


@dataclass(frozen=True)
class PriceTable:
    """Sheets in the order of look-up."""

    sheets: tuple[NamedSheet, ...]

    @property
    def rows(self) -> Iterator[PricedModel]:
        """The rows of all sheets, in the order of look-up."""
        return (PricedModel(sheet, row) for sheet in self.sheets for row in sheet.sheet.models)

    def of(self, model: str) -> PricedModel | None:
        """Return a model's prices; None: there are none."""
        return self._by_model.get(model)

    def min_cacheable(self, model: str) -> int | None:
        """Return the tokens of the shortest prefix that the provider caches; None: unknown."""
        priced = self.of(model)
        return None if priced is None else priced.row.min_cacheable_tokens

    @cached_property
    def _by_model(self) -> Mapping[str, PricedModel]:
        return {priced.row.id: priced for priced in reversed([*self.rows])}  # the first row counts


def price_table(own: Path | None = None) -> PriceTable:
    """Return the user's own prices, if there are any, and the shipped ones.

    Raises:
        ConfigurationError: The user's file is missing or not a price table.
    """
    path = shipped_data() / "prices.toml"
    shipped = NamedSheet("shipped prices", path, read_sheet(path))
    if own is None:
        return PriceTable((shipped,))
    return PriceTable((NamedSheet(own.name, own, read_sheet(own)), shipped))


def read_sheet(path: Path) -> PriceSheet:
    """Read a file of prices.

    Raises:
        ConfigurationError: It is missing, or a key is missing, unknown or out of range.
    """
    if not path.is_file():
        raise ConfigurationError([f"[judge] prices: there is no file {path}"])
    _, document = read_toml(path)
    if missing := [*_missing_keys(document)]:
        raise ConfigurationError([f"{path}: {each}" for each in missing])
    try:
        sheet = msgspec.convert(document, PriceSheet)
    except msgspec.ValidationError as error:
        place, why = place_and_fault(error)
        raise ConfigurationError(
            [f"{path}: {place}: {why}" if place else f"{path}: {why}"]
        ) from error
    counts = Counter(row.id for row in sheet.models)
    if twice := [model for model, count in counts.items() if count > 1]:
        raise ConfigurationError([f"{path}: model {model!r} is there twice" for model in twice])
    return sheet


def _missing_keys(document: Mapping[str, object]) -> Iterator[str]:
    """Yield the keys that a file of prices lacks, all of them: msgspec names only the first."""
    rows = document.get("models")
    tables = {"": (PriceSheet, document)} | {
        f"models[{n}]: ": (ModelPrices, row)
        for n, row in enumerate(rows if isinstance(rows, list) else ())
    }
    for place, (kind, table) in tables.items():
        for field in msgspec.structs.fields(kind):
            if field.required and isinstance(table, dict) and field.name not in table:
                yield f"{place}{field.name!r} is missing"
