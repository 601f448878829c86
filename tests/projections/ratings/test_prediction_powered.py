"""A judge's verdicts corrected by people's votes: the right rating, by narrower intervals."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from msgspec import structs

from ledger.events.ratings import BradleyTerryParameters
from projections.battles.columns import CannotRate
from projections.battles.voted import VotedBattles
from projections.intervals import Floats
from projections.ratings.bradley_terry.component import ELO
from projections.ratings.bradley_terry.rate import BradleyTerryRatings, rate
from projections.ratings.prediction_powered import (
    FEWEST_PROMPTS,
    PredictionPowered,
    fit,
    rate_with_votes,
)
from tests.support.builders.votes import election, true_ratings

PLAIN = BradleyTerryParameters()


def ratings(found: PredictionPowered) -> Floats:
    """Return ratings whose mean is 1000."""
    return np.asarray(1000 + ELO * (found.strengths - found.strengths.mean()))


def errors(found: PredictionPowered) -> Floats:
    """Return their standard errors."""
    n = len(found.strengths)
    points = ELO * (np.eye(n) - 1 / n)
    return np.asarray(np.sqrt((points @ found.covariance @ points.T).diagonal()))


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

    assert found.share == 0.0
    assert voted.correlation == pytest.approx(-1.0)
    assert ratings(found) == pytest.approx(rate(drawn.votes, PLAIN).rating, abs=1e-3)


def test_a_judge_like_people_is_worth_votes() -> None:
    """The share rises with how alike they are, and the error falls."""
    found = [fit(election(4, alike=alike).voted) for alike in (0.2, 0.6, 0.95)]

    assert sorted(each.share for each in found) == [each.share for each in found]
    assert errors(found[2]).mean() < errors(found[0]).mean()


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

    with pytest.raises(CannotRate, match=f"people voted on {FEWEST_PROMPTS - 1} of the prompts"):
        fit(with_human(voted, human))


def test_strengths_that_are_not_finite_are_refused() -> None:
    """Somebody won every vote and every verdict."""
    voted = election(7).voted
    wins = np.where(voted.judged.a == 0, 1.0, voted.judged.score)
    judged = replace(voted.judged, score=wins)
    human = np.where(voted.has_vote, wins, np.nan)

    with pytest.raises(CannotRate, match="no finite strengths"):
        fit(replace(voted, judged=judged, human=human))


def test_an_entrant_that_met_nobody_has_no_strength() -> None:
    """Its name alone is known."""
    voted = election(8).voted
    met = voted.judged.b != 3
    judged = voted.judged.take(met)

    with pytest.raises(CannotRate, match="no finite strengths"):
        fit(replace(voted, judged=judged, human=voted.human[met]))


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
