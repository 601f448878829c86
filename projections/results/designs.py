"""What a design of a tournament would cost, and how sure it would leave the ratings."""

from typing import Annotated, NamedTuple

from projections.results.columns import KEPT, Column, Kept, Named


class DesignRow(NamedTuple):
    """A design on a number of prompts, as a pilot forecasts it."""

    dimension: Named[str]
    design: Named[str]
    n_prompts: Kept[int]
    n_pairs: Annotated[int, Column(importance=1, meaning="a prompt")]
    n_queries: Annotated[int, Column(importance=KEPT, meaning="that are not answered yet")]
    usd: Annotated[float | None, Column("Dollars", 2, importance=KEPT, meaning="expected")]
    half_width: Annotated[
        float,
        Column("±", 1, importance=KEPT, unit="Elo points", meaning="half of a 95 % interval, mean"),
    ]
    widest: Annotated[float, Column("Widest ±", 1, importance=1, meaning="of the entrants")]
    power: Annotated[
        float | None, Column(digits=2, meaning="chance to tell the two apart, if the gap is so")
    ]
    meets: Annotated[str, Column("Enough", importance=KEPT, meaning="what was asked for")]
