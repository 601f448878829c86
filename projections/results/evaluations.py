"""Evaluations: the rows of metrics, of their differences and curves, and of samples."""

from typing import Annotated, Final, NamedTuple

from projections.results.columns import KEPT, Column, Kept, Shown

LONGEST: Final = 160  # characters of a text in a table
_SE: Final = "\N{PLUS-MINUS SIGN} s.e."
_BY_PROMPT: Final = "clustered by prompt"
_COUNTED: Final = "samples that count"


class MetricRow(NamedTuple):
    """A metric of an entrant on an evaluation, with its 95 % interval."""

    id: str
    entrant: Shown[str]
    evaluation: Shown[str]
    metric: Shown[str]
    value: Annotated[float | None, Column(digits=4)]
    n: Annotated[int, Column("n", after="high", meaning=_COUNTED)]
    standard_error: Annotated[float | None, Column(_SE, 4, meaning=_BY_PROMPT)]
    low: Annotated[float | None, Column(digits=4)]
    high: Annotated[float | None, Column(digits=4)]
    unit: str
    higher_is_better: bool
    n_planned: int
    n_observed: int
    n_unscorable: Annotated[int, Column(is_counted=True, after="n")]
    n_truncated: Annotated[int | None, Column(is_counted=True, after="n_length_limited")]
    n_length_limited: Annotated[int | None, Column("Length-limited", is_counted=True)]
    plan: int
    run_key: str


class CurveRow(NamedTuple):
    """A metric of an evaluation after so many steps of a training, with its 95 % interval."""

    training: Kept[str]
    step: Annotated[int, Column(importance=KEPT, after="metric")]
    evaluation: Kept[str]
    metric: Kept[str]
    value: Annotated[float | None, Column(digits=4, importance=KEPT)]
    n: Annotated[int, Column("n", after="high", meaning=_COUNTED)]
    standard_error: Annotated[float | None, Column(_SE, 4, importance=0, meaning=_BY_PROMPT)]
    low: Annotated[float | None, Column(digits=4, importance=1, group="interval")]
    high: Annotated[float | None, Column(digits=4, importance=1, group="interval")]
    unit: str
    higher_is_better: bool
    n_planned: int
    n_observed: int
    n_unscorable: Annotated[int, Column(is_counted=True)]
    entrant: str
    weights: Annotated[
        str | None, Column(importance=0, after="dtype", meaning="null: it is not on record")
    ]
    dtype: Annotated[str | None, Column(importance=0)]
    run_key: str


class MetricDifferenceRow(NamedTuple):
    """A metric of one entrant minus that of another, on the samples that both have."""

    id: str
    evaluation: Shown[str]
    metric: Shown[str]
    unit: str
    higher_is_better: bool
    difference: Annotated[float | None, Column(digits=4, is_signed=True)]
    standard_error: Annotated[float | None, Column(_SE, 4, meaning=_BY_PROMPT)]
    low: Annotated[float | None, Column(digits=4, is_signed=True)]
    high: Annotated[float | None, Column(digits=4, is_signed=True)]
    n_pairs: Shown[int]
    n_left_out: Annotated[int, Column(meaning="samples that only one of them has")]


class SampleRow(NamedTuple):
    """What a sample was asked, and what came of it; None: there is none."""

    entrant: Annotated[str, Column(importance=KEPT, role="names", after="label")]
    evaluation: Annotated[str, Column(importance=1, role="names", after="entrant")]
    label: Annotated[
        str, Column("Item", importance=KEPT, role="names", meaning="where the item comes from")
    ]
    sample: Annotated[
        int,
        Column(is_counted=True, importance=1, after="evaluation", meaning="0, 1 ... of an item"),
    ]
    system: str | None  # the system prompt before it; None: there is none, or it is not on record
    asked: Annotated[
        str | None,
        Column(
            longest=LONGEST,
            importance=KEPT,
            meaning="the prompt, the context of choices, or the text",
        ),
    ]
    choices: Annotated[tuple[str, ...] | None, Column(is_counted=True, importance=0)]
    answered: Annotated[
        str | None,
        Column(
            longest=LONGEST,
            importance=KEPT,
            meaning="the answer, the likeliest choice, or the predicted text",
        ),
    ]
    cleaned: Annotated[
        str | None,
        Column(
            "Compared",
            longest=LONGEST,
            is_counted=True,
            importance=0,
            meaning="what of the answer was compared",
        ),
    ]
    expected: Annotated[str | None, Column(longest=LONGEST, importance=KEPT)]
    score: Annotated[float | None, Column(digits=3, meaning="of a document its bits per byte")]
    is_right: Annotated[
        bool | None,
        Column(
            "Right", importance=0, after="reply", meaning="null: nothing tells right from wrong"
        ),
    ]
    unscorable: Annotated[
        str | None,
        Column(
            unknown="", is_counted=True, after="is_right", meaning="why nothing could be observed"
        ),
    ]
    judged: Annotated[float | None, Column(digits=3, meaning="a judge's score")]
    reply: Annotated[
        str | None,
        Column("Judge's reply", longest=LONGEST, importance=0, meaning="what the judge said"),
    ]
    item: str  # its digest
    run_key: str
