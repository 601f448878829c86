"""Biases that only several judges show: unequal skill, and preference for models of their family.

P(a beats b | judge) = sigma(skill_judge (theta_a - theta_b)), where one judge's skill is 1; a judge
of skill 0 guesses (Xu et al., ICML 2026; arXiv 2602.16610). Beside it stands, for a judge with
entrants of its own family, a bonus in log odds that they have before that judge alone.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from ledger.events.ratings import BradleyTerryParameters
from projections.battles.soft_scores import sigma
from projections.intervals import FEWEST_CLUSTERS, Floats, critical_value
from projections.ratings.bradley_terry.component import ELO, MEAN_RATING
from projections.ratings.bradley_terry.evidence import ClusteredBattles, single_battles
from projections.ratings.bradley_terry.rate import rate_points
from projections.ratings.bradley_terry.sandwich import sandwich
from projections.ratings.judge_bias.figures import Bounded, figure, missing
from projections.ratings.judge_bias.pairs import JudgedPairs, Places
from projections.ratings.style import Design
from projections.results.judges import BiasRow

_LEVEL: Final = 0.95
_EXACT: Final = 1e-6  # of log odds: what is missing after the last step is about its square
_MOST_STEPS: Final = 100
_SHARES: Final = 0.5 ** np.arange(30)  # of a step, tried until one does not lead down
_NO_INFORMATION: Final = 1e-9  # an eigenvalue of information, diagonal 1, that is rounding


class JuryFit(NamedTuple):
    """Skills by judge, the first of which is 1 by decree, and bonuses, with their intervals."""

    skills: tuple[Bounded, ...]
    bonuses: tuple[Bounded, ...]


def fit_jury(pairs: JudgedPairs, own: Floats) -> JuryFit | None:
    """Fit strengths, skills and bonuses together, each order being a battle.

    Intervals are Student's by the bias-reduced sandwich, clustered by prompt.

    Args:
        pairs: Of all judges, each of whom has some.
        own: (n, n_bonuses) 1 where a alone has the bonus before the judge, -1 where b alone.

    Returns:
        None if the verdicts do not determine all of them. Those on two entrants, for example,
        cannot tell a bonus from skill.

    Raises:
        CannotRate: As for `bradley_terry.rate.rate`.
    """
    orders = pairs.orders()
    plain = rate_points(orders, BradleyTerryParameters())
    label = plain.components.label
    comparable = label[orders.a] == label[orders.b]
    units = single_battles(orders, comparable)
    if len(units.count) < FEWEST_CLUSTERS:
        return None
    jury = _Jury(
        units,
        judge=np.tile(pairs.judge, 2)[comparable],
        n_judges=len(pairs.judges),
        bonus=np.tile(own, (2, 1))[comparable],
        held=np.unique(label, return_index=True)[1],
    )
    return jury.fit(np.nan_to_num((plain.rating - MEAN_RATING) / ELO))


@dataclass(frozen=True)
class _Jury:
    """The likelihood of strengths, then of the skills of all judges but the first, then of bonuses.

    judge: (n,) of each battle; bonus: (n, n_bonuses); held: strengths that stay as they are.
    """

    units: ClusteredBattles
    judge: Places
    n_judges: int
    bonus: Floats
    held: Places

    def fit(self, strengths: Floats) -> JuryFit | None:
        """Find the maximum by Fisher's scoring from equal skills; None if it is not determined."""
        skills, bonuses = np.ones(self.n_judges - 1), np.zeros(self.bonus.shape[1])
        parameters = np.concatenate((strengths, skills, bonuses))
        for _ in range(_MOST_STEPS):
            design = self._design(parameters)
            log_odds = self._log_odds(parameters)
            information = self._information(design, log_odds)
            if not _is_determined(information):
                return None
            gradient = design.transposed(self._surprise(log_odds))
            step = np.asarray(np.linalg.solve(information, gradient), dtype=np.float64)
            if np.abs(design.log_odds(step)).max() < _EXACT:
                return self._found(parameters, information, design)
            parameters = self._further(parameters, step)
        return None

    def _log_odds(self, parameters: Floats) -> Floats:
        """Return the log odds of a against b, (n,)."""
        strengths, skills, bonuses = self._parts(parameters)
        gap = strengths[self.units.a] - strengths[self.units.b]
        return np.asarray(skills[self.judge] * gap + self.bonus @ bonuses)

    def _parts(self, parameters: Floats) -> Sequence[Floats]:
        """Return strengths, the skills of all judges, and bonuses."""
        n = self.units.n_entrants
        strengths, skills, bonuses = np.split(parameters, [n, n + self.n_judges - 1])
        return strengths, np.concatenate(([1.0], skills)), bonuses

    def _design(self, parameters: Floats) -> Design:
        """Return the derivatives of the log odds."""
        strengths, skills, _ = self._parts(parameters)
        gap = strengths[self.units.a] - strengths[self.units.b]
        is_of = self.judge[:, None] == np.arange(1, self.n_judges)
        columns = np.column_stack((gap[:, None] * is_of, self.bonus))
        return Design(
            len(strengths), self.units.a, self.units.b, columns, factor=skills[self.judge]
        )

    def _surprise(self, log_odds: Floats) -> Floats:
        return self.units.weight * (self.units.score - sigma(log_odds))

    def _variance(self, log_odds: Floats) -> Floats:
        return self.units.weight * sigma(log_odds) * sigma(-log_odds)

    def _information(self, design: Design, log_odds: Floats) -> Floats:
        """Return the expected information; held strengths are made to look known."""
        information = design.gram(self._variance(log_odds))
        information[self.held, self.held] += information.diagonal().mean()
        return information

    def _further(self, parameters: Floats, step: Floats) -> Floats:
        """Take the step, or the first half, quarter, ... of it that leads up."""
        now = self._log_likelihood(parameters)
        ways = (parameters + share * step for share in _SHARES)
        return next((way for way in ways if self._log_likelihood(way) >= now), parameters)

    def _log_likelihood(self, parameters: Floats) -> float:
        log_odds, score = self._log_odds(parameters), self.units.score
        each = score * np.logaddexp(0.0, -log_odds) + (1 - score) * np.logaddexp(0.0, log_odds)
        return -float(self.units.weight @ each)

    def _found(self, parameters: Floats, information: Floats, design: Design) -> JuryFit:
        n, log_odds = self.units.n_entrants, self._log_odds(parameters)
        scores = design.scores(self._surprise(log_odds), self._variance(log_odds))
        fitted = sandwich(self.units, scores, information)
        covariance, freedom = fitted.spread_of(np.eye(len(parameters))[n:])
        margins = (critical_value(_LEVEL, freedom) * np.sqrt(covariance.diagonal())).tolist()
        values = parameters[n:].tolist()
        bounds = [
            Bounded(value, value - margin, value + margin)
            for value, margin in zip(values, margins, strict=True)
        ]
        others = self.n_judges - 1
        return JuryFit((Bounded(1.0, None, None), *bounds[:others]), tuple(bounds[others:]))


def _is_determined(information: Floats) -> bool:
    """Say whether no direction is without information but for rounding."""
    diagonal = information.diagonal()
    if not (diagonal > 0).all():
        return False
    scaled = information / np.sqrt(np.outer(diagonal, diagonal))
    return bool(np.linalg.eigvalsh(scaled)[0] > _NO_INFORMATION)


_ALONE: Final = "no other judge judged the same pairs, so it cannot be told from strength"
_ALL_JUDGES: Final = "no judge of another family judged the same pairs"
_ALL_ENTRANTS: Final = "all entrants are of its family"
_NO_FAMILY: Final = (
    "its name tells no family; if it favours its own, others may seem to favour theirs"
)
_UNDETERMINED: Final = "the verdicts of so few entrants, prompts or judges do not determine it"


_FAMILIES: Final[Mapping[str, str]] = {
    "Claude": r"claude",
    "GPT": r"(?:chat)?gpt(?!q(?![a-z])|-?neo|-?j(?![a-z]))|o[134](?![a-z0-9])",
    "Gemini": r"gemini|gemma",
    "DeepSeek": r"deepseek",
    "Llama": r"(?:code|tiny)?llama|vicuna",
    "Qwen": r"qwen|qwq",
    "OLMo": r"olmo",
    "Mistral": r"mi[sx]tral|ministral|magistral|codestral",
    "Command": r"command(?:-?[ar](?![a-z])|-light|-nightly|$)",
    "Phi": r"phi(?![a-z])",
    "Grok": r"grok",
    "Nemotron": r"nemotron",
    "Yi": r"yi(?![a-z])",
    "GLM": r"(?:chat)?glm(?![a-z])",
    "Kimi": r"kimi",
}
_PATTERNS: Final = {
    family: re.compile(rf"(?<![a-z0-9])(?:{pattern})", re.IGNORECASE)
    for family, pattern in _FAMILIES.items()
}


def family_of(*names: str) -> str | None:
    """Return the family of a model, by the first of its names that tells; None if none does.

    Of a path the last part counts: who keeps the weights says nothing of them. Of a name with parts
    of two families, as of a distilled model, it is the last: those weights were trained further.
    """
    for name in names:
        model = name.rstrip("/").rpartition("/")[2]
        families = [
            (match.start(), family)
            for family, pattern in _PATTERNS.items()
            for match in pattern.finditer(model)
        ]
        if families:
            return max(families)[1]
    return None


class Families(NamedTuple):
    """The family of each entrant and of each judge; None where its name tells none."""

    of_entrants: Mapping[str, str | None]
    of_judges: Mapping[str, str | None]


def jury_figures(pairs: JudgedPairs, families: Families) -> dict[str, list[BiasRow]]:
    """Return each judge's skill beside the first judge's, and its self-preference.

    Both are fitted together where the verdicts determine them: who prefers its own family would
    else seem to see entrants further apart, or less far. Skills are there only for judges of whose
    pairs others judged some. An entrant whose name tells no family may be of a judge's own, so
    self-preference is fitted to the pairs of the others; skills are then fitted alone, to all.

    Raises:
        CannotRate: As for `bradley_terry.rate.rate`.
    """
    shared, unknown = pairs.shared(), _without_family(pairs, families)
    kin = pairs.where(~np.isin(pairs.a, unknown) & ~np.isin(pairs.b, unknown)).shared()
    reasons = _reasons(pairs.judges, shared, kin, families)
    measured = [judge for judge, why in reasons.items() if why is None]
    own = {judge: _own(judge, kin, families) for judge in measured}
    fit = _fit(kin, list(own.values()))
    figures: dict[str, list[BiasRow]] = {judge: [] for judge in pairs.judges}
    skills = _skills(shared, (None if unknown else fit) or _fit(shared, []))
    for judge, skill in zip(shared.judges, skills, strict=True):
        figures[judge].append(skill)
    bonuses = dict(zip(measured, fit.bonuses if fit else (), strict=False))
    for judge, why in reasons.items():
        family = families.of_judges[judge]
        if judge in bonuses:
            n_orders = 2 * int(np.count_nonzero(own[judge]))
            points, others = _in_points(bonuses[judge]), [pairs.entrants[n] for n in unknown]
            of = f"{family} (without {', '.join(others)}: no family known)" if others else family
            figures[judge].append(figure("self-preference", points, n_orders, of=of))
        else:
            figures[judge].append(missing("self-preference", why or _UNDETERMINED, of=family))
    return figures


def _without_family(pairs: JudgedPairs, families: Families) -> list[int]:
    """Return the numbers of the entrants whose names tell no family."""
    return [n for n, name in enumerate(pairs.entrants) if families.of_entrants[name] is None]


def _fit(shared: JudgedPairs, own: Sequence[Floats]) -> JuryFit | None:
    if not shared.judges:
        return None
    return fit_jury(shared, np.column_stack((np.empty((len(shared), 0)), *own)))


def _skills(shared: JudgedPairs, fit: JuryFit | None) -> list[BiasRow]:
    if fit is None:
        return [missing("skill", _UNDETERMINED) for _ in shared.judges]
    n_orders = 2 * np.bincount(shared.judge)
    return [
        figure("skill", skill, n) for skill, n in zip(fit.skills, n_orders.tolist(), strict=True)
    ]


def _reasons(
    judges: Sequence[str], shared: JudgedPairs, kin: JudgedPairs, families: Families
) -> dict[str, str | None]:
    """Return why there is no self-preference of each judge of whose family some entrants may be.

    Args:
        judges: All of them.
        shared: The pairs that several judges judged.
        kin: Those of them on which both entrants' families are known.
        families: Of entrants and judges.
    """
    present = {families.of_entrants[entrant] for entrant in shared.entrants}

    def may_have_kin(judge: str) -> bool:
        if families.of_judges[judge] is None:
            return judge in shared.judges and present != {None}
        return families.of_judges[judge] in present or (None in present and judge in shared.judges)

    return {judge: _why_not(judge, shared, kin, families) for judge in filter(may_have_kin, judges)}


def _in_points(log_odds: Bounded) -> Bounded:
    """Convert log odds to Elo points."""
    return Bounded(*(None if bound is None else ELO * bound for bound in log_odds))


def _why_not(judge: str, shared: JudgedPairs, kin: JudgedPairs, families: Families) -> str | None:
    """Return why a judge's self-preference cannot be measured, if so."""
    family = families.of_judges[judge]
    if judge not in shared.judges:
        return _ALONE
    if family is None:
        return _NO_FAMILY
    if all(families.of_judges[juror] == family for juror in shared.judges):
        return _ALL_JUDGES
    if judge in kin.judges and len(np.unique(_own(judge, kin, families))) > 1:
        return None
    if unknown := _without_family(shared, families):
        names = ", ".join(shared.entrants[n] for n in unknown)
        return (
            f"no family is known of {names}, which may be of its own; put the family into the name"
            " of the weights or of the entrant"
        )
    return _ALL_ENTRANTS


def _own(judge: str, shared: JudgedPairs, families: Families) -> Floats:
    """Return 1 where this judge saw a alone of its family, -1 where b alone, (n,)."""
    family = families.of_judges[judge]
    is_own = np.array([families.of_entrants[entrant] == family for entrant in shared.entrants])
    is_by = shared.judge == shared.judges.index(judge)
    more = is_own[shared.a].astype(np.float64) - is_own[shared.b]
    return np.where(is_by, more, 0.0)
