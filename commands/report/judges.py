"""The report's sections on how far to trust the judges and the ratings."""

from collections.abc import Iterable, Iterator
from typing import Final

from commands.errors import joined_names
from commands.report.drawings.embedded import reliability
from commands.report.drawings.svg import Drawing
from commands.report.subject import RatedDimension, Subject
from commands.report.text import decimal, interval, percent
from ledger.events.ratings import BradleyTerryParameters
from projections.battles.columns import CannotRate
from projections.ratings.fragility import fragility
from projections.ratings.judge_bias.measures import biases
from projections.reliability.agreement import Measure, agreement
from projections.reliability.calibration import Calibration, against_gold
from projections.results.judges import BiasRow
from projections.results.ratings import FragilityRow
from projections.tournament.compared import OPPOSITE, TIE_BESIDE_WIN

_DOUBTFUL: Final = 0.8  # of an order consistency: below, more than one pair in five depends on it
_LOST: Final = "lost replies"
_FAULTS: Final = frozenset({"unreadable rate", "refused rate", "truncated rate", "empty rate"})
_IF_ANY: Final = _FAULTS | {OPPOSITE, TIE_BESIDE_WIN}
_NO_SHARES: Final = frozenset(
    {"Cohen's kappa", "Fleiss' kappa", "Krippendorff's alpha", "Spearman's rho"}
)
MEANINGS: Final = {
    "order consistency": "Pairs judged the same when the responses change places.",
    OPPOSITE: "Pairs on which the other response wins when they change places.",
    TIE_BESIDE_WIN: "Pairs that tie in one order and are decided in the other.",
    "share of A": "Share of the first slot in all verdicts that are no tie.",
    "tie rate": "Verdicts that are a tie; identical responses tie without a verdict.",
    "unreadable rate": "Replies in which no verdict was found.",
    "refused rate": "Replies in which the judge declined.",
    "truncated rate": "Replies that were cut short.",
    "empty rate": "Replies without a word.",
    _LOST: "Replies without a verdict: unreadable, refused, truncated or empty.",
    "agreement": "Pairs on which both judges say the same.",
    "agreement of all": "Pairs of judges that say the same, over all pairs.",
    "Cohen's kappa": "Agreement beyond chance: 0 is chance, 1 is perfect.",
    "Fleiss' kappa": "Agreement of all beyond chance: 0 is chance, 1 is perfect.",
    "Krippendorff's alpha": "The same over all pairs that two or more judges judged.",
    "Spearman's rho": "How alike both judges order the entrants.",
    "slot preference": "Verdicts for the first slot minus those for the second: 0 is fair.",
    "length": "Elo points that a response twice as long gains with this judge: 0 is fair.",
    "length control": "The largest change of a rating once length is accounted for.",
    "self-preference": "What the judge's own family gains, beyond what other judges see.",
    "transitivity": "Below 0.05, one number for each entrant does not explain who beats whom.",
}
_KINDS: Final = ("slot preference", "length", "length control", "self-preference", "transitivity")
_NEAR_CERTAIN: Final = 0.05
_SHARE: Final = "%"  # the unit of what is shown as a percentage


def health_of(subject: Subject) -> tuple[BiasRow, ...]:
    """Return what is known of the judges of a tournament: reliability first, then biases."""
    prompts = frozenset(subject.results.publication.terms.prompts)
    state = subject.results.tournament
    measures = agreement(state, prompts, state.panel)
    return (
        *(
            _as_figure(measure)
            for measure in _with_losses(measures)
            if measure.n
            and measure.name in MEANINGS
            and (measure.value or measure.name not in _IF_ANY)
        ),
        *(
            figure
            for figure in biases(state, state.panel)
            if figure.value is not None and figure.measure in _KINDS
        ),
    )


def _with_losses(measures: Iterable[Measure]) -> Iterator[Measure]:
    """Yield the measures, and after a judge's rates of faults their sum."""
    lost: list[float] = []
    for measure in measures:
        yield measure
        if measure.name in _FAULTS:
            lost.append(measure.value or 0.0)
            if len(lost) == len(_FAULTS):
                yield measure._replace(name=_LOST, value=sum(lost), low=None, high=None)
                lost.clear()


def _as_figure(measure: Measure) -> BiasRow:
    """Return a measure of reliability among biases."""
    name, value, n, low, high, judges, dimension = measure
    unit = _SHARE if name not in _NO_SHARES else ""
    return BiasRow(dimension, ", ".join(judges), name, None, value, low, high, unit, n, "", None)


def value_of(figure: BiasRow) -> str:
    """Return a figure as it is shown."""
    match figure.unit:
        case "%":
            return percent(figure.value)
        case "p":
            return f"p = {decimal(figure.value)}"
        case "Elo points":
            return f"{decimal(figure.value, 0)} Elo"
        case _:
            return decimal(figure.value)


def interval_of(figure: BiasRow) -> str:
    """Return a figure's interval; empty: it has none."""
    if figure.ci95_low is None or figure.ci95_high is None:
        return ""
    return interval(figure.ci95_low, figure.ci95_high, 0 if figure.unit == "Elo points" else 2)


def sign_of(figure: BiasRow) -> str | None:
    """Return what a figure is a sign of; None: of nothing."""
    value = figure.value or 0.0
    match figure.measure:
        case "order consistency":
            return "depends on the order" if value < _DOUBTFUL else None
        case "opposite winners":
            return "contradicts itself" if value > 1 - _DOUBTFUL else None
        case "transitivity":
            return "cycles" if value < _NEAR_CERTAIN else None
        case "slot preference" | "length" | "self-preference":
            low, high = figure.ci95_low, figure.ci95_high
            is_fair = low is None or high is None or low <= 0 <= high
            return None if is_fair else "sign of bias"
        case _:
            return None


def fragile_pairs(rated: RatedDimension) -> tuple[FragilityRow, ...]:
    """Return the fragility of each gap between neighbours; none where it cannot be computed."""
    parameters = BradleyTerryParameters(prior_sd=rated.board.ratings.parameters.prior_sd)
    try:
        return fragility(rated.name, rated.comparisons.by_verdicts("half"), parameters)
    except CannotRate:
        return ()


def named_prompts(row: FragilityRow) -> str:
    """Name the first of the prompts that decide."""
    return joined_names([prompt for prompt in row.decisive or () if prompt is not None])


def calibration_of(subject: Subject) -> list[Calibration]:
    """Return how honest each entrant's own probability of being right is, by gold answers."""
    return [
        calibration for calibration in against_gold(subject.results.tournament) if calibration.cases
    ]


def diagram_of(calibration: Calibration) -> Drawing:
    """Draw how often an entrant is right against how sure it is."""
    filled = [
        (one.confidence, one.correctness, one.n)
        for one in calibration.bins
        if one.confidence is not None and one.correctness is not None
    ]
    return reliability(filled, calibration.entrant_id)
