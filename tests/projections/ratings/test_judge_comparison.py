"""How far ratings move under another judge, on battles of planted strengths."""

from collections.abc import Sequence
from itertools import combinations
from statistics import NormalDist

import numpy as np
import pytest

from projections.ratings.bradley_terry.component import ELO
from projections.ratings.judge_comparison import (
    JudgeComparison,
    SharedBattles,
    agreement_with_people,
    compare,
    shared_battles,
)
from projections.reliability.agreement import VotesByAnnotator
from projections.results.judges import JudgeShiftRow
from projections.tournament.compared import IDENTICAL, ComparedBattle
from projections.tournament.settlement import settle
from tests.support.builders.events import known
from tests.support.builders.worlds import JURORS, TIE, A, B, court, everything, heard
from tests.support.statistics import holds

NAMES = ("amy", "kim", "lou", "zoe")
STRENGTHS = np.array([0.4, 0.1, -0.1, -0.4])
SHIFTS = np.array([0.3, -0.1, -0.1, -0.1])
BY_DAY, BY_NIGHT = 8, 100
_NORMAL = NormalDist()


def drawn(seed: int, shift: Sequence[float] | np.ndarray, n_prompts: int) -> SharedBattles:
    """Return what two judges find, of whom the second sees other strengths.

    What they say of a battle has the prompt in common, and most of the rest. Each judge by itself
    is Bradley-Terry's model.
    """
    rng = np.random.default_rng(seed)
    strengths = STRENGTHS, STRENGTHS + np.asarray(shift)
    battles = []
    for prompt in range(n_prompts):
        liking = rng.normal(size=len(NAMES))
        for i, j in combinations(range(len(NAMES)), 2):
            common, *own = rng.normal(size=3)
            both = [
                (0.3**0.5) * (liking[i] - liking[j]) / 2**0.5
                + (0.7**0.5) * (0.6**0.5 * common + 0.4**0.5 * each)
                for each in own
            ]
            is_a = [
                _NORMAL.cdf(z) < 1 / (1 + np.exp(of[j] - of[i]))
                for z, of in zip(both, strengths, strict=True)
            ]
            first, second = (battle(prompt, NAMES[i], NAMES[j], "ba"[int(each)]) for each in is_a)
            battles.append((first, second))
    return battles


def battle(prompt: int, a: str, b: str, status: str) -> ComparedBattle:
    """Return a battle with an outcome."""
    return ComparedBattle("utility", f"p{prompt}", prompt, a, b, status)


@pytest.mark.no_cover
@pytest.mark.parametrize("n", [BY_DAY, pytest.param(BY_NIGHT, marks=pytest.mark.nightly)])
def test_planted_shifts_are_within_their_intervals(n: int) -> None:
    """In 93 to 97 of 100 worlds, with 60 prompts each; by day in most of a few."""
    true = ELO * (SHIFTS - SHIFTS.mean())

    found = [compare("utility", drawn(seed, SHIFTS, 60)) for seed in range(n)]

    held = np.mean(
        [
            [
                holds(row.ci95_low, at, row.ci95_high)
                for row, at in zip(each.shifts, true, strict=True)
            ]
            for each in found
        ]
    )
    assert 0.93 <= held <= 0.97 if n == BY_NIGHT else held >= 0.8


@pytest.mark.no_cover
@pytest.mark.parametrize("n", [2, pytest.param(BY_NIGHT, marks=pytest.mark.nightly)])
def test_a_judge_that_differs_by_chance_alone_is_comparable(n: int) -> None:
    """In 95 of 100 worlds at least, if there are prompts enough: a judge asked twice is one."""
    found = [compare("utility", drawn(seed, np.zeros(4), 500)).verdict for seed in range(n)]

    assert found.count("comparable") >= 0.95 * n
    assert found.count("not comparable") == 0


def test_a_judge_is_comparable_with_itself() -> None:
    """Nothing moves, however few the prompts, from the six on that an interval takes."""
    pairs = [(first, first) for first, _ in drawn(1, SHIFTS, 12)]

    found = compare("utility", pairs)

    assert found.verdict == "comparable"
    assert [row[2] == row[3] for row in found.shifts] == [True] * 4
    assert {row[4:7] for row in found.shifts} == {(0.0, 0.0, 0.0)}
    assert [row.n_changed for row in found.flips] == [0] * 6
    assert found.changed == ()
    assert found.n_prompts_needed == 0


def test_a_judge_that_likes_another_entrant_is_not_comparable() -> None:
    """Amy gains three quarters of two logits, which is 260 Elo points."""
    found = compare("utility", drawn(1, [2.0, 0.0, 0.0, 0.0], 60))

    assert found.verdict == "not comparable"
    assert found.shifts[0].shift is not None
    assert found.shifts[0].shift > 150
    assert found.n_prompts_needed is None


def test_few_prompts_leave_it_open_and_say_how_many_would_do() -> None:
    """No shift was planted: with 20 prompts nobody can tell."""
    found = compare("utility", drawn(3, np.zeros(4), 20), margin=60)

    assert found.verdict == "not enough battles"
    assert found.n_prompts_needed is not None
    assert 20 < found.n_prompts_needed < 200


def test_five_prompts_have_no_interval() -> None:
    """And a reason in its place."""
    found = compare("utility", drawn(3, np.zeros(4), 5))

    assert found.verdict == "not enough battles"
    assert {row.ci95_low for row in found.shifts} == {None}
    assert {row.reason for row in found.shifts} == {"too few prompts, or one of them decides: 5"}
    assert found.n_prompts_needed is None


def test_an_entrant_that_one_judge_never_lets_lose_has_no_shift() -> None:
    """Its rating by that judge is infinite."""
    pairs = [
        (first, second._replace(status="a" if second.entrant_a == "amy" else second.status))
        for first, second in drawn(2, np.zeros(4), 30)
        if isinstance(second, ComparedBattle)
    ]

    found = compare("utility", pairs)

    assert found.shifts[0].shift is None
    assert found.shifts[0].rating_a is not None
    assert found.shifts[0].reason is not None
    assert found.shifts[0].reason.startswith("no finite rating by one of the judges")


def test_no_battle_in_common_is_not_enough() -> None:
    """As of a judge that was not asked yet."""
    found = compare("utility", [])

    assert (found.verdict, found.n_battles, found.shifts) == ("not enough battles", 0, ())


def test_what_flips_is_counted_by_pair_and_listed() -> None:
    """A tie beside a win is a difference, and no opposite; identical responses are not read."""
    said = [("a", "a"), ("a", "b"), ("a", "tie"), ("inconsistent", "b")]
    pairs = [
        (battle(n, "amy", "kim", one), battle(n, "amy", "kim", other))
        for n, (one, other) in enumerate(said)
    ]

    found = compare("utility", pairs)

    ((_, a, b, n, n_changed, n_opposite, *_),) = found.flips
    assert (a, b, n, n_changed, n_opposite) == ("amy", "kim", 4, 3, 1)
    assert [row[2:] for row in found.changed] == [
        ("p1", "amy", "kim", "amy", "kim"),
        ("p2", "amy", "kim", "amy", "tie"),
        ("p3", "amy", "kim", "inconsistent", "kim"),
    ]


def test_the_battles_of_two_judges_are_those_with_a_verdict_by_both() -> None:
    """Ann judged four pairs of a tournament, bob the first, the second and the fourth."""
    tournament = known(*heard(court(2), [A, B, TIE, A], [A, A, None, A]))
    ann, bob = (settle(tournament, everything(tournament), juror) for juror in JURORS[:2])

    shared = shared_battles(ann, bob)
    found = compare("factuality", shared)

    expected = [("a", "a"), ("b", "a"), ("a", "a")]
    assert [(one.status, other.status) for one, other in shared] == expected
    assert [row.id for row in found.changed] == [shared[1][0].battle_id]
    assert IDENTICAL not in {one.exact_status for one, _ in shared}


def agreed(comparison: SharedBattles, votes: VotesByAnnotator) -> tuple[float, ...]:
    """Return how far both judges agree with people."""
    found = agreement_with_people(comparison, votes)
    assert found is not None
    return found.n_votes, found.by_a, found.by_b, found.gain


def test_people_agree_more_with_one_of_the_judges() -> None:
    """A vote names entrants in its own order; contradicting itself or on one text it is none."""
    pairs = [
        (battle(n, "amy", "kim", "a"), battle(n, "amy", "kim", "b" if n < 4 else "a"))
        for n in range(8)
    ]
    pairs.append((battle(9, "amy", "kim", IDENTICAL), battle(9, "amy", "kim", IDENTICAL)))
    both = frozenset(("amy", "kim"))
    kim_won = ComparedBattle("votes", None, 0, "kim", "amy", "a")
    votes: VotesByAnnotator = {
        "ann": {(f"p{n}", both): kim_won for n in range(4)},
        "bob": {
            ("p5", both): kim_won._replace(status="b"),
            ("p6", both): kim_won._replace(status="inconsistent"),
            ("p9", both): kim_won,
        },
    }

    assert agreed(pairs, votes) == (5, 0.2, 1.0, 0.8)
    assert agreement_with_people(pairs, {}) is None


def verdict_of(*pairs: tuple[float | None, float | None]) -> JudgeComparison:
    """Return a comparison with these intervals."""
    rows = tuple(
        JudgeShiftRow("utility", "amy", 1000.0, 1000.0, 0.0, low, high, 9, None)
        for low, high in pairs
    )
    return JudgeComparison("utility", 30.0, 9, 9, rows, (), (), is_beyond=False)


@pytest.mark.parametrize(
    ("pairs", "verdict"),
    [
        ([(-30.0, 30.0), (0.0, 1.0)], "comparable"),
        ([(-10.0, 10.0), (None, None)], "not enough battles"),
        ([(-10.0, 31.0)], "not enough battles"),
        ([(-31.0, 10.0)], "not enough battles"),
    ],
)
def test_each_interval_has_to_lie_within_the_margin(
    pairs: list[tuple[float | None, float | None]], verdict: str
) -> None:
    """That a shift is not significant does not make it small."""
    assert verdict_of(*pairs).verdict == verdict
