"""How far Elo ratings would move had other prompts been asked."""

import dataclasses
from typing import Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ledger.events.ratings import EloParameters
from projections.battles.columns import Battles
from projections.ratings.elo.rate import rate
from projections.ratings.elo.uncertainty import EloBootstrap, bootstrap, uncertainty
from tests.support.builders.battles import Battle, in_columns, tournaments
from tests.support.strategies.battles import comparable

FEW: Final = EloParameters(permutations=10, bootstraps=20)


[BATTLES] = tournaments(1, n_prompts=30, own=1.5)


def errors(battles: Battles, elo: EloParameters, k: float = 16.0) -> list[float]:
    """Return the standard errors."""
    found = bootstrap(battles, elo, k=k)
    assert found is not None
    return [*map(float, found.standard_error)]


@pytest.mark.no_cover
def test_more_seasons_of_noise_do_not_widen_the_interval() -> None:
    """At K = 100 the order decides more than the prompts do; the interval is about prompts."""
    elo = replace(FEW, bootstraps=300)

    usual, noisy = errors(BATTLES, elo, 16.0), errors(BATTLES, elo, 100.0)

    assert max(noisy) < 1.5 * max(usual)


@given(rows=comparable(), seed=st.integers(0, 2**32))
def test_the_same_seed_gives_the_same_interval(rows: list[Battle], seed: int) -> None:
    """It is published, and a replay must find its bytes again."""
    battles = in_columns(row._replace(weight=1.0) for row in rows)
    elo = replace(FEW, seed=seed)

    first, second = (bootstrap(battles, elo, k=16.0) for _ in range(2))

    assert first is not None
    assert second is not None
    assert first.standard_error.tobytes() == second.standard_error.tobytes()


@given(rows=comparable(), data=st.data())
def test_a_name_changes_no_interval(rows: list[Battle], data: st.DataObject) -> None:
    """Neither an entrant's nor a prompt's."""
    battles = in_columns(row._replace(weight=1.0) for row in rows)
    turned = data.draw(st.permutations(range(len(battles.entrants))))
    places = np.array(turned)
    renamed = Battles.by_score(
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
    assert bootstrap(in_columns(rows), replace(FEW, bootstraps=bootstraps), k=16.0) is None


def test_an_entrant_that_won_all_has_no_interval() -> None:
    """Every resample is the same, which says nothing of other prompts."""
    rows = [Battle("A", "B", 1.0, prompt) for prompt in range(5)]

    assert np.isnan(errors(in_columns(rows), FEW)).all()


def test_an_interval_is_students_over_the_prompts_that_an_entrant_met_on() -> None:
    """Worked by hand: t is 1.977 on 143 prompts and 2.571 on 6; on 5 there is no interval."""
    found = EloBootstrap(400, 143, np.array([10.0, np.nan, 10.0, 10.0]))

    interval = found.interval(np.full(4, 1500.0), np.array([143, 143, 6, 5]))

    assert interval[0] == pytest.approx([1480.23, 1519.77], abs=0.01)
    assert interval[2] == pytest.approx([1474.29, 1525.71], abs=0.01)
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
    usual, many = (computed(BATTLES, FEW, most) for most in (len(BATTLES), len(BATTLES) - 1))

    again = bootstrap(BATTLES, FEW, k=FEW.k, n_prompts=40)
    assert usual is not None
    assert many is not None
    assert again is not None
    assert usual.standard_error.tobytes() == again.standard_error.tobytes()
    assert (usual.n_resamples, many.n_resamples) == (FEW.bootstraps, 0)
    assert (usual.n_prompts, many.n_prompts) == (40, 40)
    assert (np.round(many.standard_error, 6) == many.standard_error).all()


def test_intervals_are_wider_where_the_battles_were_looked_at() -> None:
    """As much as the battles say, however the error is found."""
    widened = dataclasses.replace(BATTLES, widening=1.04)

    for most in (len(BATTLES), len(BATTLES) - 1):
        usual, wider = computed(BATTLES, FEW, most), computed(widened, FEW, most)
        assert usual is not None
        assert wider is not None
        assert wider.standard_error == pytest.approx(1.04 * usual.standard_error)


def test_very_many_battles_that_cannot_vary_have_no_interval_either() -> None:
    """Neither did anybody ask for resamples, nor does one prompt vary."""
    assert computed(BATTLES, replace(FEW, bootstraps=0), 1) is None
    assert computed(BATTLES.take(BATTLES.cluster == 0), FEW, 1) is None
