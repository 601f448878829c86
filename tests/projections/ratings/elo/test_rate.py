"""Elo over random orders of play."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from numpy.typing import NDArray

from ledger.events.ratings import EloParameters
from projections.ratings.elo.rate import EloRatings, rate
from tests.support.builders.battles import Battle, in_columns
from tests.support.builders.events import valid
from tests.support.strategies.battles import SOFT, WHOLE, any_battles
from tests.support.strategies.tournaments import elo_parameters

GOLDEN = Path(__file__).parents[3] / "golden" / "ratings" / "six_games.json"
EXACT = 1e-9  # Elo points
KS = (1.0, 16.0, 100.0)


def played() -> SearchStrategy[list[Battle]]:
    """Return battles as Elo plays them: each once; some of them decided, tied, or in between."""
    drawn = any_battles(scores=WHOLE) | any_battles(scores=SOFT)
    return drawn.map(lambda rows: [row._replace(weight=1.0) for row in rows])


def rated(rows: Sequence[Battle], parameters: EloParameters, k: float | None = None) -> EloRatings:
    """Return the ratings under one K."""
    k = parameters.k if k is None else k
    return rate(in_columns(rows), parameters, [k])[k]


def won(*pairs: str) -> list[Battle]:
    """Return a battle for each pair, as "AB", which its first letter won."""
    return [Battle(pair[0], pair[1], 1.0, n) for n, pair in enumerate(pairs)]


def by_entrant(ratings: EloRatings, values: NDArray[np.float64]) -> dict[str, float]:
    """Return a value of each entrant."""
    return dict(zip(ratings.entrants, values.tolist(), strict=True))


def played_one_by_one(rows: Sequence[Battle], parameters: EloParameters) -> list[dict[str, float]]:
    """Rate in plain Python, a permutation and a battle at a time, as the textbook does."""
    rng = np.random.default_rng(parameters.seed)
    seasons = []
    for _ in range(parameters.permutations):
        names = {name for row in rows for name in (row.a, row.b)}
        ratings = dict.fromkeys(sorted(names), parameters.initial_rating)
        for n in rng.permutation(len(rows)):
            a, b, score = rows[n][:3]
            expected = 1 / (1 + 10 ** min((ratings[b] - ratings[a]) / 400, 300))
            ratings[a] += parameters.k * (score - expected)
            ratings[b] += parameters.k * ((1 - score) - (1 - expected))
        seasons.append(ratings)
    return seasons


def test_six_games_rate_as_in_the_customers_engine() -> None:
    """The customer's published ratings must be found again, to the last digit that it prints."""
    golden = json.loads(GOLDEN.read_text())
    parameters = valid(EloParameters, golden["parameters"])
    decisive = [
        Battle(a, b, float(winner == a), n)
        for n, (a, b, winner) in enumerate(golden["games"])
        if winner != "TIE"
    ]

    ratings = rated(decisive, parameters)

    assert by_entrant(ratings, ratings.mean()) == pytest.approx(golden["mean"], abs=EXACT)
    assert by_entrant(ratings, ratings.order_sem()) == pytest.approx(golden["sem"], abs=EXACT)
    assert ratings.traces[:2, 0] == pytest.approx(golden["trace_of_A_begins"], abs=EXACT)
    assert (ratings.n_battles, ratings.traces.shape) == (5, (5, 3))


@given(rows=played(), parameters=elo_parameters())
def test_ratings_equal_those_played_one_by_one(
    rows: list[Battle], parameters: EloParameters
) -> None:
    """All permutations run side by side for speed, which must not change what Elo means."""
    ratings = rated(rows, parameters)

    seasons = played_one_by_one(rows, parameters)
    assert len(seasons) == len(ratings.traces)
    for season, trace in zip(seasons, ratings.traces, strict=True):
        assert by_entrant(ratings, trace) == pytest.approx(season, abs=EXACT)


@given(rows=played(), parameters=elo_parameters())
def test_every_k_is_rated_as_if_it_were_alone(
    rows: list[Battle], parameters: EloParameters
) -> None:
    """A sweep says what K does: the same bits, whatever other K stand beside."""
    together = rate(in_columns(rows), parameters, KS)

    assert list(together) == list(KS)
    for k in KS:
        assert together[k].traces.tobytes() == rated(rows, parameters, k).traces.tobytes()


@given(rows=played(), parameters=elo_parameters(), data=st.data())
def test_renaming_entrants_changes_no_rating(
    rows: list[Battle], parameters: EloParameters, data: st.DataObject
) -> None:
    """Entrants are sorted by id for output only: a name must be worth nothing."""
    before = rated(rows, parameters)
    names = data.draw(st.permutations([f"n{n}" for n in range(len(before.entrants))]))
    renamed = dict(zip(before.entrants, names, strict=True))

    after = rated([row._replace(a=renamed[row.a], b=renamed[row.b]) for row in rows], parameters)

    for name in before.entrants:
        trace = after.traces[:, after.entrants.index(renamed[name])]
        assert trace.tobytes() == before.traces[:, before.entrants.index(name)].tobytes()


def test_another_seed_plays_in_another_order() -> None:
    """The recorded seed would be worthless if the ratings did not depend on it."""
    rows = won(*["AZ", "ZB", "BA"] * 3)

    first = rated(rows, EloParameters(permutations=3, seed=1))
    second = rated(rows, EloParameters(permutations=3, seed=2))

    assert first.traces.tolist() != second.traces.tolist()


def test_a_k_without_measure_still_gives_ratings() -> None:
    """Whoever leads by a hundred thousand points is expected to win, and nothing overflows."""
    rows, parameters = won(*["AB", "BC"] * 20, "CA"), EloParameters(k=1e6, permutations=3)

    ratings = rated(rows, parameters)

    seasons = [[*season.values()] for season in played_one_by_one(rows, parameters)]
    assert ratings.traces == pytest.approx(np.array(seasons), abs=1e-12 * parameters.k)


def test_a_single_order_has_no_spread() -> None:
    """One season says nothing of other seasons; NaN here would spoil every JSON file."""
    ratings = rated(won("AB", "BC"), EloParameters(permutations=1))

    assert ratings.order_sem().tolist() == [0.0] * 3


def test_without_battles_there_is_nobody_to_rate() -> None:
    """A tournament is looked at before its first verdict, and that is no error."""
    ratings = rated([], EloParameters(permutations=3))

    assert (ratings.entrants, ratings.n_battles, ratings.traces.shape) == ((), 0, (3, 0))
    assert ratings.mean().tolist() == []
    assert ratings.order_sem().tolist() == []
