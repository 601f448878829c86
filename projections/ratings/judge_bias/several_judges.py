"""Biases that only several judges show: unequal skill, and self-preference."""

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from projections.intervals import Floats
from projections.ratings.bradley_terry.component import ELO
from projections.ratings.judge_bias.figures import Bounded, figure, missing
from projections.ratings.judge_bias.jury import JuryFit, fit_jury
from projections.ratings.judge_bias.pairs import JudgedPairs
from projections.results.judges import BiasRow

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
        found = [
            (match.start(), family)
            for family, pattern in _PATTERNS.items()
            for match in pattern.finditer(model)
        ]
        if found:
            return max(found)[1]
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
    found: dict[str, list[BiasRow]] = {judge: [] for judge in pairs.judges}
    skills = _skills(shared, (None if unknown else fit) or _fit(shared, []))
    for judge, skill in zip(shared.judges, skills, strict=True):
        found[judge].append(skill)
    bonuses = dict(zip(measured, fit.bonuses if fit else (), strict=False))
    for judge, why in reasons.items():
        family = families.of_judges[judge]
        if judge in bonuses:
            n_orders = 2 * int(np.count_nonzero(own[judge]))
            points, others = _in_points(bonuses[judge]), [pairs.entrants[n] for n in unknown]
            of = f"{family} (without {', '.join(others)}: no family known)" if others else family
            found[judge].append(figure("self-preference", points, n_orders, of=of))
        else:
            found[judge].append(missing("self-preference", why or _UNDETERMINED, of=family))
    return found


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
    return Bounded(*(None if each is None else ELO * each for each in log_odds))


def _why_not(judge: str, shared: JudgedPairs, kin: JudgedPairs, families: Families) -> str | None:
    """Return why a judge's self-preference cannot be measured, if so."""
    family = families.of_judges[judge]
    if judge not in shared.judges:
        return _ALONE
    if family is None:
        return _NO_FAMILY
    if all(families.of_judges[each] == family for each in shared.judges):
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
