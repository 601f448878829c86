"""Skills of judges and bonuses for their own family, fitted together."""

from dataclasses import replace
from math import log

import numpy as np
import pytest

from projections.battles.soft_scores import sigma
from projections.intervals import Floats
from projections.ratings.judge_bias import several_judges
from projections.ratings.judge_bias.pairs import JudgedPairs
from projections.ratings.judge_bias.several_judges import fit_jury
from tests.support.builders.juries import Juror, judged
from tests.support.statistics import holds

JURY = (Juror("owl"), Juror("human", skill=0.5), Juror("gpt", skill=1.5))


def no_bonus(pairs: JudgedPairs) -> Floats:
    """Return the columns of no bonus."""
    return np.zeros((len(pairs), 0))


def bonus_of_ann(pairs: JudgedPairs, judge: int = 0) -> Floats:
    """Return the column of a bonus that ann has before one judge."""
    more = (pairs.a == 0).astype(np.float64) - (pairs.b == 0)
    return np.where(pairs.judge == judge, more, 0.0)[:, None]


def shares(*taken: tuple[int, int]) -> JudgedPairs:
    """Return what two judges said of ann and bob on ten prompts.

    Args:
        taken: By judge, how many ann won in the first order and in the second.
    """
    rows = [
        (judge, prompt, float(prompt < first), float(prompt < second))
        for judge, (first, second) in enumerate(taken)
        for prompt in range(10)
    ]
    judge, prompt, forward, swapped = zip(*rows, strict=True)
    zeros = np.zeros(len(rows), dtype=np.intp)
    return JudgedPairs(
        ("ann", "bob"),
        ("owl", "human"),
        a=zeros,
        b=zeros + 1,
        judge=np.array(judge),
        prompt=np.array(prompt),
        pair=np.array(prompt),
        forward=np.array(forward),
        swapped=np.array(swapped),
        style={},
    )


def test_skill_is_how_much_further_apart_a_judge_sees_entrants() -> None:
    """The first gives ann 9 of 10, log odds log 9; the second 3 of 4, log odds log 3: half."""
    pairs = shares((9, 9), (8, 7))

    fit = fit_jury(pairs, no_bonus(pairs))

    assert fit is not None
    first, second = fit.skills
    assert first == (1.0, None, None)
    assert second.value == pytest.approx(log(3) / log(9), abs=1e-5)
    assert fit.bonuses == ()


@pytest.mark.no_cover
@pytest.mark.parametrize("seed", range(2))
def test_everybody_and_every_judge_took_what_is_expected(seed: int) -> None:
    """At the maximum: neither a bonus nor a skill could explain more."""
    pairs = judged(np.random.default_rng(seed), JURY, n_prompts=30)
    own = bonus_of_ann(pairs)

    fit = fit_jury(pairs, own)

    assert fit is not None
    skills = np.array([each.value for each in fit.skills])[pairs.judge]
    bonus = own[:, 0] * (fit.bonuses[0].value or 0.0)
    score = (pairs.forward + pairs.swapped) / 2
    theta = _strengths(pairs, skills, bonus)
    surprise = score - sigma(skills * (theta[pairs.a] - theta[pairs.b]) + bonus)
    assert own[:, 0] @ surprise == pytest.approx(0.0, abs=1e-4)
    gap = theta[pairs.a] - theta[pairs.b]
    by_judge = np.bincount(pairs.judge, surprise * gap)
    assert by_judge[1:].tolist() == pytest.approx([0.0, 0.0], abs=1e-4)


def _strengths(pairs: JudgedPairs, skills: Floats, bonus: Floats) -> Floats:
    """Find the strengths, given the rest, by small steps uphill."""
    theta, score = np.zeros(len(pairs.entrants)), (pairs.forward + pairs.swapped) / 2
    n = len(theta)
    for _ in range(1000):
        surprise = skills * (score - sigma(skills * (theta[pairs.a] - theta[pairs.b]) + bonus))
        took = np.bincount(pairs.a, surprise, n) - np.bincount(pairs.b, surprise, n)
        theta += 4 * took / len(pairs)
    return theta


@pytest.mark.no_cover
def test_planted_skills_and_bonuses_are_found() -> None:
    """In three of four intervals at least."""
    jurors = (Juror("owl", own=0.4), *JURY[1:])
    held = {"skill": 0, "bonus": 0}
    for seed in range(4):
        pairs = judged(np.random.default_rng(seed), jurors)
        fit = fit_jury(pairs, bonus_of_ann(pairs))
        assert fit is not None
        for name, found, true in (("skill", fit.skills[1], 0.5), ("bonus", fit.bonuses[0], 0.4)):
            held[name] += holds(found.low, true, found.high)

    assert min(held.values()) >= 3


def test_a_judge_that_guesses_has_no_skill() -> None:
    """Nor is it a judge of the opposite."""
    pairs = judged(np.random.default_rng(3), (Juror("owl"), Juror("human", skill=0.0)))

    fit = fit_jury(pairs, no_bonus(pairs))

    assert fit is not None
    _, low, high = fit.skills[1]
    assert high is not None
    assert holds(low, 0, high)
    assert high < 0.5


@pytest.mark.parametrize("score", [0.5, 1.0], ids=["level", "one ahead"])
def test_verdicts_that_all_agree_determine_nothing(score: float) -> None:
    """Level entrants look so to any skill, and who never lost cannot be compared."""
    pairs = judged(np.random.default_rng(4), JURY, n_prompts=6)
    same = np.full(len(pairs), score)

    assert fit_jury(replace(pairs, forward=same, swapped=same), no_bonus(pairs)) is None


def test_a_first_judge_that_sees_no_difference_is_no_measure_of_skill() -> None:
    """The other's skill would be infinite beside it."""
    pairs = shares((5, 5), (9, 9))

    assert fit_jury(pairs, no_bonus(pairs)) is None


def test_a_climb_that_does_not_arrive_is_no_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where patience ended would look like a maximum."""
    monkeypatch.setattr(several_judges, "_MOST_STEPS", 1)
    pairs = shares((9, 9), (8, 7))

    assert fit_jury(pairs, no_bonus(pairs)) is None


def test_one_prompt_determines_no_interval() -> None:
    """Prompts differ by nobody knows how much."""
    pairs = shares((9, 9), (8, 7))
    alone = replace(pairs, prompt=np.zeros(len(pairs), dtype=np.intp))

    assert fit_jury(alone, no_bonus(alone)) is None
