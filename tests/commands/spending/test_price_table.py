"""Prices: dated, looked up in a user's own table first, and never nothing for want of a row."""

import datetime as dt
from pathlib import Path

import pytest

from commands.errors import ConfigurationError
from commands.spending.price_table import price_table, read_sheet
from ledger.events.money import Price, Usage, cost_usd

FEW = Usage(n_input=10, n_output=10)
HEAD = """\
date = 2026-11-01
batch_factor = 0.5
cache_write_5m_factor = 1.25
cache_write_1h_factor = 2.0
"""
ROW = """\
[[models]]
id = "{id}"
input = 3.0
output = 7.0
"""


def own_table(folder: Path, text: str) -> Path:
    """Write a user's price table."""
    file = folder / "mine.toml"
    file.write_text(text, encoding="utf-8")
    return file


def shipped_price(model: str, usage: Usage = FEW, *, in_batch: bool = False) -> Price:
    """Return a price that the shipped table has."""
    priced = price_table().of(model)
    assert priced is not None
    return priced.price(usage, in_batch=in_batch)


def test_the_shipped_prices_are_those_that_were_published() -> None:
    """A wrong digit here is paid for by every user."""
    assert shipped_price("claude-opus-5-5") == Price(
        input=4.0,
        output=20.0,
        cache_write_5m=5.0,  # 1.25 of the input
        cache_write_1h=8.0,  # twice the input
        cache_read=0.2,  # a twentieth of it
        table="shipped prices of 2026-10-07",
    )


@pytest.mark.parametrize(
    ("model", "columns"),
    [
        ("gpt-6.2-sol", (2.0, 10.0, 0.1)),
        ("gpt-5.5", (5.0, 30.0, 0.5)),
        ("gpt-5-mini", (0.25, 2.0, 0.025)),
        ("gpt-4.1", (2.0, 8.0, 0.5)),
        ("gemini-3.5-flash", (1.5, 9.0, 1.5)),  # a read of its cache counts as plain input
        ("deepseek-flash", (0.3, 1.2, 0.006)),
    ],
)
def test_other_makers_prices_are_those_of_their_pages(
    model: str, columns: tuple[float, float, float]
) -> None:
    """A jury of several makers is paid for by one table."""
    price = shipped_price(model)

    assert (price.input, price.output, price.cache_read) == pytest.approx(columns)


@pytest.mark.parametrize(
    "usage",
    [
        Usage(n_input=100_001, n_output=1),
        Usage(n_input=1, n_output=1, n_cache_read=100_000),
        Usage(n_input=1, n_output=1, n_cache_write_5m=50_000, n_cache_write_1h=50_000),
    ],
)
def test_a_long_prompt_costs_five_times_as_much(usage: Usage) -> None:
    """What is cached is part of the prompt's length, and output is dearer too."""
    price = shipped_price("claude-haiku-5-5", usage)

    assert (price.input, price.output) == pytest.approx((0.5, 2.5))


def test_a_model_without_a_row_has_no_price() -> None:
    """No price is not a price of nothing."""
    table = price_table()

    assert table.of("claude-nobody") is None
    assert table.min_cacheable("claude-nobody") is None


def test_the_least_cacheable_prefix_is_told_where_it_is_known() -> None:
    """Below it a provider silently caches nothing."""
    table = price_table()

    assert table.min_cacheable("claude-haiku-4-5") == 4_096
    assert table.min_cacheable("claude-haiku-5-5") is None


def test_no_shipped_price_is_nothing() -> None:
    """A zero in the table would let anything be asked."""
    prices = [row.price(FEW, in_batch=True) for row in price_table().rows]

    assert prices
    assert all(price.input and price.output and price.cache_read for price in prices)


def test_a_users_row_goes_before_the_shipped_one(tmp_path: Path) -> None:
    """Whoever has a contract pays other prices; the other models keep theirs."""
    file = own_table(tmp_path, HEAD + ROW.format(id="claude-opus-5-5") + ROW.format(id="llama"))
    table = price_table(file)

    models = ("claude-opus-5-5", "llama", "claude-opus-5")
    found = [priced for model in models if (priced := table.of(model))]
    mine, local, theirs = (priced.price(FEW, in_batch=False) for priced in found)

    assert (mine.input, mine.output, mine.table) == (3.0, 7.0, "mine.toml of 2026-11-01")
    assert (local.input, theirs.input) == (3.0, 5.0)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (HEAD + ROW.format(id="a") + "inptu = 1.0\n", r"models\[0\]: unknown field 'inptu'"),
        (
            HEAD + ROW.format(id="a").replace("3.0", '"dear"'),
            r"models\[0\]\.input: must be a number",
        ),
        (
            HEAD + ROW.format(id="a").replace("3.0", "-3.0"),
            r"models\[0\]\.input: must be 0 or more",
        ),
        (HEAD + ROW.format(id="a") + "cache_read_factor = nan\n", "cache_read_factor: "),
        (HEAD.replace("1.25", "inf") + ROW.format(id="a"), "cache_write_5m_factor: "),
        (HEAD.replace("date = 2026-11-01\n", "models = []\n"), "'date' is missing"),
        (HEAD.replace("2026-11-01", "7") + "models = []\n", "date: must be a date, not"),
        (HEAD + ROW.format(id="a") * 2, "model 'a' is there twice"),
        ("date =", "not TOML"),
    ],
)
def test_a_fault_in_a_table_is_named_with_its_file_and_key(
    tmp_path: Path, text: str, fault: str
) -> None:
    """A misread price is money."""
    file = own_table(tmp_path, text)

    with pytest.raises(ConfigurationError, match=fault) as raised:
        read_sheet(file)

    assert str(file) in str(raised.value)


def test_all_keys_that_a_table_lacks_are_named_at_once(tmp_path: Path) -> None:
    """Nobody wants to run a command for each."""
    file = own_table(
        tmp_path, "batch_factor = 0.5\n[[models]]\nid = 'a'\n[[models]]\ninput = 1.0\n"
    )

    with pytest.raises(ConfigurationError) as raised:
        read_sheet(file)

    assert [fault.removeprefix(f"{file}: ") for fault in raised.value.faults] == [
        "'date' is missing",
        "'cache_write_5m_factor' is missing",
        "'cache_write_1h_factor' is missing",
        "models[0]: 'input' is missing",
        "models[0]: 'output' is missing",
        "models[1]: 'id' is missing",
        "models[1]: 'output' is missing",
    ]


def test_a_table_that_is_not_there_is_named(tmp_path: Path) -> None:
    """The message says which setting names it."""
    with pytest.raises(ConfigurationError, match=r"\[judge\] prices: there is no file .*mine.toml"):
        price_table(tmp_path / "mine.toml")


def test_a_table_is_stale_after_sixty_days() -> None:
    """Prices change several times a year."""
    sheet = price_table().sheets[0].sheet

    assert sheet.age_days(dt.date(2026, 12, 6)) == 60
    assert not sheet.is_stale(dt.date(2026, 12, 6))
    assert sheet.is_stale(dt.date(2026, 12, 7))


def test_replies_cost_what_a_hand_works_out() -> None:
    """Each kind of token, each discount and each kind of reply, added up by hand.

    In millionths of a dollar, tokens times dollars for a million:

    1. opus-5-5, a verdict, prefix written for 5 m:  100*4 + 900*5 + 200*20          =  8,900
    2. opus-5-5, a verdict, prefix read:             100*4 + 900*0.2 + 250*20        =  5,580
    3. opus-5-5 in a batch, a refusal, read:         (100*4 + 900*0.2 + 10*20) / 2   =    390
    4. sonnet-5-5 in a batch, truncated, written 1 h: (50*2 + 800*4 + 4096*10) / 2   = 22,130
    5. haiku-5-5, long: 1,000 + 100,000 written 5 m: 5*(1000*0.1 + 100000*0.125 + 300*0.5)
                                                                                     = 63,750
    6. haiku-5-5, as long as goes at the short price: 100000*0.1 + 300*0.5           = 10,150
    7. fable-5-2, a read of unknown price as input:  10*8 + 500*8 + 100*40           =  8,080
    """
    replies = [
        ("claude-opus-5-5", False, Usage(n_input=100, n_output=200, n_cache_write_5m=900)),
        ("claude-opus-5-5", False, Usage(n_input=100, n_output=250, n_cache_read=900)),
        ("claude-opus-5-5", True, Usage(n_input=100, n_output=10, n_cache_read=900)),
        ("claude-sonnet-5-5", True, Usage(n_input=50, n_output=4_096, n_cache_write_1h=800)),
        ("claude-haiku-5-5", False, Usage(n_input=1_000, n_output=300, n_cache_write_5m=100_000)),
        ("claude-haiku-5-5", False, Usage(n_input=100_000, n_output=300)),
        ("claude-fable-5-2", False, Usage(n_input=10, n_output=100, n_cache_read=500)),
    ]
    costs = [
        cost_usd(usage, shipped_price(model, usage, in_batch=in_batch))
        for model, in_batch, usage in replies
    ]

    by_hand = [8_900, 5_580, 390, 22_130, 63_750, 10_150, 8_080]
    assert [cost * 1e6 for cost in costs] == pytest.approx(by_hand)
