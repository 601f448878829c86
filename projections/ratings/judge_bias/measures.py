"""Every bias of a tournament's judges, as figures with their intervals."""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from ledger.events.ratings import BradleyTerryParameters
from ledger.events.registration import JudgeSettings
from projections.battles.columns import Battles, CannotRate, battles_of
from projections.intervals import FEWEST_CLUSTERS, Estimate
from projections.ratings.bradley_terry.component import ELO
from projections.ratings.judge_bias.families import family_of
from projections.ratings.judge_bias.figures import Bounded, Kind, figure, missing
from projections.ratings.judge_bias.pairs import JudgedPairs, judged_pairs
from projections.ratings.judge_bias.several_judges import Families, jury_figures
from projections.ratings.judge_bias.single_judge import SLOT, flips, slot_preference, style_effects
from projections.ratings.judge_bias.transitivity import transitivity
from projections.ratings.style import MOST_BETWEEN, Coefficient, fit_adjusted
from projections.ratings.tournament import style_of_battles, with_texts
from projections.results.judges import BiasRow
from projections.tournament.settlement import Settlement, by_dimension, settle
from projections.tournament.state import Tournament
from projections.verdicts.queries import Said

_STYLES: Final[tuple[Kind, ...]] = ("length", "headers", "lists", "bold")
_TWICE: Final = 1 / 3  # what length is where a is twice as long: (2 - 1) / (2 + 1)
_ALWAYS_ALIKE: Final = "the same in all pairs of responses"
_CONFOUNDED: Final = (
    "who wrote the responses explains {:.0%} of it, so its effect cannot be told from strengths"
)
_PLAIN: Final = BradleyTerryParameters()
_NO_MORE_PAIRS: Final = (
    f"no more pairs of entrants than ratings need, or fewer than {FEWEST_CLUSTERS} prompts"
)


def biases(
    tournament: Tournament, judges: Sequence[JudgeSettings], said: Said | None = None
) -> Iterator[BiasRow]:
    """Yield the figures on each judge with verdicts in both orders, by dimension.

    Args:
        tournament: What was judged.
        judges: The whole jury: some figures compare a judge with the others.
        said: The verdicts; None: the tournament's.

    Raises:
        CannotRate: Strengths are too far apart to be computed.
    """
    prompts = frozenset(prompt.prompt_id for prompt in tournament.bank)
    families = _families_of(tournament, judges)
    settled = {
        str(judge.judge_id): by_dimension(tournament, settle(tournament, prompts, judge))
        for judge in judges
    }
    for dimension, pairs in judged_pairs(tournament, judges, said).items():
        of_jury = jury_figures(pairs, families)
        for judge, groups in settled.items():
            own = pairs.by(judge)
            if len(own):
                of_ratings = _of_ratings(groups[dimension])
                figures = (*_habits(own), *of_jury[judge], *of_ratings)
                for figure in figures:
                    yield figure._replace(dimension=dimension, judge=judge)


def _families_of(tournament: Tournament, judges: Sequence[JudgeSettings]) -> Families:
    return Families(
        {each.entrant_id: family_of(each.weights, each.entrant_id) for each in tournament.roster},
        {str(each.judge_id): family_of(each.model, each.judge_id) for each in judges},
    )


def _habits(pairs: JudgedPairs) -> Iterator[BiasRow]:
    """Yield what a judge does whatever it reads."""
    found = slot_preference(pairs)
    yield figure("slot preference", _bounded(found), found.n)
    for of, share in flips(pairs):
        yield figure("flips", _bounded(share), share.n, of=of)
    yield from _styles(pairs)


def _bounded(found: Estimate) -> Bounded:
    return Bounded(found.value, found.low, found.high)


def _styles(pairs: JudgedPairs) -> Iterator[BiasRow]:
    """Yield the effect of each feature of style in Elo points."""
    try:
        found = style_effects(pairs)
    except CannotRate as error:
        yield from (missing(feature, error.why) for feature in _STYLES)
        return
    effects = {each.feature: each for each in found.coefficients if each.feature != SLOT}
    for feature in _STYLES:
        if feature not in effects:
            yield missing(feature, _ALWAYS_ALIKE)
        elif effects[feature].is_confounded:
            yield missing(feature, _CONFOUNDED.format(effects[feature].between_entrants))
        else:
            yield _effect(feature, effects[feature], 2 * len(pairs))


def _effect(feature: Kind, found: Coefficient, n: int) -> BiasRow:
    points = ELO * (_TWICE / found.deviation if feature == "length" else 1.0)
    slopes = (found.beta, found.lower, found.upper)
    return figure(feature, Bounded(*(None if x is None else points * x for x in slopes)), n)


def _of_ratings(group: Sequence[Settlement]) -> Iterator[BiasRow]:
    """Yield what outcomes say of the ratings by one judge."""
    battles, shown = battles_of(group).by_verdicts("half"), with_texts(group)
    yield _transitivity(battles)
    if len(shown) < len(battles):  # some responses were redacted
        battles = battles_of(shown).by_verdicts("half")
    yield _length_control(battles, shown)


def _transitivity(battles: Battles) -> BiasRow:
    found = transitivity(battles)
    if found is None:
        return missing("transitivity", _NO_MORE_PAIRS)
    of = f"chi-square {found.chi_square:.1f}, {found.degrees} degrees of freedom"
    return figure("transitivity", Bounded(found.p, None, None), found.n_pairs, of=of)


def _length_control(battles: Battles, shown: Sequence[Settlement]) -> BiasRow:
    """Return the largest change of a rating under control for length, and whose."""
    try:
        found = fit_adjusted(battles, style_of_battles(shown, ("length",)), _PLAIN)
    except CannotRate as error:
        return missing("length control", error.why)
    if found.columns.left_out:
        return missing("length control", _ALWAYS_ALIKE)
    [between] = found.between_entrants.tolist()
    if between > MOST_BETWEEN:
        return missing("length control", _CONFOUNDED.format(between))
    change = np.nan_to_num(found.rating - found.plain.rating)
    most = int(np.abs(change).argmax())
    return figure(
        "length control",
        Bounded(float(change[most]), None, None),
        len(shown),
        of=found.plain.entrants[most],
    )
