"""A judge's verdicts corrected by people's votes: the right rating, by narrower intervals."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np
import pytest
from msgspec import structs
from numpy.typing import NDArray

from ledger.events.ratings import BradleyTerryParameters
from projections.battles.columns import CannotRate
from projections.battles.voted import VotedBattles
from projections.intervals import Floats
from projections.ratings.bradley_terry.component import ELO
from projections.ratings.bradley_terry.rate import BradleyTerryRatings, rate
from projections.ratings.prediction_powered import (
    FEWEST_PROMPTS,
    LEAST_GAIN,
    fit,
    forecast_cascade,
    rate_with_votes,
)
from tests.support.builders.cascades import CHEAP_PRICE, SHARE, cascade, strong_ratings
from tests.support.builders.votes import election, true_ratings

PLAIN = BradleyTerryParameters()


def ratings(found: tuple[Floats, Floats, float]) -> Floats:
    """Return ratings whose mean is 1000."""
    strengths, *_ = found
    return np.asarray(1000 + ELO * (strengths - strengths.mean()))


def errors(found: tuple[Floats, Floats, float]) -> Floats:
    """Return their standard errors."""
    _, covariance, _ = found
    n = len(covariance)
    points = ELO * (np.eye(n) - 1 / n)
    return np.asarray(np.sqrt((points @ covariance @ points.T).diagonal()))


def with_human(voted: VotedBattles, human: Floats) -> VotedBattles:
    """Return the same battles with other votes."""
    return replace(voted, human=human)


def test_votes_on_everything_leave_the_judge_nothing_to_say() -> None:
    """Where people voted on all, the judge adds what it takes away, at any share."""
    drawn = election(1, n_votes=858)

    found = fit(drawn.voted)

    assert ratings(found) == pytest.approx(rate(drawn.votes, PLAIN).rating)


def test_a_judge_that_guesses_is_not_used() -> None:
    """Then the votes alone rate."""
    drawn = election(2)
    guesses = np.random.default_rng(3).integers(0, 2, size=len(drawn.voted.judged)).astype(float)
    against = np.where(drawn.voted.has_vote, 1 - drawn.voted.human, guesses)
    voted = replace(drawn.voted, judged=replace(drawn.voted.judged, score=against))

    found = fit(voted)

    assert found[2] == 0.0
    assert voted.correlation == pytest.approx(-1.0)
    assert ratings(found) == pytest.approx(rate(drawn.votes, PLAIN).rating, abs=1e-3)


@pytest.mark.nightly
def test_the_judges_favour_is_taken_out() -> None:
    """Over many elections the mean is the truth, where the judge's own is 35 points off."""
    drawn = [election(seed).voted for seed in range(30)]

    corrected = np.mean([ratings(fit(each)) for each in drawn], axis=0)
    judged = np.mean([rate(each.judged, PLAIN).rating for each in drawn], axis=0)

    assert np.abs(judged - true_ratings()).max() > 30
    assert np.abs(corrected - true_ratings()).max() < 15  # a standard error is 5


def test_weights_are_counts() -> None:
    """A battle of weight 2 counts as two, of the judge's and of people's."""
    voted = election(5).voted
    twice = replace(voted.judged, weight=2 * voted.judged.weight)

    assert ratings(fit(replace(voted, judged=twice))) == pytest.approx(ratings(fit(voted)))


def test_too_few_votes_are_refused() -> None:
    """An interval of a few prompts would be a guess."""
    voted = election(6).voted
    few = voted.judged.cluster < FEWEST_PROMPTS - 1
    human = np.where(few, 0.5, np.nan)

    with pytest.raises(CannotRate, match=f"truth is known on {FEWEST_PROMPTS - 1} of the prompts"):
        fit(with_human(voted, human))


def test_strengths_that_are_not_finite_are_refused() -> None:
    """Somebody won every vote and every verdict."""
    voted = election(7).voted
    wins = np.where(voted.judged.a == 0, 1.0, voted.judged.score)
    judged = replace(voted.judged, score=wins)
    human = np.where(voted.has_vote, wins, np.nan)

    with pytest.raises(CannotRate, match="no finite strengths"):
        fit(replace(voted, judged=judged, human=human))


def test_ratings_hang_from_the_mean_or_from_the_anchor() -> None:
    """As those of the judge alone do, so that both can stand side by side."""
    voted = election(9).voted

    plain = rate_with_votes(voted, PLAIN).ratings
    anchored = rate_with_votes(
        voted, structs.replace(PLAIN, anchor="b", anchor_rating=1200.0)
    ).ratings

    assert plain.rating == pytest.approx(ratings(fit(voted)))
    assert anchored.rating - plain.rating == pytest.approx(1200 - plain.rating[1])
    assert (anchored.lower[1], anchored.upper[1]) == (1200, 1200)
    assert plain.n_battles.tolist() == [429] * 4
    assert (plain.lower < plain.rating).all()


def test_an_entrant_that_few_prompts_with_votes_know_has_no_interval() -> None:
    """The judge may favour it, and nobody could tell."""
    voted = election(10).voted
    about_d = np.flatnonzero(voted.has_vote & (voted.judged.b == 3))
    human = voted.human.copy()
    human[about_d[5:]] = np.nan

    found = rate_with_votes(with_human(voted, human), PLAIN).ratings

    assert np.isnan(found.upper).tolist() == [False, False, False, True]
    assert found.rows()[3].no_interval == "5 prompts: at least 6 are needed"


@pytest.mark.parametrize(
    "fields",
    [{"ties": "davidson"}, {"prior_sd": 200.0}, {"interval": "bayesian"}, {"unit": "battles"}],
)
def test_other_models_are_not_corrected(fields: dict[str, Any]) -> None:
    """Their equations have other terms."""
    with pytest.raises(CannotRate, match="leave out the options for others"):
        rate_with_votes(election(11).voted, structs.replace(PLAIN, **fields))


@pytest.mark.no_cover
@pytest.mark.parametrize("n", [12, pytest.param(200, marks=pytest.mark.nightly)])
def test_intervals_hold_the_truth_where_the_judges_do_not(n: int) -> None:
    """And they are narrower than those of the votes alone."""
    true, drawn = true_ratings(), [election(seed) for seed in range(n)]
    corrected = [rate_with_votes(each.voted, PLAIN).ratings for each in drawn]
    judged = [rate(each.voted.judged, PLAIN) for each in drawn]
    votes = [rate(each.votes, PLAIN) for each in drawn]

    assert 0.9 <= coverage(corrected, true) <= 0.99
    assert coverage(judged, true) < 0.6
    assert width(corrected) < 0.9 * width(votes)


def coverage(rated: Sequence[BradleyTerryRatings], true: Floats) -> float:
    """Return the share of intervals that hold the truth."""
    return float(np.mean([(each.lower <= true) & (true <= each.upper) for each in rated]))


def width(rated: Sequence[BradleyTerryRatings]) -> float:
    """Return how wide intervals are in the mean, in Elo points."""
    return float(np.mean([each.upper - each.lower for each in rated]))


def test_a_cascade_is_forecast_by_what_prompts_say() -> None:
    """The formula's gain, by how alike the judges are where the ratings do not decide."""
    drawn = cascade(1, alike=0.5, share=1.0).voted

    found = forecast_cascade(drawn, CHEAP_PRICE)

    rho = found.prompt_correlation
    assert (found.correlation, found.n_pairs, found.n_prompts) == (drawn.correlation, 2145, 143)
    assert found.share == pytest.approx(SHARE)
    assert found.gain == pytest.approx(1 - (((1 - rho**2) / SHARE + rho**2) / 3) ** 0.5)
    assert 0.7 < rho < 0.85
    assert found.is_worth_it


@pytest.mark.parametrize(("alike", "price_ratio"), [(0.0, CHEAP_PRICE), (0.5, 0.2)])
def test_a_cascade_of_little_gain_is_advised_against(alike: float, price_ratio: float) -> None:
    """The judges agree too little, or the cheap one is not cheap enough."""
    found = forecast_cascade(cascade(1, alike=alike, share=1.0).voted, price_ratio)

    assert found.gain is not None
    assert found.gain < LEAST_GAIN
    assert not found.is_worth_it


def test_a_judge_at_a_third_of_the_price_leaves_nothing_for_the_other() -> None:
    """Then a third of the money buys no share."""
    found = forecast_cascade(cascade(1, alike=0.9, share=1.0).voted, 0.4)

    assert (found.gain, found.is_worth_it) == (None, False)
    assert found.share < 0


def test_a_judge_that_ties_everything_is_no_help() -> None:
    """Its verdicts say nothing of any rating."""
    voted = cascade(1, alike=0.5, share=1.0).voted
    tied = replace(voted, judged=replace(voted.judged, score=np.full(len(voted.judged), 0.5)))

    found = forecast_cascade(tied, 0.0)

    assert found.prompt_correlation == 0.0
    assert found.gain == pytest.approx(0.0)


N_CASCADES: Final = 500  # seeds 0 to 499


class Played(NamedTuple):
    """What many cascades came to: errors and whether intervals hold, (n, n_entrants)."""

    rho: float
    errors: Floats
    holds: NDArray[np.bool_]
    errors_alone: Floats
    forecast_gain: float


def played(alike: float, n: int) -> Played:
    """Rate the entrants in many cascades, and by the strong judge alone for the same money."""
    true, drawn = strong_ratings(), [cascade(seed, alike=alike) for seed in range(n)]
    rated = [rate_with_votes(each.voted, PLAIN).ratings for each in drawn]
    alone = [rate(each.alone, PLAIN).rating for each in drawn]
    gains = [
        forecast_cascade(cascade(seed, alike=alike, n_prompts=50, share=1.0).voted, CHEAP_PRICE)
        for seed in range(min(n, 50))
    ]
    return Played(
        float(np.mean([each.voted.correlation for each in drawn])),
        np.array([each.rating - true for each in rated]),
        np.array([(each.lower <= true) & (true <= each.upper) for each in rated]),
        np.array(alone) - true,
        float(np.mean([each.gain for each in gains])),
    )


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("alike", "least_rho", "least_gain"), [(0.0, 0.5, 0.05), (0.5, 0.7, 0.15), (0.75, 0.8, 0.2)]
)
def test_a_cascade_is_right_and_saves_what_was_forecast(
    alike: float, least_rho: float, least_gain: float
) -> None:
    """At a third of the strong judge's full cost, where the cheap one costs a fortieth.

    Unbiased for the strong judge, with intervals that hold in 93 to 97 %, and a standard error that
    is lower than of the strong judge alone for the same money, as 50 prompts judged by both say.
    """
    found = played(alike, N_CASCADES)
    errors = found.errors.std(axis=0)
    bias = np.abs(found.errors.mean(axis=0)) / (errors / N_CASCADES**0.5)
    gain = 1 - np.sqrt((errors**2).mean() / (found.errors_alone.std(axis=0) ** 2).mean())
    print(  # noqa: T201  # what the docs say; seen by `pytest -m nightly -rP`
        f"rho {found.rho:.2f}: {found.holds.mean():.1%} of intervals hold, bias at most"
        f" {np.abs(found.errors.mean(axis=0)).max():.1f} points ({bias.max():.1f} of its standard"
        f" errors), standard error {gain:.1%} lower (forecast {found.forecast_gain:.1%})"
    )

    assert found.rho > least_rho
    assert 0.93 <= found.holds.mean() <= 0.97
    assert bias.max() < 2
    assert gain > least_gain
    assert found.forecast_gain == pytest.approx(gain, abs=0.05)
