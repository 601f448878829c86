"""Elo over random orders of play."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from ledger.events.ratings import EloParameters
from ledger.identity import EntrantId
from projections.elo import EloRatings, Game, _power_of_ten, rate
from tests.builders import valid
from tests.projections.strategies import QUICK, elo_parameters, games

GOLDEN = Path(__file__).parent.parent / "golden" / "ratings" / "six_games.json"
EXACT = 1e-9  # Elo points
AMY, BOB, ZOE = EntrantId("amy"), EntrantId("Bob"), EntrantId("zoe")


def by_entrant(ratings: EloRatings, values: NDArray[np.float64]) -> dict[EntrantId, float]:
    """Return a value of each entrant."""
    return dict(zip(ratings.entrants, values.tolist(), strict=True))


def played_one_by_one(
    games: Sequence[Game], parameters: EloParameters
) -> list[dict[EntrantId, float]]:
    """Rate in plain Python, a permutation and a game at a time, as the textbook does."""
    rng = np.random.default_rng(parameters.seed)
    seasons = []
    for _ in range(parameters.permutations):
        names = {name for game in games for name in (game.a, game.b)}
        ratings = dict.fromkeys(sorted(names), parameters.initial_rating)
        for n in rng.permutation(len(games)):
            a, b, score = games[n]
            expected = 1 / (1 + 10 ** ((ratings[b] - ratings[a]) / 400))
            ratings[a] += parameters.k * (score - expected)
            ratings[b] += parameters.k * ((1 - score) - (1 - expected))
        seasons.append(ratings)
    return seasons


def test_six_games_rate_as_in_the_customers_engine() -> None:
    """The customer's published ratings must be found again, to the last digit that it prints."""
    golden = json.loads(GOLDEN.read_text())
    parameters = valid(EloParameters, golden["parameters"])
    decisive = [
        Game(EntrantId(a), EntrantId(b), float(winner == a))
        for a, b, winner in golden["games"]
        if winner != "TIE"
    ]

    ratings = rate(decisive, parameters, k=parameters.k)

    assert by_entrant(ratings, ratings.mean()) == pytest.approx(golden["mean"], abs=EXACT)
    assert by_entrant(ratings, ratings.order_sem()) == pytest.approx(golden["sem"], abs=EXACT)
    assert ratings.traces[:2, 0] == pytest.approx(golden["trace_of_A_begins"], abs=EXACT)
    assert (ratings.n_games, ratings.traces.shape) == (5, (5, 3))


@QUICK
@given(games=games(), parameters=elo_parameters())
def test_ratings_equal_those_played_one_by_one(
    games: list[Game], parameters: EloParameters
) -> None:
    """All permutations run side by side for speed, which must not change what Elo means."""
    ratings = rate(games, parameters, k=parameters.k)

    seasons = played_one_by_one(games, parameters)
    assert len(seasons) == len(ratings.traces)
    for season, trace in zip(seasons, ratings.traces, strict=True):
        assert by_entrant(ratings, trace) == pytest.approx(season, abs=EXACT)


@QUICK
@given(games=games(), parameters=elo_parameters())
def test_the_sum_of_ratings_is_conserved(games: list[Game], parameters: EloParameters) -> None:
    """Points are won from an opponent; points out of nothing would be a wrong step."""
    ratings = rate(games, parameters, k=parameters.k)

    expected = len(ratings.entrants) * parameters.initial_rating
    assert ratings.traces.sum(axis=1) == pytest.approx(expected, abs=1e-8)


@QUICK
@given(games=games(), parameters=elo_parameters(), data=st.data())
def test_renaming_entrants_changes_no_rating(
    games: list[Game], parameters: EloParameters, data: st.DataObject
) -> None:
    """Entrants are sorted by id for output only: a name must be worth nothing."""
    before = rate(games, parameters, k=parameters.k)
    names = data.draw(st.permutations([EntrantId(f"n{n}") for n in range(len(before.entrants))]))
    renamed = dict(zip(before.entrants, names, strict=True))

    after = rate(
        [Game(renamed[a], renamed[b], score) for a, b, score in games], parameters, k=parameters.k
    )

    means, errors = by_entrant(after, after.mean()), by_entrant(after, after.order_sem())
    assert [means[renamed[name]] for name in before.entrants] == pytest.approx(
        before.mean().tolist(), abs=EXACT
    )
    assert [errors[renamed[name]] for name in before.entrants] == pytest.approx(
        before.order_sem().tolist(), abs=EXACT
    )


@QUICK
@given(games=games(), parameters=elo_parameters())
def test_who_is_called_a_changes_no_rating(games: list[Game], parameters: EloParameters) -> None:
    """The roster's order names the pair (a, b), and a user may write it in any order."""
    mirrored = [Game(game.b, game.a, 1 - game.score) for game in games]

    here = rate(games, parameters, k=parameters.k)
    there = rate(mirrored, parameters, k=parameters.k)

    assert here.entrants == there.entrants
    assert here.traces == pytest.approx(there.traces, abs=EXACT)


@QUICK
@given(games=games(), parameters=elo_parameters())
def test_the_same_seed_gives_the_same_ratings(games: list[Game], parameters: EloParameters) -> None:
    """A replay must find the published bytes again, so equal to a tolerance is not enough."""
    first = rate(games, parameters, k=parameters.k)
    second = rate(games, parameters, k=parameters.k)

    assert first.entrants == second.entrants
    assert first.traces.tobytes() == second.traces.tobytes()


def test_another_seed_plays_in_another_order() -> None:
    """The recorded seed would be worthless if the ratings did not depend on it."""
    games = [Game(AMY, ZOE, 1.0), Game(ZOE, BOB, 1.0), Game(BOB, AMY, 1.0)] * 3

    first = rate(games, EloParameters(permutations=3, seed=1), k=16)
    second = rate(games, EloParameters(permutations=3, seed=2), k=16)

    assert first.traces.tolist() != second.traces.tolist()


def test_a_win_among_equals_moves_half_of_k() -> None:
    """Worked by hand: the expected score is 1/2, so a step is 16 x (1 - 1/2) = 8."""
    ratings = rate([Game(ZOE, AMY, 1.0)], EloParameters(permutations=2), k=16)

    assert ratings.entrants == (AMY, ZOE)
    assert ratings.mean().tolist() == [1392.0, 1408.0]


def test_a_tie_draws_unequal_entrants_together() -> None:
    """A tie says that the better-rated entrant did worse than expected."""
    won = [Game(AMY, ZOE, 1.0)] * 4
    parameters = EloParameters(permutations=20)

    decisive = rate(won, parameters, k=16).mean()
    with_ties = rate([*won, *[Game(AMY, ZOE, 0.5)] * 4], parameters, k=16).mean()

    assert decisive[0] > with_ties[0] > 1400 > with_ties[1] > decisive[1]


def test_a_tie_among_equals_moves_nothing() -> None:
    """Two entrants that always tie are as good as each other."""
    ratings = rate([Game(AMY, ZOE, 0.5)] * 3, EloParameters(permutations=2), k=32)

    assert ratings.traces.tolist() == [[1400.0, 1400.0]] * 2


@QUICK
@given(games=games(), seed=st.integers(min_value=0, max_value=2**32))
def test_a_single_order_has_no_spread(games: list[Game], seed: int) -> None:
    """One season says nothing of other seasons; NaN here would spoil every JSON file."""
    ratings = rate(games, EloParameters(permutations=1, seed=seed), k=16)

    assert ratings.order_sem().tolist() == [0.0] * len(ratings.entrants)


def test_without_games_there_is_nobody_to_rate() -> None:
    """A tournament is looked at before its first verdict, and that is no error."""
    ratings = rate([], EloParameters(permutations=3), k=16)

    assert (ratings.entrants, ratings.n_games, ratings.traces.shape) == ((), 0, (3, 0))
    assert ratings.mean().tolist() == []
    assert ratings.order_sem().tolist() == []


def test_ratings_have_the_same_bits_on_a_lesser_processor() -> None:
    """NumPy's own power differs in the last bit there, and a replay would cry forgery."""
    code = (
        "from ledger.events.ratings import EloParameters\n"
        "from projections.elo import Game, rate\n"
        "games = [Game(f'e{n % 5}', f'e{n % 7 + 5}', (n * 7 % 3) / 2) for n in range(400)]\n"
        "print(rate(games, EloParameters(permutations=20), k=32.0).traces.tobytes().hex())\n"
    )

    def traces(**environment: str) -> str:
        command = [sys.executable, "-W", "ignore", "-c", code]
        given = {**os.environ, **environment}
        return subprocess.run(command, env=given, capture_output=True, text=True, check=True).stdout

    assert traces() == traces(NPY_DISABLE_CPU_FEATURES="X86_V4 AVX512_ICL AVX512_SPR")


@given(exponent=st.floats(min_value=-10, max_value=10))
def test_the_power_of_ten_is_right_to_a_part_in_ten_to_the_fourteen(exponent: float) -> None:
    """It stands in for NumPy's, so it must be as good."""
    (power,) = _power_of_ten(np.array([exponent]))

    assert power == pytest.approx(10.0**exponent, rel=1e-14)
