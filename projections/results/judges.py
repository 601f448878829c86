"""How far to trust judges: the rows of agreement, bias, calibration and temperature."""

from typing import Annotated, NamedTuple

from projections.results.columns import KEPT, Column, Kept, Named, Shown


class AgreementRow(NamedTuple):
    """A measure of one judge, or of several compared."""

    dimension: Shown[str]
    judges: Shown[str]
    measure: Shown[str]
    value: Annotated[float | None, Column(digits=3)]
    ci95_low: Annotated[
        float | None, Column("95 % low", 3, group="interval", meaning="clustered by prompt")
    ]
    ci95_high: Annotated[float | None, Column("95 % high", 3, group="interval")]
    n: Annotated[int, Column("n")]
    n_of: Annotated[str, Column("n of", meaning="what n counts")]


class JudgeShiftRow(NamedTuple):
    """An entrant's rating by two judges, on the battles that both judged."""

    dimension: Named[str]
    entrant: Named[str]
    rating_a: Annotated[float | None, Column("By A", 1)]
    rating_b: Annotated[float | None, Column("By B", 1)]
    shift: Annotated[
        float | None, Column(digits=1, is_signed=True, meaning="Elo points, B minus A")
    ]
    ci95_low: Annotated[
        float | None, Column("95 % low", 1, group="interval", meaning="paired, over prompts")
    ]
    ci95_high: Annotated[float | None, Column("95 % high", 1, group="interval")]
    n_prompts: Shown[int]
    reason: str | None  # why there is no shift, or no interval


class JudgeFlipRow(NamedTuple):
    """How often two judges differ on the battles of two entrants."""

    dimension: Named[str]
    entrant_a: Named[str]
    entrant_b: Named[str]
    n: Annotated[int, Column("Battles")]
    n_changed: Annotated[int, Column("Differ", meaning="the judges' outcomes differ")]
    n_opposite: Annotated[int, Column("Opposite", meaning="of these, they name opposite winners")]
    ci95_low: Annotated[
        float | None,
        Column("95 % low", 3, group="interval", meaning="of the share that differs, by prompt"),
    ]
    ci95_high: Annotated[float | None, Column("95 % high", 3, group="interval")]


class ChangedBattleRow(NamedTuple):
    """A battle on which two judges differ."""

    id: Annotated[str | None, Column("ID", longest=12)]  # for `tourney battle`
    dimension: Shown[str]
    prompt: Shown[str | None]
    entrant_a: Shown[str]
    entrant_b: Shown[str]
    by_a: Annotated[str, Column("By A")]
    by_b: Annotated[str, Column("By B")]


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
