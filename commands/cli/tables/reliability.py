"""Agreement and biases of judges, fragility, calibration and temperatures as tables."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import isfinite
from typing import Final

from commands.cli.tables.table import Table, table_of
from commands.errors import counted
from ledger.events.registration import JudgeSettings
from ledger.identity import Json
from projections.battles.settled import JudgeCalibration
from projections.battles.soft_scores import TEMPERATURE
from projections.intervals import FEWEST_CLUSTERS
from projections.ratings.judge_bias.figures import MEANING
from projections.reliability.agreement import (
    ADVANTAGE,
    ANNOTATOR_ADVANTAGE,
    COHEN,
    FLEISS,
    JUDGE_ADVANTAGE,
    KRIPPENDORFF,
    WINNING_RATE,
    JudgeTest,
    Measure,
    figures_of,
)
from projections.reliability.alternative_annotator import FEWEST_ANNOTATORS, FEWEST_BATTLES
from projections.reliability.calibration import Bin, Calibration
from projections.reliability.jurors import AS_RECORDED
from projections.results.judges import AgreementRow, BiasRow, CalibrationRow, TemperatureRow
from projections.results.ratings import FragilityRow
from projections.tournament.compared import OPPOSITE, TIE_BESIDE_WIN

_CASES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("order consistency", OPPOSITE, TIE_BESIDE_WIN), "pairs"),
    "share of A": "verdicts",
    "tie rate": "verdicts",
    "Spearman's rho": "entrants",
    "Kendall's tau-b": "entrants",
    ADVANTAGE: "annotators",
    JUDGE_ADVANTAGE: "battles",
    ANNOTATOR_ADVANTAGE: "battles",
}
_SLOTS: Final = "A share of A far from 0.5 shows a bias for the first or the second slot."
_TIES: Final = "Tie rate: of verdicts. Identical responses tie without a verdict."
_KAPPA: Final = (
    "Kappa: (agreement - by chance) / (1 - by chance). Each {case} has one category: its first"
    " entrant won, its second won, tie, or inconsistent."
)
_NO_JUDGES: Final = "No judge is named in these battles, so there is nothing to compare."
_RECORDED: Final = (
    "Majority: the outcome with most votes; none if two outcomes tie. Inconsistent judges have no"
    " vote. Agreement with the majority: over battles that have one. As recorded: the jury's"
    " verdict in the file."
)
_CHANCE: Final[Mapping[str, str]] = {
    COHEN: "Cohen's kappa (Cohen 1960): chance is taken from each judge's own shares.",
    FLEISS: "Fleiss' kappa (Fleiss 1971): chance is taken from the shares of all judges together.",
    KRIPPENDORFF: "Krippendorff's alpha (2011): likewise, over all that two or more judges judged;"
    " kappa needs each of them.",
}


_REPLACES: Final = (
    "Advantage: the share of battles on which the judge, or the annotator who is left out, agrees"
    " with at least as many of the other annotators as the other of the two. Winning rate at a"
    " margin: against how many annotators the judge's advantage is significantly above theirs less"
    " the margin (Calderon et al. 2025, clustered by prompt). From 0.5 on it may replace one."
)
_WHOM: Final = {
    0.1: "even a crowd worker",
    0.15: "if these are skilled annotators or experts",
    0.2: "if these are experts",
}
"""Whose price is worth which margin of agreement."""


def agreement_table(
    measures: Iterable[Measure],
    *,
    tests: Sequence[JudgeTest] = (),
    by_order: bool = False,
    notes: Iterable[str] = (),
) -> Table:
    """Return a row for each measure of one judge, or of several, over pairs or single orders."""
    measures = (*measures, *figures_of(tests))
    names = {each.name for each in measures}
    kappas = [said for name, said in _CHANCE.items() if name in names]
    definition = _KAPPA.format(case="order" if by_order else "pair")
    return table_of(
        AgreementRow,
        (
            AgreementRow(
                dimension=each.dimension,
                judges=", ".join(each.judges),
                measure=each.name,
                value=each.value,
                ci95_low=each.low,
                ci95_high=each.high,
                n=each.n,
                n_of=_cases(each.name, by_order=by_order),
            )
            for each in measures
        ),
        "tourney/agreement@1",
        "Judges, one by one and compared",
        notes=(
            *([] if measures else [_NO_JUDGES]),
            *([_SLOTS] if "share of A" in names else []),
            *([_TIES] if "tie rate" in names else []),
            *((definition, *kappas) if kappas else ()),
            *([_RECORDED] if AS_RECORDED in names else []),
            *([_REPLACES] if ADVANTAGE in names else []),
            *notes,
            *map(use_of, tests),
        ),
        facts={"alternative_annotator_tests": [_test_data(each) for each in tests]},
    )


def use_of(tested: JudgeTest) -> str:
    """Say in a sentence what a judge may be used for, by the votes that there are."""
    dimension, judge, test, alone = tested
    margin = test.smallest_margin
    name = f"{dimension}, {judge}"
    if alone:
        share = f" ({alone.n_agreed / alone.n:.0%})" if alone.n else ""
        return (
            f"{name}: it agrees with {alone.annotator} on {alone.n_agreed} of"
            f" {counted(alone.n, 'battle')}{share}; whether it may replace an annotator takes the"
            f" votes of {FEWEST_ANNOTATORS}."
        )
    if not test.results:
        lacking = f"{counted(test.n_lacking, 'vote')} more, at least"
        if test.is_short_of_prompts:
            lacking = f"votes on {FEWEST_CLUSTERS} prompts, at least"
        so_far = ", ".join(f"{who} {n}" for who, n in test.n_by_annotator)
        return (
            f"{name}: whether it may replace an annotator is open. It takes {lacking}:"
            f" {FEWEST_ANNOTATORS} annotators with {FEWEST_BATTLES} battles each on which somebody"
            f" else voted, too (now: {so_far})."
        )
    if margin is not None:
        return f"{name}: it may replace an annotator, {_WHOM[margin]} (margin {margin:g})."
    more = "more votes like these would not change that"
    if (widest := test.results[-1]).n_more is not None:
        votes = f"about {widest.n_more:,} more votes like these"
        more = f"{votes} would let it at a margin of {widest.epsilon:g}"
    return (
        f"{name}: it should not replace an annotator; {more}. Use it together with people's votes:"
        " `tourney project bt --truth NAME`."
    )


def _test_data(tested: JudgeTest) -> Json:
    dimension, judge, test, _ = tested
    return {
        "dimension": dimension,
        "judge": judge,
        "advantage": test.advantage,
        "smallest_margin": test.smallest_margin,
        "annotators": [
            {
                **each._asdict(),
                "p": {f"{result.epsilon:g}": each.p(result.epsilon) for result in test.results},
            }
            for each in test.annotators
        ],
        "results": [
            {
                "epsilon": each.epsilon,
                "winning_rate": each.winning_rate,
                "may_replace": each.is_passed,
                "n_more_votes": each.n_more,
            }
            for each in test.results
        ],
        "n_votes_lacking": test.n_lacking,
        "n_by_annotator": dict(test.n_by_annotator),
    }


def _cases(measure: str, *, by_order: bool) -> str:
    """Return what the n of a measure counts."""
    if measure in _CASES:
        return _CASES[measure]
    if measure.endswith(" rate"):
        return "queries"
    if measure.startswith(WINNING_RATE):
        return "annotators"
    return "orders" if by_order else "pairs"


_DECISIVE: Final = (
    "Decisive: if these few prompts are left out, the entrant behind is ahead or no longer"
    " comparable. They are chosen by influence, and confirmed by a new fit."
)


_NO_NEIGHBOURS: Final = "No two entrants have finite ratings that compare, so no prompts decide."


def fragility_table(
    rows: Iterable[FragilityRow], *, notes: Iterable[str] = (), facts: Mapping[str, Json]
) -> Table:
    """Return a row for each pair of neighbours on each dimension, best first."""
    shown = tuple(rows)
    return table_of(
        FragilityRow,
        shown,
        "tourney/fragility@1",
        "How few prompts decide who is ahead",
        notes=(*notes, _DECISIVE if shown else _NO_NEIGHBOURS),
        facts=facts,
    )


def bias_table(rows: Iterable[BiasRow]) -> Table:
    """Return a row for each figure about a judge, and say what the measures mean."""
    shown = tuple(rows)
    measures = {each.measure for each in shown if each.value is not None}
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
    for each in rows:
        if each.reason is not None:
            lacking.setdefault((each.dimension, each.judge, each.reason), []).append(each.measure)
    for (dimension, judge, why), measures in lacking.items():
        yield f"{dimension}, {judge}: no {', '.join(measures)}: {why}."


_UNHEARD: Final = "no judge has given a verdict on a pair of different responses in both orders"
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
    found = calibrated.found
    low, high = found.interval(_LEVEL)
    return TemperatureRow(
        dimension=calibrated.name,
        temperature=found.value,
        low=low if isfinite(low) else None,
        high=high if isfinite(high) else None,
        log_likelihood=calibrated.log_likelihood,
        log_likelihood_usual=calibrated.log_likelihood_usual,
        n_prompts=found.n_prompts,
        n_pairs=found.n_pairs,
        n_ties=found.n_ties,
    )
