"""How ratings answer to a prompt: the standard errors of the bootstrap, without resampling."""

import numpy as np
import pytest

from ledger.events.ratings import EloParameters
from projections.battles.columns import Battles
from projections.intervals import Floats
from projections.ratings.elo.rate import n_remembered, rate
from projections.ratings.elo.season import outcomes_of, play
from projections.ratings.elo.uncertainty import bootstrap, variances
from tests.support.builders.battles import Battle, draw_tournaments, in_columns


def errors(battles: Battles, k: float, n_prompts: int | None = None) -> Floats:
    """Return standard errors, computed."""
    rated = rate(battles, EloParameters(permutations=100), [k])[k]
    n = n_prompts or len(np.unique(battles.cluster))
    return np.sqrt(variances(battles, rated.traces, k=k, n_prompts=n))


@pytest.mark.no_cover
@pytest.mark.parametrize(
    "k", [*(pytest.param(k, marks=pytest.mark.nightly) for k in (0.5, 4.0)), 32.0]
)
def test_the_bootstrap_finds_the_same(k: float) -> None:
    """Before ratings have settled, as under a small K, and where they scatter, as under a large."""
    sets = [*draw_tournaments(4, n_prompts=150)]
    elo = EloParameters(bootstraps=300)

    resampled = [bootstrap(each, elo, k=k) for each in sets]

    found = [each.standard_error for each in resampled if each is not None]
    ratio = np.array([errors(each, k) for each in sets]) / np.array(found)
    assert ratio.mean() == pytest.approx(1.0, abs=0.03)  # 1,200 resamples in all: +- 2 %
    assert ratio.mean(axis=0) == pytest.approx(1.0, abs=0.06)


def test_a_rating_that_has_just_begun_moves_by_k_for_each_win() -> None:
    """By hand: nothing decays yet, so it is K times the error of the number of wins."""
    battles = in_columns(Battle("A", "B", float(n < 60), n) for n in range(100))
    wins = np.sqrt(100 * 100 / 99 * 0.6 * 0.4)

    assert errors(battles, 1e-4) == pytest.approx([1e-4 * wins] * 2, rel=1e-4)


def test_prompts_on_which_all_tied_count() -> None:
    """Ties are dropped: another bank would have more such prompts, or fewer."""
    battles = in_columns(Battle("A", "B", 1.0, n) for n in range(50))

    alone, beside = errors(battles, 16.0), errors(battles, 16.0, n_prompts=100)

    assert alone == pytest.approx([0.0, 0.0], abs=1e-9)
    assert (beside > 1.0).all()


def test_groups_that_never_met_do_not_move_each_other() -> None:
    """Nothing ties their ratings, and no mode between them decays."""
    rows = [Battle("A", "B", float(n % 3 > 0), n) for n in range(60)]
    other = [Battle("C", "D", float(n % 2), 60 + n) for n in range(20)]

    both, alone = errors(in_columns([*rows, *other]), 16.0), errors(in_columns(rows), 16.0, 80)

    assert both[:2] == pytest.approx(alone, rel=0.02)


@pytest.mark.no_cover
def test_ratings_end_where_they_do_though_the_beginning_was_left_out() -> None:
    """A tenth of the battles decides to the sixth digit; nothing is lost but time."""
    k, [battles] = 16.0, draw_tournaments(1, n_prompts=1_200)
    (outcomes, numbers), rng = outcomes_of(battles), np.random.default_rng(0)
    orders = np.array([rng.permutation(numbers) for _ in range(3)])
    length = n_remembered(battles, k)

    whole, late = (play(outcomes, orders[:, -n:], ks=[k]) for n in (len(battles), length))

    assert 0 < length < len(battles) / 3
    assert late == pytest.approx(whole, abs=1e-6)
    assert (late != whole).any()


def test_every_k_is_rated_as_if_it_were_alone_though_each_remembers_as_much_as_it_does() -> None:
    """The same battles end an order, however many are drawn: else K would not be what differs."""
    [battles] = draw_tournaments(1, n_prompts=1_700)
    elo, ks = EloParameters(permutations=2), (16.0, 32.0, 64.0)

    together = rate(battles, elo, ks, most_replayed=0)

    for k in ks:
        [alone] = rate(battles, elo, [k], most_replayed=0).values()
        assert alone.traces.tobytes() == together[k].traces.tobytes()


@pytest.mark.nightly
def test_the_ends_of_orders_are_as_random_as_whole_orders() -> None:
    """They are other orders, and the ratings the same but for that."""
    [battles] = draw_tournaments(1, n_prompts=1_500)

    whole, late = (
        rate(battles, EloParameters(), [16.0], most_replayed=n)[16.0] for n in (10**6, 0)
    )

    error = np.hypot(whole.order_sem(), late.order_sem())
    assert np.abs(whole.mean() - late.mean()).max() < 3 * error.min()
    assert late.order_sem() == pytest.approx(whole.order_sem(), rel=0.15)  # of 500: +- 4.5 %


def test_no_battle_is_left_out_where_ratings_still_grow() -> None:
    """Under so small a K the first battle counts as the last does; as with one battle in all."""
    [battles] = draw_tournaments(1, n_prompts=60)

    assert n_remembered(battles, 0.01) == len(battles)
    assert n_remembered(in_columns([Battle("A", "B", 1.0, "p")]), 0.01) == 1
