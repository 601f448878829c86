"""What a figure shows, apart from how it is drawn: panels of numbers with names and units."""

from typing import NamedTuple, TypeAlias


class NamedEstimate(NamedTuple):
    """A named value and its interval; None: it is not known."""

    name: str
    value: float | None
    low: float | None
    high: float | None


class IntervalPanel(NamedTuple):
    """Estimates on one scale, which panels of the same axis share."""

    heading: str
    axis: str  # with its unit
    digits: int  # of the numbers beside the bars
    rows: tuple[NamedEstimate, ...]


class GridCell(NamedTuple):
    """A number of a heat map."""

    value: float
    text: str
    shade: float  # from -1 to 1


class GridPanel(NamedTuple):
    """A heat map with a number in each cell; None: there is none."""

    heading: str
    down: str  # what the rows are
    across: str  # what the columns are
    legend: str  # what the numbers are, with their unit
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[tuple[GridCell | None, ...], ...]


class ConfidenceBin(NamedTuple):
    """Responses of about one confidence: how sure, how often right, and how many."""

    confidence: float
    correctness: float
    n: int


class CalibrationPanel(NamedTuple):
    """How often an entrant is right against how sure it is."""

    heading: str
    upwards: str  # what is compared with the confidence
    bins: tuple[ConfidenceBin, ...]


class CurvePoint(NamedTuple):
    """A metric after so many steps of training, with its interval."""

    step: int
    value: float
    low: float | None
    high: float | None


class CurvePanel(NamedTuple):
    """A metric over the checkpoints of one training."""

    heading: str
    axis: str  # with its unit
    points: tuple[CurvePoint, ...]


Panel: TypeAlias = IntervalPanel | GridPanel | CalibrationPanel | CurvePanel


class Chart(NamedTuple):
    """Panels under one title, to be drawn as a figure of its own."""

    title: str
    about: str  # how to read it, in a sentence
    panels: tuple[Panel, ...]
