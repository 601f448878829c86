"""Elo over random orders of play, and how far it would move had other prompts been asked."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from msgspec.structs import replace
from numpy.typing import NDArray

from ledger.events.ratings import EloParameters
from projections.battles.columns import Battle, Battles, battles_of
from projections.ratings import elo
from projections.ratings.elo import EloBootstrap, EloRatings, bootstrap, rate, uncertainty
from tests.support.builders.events import valid
from tests.support.strategies.battles import SOFT, WHOLE, any_battles, comparable
from tests.support.strategies.tournaments import elo_parameters

GOLDEN = Path(__file__).parents[2] / "golden" / "ratings" / "six_games.json"
EXACT = 1e-9  # Elo points
KS = (1.0, 16.0, 100.0)


def played() -> SearchStrategy[list[Battle]]:
    """Return battles as Elo plays them: each once; some of them decided, tied, or in between."""
    drawn = any_battles(scores=WHOLE) | any_battles(scores=SOFT)
    return drawn.map(lambda rows: [row._replace(weight=1.0) for row in rows])


def rated(rows: Sequence[Battle], parameters: EloParameters, k: float | None = None) -> EloRatings:
    """Return the ratings under one K."""
    k = parameters.k if k is None else k
    return elo.rate(battles_of(rows), parameters, [k])[k]


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
    together = elo.rate(battles_of(rows), parameters, KS)

    assert list(together) == list(KS)
    for k in KS:
        assert together[k].traces.tobytes() == rated(rows, parameters, k).traces.tobytes()


def test_orders_that_do_not_fit_at_once_are_the_same_orders() -> None:
    """Memory bounds how many orders are held, and must not decide about ratings."""
    rows, parameters = won(*["AB", "BC", "CA"] * 4), EloParameters(permutations=7)

    whole = elo.rate(battles_of(rows), parameters, KS)
    in_parts = elo.rate(battles_of(rows), parameters, KS, most_bytes=3 * len(rows))

    assert whole[16.0].traces.tobytes() == in_parts[16.0].traces.tobytes()


@given(rows=played(), parameters=elo_parameters())
def test_the_sum_of_ratings_is_conserved(rows: list[Battle], parameters: EloParameters) -> None:
    """Points are won from an opponent; points out of nothing would be a wrong step."""
    ratings = rated(rows, parameters)

    expected = len(ratings.entrants) * parameters.initial_rating
    assert ratings.traces.sum(axis=1) == pytest.approx(expected, abs=1e-8)


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


@given(rows=played(), parameters=elo_parameters())
def test_who_is_called_a_changes_no_rating(rows: list[Battle], parameters: EloParameters) -> None:
    """The roster's order names the pair (a, b), and a user may write it in any order."""
    mirrored = [row._replace(a=row.b, b=row.a, score=1 - row.score) for row in rows]

    here, there = rated(rows, parameters), rated(mirrored, parameters)

    assert here.entrants == there.entrants
    assert here.traces == pytest.approx(there.traces, abs=EXACT)


@given(rows=played(), parameters=elo_parameters())
def test_the_same_seed_gives_the_same_ratings(
    rows: list[Battle], parameters: EloParameters
) -> None:
    """A replay must find the published bytes again, so equal to a tolerance is not enough."""
    first, second = rated(rows, parameters), rated(rows, parameters)

    assert first.entrants == second.entrants
    assert first.traces.tobytes() == second.traces.tobytes()


def test_another_seed_plays_in_another_order() -> None:
    """The recorded seed would be worthless if the ratings did not depend on it."""
    rows = won(*["AZ", "ZB", "BA"] * 3)

    first = rated(rows, EloParameters(permutations=3, seed=1))
    second = rated(rows, EloParameters(permutations=3, seed=2))

    assert first.traces.tolist() != second.traces.tolist()


def test_a_win_among_equals_moves_half_of_k() -> None:
    """Worked by hand: the expected score is 1/2, so a step is 16 x (1 - 1/2) = 8."""
    ratings = rated(won("ZA"), EloParameters(permutations=2))

    assert ratings.entrants == ("A", "Z")
    assert ratings.mean() == pytest.approx([1392.0, 1408.0], abs=EXACT)


def test_a_tie_draws_unequal_entrants_together() -> None:
    """A tie says that the better-rated entrant did worse than expected."""
    rows, parameters = won(*["AZ"] * 4), EloParameters(permutations=20)

    decisive = rated(rows, parameters).mean()
    with_ties = rated([*rows, *[Battle("A", "Z", 0.5, "tie")] * 4], parameters).mean()

    assert decisive[0] > with_ties[0] > 1400 > with_ties[1] > decisive[1]


def test_a_tie_among_equals_moves_nothing() -> None:
    """Two entrants that always tie are as good as each other."""
    ratings = rated([Battle("A", "Z", 0.5, 1)] * 3, EloParameters(permutations=2), k=32.0)

    assert ratings.traces.tolist() == [[1400.0, 1400.0]] * 2


def test_a_k_without_measure_still_gives_ratings() -> None:
    """Whoever leads by a hundred thousand points is expected to win, and nothing overflows."""
    rows, parameters = won(*["AB", "BC"] * 20, "CA"), EloParameters(k=1e6, permutations=3)

    ratings = rated(rows, parameters)

    seasons = [[*season.values()] for season in played_one_by_one(rows, parameters)]
    assert ratings.traces == pytest.approx(np.array(seasons), rel=1e-12)


@given(rows=played(), seed=st.integers(min_value=0, max_value=2**32))
def test_a_single_order_has_no_spread(rows: list[Battle], seed: int) -> None:
    """One season says nothing of other seasons; NaN here would spoil every JSON file."""
    ratings = rated(rows, EloParameters(permutations=1, seed=seed))

    assert ratings.order_sem().tolist() == [0.0] * len(ratings.entrants)


def test_without_battles_there_is_nobody_to_rate() -> None:
    """A tournament is looked at before its first verdict, and that is no error."""
    ratings = rated([], EloParameters(permutations=3))

    assert (ratings.entrants, ratings.n_battles, ratings.traces.shape) == ((), 0, (3, 0))
    assert ratings.mean().tolist() == []
    assert ratings.order_sem().tolist() == []


def test_ratings_have_the_same_bits_on_a_lesser_processor() -> None:
    """NumPy's own exponential differs in the last bit there, and a replay would cry forgery."""
    code = (
        "from ledger.events.ratings import EloParameters\n"
        "from projections.battles.columns import Battle, battles_of\n"
        "from projections.ratings.elo import rate\n"
        "from projections.ratings.elo import bootstrap, uncertainty\n"
        "scores = [(n * 7 % 3) / 2 for n in range(400)]\n"
        "rows = [Battle(f'e{n % 5}', f'e{n % 7 + 5}', s, n // 4) for n, s in enumerate(scores)]\n"
        "elo = EloParameters(permutations=20, bootstraps=20)\n"
        "rated = rate(battles_of(rows), elo, [elo.k])[elo.k]\n"
        "computed = uncertainty(battles_of(rows), rated, elo, most_resampled=0)\n"
        "print(computed.standard_error.tobytes().hex())\n"
        "print(rate(battles_of(rows), elo, [32.0])[32.0].traces.tobytes().hex())\n"
        "print(bootstrap(battles_of(rows), elo, k=32.0).standard_error.tobytes().hex())\n"
    )

    def bits(**environment: str) -> str:
        command = [sys.executable, "-W", "ignore", "-c", code]
        given = {**os.environ, **environment}
        return subprocess.run(command, env=given, capture_output=True, text=True, check=True).stdout

    assert bits() == bits(NPY_DISABLE_CPU_FEATURES="X86_V4 AVX512_ICL AVX512_SPR")


FEW: Final = EloParameters(permutations=10, bootstraps=20)
PAIRS: Final = np.array([*combinations(range(4), 2)]).T
STRENGTHS: Final = np.array([0.6, 0.2, -0.2, -0.6])
OWN: Final = 1.5  # standard deviation of an answer's own strength, on its prompt


def tournament(rng: np.random.Generator, n_prompts: int) -> Battles:
    """Return the battles of all pairs of four entrants on prompts with minds of their own."""
    own = STRENGTHS + rng.normal(scale=OWN, size=(n_prompts, 4))
    a, b = (np.tile(side, n_prompts) for side in PAIRS)
    prompt = np.repeat(np.arange(n_prompts), 6)
    chance = 1 / (1 + np.exp(own[prompt, b] - own[prompt, a]))
    score = (rng.random(len(a)) < chance).astype(np.float64)
    return Battles(tuple("abcd"), a, b, score, prompt, np.ones(len(a)))


def told_four_times(battles: Battles, prompt: NDArray[np.intp]) -> Battles:
    """Return the battles four times over, on these prompts."""
    a, b = (np.tile(side, 4) for side in (battles.a, battles.b))
    return Battles(battles.entrants, a, b, np.tile(battles.score, 4), prompt, np.ones(len(a)))


def errors(battles: Battles, elo: EloParameters, k: float = 16.0) -> list[float]:
    """Return the standard errors."""
    found = bootstrap(battles, elo, k=k)
    assert found is not None
    return [*map(float, found.standard_error)]


@pytest.mark.nightly
def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    """95 % of them, to what 100 tournaments can tell; the spread over orders holds it rarely."""
    elo, rng = replace(FEW, permutations=60, bootstraps=60), np.random.default_rng(2026)
    drawn = [tournament(rng, 60) for _ in range(100)]

    ratings = [rate(battles, elo, [16.0])[16.0] for battles in drawn]
    spread = np.array([errors(battles, elo) for battles in drawn])

    means = np.array([each.mean() for each in ratings])
    off, sem = np.abs(means - means.mean(axis=0)), np.array([each.order_sem() for each in ratings])
    assert 0.91 <= (off <= 1.96 * spread).mean() <= 0.98
    assert (off <= 1.96 * sem).mean() < 0.5


def test_more_seasons_of_noise_do_not_widen_the_interval() -> None:
    """At K = 100 the order decides more than the prompts do; the interval is about prompts."""
    battles, elo = tournament(np.random.default_rng(7), 30), replace(FEW, bootstraps=300)

    usual, noisy = errors(battles, elo, 16.0), errors(battles, elo, 100.0)

    assert max(noisy) < 1.5 * max(usual)


def test_battles_of_one_prompt_are_no_further_evidence() -> None:
    """Each battle told four times is the same prompts again; told of new prompts it is more."""
    once, elo = tournament(np.random.default_rng(7), 30), replace(FEW, bootstraps=100)
    prompt = np.arange(4 * len(once)) // 6  # a round robin on each

    same, new = told_four_times(once, prompt % 30), told_four_times(once, prompt)

    ratio = np.array(errors(same, elo)) / np.array(errors(new, elo))
    assert ratio == pytest.approx([2.0] * 4, rel=0.3)


@given(rows=comparable(), seed=st.integers(0, 2**32))
def test_the_same_seed_gives_the_same_interval(rows: list[Battle], seed: int) -> None:
    """It is published, and a replay must find its bytes again, however much memory there is."""
    battles = battles_of(row._replace(weight=1.0) for row in rows)
    elo = replace(FEW, seed=seed)

    whole = bootstrap(battles, elo, k=16.0)
    in_parts = bootstrap(battles, elo, k=16.0, most_bytes=100 * len(battles))

    assert whole is not None
    assert in_parts is not None
    assert whole.standard_error.tobytes() == in_parts.standard_error.tobytes()


def test_a_resample_does_not_depend_on_those_beside_it() -> None:
    """Where one prompt has nearly all battles, resamples without it are far shorter."""
    many = [Battle("A", "B", float(n % 3 > 0), "long") for n in range(40)]
    few = [Battle("B", "A", 1.0, "short"), Battle("A", "B", 1.0, "shorter")]
    battles = battles_of([*many, *few])

    together = bootstrap(battles, FEW, k=16.0)
    alone = bootstrap(battles, FEW, k=16.0, most_bytes=1)

    assert together is not None
    assert alone is not None
    assert together.standard_error.tobytes() == alone.standard_error.tobytes()


@given(rows=comparable(), data=st.data())
def test_a_name_changes_no_interval(rows: list[Battle], data: st.DataObject) -> None:
    """Neither an entrant's nor a prompt's."""
    battles = battles_of(row._replace(weight=1.0) for row in rows)
    turned = data.draw(st.permutations(range(len(battles.entrants))))
    places = np.array(turned)
    renamed = Battles(
        battles.entrants,
        places[battles.a],
        places[battles.b],
        battles.score,
        battles.cluster * 3,
        battles.weight,
    )

    before, after = errors(battles, FEW), errors(renamed, FEW)

    assert [after[place] for place in turned] == pytest.approx(before, nan_ok=True)


@pytest.mark.parametrize(
    ("rows", "bootstraps"),
    [
        ([], 20),
        ([Battle("A", "B", 1.0, "p"), Battle("B", "A", 1.0, "p")], 20),
        ([Battle("A", "B", 1.0, "p"), Battle("B", "A", 1.0, "q")], 0),
        ([Battle("A", "B", 1.0, "p"), Battle("B", "A", 1.0, "q")], 1),
    ],
)
def test_where_nothing_can_vary_there_is_no_interval(rows: list[Battle], bootstraps: int) -> None:
    """One prompt, or one resample, would give an interval of no width: certainty."""
    assert bootstrap(battles_of(rows), replace(FEW, bootstraps=bootstraps), k=16.0) is None


def test_an_entrant_that_won_all_has_no_interval() -> None:
    """Every resample is the same, which says nothing of other prompts."""
    rows = [Battle("A", "B", 1.0, prompt) for prompt in range(5)]

    assert np.isnan(errors(battles_of(rows), FEW)).all()


def test_an_interval_is_students_over_the_prompts_that_an_entrant_met_on() -> None:
    """Worked by hand: t is 1.977 on 143 prompts and 2.776 on 5; on 4 there is no interval."""
    found = EloBootstrap(400, 143, np.array([10.0, np.nan, 10.0, 10.0]))

    interval = found.interval(np.full(4, 1500.0), np.array([143, 143, 5, 4]))

    assert interval[0] == pytest.approx([1480.23, 1519.77], abs=0.01)
    assert interval[2] == pytest.approx([1472.24, 1527.76], abs=0.01)
    assert np.isnan(interval[[1, 3]]).all()


def test_an_interval_says_its_kind_to_people_and_machines() -> None:
    """An interval without its kind cannot be compared with another."""
    found = EloBootstrap(400, 143, np.array([10.0]))

    assert found.sentence() == "95 % interval by 400 resamples of 143 prompts"
    assert found.fields() == {
        "kind": "bootstrap",
        "unit": "prompts",
        "level": 0.95,
        "n_resamples": 400,
        "n_prompts": 143,
    }


def test_an_interval_of_very_many_battles_says_that_nothing_was_resampled() -> None:
    """Whoever reads of 400 resamples would look for their seed."""
    found = EloBootstrap(0, 31_847, np.array([10.0]))

    assert found.sentence() == "95 % interval by the influence of each of 31847 prompts"
    assert found.fields()["kind"] == "infinitesimal jackknife"


def computed(battles: Battles, elo: EloParameters, most_resampled: int) -> EloBootstrap | None:
    """Return the uncertainty of ratings."""
    rated = rate(battles, elo, [elo.k])[elo.k]
    return uncertainty(battles, rated, elo, n_prompts=40, most_resampled=most_resampled)


def test_only_more_battles_than_are_resampled_are_computed() -> None:
    """What was published of fewer must be found again, to the last bit."""
    battles = tournament(np.random.default_rng(7), 30)

    usual, many = (computed(battles, FEW, most) for most in (len(battles), len(battles) - 1))

    again = bootstrap(battles, FEW, k=FEW.k, n_prompts=40)
    assert usual is not None
    assert many is not None
    assert again is not None
    assert usual.standard_error.tobytes() == again.standard_error.tobytes()
    assert (usual.n_resamples, many.n_resamples) == (FEW.bootstraps, 0)
    assert (usual.n_prompts, many.n_prompts) == (40, 40)
    assert (np.round(many.standard_error, 6) == many.standard_error).all()


def test_very_many_battles_that_cannot_vary_have_no_interval_either() -> None:
    """Neither did anybody ask for resamples, nor does one prompt vary."""
    battles = tournament(np.random.default_rng(7), 30)

    assert computed(battles, replace(FEW, bootstraps=0), 1) is None
    assert computed(battles.take(battles.cluster == 0), FEW, 1) is None
