"""Ratings, what they rest on, and what is made of them: gates, and forecasts of designs."""

from typing import Annotated, Final, Literal, NamedTuple, TypeAlias

from projections.results.columns import KEPT, Column, Kept, Named, Shown

_POINTS: Final = "Elo points"
_BY_PROMPT: Final = "clustered by prompt"
_BY_RESAMPLING: Final = "by resampling prompts"


class EloRow(NamedTuple):
    """The Elo rating of an entrant on a dimension; None if it has no counted match."""

    dimension: Named[str]
    entrant: Named[str]
    rating: Annotated[
        float | None,
        Column("Elo", 1, importance=KEPT, role="changes", drawn="value", unit=_POINTS),
    ] = None
    ci95_low: Annotated[
        float | None,
        Column("95 % low", 1, group="interval", drawn="low", meaning=_BY_RESAMPLING),
    ] = None
    ci95_high: Annotated[
        float | None,
        Column("95 % high", 1, group="interval", drawn="high", meaning=_BY_RESAMPLING),
    ] = None
    order_sem: Annotated[
        float | None,
        Column("Order SEM", 2, importance=0, meaning="standard error over match orders"),
    ] = None
    n_matches: Annotated[int, Column(importance=1, role="changes")] = 0


class BradleyTerryRow(NamedTuple):
    """The Bradley-Terry rating of an entrant on a dimension; ranks are within its group."""

    dimension: Named[str]
    entrant: Named[str]
    rating: Annotated[
        float | None,
        Column(digits=1, importance=KEPT, role="changes", drawn="value", unit=_POINTS),
    ] = None
    low: Annotated[
        float | None,
        Column(
            digits=1, group="interval", drawn="low", meaning="of the interval, by default of 95 %"
        ),
    ] = None  # None, too, where a bound is beyond all numbers
    high: Annotated[float | None, Column(digits=1, group="interval", drawn="high")] = None
    rank: Annotated[
        str | None, Column(meaning='within the group, such as "1" or "2-4"; null: no interval')
    ] = None
    rank_low: int | None = None  # 1 + the number of significantly better entrants
    rank_high: int | None = None  # the number of entrants that are not significantly worse
    n_battles: Annotated[int, Column(importance=1, role="changes")] = 0
    group: Annotated[
        int | None,
        Column(
            importance=KEPT,
            role="is beside",
            after="dimension",
            meaning="ratings of different groups cannot be compared",
        ),
    ] = None  # None: it was not among those that were rated
    reason: str | None = None  # why there is no rating
    no_interval: str | None = None  # why a rating has no interval, and no rank


class BradleyTerryPair(NamedTuple):
    """The difference of two Bradley-Terry ratings, compared together with all other pairs."""

    dimension: Annotated[str, Column(role="names")]
    entrant_a: Annotated[str, Column("Higher", role="names", meaning="the higher rating")]
    entrant_b: Annotated[str, Column("Lower", role="names")]
    difference: Annotated[float, Column(digits=1, is_signed=True, role="changes", unit=_POINTS)]
    low: Annotated[
        float | None, Column(digits=1, is_signed=True, meaning="holds for all pairs at once")
    ]
    high: Annotated[float | None, Column(digits=1, is_signed=True)]
    p: Annotated[float | None, Column("Adjusted p", 4, meaning="adjusted for the number of pairs")]


class WinRateRow(NamedTuple):
    """Wins, losses and ties of two entrants on a dimension; a comes before b in the alphabet."""

    dimension: Named[str]
    entrant_a: Annotated[str, Column("A", importance=KEPT, role="names")]
    entrant_b: Annotated[str, Column("B", importance=KEPT, role="names")]
    a_wins: Kept[int]
    b_wins: Kept[int]
    ties: Kept[int]
    inconsistent: Annotated[int, Column(importance=0)]
    missing: Annotated[int, Column(importance=0, meaning="failed or still pending")]
    win_rate: Annotated[
        float | None,
        Column("A's share", 3, importance=KEPT, role="changes", meaning="a tie counts as half"),
    ]
    ci95_low: Annotated[
        float | None, Column("95 % low", 3, importance=1, group="interval", meaning=_BY_PROMPT)
    ]
    ci95_high: Annotated[
        float | None, Column("95 % high", 3, importance=1, group="interval", meaning=_BY_PROMPT)
    ]


class FragilityRow(NamedTuple):
    """How few prompts decide that one entrant is rated above its neighbour."""

    dimension: Shown[str]
    ahead: Shown[str]
    behind: Shown[str]
    gap: Annotated[float, Column("Elo points", 1, meaning="of Bradley-Terry ratings")]
    n_decisive: Annotated[int | None, Column(meaning="null if no prompts turn the gap")]
    n_prompts: Annotated[int, Column(meaning="on which they or others comparable with them met")]
    decisive: Annotated[
        tuple[str | None, ...] | None,
        Column("Which", meaning="the most influential first; null: without an id"),
    ]


GateVerdict: TypeAlias = Literal["not worse", "better", "worse", "not enough"]


class GateRow(NamedTuple):
    """How a candidate stands to the baseline on a dimension, by Bradley-Terry."""

    dimension: Named[str]
    verdict: Annotated[GateVerdict, Column(importance=KEPT, role="changes")]
    candidate: Named[str]
    baseline: Named[str]
    difference: Annotated[
        float | None,
        Column(digits=1, is_signed=True, role="changes", unit=_POINTS, meaning="candidate's lead"),
    ]
    low: Annotated[
        float | None,
        Column(digits=1, is_signed=True, meaning="of the interval that this look allows"),
    ]
    high: Annotated[float | None, Column(digits=1, is_signed=True)]
    margin: Annotated[
        float, Column(digits=0, meaning="a candidate this much behind is still good enough")
    ]
    n_prompts: Annotated[int, Column(meaning="on which the candidate was compared")]
    n_more_prompts: Annotated[
        int | None,
        Column(
            "More if equal", meaning="prompts that would settle it in 4 of 5, if both are equal"
        ),
    ]
    usd_more: Annotated[
        float | None, Column("Dollars", digits=2, meaning="about what judging those would cost")
    ]
    why: Shown[str | None]  # why there is no difference


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
