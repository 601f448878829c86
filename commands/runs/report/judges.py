"""The report's sections on how far to trust the judges and the ratings."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from commands.runs.report.drawings import embedded, svg
from commands.runs.report.drawings.panels import ConfidenceBin
from commands.runs.report.subject import RatedDimension, Subject
from commands.runs.report.text import NOTHING, decimal, interval, percent
from ledger.events.ratings import BradleyTerryParameters
from projections.battles.columns import CannotRate
from projections.ratings.fragility import fragility
from projections.ratings.judge_bias.measures import biases
from projections.reliability.agreement import Measure, agreement
from projections.reliability.calibration import Calibration, against_gold
from projections.results.judges import BiasRow
from projections.results.ratings import FragilityRow
from projections.tournament.compared import OPPOSITE, TIE_BESIDE_WIN

_FAIR: Final = {"slot preference": 0.0, "length": 0.0, "self-preference": 0.0}
_DOUBTFUL: Final = 0.8  # of an order consistency: below, more than one pair in five depends on it
_LOST: Final = "lost replies"
_FAULTS: Final = frozenset({"unreadable rate", "refused rate", "truncated rate", "empty rate"})
_DISAGREEMENTS: Final = frozenset({OPPOSITE, TIE_BESIDE_WIN})
_IF_ANY: Final = _FAULTS | _DISAGREEMENTS
_MEANT: Final = {
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
_SHARES: Final = ("consistency", "share of A", "rate", "agreement")
_KINDS: Final = ("slot preference", "length", "length control", "self-preference", "transitivity")
_NEAR_CERTAIN: Final = 0.05


class HealthRow(NamedTuple):
    """One figure about the judges."""

    dimension: str
    judges: str
    measure: str
    value: str
    interval: str
    n: str
    sign: str | None  # what the figure is a sign of; None: of nothing
    meaning: str


def health_of(subject: Subject) -> tuple[HealthRow, ...]:
    """Return what is known of the judges of a tournament: reliability first, then biases."""
    results = subject.results
    prompts = frozenset(results.publication.terms.prompts)
    state = results.tournament
    measures = agreement(state, prompts, state.panel, said=subject.said)
    return (
        *(
            _reliability(each)
            for each in _with_losses(measures)
            if each.n and each.name in _MEANT and (each.value or each.name not in _IF_ANY)
        ),
        *(
            _bias(each)
            for each in biases(state, state.panel, subject.said)
            if each.value is not None and each.measure in _KINDS
        ),
    )


def _with_losses(measures: Iterable[Measure]) -> Iterator[Measure]:
    """Yield the measures, and after a judge's rates of faults their sum."""
    lost: list[float] = []
    for each in measures:
        yield each
        if each.name in _FAULTS:
            lost.append(each.value or 0.0)
            if len(lost) == len(_FAULTS):
                yield each._replace(name=_LOST, value=sum(lost))
                lost.clear()


def _reliability(measure: Measure) -> HealthRow:
    is_share = any(measure.name.endswith(each) for each in (*_SHARES, "of all", _LOST)) or (
        measure.name in _DISAGREEMENTS
    )
    sign = None
    if measure.name == "order consistency" and (measure.value or 0.0) < _DOUBTFUL:
        sign = "depends on the order"
    if measure.name == OPPOSITE and (measure.value or 0.0) > 1 - _DOUBTFUL:
        sign = "contradicts itself"
    return HealthRow(
        measure.dimension,
        ", ".join(measure.judges),
        measure.name,
        percent(measure.value) if is_share else decimal(measure.value),
        NOTHING,
        f"{measure.n:,}",
        sign,
        _MEANT[measure.name],
    )


def _bias(figure: BiasRow) -> HealthRow:
    digits = 0 if figure.unit.startswith("Elo points") else 2
    return HealthRow(
        figure.dimension,
        figure.judge,
        _name(figure),
        f"{'p = ' * (figure.unit == 'p')}{decimal(figure.value, digits)}{_unit(figure)}",
        interval(figure.ci95_low, figure.ci95_high, digits),
        f"{figure.n:,}",
        _sign(figure),
        _MEANT[figure.measure],
    )


def _name(figure: BiasRow) -> str:
    is_of_somebody = figure.of is not None and figure.measure != "transitivity"
    return f"{figure.measure}: {figure.of}" if is_of_somebody else figure.measure


def _unit(figure: BiasRow) -> str:
    return " Elo" if figure.unit.startswith("Elo points") else ""


def _sign(figure: BiasRow) -> str | None:
    """Return what a figure is a sign of, if its interval leaves out what is fair."""
    if figure.measure == "transitivity":
        return "cycles" if (figure.value or 1.0) < _NEAR_CERTAIN else None
    fair = _FAIR.get(figure.measure)
    if fair is None or figure.ci95_low is None or figure.ci95_high is None:
        return None
    return None if figure.ci95_low <= fair <= figure.ci95_high else "sign of bias"


_MOST_NAMED: Final = 3


def fragile_pairs(rated: RatedDimension) -> tuple[FragilityRow, ...]:
    """Return the fragility of each gap between neighbours; none where it cannot be computed."""
    parameters = BradleyTerryParameters(prior_sd=rated.board.ratings.parameters.prior_sd)
    try:
        return fragility(rated.name, rated.comparisons.by_verdicts("half"), parameters)
    except CannotRate:
        return ()


def named_prompts(row: FragilityRow) -> str:
    """Name the first of the prompts that decide."""
    named = [prompt for prompt in row.decisive or () if prompt is not None]
    more = len(named) - _MOST_NAMED
    return ", ".join(named[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


class ReliabilityDiagram(NamedTuple):
    """How honest an entrant's own probability of being right is."""

    entrant: str
    n: int
    ece: str
    brier: str
    diagram: svg.Drawing


def calibration_of(subject: Subject) -> tuple[ReliabilityDiagram, ...]:
    """Return a row for each entrant that said how sure it was, where a gold answer decides."""
    return tuple(
        ReliabilityDiagram(
            each.entrant_id,
            len(each.cases),
            decimal(each.ece, 3),
            decimal(each.brier, 3),
            embedded.reliability(_shares(each), each.entrant_id),
        )
        for each in against_gold(subject.results.tournament)
        if each.cases
    )


def _shares(calibration: Calibration) -> Sequence[ConfidenceBin]:
    return [
        ConfidenceBin(each.confidence, each.correctness, each.n)
        for each in calibration.bins
        if each.confidence is not None and each.correctness is not None
    ]
