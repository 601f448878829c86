"""Every bias of a tournament's judges, as figures with their intervals.

Transitivity: Pearson's chi-square compares what each pair's first entrant took with what
Bradley-Terry ratings expect. Battles of a prompt are not independent, so its distribution is that
of a score bootstrap: each prompt's contribution to the differences, less what the fit takes up, is
multiplied by 1 or -1 at random (Kline and Santos 2012).
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple

import numpy as np

from ledger.events.judging import Verdict, repeat_key
from ledger.events.ratings import BradleyTerryParameters
from ledger.events.registration import JudgeSettings
from projections.battles.columns import Battles, CannotRate, battles_of
from projections.battles.soft_scores import sigma
from projections.intervals import (
    FEWEST_CLUSTERS,
    Estimate,
    Floats,
    RatioTerms,
    Scale,
    estimate_ratio,
    wilson,
)
from projections.ratings.bradley_terry.component import ELO
from projections.ratings.bradley_terry.evidence import single_battles
from projections.ratings.bradley_terry.rate import rate_points
from projections.ratings.judge_bias.figures import Bounded, figure, missing
from projections.ratings.judge_bias.pairs import JudgedPairs, Places, judged_pairs
from projections.ratings.judge_bias.several_judges import Families, family_of, jury_figures
from projections.ratings.style import MOST_BETWEEN, AdjustedFit, Coefficient, fit_adjusted
from projections.ratings.tournament import style_of_battles, with_texts
from projections.results.judges import BiasRow
from projections.tournament.compared import OPPOSITE, TIE_BESIDE_WIN
from projections.tournament.settlement import Settlement, by_dimension, settle, verdict_of
from projections.tournament.state import Tournament
from projections.verdicts.queries import Said

_STYLES: Final = ("length", "headers", "lists", "bold")
_TWICE: Final = 1 / 3  # what length is where a is twice as long: (2 - 1) / (2 + 1)
_ALWAYS_ALIKE: Final = "the same in all pairs of responses"
_CONFOUNDED: Final = (
    "who wrote the responses explains {:.0%} of it, so its effect cannot be told from strengths"
)
_BESIDE: Final[tuple[frozenset[Verdict], ...]] = (frozenset({"A", "TIE"}), frozenset({"B", "TIE"}))
_REVERSED: Final[tuple[frozenset[Verdict], ...]] = (frozenset({"A", "B"}),)
_CHANGES: Final = {
    "all repeats": (*_REVERSED, *_BESIDE),
    OPPOSITE: _REVERSED,
    TIE_BESIDE_WIN: _BESIDE,
}
"""Two verdicts on the same query, by how they differ."""
_PLAIN: Final = BradleyTerryParameters()
_NO_MORE_PAIRS: Final = (
    f"no more pairs of entrants than ratings need, or fewer than {FEWEST_CLUSTERS} prompts"
)


def biases(tournament: Tournament, judges: Sequence[JudgeSettings]) -> Iterator[BiasRow]:
    """Yield the figures on each judge with verdicts in both orders, by dimension.

    Args:
        tournament: What was judged.
        judges: The whole jury: some figures compare a judge with the others.

    Raises:
        CannotRate: Strengths are too far apart to be computed.
    """
    prompts = frozenset(prompt.prompt_id for prompt in tournament.bank)
    families = _families_of(tournament, judges)
    settled = {
        str(judge.judge_id): by_dimension(tournament, settle(tournament, prompts, judge))
        for judge in judges
    }
    for dimension, pairs in judged_pairs(tournament, judges).items():
        of_jury = jury_figures(pairs, families)
        for judge, groups in settled.items():
            own = pairs.by(judge)
            if len(own):
                group = groups[dimension]
                again = _retests(group, partial(verdict_of, tournament, parser=None))
                figures = (*_habits(own), *again, *of_jury[judge], *_of_ratings(group))
                for figure in figures:
                    yield figure._replace(dimension=dimension, judge=judge)


def _families_of(tournament: Tournament, judges: Sequence[JudgeSettings]) -> Families:
    return Families(
        {
            entrant.entrant_id: family_of(entrant.weights, entrant.entrant_id)
            for entrant in tournament.roster
        },
        {str(judge.judge_id): family_of(judge.model, judge.judge_id) for judge in judges},
    )


def _habits(pairs: JudgedPairs) -> Iterator[BiasRow]:
    """Yield what a judge does whatever it reads."""
    estimate = slot_preference(pairs)
    yield figure("slot preference", _bounded(estimate), estimate.n)
    for of, share in flips(pairs):
        yield figure("flips", _bounded(share), share.n, of=of)
    yield from _styles(pairs)


def _bounded(estimate: Estimate) -> Bounded:
    return Bounded(estimate.value, estimate.low, estimate.high)


def _retests(group: Iterable[Settlement], said: Said) -> Iterator[BiasRow]:
    """Yield how many verdicts changed when their query was asked again, if any was."""
    repeated = {
        key: (settlement.cluster, {first, again})
        for settlement in group
        if settlement.match is not None
        for _, key in settlement.match.keys
        if (first := said(key)) and (again := said(repeat_key(key)))
    }
    if not repeated:
        return
    prompts = [prompt for prompt, _ in repeated.values()]
    changed = [verdicts for _, verdicts in repeated.values()]
    for of, ways in _CHANGES.items():
        counts = np.array([verdicts in ways for verdicts in changed], dtype=np.float64)
        share = estimate_ratio(RatioTerms(counts, np.ones(len(counts))), prompts, "share")
        yield figure("retest flips", _bounded(share), share.n, of=of)


def _styles(pairs: JudgedPairs) -> Iterator[BiasRow]:
    """Yield the effect of each feature of style in Elo points."""
    try:
        fitted = style_effects(pairs)
    except CannotRate as error:
        yield from (missing(feature, error.why) for feature in _STYLES)
        return
    effects = {
        coefficient.feature: coefficient
        for coefficient in fitted.coefficients
        if coefficient.feature != SLOT
    }
    for feature in _STYLES:
        if feature not in effects:
            yield missing(feature, _ALWAYS_ALIKE)
        elif effects[feature].is_confounded:
            yield missing(feature, _CONFOUNDED.format(effects[feature].between_entrants))
        else:
            yield _effect(feature, effects[feature], 2 * len(pairs))


def _effect(feature: str, coefficient: Coefficient, n: int) -> BiasRow:
    points = ELO * (_TWICE / coefficient.deviation if feature == "length" else 1.0)
    slopes = (coefficient.beta, coefficient.lower, coefficient.upper)
    return figure(feature, Bounded(*(None if x is None else points * x for x in slopes)), n)


def _of_ratings(group: Sequence[Settlement]) -> Iterator[BiasRow]:
    """Yield what outcomes say of the ratings by one judge."""
    battles, shown = battles_of(group).by_verdicts("half"), with_texts(group)
    yield _transitivity(battles)
    if len(shown) < len(battles):  # some responses were redacted
        battles = battles_of(shown).by_verdicts("half")
    yield _length_control(battles, shown)


def _transitivity(battles: Battles) -> BiasRow:
    test = transitivity(battles)
    if test is None:
        return missing("transitivity", _NO_MORE_PAIRS)
    of = f"chi-square {test.chi_square:.1f}, {test.degrees} degrees of freedom"
    return figure("transitivity", Bounded(test.p, None, None), test.n_pairs, of=of)


def _length_control(battles: Battles, shown: Sequence[Settlement]) -> BiasRow:
    """Return the largest change of a rating under control for length, and whose."""
    try:
        fitted = fit_adjusted(battles, style_of_battles(shown, ("length",)), _PLAIN)
    except CannotRate as error:
        return missing("length control", error.why)
    if fitted.columns.left_out:
        return missing("length control", _ALWAYS_ALIKE)
    [between] = fitted.between_entrants.tolist()
    if between > MOST_BETWEEN:
        return missing("length control", _CONFOUNDED.format(between))
    change = np.nan_to_num(fitted.rating - fitted.plain.rating)
    most = int(np.abs(change).argmax())
    return figure(
        "length control",
        Bounded(float(change[most]), None, None),
        len(shown),
        of=fitted.plain.entrants[most],
    )


SLOT: Final = "slot"
"""The feature that is 1 where a was shown first, and -1 where it was shown second."""


def slot_preference(pairs: JudgedPairs) -> Estimate:
    """Return the share of verdicts for slot A minus that for slot B, over both orders.

    What a response deserves cancels between the orders: a judge that says A in a share p of its
    verdicts, whatever it sees, and is fair otherwise, has p. n counts verdicts.

    Where all prompts agree, a share of others may have gone unseen, as large as Wilson's bound for
    none of as many; on these every verdict may be for one slot. On fewer prompts than any interval
    takes there is none.
    """
    estimate = _mean(pairs.forward - pairs.swapped, pairs.prompt, "plain")
    low, high = estimate.low, estimate.high
    if estimate.value is not None and low is not None and low == high:
        _, unseen = wilson(0.0, len(np.unique(pairs.prompt)))
        low = estimate.value - unseen * (1 + estimate.value)
        high = estimate.value + unseen * (1 - estimate.value)
    return estimate._replace(n=2 * estimate.n, low=low, high=high)


def flips(pairs: JudgedPairs) -> Iterator[tuple[str, Estimate]]:
    """Yield the share of pairs in which the orders disagree: of all, in a way, of two entrants."""
    names, n = pairs.entrants, len(pairs.entrants)
    flipped = pairs.is_inconsistent.astype(np.float64)
    opposite = (np.abs(pairs.forward - pairs.swapped) == 1).astype(np.float64)
    yield "all pairs", _mean(flipped, pairs.prompt, "share")
    yield OPPOSITE, _mean(opposite, pairs.prompt, "share")
    yield TIE_BESIDE_WIN, _mean(flipped - opposite, pairs.prompt, "share")
    met = np.minimum(pairs.a, pairs.b) * n + np.maximum(pairs.a, pairs.b)
    order = np.argsort(met, kind="stable")
    numbers, starts = np.unique(met[order], return_index=True)
    ends = np.append(starts, len(order))[1:]
    for number, start, end in zip(numbers, starts, ends, strict=True):
        places = order[start:end]
        share = _mean(flipped[places], pairs.prompt[places], "share")
        yield f"{names[number // n]} and {names[number % n]}", share


def style_effects(pairs: JudgedPairs) -> AdjustedFit:
    """Return what differences in style do to a verdict, beside strengths and the slot.

    Each order counts as a battle; those of a prompt are not independent.

    Raises:
        CannotRate: No two entrants can be compared, or a feature cannot be told from the others
            and the entrants.
    """
    n = len(pairs)
    first = np.repeat((1.0, -1.0), n)
    style = {name: np.tile(column, 2) for name, column in pairs.style.items()}
    return fit_adjusted(pairs.orders(), {SLOT: first, **style}, _PLAIN)


def _mean(values: Floats, prompt: Places, scale: Scale) -> Estimate:
    """Return the mean of one value for each pair, with its interval over prompts."""
    return estimate_ratio(RatioTerms(values, np.ones(len(values))), prompt.tolist(), scale)


_DRAWS: Final = 1999
_SEED: Final = 20260427
_ROUNDING: Final = 1e-9  # draws that equal what was found differ in the last digits, by machine


class Transitivity(NamedTuple):
    """The test; degrees: how many pairs more than ratings that are free; p: of the chi-square."""

    chi_square: float
    degrees: int
    p: float
    n_pairs: int  # of entrants


def transitivity(battles: Battles) -> Transitivity | None:
    """Test whether ratings explain the battles of comparable entrants.

    Returns:
        None if there are not more pairs than ratings, or too few prompts (FEWEST_CLUSTERS).

    Raises:
        CannotRate: As for `bradley_terry.rate.rate`.
    """
    ratings = rate_points(battles, BradleyTerryParameters())
    label = ratings.components.label
    units = single_battles(battles, label[battles.a] == label[battles.b])
    n_prompts = len(units.count)
    n, strengths = units.n_entrants, ratings.rating / ELO
    met, pair = np.unique(
        np.minimum(units.a, units.b) * n + np.maximum(units.a, units.b), return_inverse=True
    )
    net = np.eye(n)[met // n] - np.eye(n)[met % n]  # (n_pairs, n): 1 at the first, -1 at the other
    degrees = len(net) - (int(np.linalg.matrix_rank(net)) if n_prompts else 0)
    if degrees < 1 or n_prompts < FEWEST_CLUSTERS:
        return None
    log_odds = strengths[units.a] - strengths[units.b]
    took = units.weight * (units.score - sigma(log_odds))  # beyond expectation
    surplus = np.zeros((n_prompts, len(met)))  # of the first of each pair
    np.add.at(surplus, (units.unit, pair), np.where(units.a < units.b, took, -took))
    spread = units.weight * sigma(log_odds) * sigma(-log_odds)
    variance = np.bincount(pair, spread, minlength=len(met)).astype(np.float64)
    chi_square = float((surplus.sum(axis=0) ** 2 / variance).sum())
    signs = np.random.default_rng(_SEED).choice((-1.0, 1.0), (_DRAWS, n_prompts))
    drawn = ((signs @ _unexplained(surplus, variance, net)) ** 2 / variance).sum(axis=1)
    n_as_far = int((drawn >= chi_square * (1 - _ROUNDING)).sum())
    return Transitivity(chi_square, degrees, (1 + n_as_far) / (1 + _DRAWS), len(net))


def _unexplained(surplus: Floats, variance: Floats, net: Floats) -> Floats:
    """Return the surplus less what the fit takes up of each prompt's, (n_prompts, n_pairs).

    variance: (n_pairs,) of the sum over independent battles.
    """
    weighted = variance[:, None] * net
    taken_up = np.linalg.pinv(net.T @ weighted) @ net.T
    return np.asarray(surplus - surplus @ (weighted @ taken_up).T)
