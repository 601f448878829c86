"""The price table: dated, from a file, and a user's own rows go before the shipped ones."""

import datetime as dt
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, NamedTuple, TypeAlias

import msgspec
from msgspec import Meta

from commands.errors import ConfigurationError, place_and_fault
from commands.settings.inputs import shipped_data
from commands.settings.toml import parse, read_text
from ledger.events.values import FilledText, Ordinal, Price, Usage

STALE_AFTER: Final = dt.timedelta(days=60)

Amount: TypeAlias = Annotated[float, Meta(ge=0, le=1e6)]
Discount: TypeAlias = Annotated[float, Meta(ge=0, le=1)]
Surcharge: TypeAlias = Annotated[float, Meta(ge=1, le=1e3)]


class ModelPrices(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A model's row, in US dollars for a million tokens; what is None is not known."""

    id: FilledText
    input: Amount
    output: Amount
    cache_read_factor: Discount | None = None
    min_cacheable_tokens: Ordinal | None = None
    long_prompt_tokens: Ordinal | None = None
    long_prompt_factor: Surcharge = 1.0

    def factor(self, usage: Usage) -> float:
        """Return what every price is multiplied by for a prompt of this length."""
        written = usage.n_cache_write_5m + usage.n_cache_write_1h
        n_prompt = usage.n_input + usage.n_cache_read + written
        is_long = self.long_prompt_tokens is not None and n_prompt > self.long_prompt_tokens
        return self.long_prompt_factor if is_long else 1.0


class PriceSheet(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One file of prices, as they held on a date."""

    date: dt.date
    batch_factor: Discount
    cache_write_5m_factor: Surcharge
    cache_write_1h_factor: Surcharge
    models: tuple[ModelPrices, ...]
    sources: tuple[str, ...] = ()

    def age_days(self, today: dt.date) -> int:
        """Return how old it is."""
        return (today - self.date).days

    def is_stale(self, today: dt.date) -> bool:
        """Say whether prices may well have changed since."""
        return today - self.date > STALE_AFTER


@dataclass(frozen=True)
class NamedSheet:
    """A sheet and where it is from."""

    name: str
    sheet: PriceSheet

    @property
    def title(self) -> str:
        """What events call it."""
        return f"{self.name} of {self.sheet.date}"


class PricedModel(NamedTuple):
    """A model's row, and the sheet that it is on."""

    source: NamedSheet
    row: ModelPrices

    def price(self, usage: Usage, *, in_batch: bool) -> Price:
        """Return the price that holds for a reply of this use."""
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
    """Sheets in the order in which a model is looked up."""

    sheets: tuple[NamedSheet, ...]

    @property
    def rows(self) -> Iterator[PricedModel]:
        """Every row of every sheet, those that go before others first."""
        return (PricedModel(each, row) for each in self.sheets for row in each.sheet.models)

    def of(self, model: str) -> PricedModel | None:
        """Return the row that holds for a model; None: there is none."""
        return next((priced for priced in self.rows if priced.row.id == model), None)

    def price_of(self, model: str, *, in_batch: bool, usage: Usage) -> Price | None:
        """Return the price that holds for a reply; None: nobody told it."""
        priced = self.of(model)
        return None if priced is None else priced.price(usage, in_batch=in_batch)

    def min_cacheable(self, model: str) -> int | None:
        """Return how long a prefix must be for the provider to keep it; None: not known."""
        priced = self.of(model)
        return None if priced is None else priced.row.min_cacheable_tokens


def price_table(own: Path | None = None) -> PriceTable:
    """Return the shipped prices, behind a user's own if there are any.

    Raises:
        ConfigurationError: The user's file is missing, or is no price table.
    """
    shipped = NamedSheet("shipped prices", read_sheet(shipped_data() / "prices.toml"))
    if own is None:
        return PriceTable((shipped,))
    return PriceTable((NamedSheet(own.name, read_sheet(own)), shipped))


def read_sheet(path: Path) -> PriceSheet:
    """Read a file of prices.

    Raises:
        ConfigurationError: It is missing, or a key is missing, unknown or out of range.
    """
    if not path.is_file():
        raise ConfigurationError([f"[judge] prices: there is no file {path}"])
    document = parse(path, read_text(path))
    try:
        sheet = msgspec.convert(document, PriceSheet)
    except msgspec.ValidationError as error:
        place, why = place_and_fault(error)
        raise ConfigurationError(
            [f"{path}: {place}: {why}" if place else f"{path}: {why}"]
        ) from error
    _require_distinct(path, [row.id for row in sheet.models])
    return sheet


def _require_distinct(path: Path, models: Sequence[str]) -> None:
    twice = [model for model, count in Counter(models).items() if count > 1]
    if twice:
        raise ConfigurationError([f"{path}: model {model!r} is there twice" for model in twice])
