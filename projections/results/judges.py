"""How far to trust judges: the rows of agreement, bias, calibration and temperature."""

from typing import Annotated, NamedTuple

from projections.results.columns import KEPT, Column, Kept, Shown


class AgreementRow(NamedTuple):
    """A measure of one judge, or of several compared."""

    dimension: Shown[str]
    judges: Shown[str]
    measure: Shown[str]
    value: Annotated[float | None, Column(digits=3)]
    n: Annotated[int, Column("n")]
    n_of: Annotated[str, Column("n of", meaning="what n counts")]


class BiasRow(NamedTuple):
    """A figure about a judge on a dimension, with its 95 % interval."""

    dimension: Shown[str]
    judge: Shown[str]
    measure: Kept[str]
    of: Annotated[str | None, Column(meaning="whom or what it concerns, of several of a kind")]
    value: Annotated[float | None, Column(digits=3, importance=KEPT)]
    ci95_low: Annotated[
        float | None, Column("95 % low", 3, group="interval", meaning="clustered by prompt")
    ]
    ci95_high: Annotated[float | None, Column("95 % high", 3, group="interval")]
    unit: Kept[str]
    n: Annotated[int, Column("n", importance=1)]
    n_of: Annotated[str, Column("n of", importance=0, meaning="what n counts")]
    reason: str | None  # why there is no value


class CalibrationRow(NamedTuple):
    """How often an entrant was right where it was about so sure."""

    dimension: Shown[str | None]
    entrant: Shown[str]
    bin: Shown[str]
    low: float
    high: float
    n: Annotated[int, Column("n")]
    confidence: Annotated[float | None, Column(digits=3, meaning="the mean")]
    correctness: Annotated[float | None, Column(digits=3, meaning="the share that was right")]


class TemperatureRow(NamedTuple):
    """The temperature at which a judge's scores agree best with people."""

    dimension: Shown[str]
    temperature: Annotated[float, Column(digits=3)]
    low: Annotated[float | None, Column("95 % low", 3)]
    high: Annotated[float | None, Column("95 % high", 3)]
    log_likelihood: Annotated[float, Column("Log-likelihood", 2)]
    log_likelihood_usual: Annotated[float, Column(digits=2, meaning="at the usual temperature")]
    n_prompts: Shown[int]
    n_pairs: Shown[int]
    n_ties: Shown[int]
