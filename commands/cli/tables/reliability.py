"""How far an entrant's own probability of being right can be believed, bin by bin."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import isfinite
from typing import Final

from commands.cli.tables.table import Column, Table
from ledger.events.registration import JudgeSettings
from ledger.identity import Json
from projections.battles.settled import JudgeCalibration
from projections.battles.soft_scores import TEMPERATURE
from projections.reliability.agreement import Measure
from projections.reliability.calibration import Bin, Calibration


def agreement_table(measures: Iterable[Measure]) -> Table:
    """Show each figure with the judges it is about and the number of cases that it rests on."""
    return Table(
        schema="tourney/agreement@1",
        title="Judges, alone and beside one another",
        columns=(
            Column("dimension", "Dimension"),
            Column("judges", "Judges"),
            Column("measure", "Measure"),
            Column("value", "Value", 3),
            Column("n", "n"),
        ),
        rows=tuple(
            {
                "dimension": each.dimension,
                "judges": ", ".join(each.judges),
                "measure": each.name,
                "value": each.value,
                "n": each.n,
            }
            for each in measures
        ),
        notes=(
            (
                "n counts pairs for consistency and agreement (by concatenate their orders for"
                " agreement), verdicts A or B for the share of A, verdicts for ties, answered"
                " queries for failures, entrants for rank correlation."
            ),
            "A share of A far from 0.5 is a liking for the first slot, or for the second.",
        ),
    )


_NOBODY: Final = (
    "no response says how likely it is right: only entrants with needs_uncertainty = true do"
)
_BY_GOLD: Final = "Correct: the gold answer's words are in the response, whatever it says of them."
_BY_VERDICTS: Final = (
    "Win share: what a response won of its pairs, decided or tied (1/2), which depends on whom it"
    " met; gap and square are how far confidence is from it (mean over bins, and mean square), not"
    " ECE and Brier of being right."
)


def calibration_table(
    calibrations: Iterable[Calibration],
    judge: JudgeSettings | None = None,
    *,
    accounts: Iterable[str] = (),
) -> Table:
    """Show a reliability table of each entrant, with what sums it up in the notes.

    Args:
        calibrations: What was measured.
        judge: By whose verdicts; None: by gold answers.
        accounts: What became of the pairings that the verdicts are of.
    """
    calibrations = tuple(calibrations)
    return Table(
        schema="tourney/calibration@1",
        title="Confidence beside the share of wins" if judge else "Confidence beside correctness",
        columns=(
            *((Column("dimension", "Dimension"),) if judge else ()),
            Column("entrant", "Entrant"),
            Column("bin", "Bin"),
            Column("n", "n"),
            Column("confidence", "Confidence", 3),
            Column("correctness", "Win share" if judge else "Correct", 3),
        ),
        rows=tuple(_bin_row(each, part) for each in calibrations for part in each.bins),
        notes=(*_notes(calibrations, is_judged=judge is not None), *accounts),
        facts={
            "against": "judged" if judge else "gold",
            "judge": judge.judge_id if judge else None,
            "measures": [_measures(each) for each in calibrations],
        },
    )


def _bin_row(calibration: Calibration, part: Bin) -> dict[str, Json]:
    end = "]" if part.high == 1 else ")"
    return {
        "dimension": calibration.dimension,
        "entrant": calibration.entrant_id,
        "bin": f"[{part.low}, {part.high}{end}",
        **part._asdict(),
    }


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
    lacks = "a pair that was decided or tied" if is_judged else "a gold answer"
    ece, brier = ("gap", "square") if is_judged else ("ECE", "Brier")
    for each in calibrations:
        name = f"{each.entrant_id} on {each.dimension}" if each.dimension else each.entrant_id
        measured = f"{name}: n = {len(each.cases)}"
        if each.ece is not None and each.brier is not None:
            measured += f", {ece} {each.ece:.3f}, {brier} {each.brier:.3f}"
        yield f"{measured}; {each.n_left_out} left out for want of {lacks}"
    yield _BY_VERDICTS if is_judged else _BY_GOLD


_LEVEL: Final = 0.95
_METHOD: Final = (
    "By maximum likelihood of people's votes: each beside each answer of the judge on the same"
    " prompt and entrants. Ties of people are left out. Low and high: the sandwich clustered by"
    " prompts."
)


def temperature_table(
    calibrated: Iterable[JudgeCalibration], *, notes: Iterable[str], facts: Mapping[str, Json]
) -> Table:
    """Show each temperature with its interval, beside how well the usual one does."""
    return Table(
        schema="tourney/temperature@1",
        title="Temperature of a judge's marks",
        columns=(
            Column("dimension", "Dimension"),
            Column("temperature", "Temperature", 3),
            Column("low", f"{100 * _LEVEL:g} % low", 3),
            Column("high", f"{100 * _LEVEL:g} % high", 3),
            Column("log_likelihood", "Log likelihood", 2),
            Column("log_likelihood_usual", f"At {TEMPERATURE:g}", 2),
            Column("n_prompts", "Prompts"),
            Column("n_pairs", "Pairs"),
            Column("n_ties", "Ties"),
        ),
        rows=tuple(map(_temperature_row, calibrated)),
        notes=(
            *notes,
            _METHOD,
        ),
        facts=dict(facts),
    )


def _temperature_row(calibrated: JudgeCalibration) -> dict[str, Json]:
    found = calibrated.found
    low, high = found.interval(_LEVEL)
    return {
        "dimension": calibrated.name,
        "temperature": found.value,
        "low": low if isfinite(low) else None,
        "high": high if isfinite(high) else None,
        "log_likelihood": calibrated.log_likelihood,
        "log_likelihood_usual": calibrated.log_likelihood_usual,
        "n_prompts": found.n_prompts,
        "n_pairs": found.n_pairs,
        "n_ties": found.n_ties,
    }
