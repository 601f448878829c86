"""The gate: whether a candidate is good enough beside a baseline."""

from typing import Annotated, Final, Literal, NamedTuple, TypeAlias

from projections.results.columns import KEPT, Column, Named, Shown

GateVerdict: TypeAlias = Literal["not worse", "better", "worse", "not enough"]
_POINTS: Final = "Elo points"


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
        Column(digits=1, is_signed=True, meaning="of the interval of 95 % of this pair alone"),
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
    why: Shown[str | None]  # why there is no difference
