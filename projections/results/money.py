"""What was spent: the rows of judges' replies and of endpoint entrants."""

from datetime import date
from typing import Annotated, Final, NamedTuple

from projections.results.columns import KEPT, Column, Shown

FRACTIONS: Final = 4  # of a dollar: a cached token is cheap


class SpendRow(NamedTuple):
    """The tokens and cost of a judge's replies on a dimension and day, in UTC."""

    judge: Shown[str]
    dimension: Shown[str | None]
    day: Shown[date | None]  # None: on all days
    n_replies: Shown[int]
    n_failed: Annotated[int, Column("No verdict", is_counted=True)]
    n_unpriced: int  # of the replies: at an unknown price
    n_maybe_billed: Annotated[
        int,
        Column(
            is_counted=True,
            importance=KEPT,
            after="cache_saved_usd",
            meaning="requests that may have been billed; their tokens are not known",
        ),
    ]
    maybe_usd: float | None  # for those, at most; None: the price of some was unknown
    n_input: Shown[int]
    n_output: Shown[int]
    n_cache_write_5m: Annotated[int, Column("Write 5m", importance=0, is_counted=True)]
    n_cache_write_1h: Annotated[int, Column("Write 1h", importance=0, is_counted=True)]
    n_cache_read: Annotated[int, Column("Read", importance=0, is_counted=True)]
    usd: Annotated[
        float | None,
        Column(
            "Dollars",
            FRACTIONS,
            unknown="?",
            importance=KEPT,
            meaning="null: the price of a reply or request is unknown",
        ),
    ]
    priced_usd: float  # of the replies at a known price
    failed_usd: Annotated[
        float | None,
        Column("On no verdict", FRACTIONS, unknown="?", importance=1, is_counted=True),
    ]
    cache_saved_usd: Annotated[
        float | None,
        Column("Cache saved", FRACTIONS, unknown="?", importance=0, is_counted=True),
    ]


class EntrantSpendRow(NamedTuple):
    """The tokens of an endpoint entrant's answers, and their cost by the prices of their time."""

    entrant: Shown[str]
    model: Annotated[str, Column(meaning="the server's name for it")]
    n_answers: Annotated[int, Column(meaning="to prompts of the bank and of evaluations")]
    n_input: Shown[int]
    n_output: Shown[int]
    usd: Annotated[
        float | None,
        Column(
            "Dollars",
            FRACTIONS,
            unknown="?",
            importance=KEPT,
            meaning="null: the price was unknown, of an answer or of all there is",
        ),
    ]
    price_table: str | None  # where the newest price is from
    n_maybe_billed: Annotated[
        int,
        Column(
            is_counted=True,
            importance=KEPT,
            meaning="requests without an answer, or without its tokens",
        ),
    ]
    maybe_usd: float | None  # for those, at worst; None: the price of some was unknown
