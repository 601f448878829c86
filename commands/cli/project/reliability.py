"""How far to trust judges and ratings: `tourney project fragility`, `bias` and `calibration`.

And at which temperature a judge's scores fit people's votes, for `tourney project bt`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from math import isfinite
from typing import Annotated, Final, Literal

import typer

from commands.cli.shared.reading import notes_of, read_verdicts, show, show_outcomes
from commands.cli.shared.selection import BATTLES, BY_RULE, JUDGED, WRITTEN, Selected, selecting
from commands.cli.tables.table import Table, table_of
from commands.errors import ConfigurationError
from commands.reading.judged_tournament import JudgedTournament
from commands.reading.rows import bias_rows, fragility_rows
from ledger.events.registration import JudgeSettings
from ledger.identity import Json
from projections.battles.soft_scores import TEMPERATURE, JudgeCalibration
from projections.ratings.judge_bias.figures import MEANING
from projections.reliability.calibration import Bin, Calibration, against_gold, against_verdicts
from projections.results.judges import BiasRow, CalibrationRow, TemperatureRow
from projections.results.ratings import FragilityRow
from projections.verdicts.policies import RECORDED


@selecting(*BATTLES, *WRITTEN)
def fragility(ctx: Selected) -> None:
    """Show how few prompts decide who is ahead.

    Example: tourney project fragility --json
    """
    show_outcomes(ctx, lambda source: fragility_table(fragility_rows(source)))


_DECISIVE: Final = (
    "Decisive: if these few prompts are left out, the entrant behind is ahead or no longer"
    " comparable. They are chosen by influence, and confirmed by a new fit."
)


_NO_NEIGHBOURS: Final = "No two entrants have finite ratings that compare, so no prompts decide."


def fragility_table(rows: Iterable[FragilityRow]) -> Table:
    """Return a row for each pair of neighbours on each dimension, best first."""
    shown = tuple(rows)
    return table_of(
        FragilityRow,
        shown,
        "tourney/fragility@1",
        "How few prompts decide who is ahead",
        notes=(_DECISIVE if shown else _NO_NEIGHBOURS,),
    )


@selecting(*JUDGED, *WRITTEN)
def bias(ctx: Selected) -> None:
    """Show the judges' biases: slot, style, own family.

    Example: tourney project bias --judge reference
    """
    show(ctx, read_verdicts, lambda source: bias_table(bias_rows(source)))


def bias_table(rows: Iterable[BiasRow]) -> Table:
    """Return a row for each figure about a judge, and say what the measures mean."""
    shown = tuple(rows)
    measures = {bias_row.measure for bias_row in shown if bias_row.value is not None}
    return table_of(
        BiasRow,
        shown,
        "tourney/bias@1",
        "Biases of judges",
        notes=(
            *_reasons(shown),
            *(said for measure, said in MEANING.items() if measure in measures),
            *(() if shown else (_UNHEARD,)),
        ),
    )


def _reasons(rows: Iterable[BiasRow]) -> Iterator[str]:
    """Yield a note for each reason why a judge has no figure."""
    lacking: dict[tuple[str, str, str], list[str]] = {}
    for row in rows:
        if row.reason is not None:
            lacking.setdefault((row.dimension, row.judge, row.reason), []).append(row.measure)
    for (dimension, judge, why), measures in lacking.items():
        yield f"{dimension}, {judge}: no {', '.join(measures)}: {why}."


_UNHEARD: Final = "no judge has given a verdict on a pair of different responses in both orders"


@selecting(*BY_RULE, *WRITTEN)
def calibration(
    ctx: Selected,
    against: Annotated[
        Literal["gold", "judged"],
        typer.Option(
            help="What is correct. gold: containing the gold answer; judged: the share of wins."
        ),
    ] = "gold",
) -> None:
    """Compare each p_correct with actual correctness.

    Example: tourney project calibration --against judged
    """
    show(ctx, read_verdicts, partial(_calibration, against=against))


def _calibration(source: JudgedTournament, against: Literal["gold", "judged"]) -> Table:
    if against == "judged":
        calibrations = against_verdicts(source.state, source.settlements)
        return calibration_table(calibrations, source.judge, accounts=notes_of(source))
    if source.named_judge or source.named_dimension or source.rule != RECORDED:
        raise ConfigurationError(
            ["--judge, --dimension, --policy and --parser need --against judged"]
        )
    return calibration_table(against_gold(source.state))


_NOBODY: Final = (
    "no response has p_correct: only entrants with needs_uncertainty = true estimate it"
)
_BY_GOLD: Final = "Correct: the response contains the words of the gold answer, in any context."
_BY_VERDICTS: Final = (
    "Win share: the mean score of a response by each verdict, a tie as half; it depends on its"
    " opponents. Gap and square: the mean over bins, and the mean square, of confidence minus win"
    " share. They are not the ECE and Brier score of correctness."
)


def calibration_table(
    calibrations: Iterable[Calibration],
    judge: JudgeSettings | None = None,
    *,
    accounts: Iterable[str] = (),
) -> Table:
    """Return the reliability table of each entrant, by gold answers or by a judge's verdicts."""
    calibrations = tuple(calibrations)
    return table_of(
        CalibrationRow,
        (_bin_row(each, part) for each in calibrations for part in each.bins),
        "tourney/calibration@1",
        "Confidence and share of wins" if judge else "Confidence and correctness",
        hidden=() if judge else {"dimension"},
        headings={"correctness": "Win share" if judge else "Correct"},
        notes=(*_notes(calibrations, is_judged=judge is not None), *accounts),
        facts={
            "against": "judged" if judge else "gold",
            "judge": judge.judge_id if judge else None,
            "measures": [_measures(each) for each in calibrations],
        },
    )


def _bin_row(calibration: Calibration, part: Bin) -> CalibrationRow:
    end = "]" if part.high == 1 else ")"
    return CalibrationRow(
        dimension=calibration.dimension,
        entrant=calibration.entrant_id,
        bin=f"[{part.low}, {part.high}{end}",
        **part._asdict(),
    )


def _measures(calibration: Calibration) -> dict[str, Json]:
    return {
        "dimension": calibration.dimension,
        "entrant": calibration.entrant_id,
        "n": len(calibration.cases),
        "n_left_out": calibration.n_left_out,
        "ece": calibration.ece,
        "brier": calibration.brier,
    }


def _notes(calibrations: Sequence[Calibration], *, is_judged: bool) -> Iterator[str]:
    if not calibrations:
        yield _NOBODY
        return
    lacks = "no decided or tied pair" if is_judged else "no gold answer"
    ece, brier = ("gap", "square") if is_judged else ("ECE", "Brier")
    for each in calibrations:
        name = f"{each.entrant_id} on {each.dimension}" if each.dimension else each.entrant_id
        measured = f"{name}: n = {len(each.cases)}"
        if each.ece is not None and each.brier is not None:
            measured += f", {ece} {each.ece:.3f}, {brier} {each.brier:.3f}"
        yield f"{measured}; {each.n_left_out} left out ({lacks})"
    yield _BY_VERDICTS if is_judged else _BY_GOLD


_LEVEL: Final = 0.95  # as the headings of its rows say
_METHOD: Final = (
    "Maximum likelihood of human votes, each paired with each verdict of the judge on the same"
    " prompt and entrants. Human ties are left out. Low and high: cluster-robust (sandwich),"
    " clusters: prompts."
)


def temperature_table(
    calibrated: Iterable[JudgeCalibration], *, notes: Iterable[str], facts: Mapping[str, Json]
) -> Table:
    """Return a row for each temperature, with its interval and the fit of the usual temperature."""
    return table_of(
        TemperatureRow,
        map(_temperature_row, calibrated),
        "tourney/temperature@1",
        "Temperature of a judge's scores",
        headings={"log_likelihood_usual": f"At {TEMPERATURE:g}"},
        notes=(*notes, _METHOD),
        facts=facts,
    )


def _temperature_row(calibrated: JudgeCalibration) -> TemperatureRow:
    temperature = calibrated.found
    low, high = temperature.interval(_LEVEL)
    return TemperatureRow(
        dimension=calibrated.name,
        temperature=temperature.value,
        low=low if isfinite(low) else None,
        high=high if isfinite(high) else None,
        log_likelihood=calibrated.log_likelihood,
        log_likelihood_usual=calibrated.log_likelihood_usual,
        n_prompts=temperature.n_prompts,
        n_pairs=temperature.n_pairs,
        n_ties=temperature.n_ties,
    )
