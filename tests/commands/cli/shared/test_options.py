"""Values of options that are numbers, and yet nothing that could be meant."""

from collections.abc import Mapping

import pytest
from typer import BadParameter

from commands.cli.app import command_line
from commands.cli.project.bradley_terry import parameters_of, weights_of
from commands.errors import ConfigurationError
from commands.reading.parameters import bradley_terry_parameters, elo_parameters

BILLION = 10**9
ALMOST_SURE = 0.9999999999999999  # whose quantile is none


@pytest.mark.parametrize(
    ("chosen", "fault"),
    [
        ({"k": float("inf")}, "--k inf: must be at most 1,000,000"),
        ({"initial_rating": float("nan")}, "--initial-rating nan: must be -1,000,000 or more"),
        ({"initial_rating": 1e308}, r"--initial-rating 1e\+308: must be at most 1,000,000"),
        ({"permutations": BILLION}, f"--permutations {BILLION}: must be at most 1,000,000"),
        ({"bootstraps": BILLION}, f"--bootstraps {BILLION}: must be at most 1,000,000"),
        ({"bootstraps": 39}, "--bootstraps 39: .* 95 % interval needs at least 40 resamples"),
    ],
)
def test_what_no_elo_is_made_of_is_refused(chosen: Mapping[str, object], fault: str) -> None:
    """Ratings of NaN, or of a program that runs for ever, tell nobody what was mistyped."""
    with pytest.raises(ConfigurationError, match=fault):
        elo_parameters({}, chosen)


@pytest.mark.parametrize(
    ("chosen", "fault"),
    [
        ({"prior_sd": float("inf")}, "prior_sd inf: must be at most 1,000,000"),
        ({"prior_sd": 1e-300}, "prior_sd 1e-300: must be 0.01 or more"),
        ({"level": ALMOST_SURE}, f"level {ALMOST_SURE}: must be at most 0.999999"),
        ({"level": 1e-300}, "level 1e-300: must be 0.001 or more"),
        ({"resamples": BILLION}, f"resamples {BILLION}: must be at most 1,000,000"),
        (
            {"interval": "bayesian", "resamples": 39},
            "resamples 39: .* needs at least 40 resamples",
        ),
        (
            {"interval": "multinomial", "level": 0.999},
            "resamples 1000: .* needs at least 2,000 resamples",
        ),
    ],
)
def test_what_no_strength_is_made_of_is_refused(chosen: Mapping[str, object], fault: str) -> None:
    """As of Elo; a level that is all but 1 had a traceback for an interval."""
    with pytest.raises(ConfigurationError, match=fault):
        bradley_terry_parameters({}, chosen, str)


def test_as_many_resamples_as_a_level_takes_are_enough() -> None:
    """One is beyond each bound; of the sandwich, which draws none, any number is."""
    enough = {"interval": "bayesian", "resamples": 40, "level": 0.95}

    assert bradley_terry_parameters({}, enough).resamples == 40
    assert bradley_terry_parameters({}, {"resamples": 1}).resamples == 1
    assert elo_parameters({}, {"bootstraps": 40}).bootstraps == 40


def test_a_rating_and_a_weight_are_numbers_that_can_be() -> None:
    """There is no --anchor-rating to be corrected; two of the largest weights have no sum."""
    with pytest.raises(ConfigurationError, match=r"--anchor 'base=1e308': .* 1,000,000"):
        parameters_of({}, None, "base=1e308")
    with pytest.raises(ConfigurationError, match=r"--overall .* at most 1,000,000"):
        weights_of("factuality=1e308,utility=1e308", ("factuality", "utility"))


@pytest.mark.parametrize("cap", ["nan", "inf"])
def test_a_cap_is_an_amount(cap: str) -> None:
    """Nothing costs more than NaN, so such a cap was none."""
    words = ["apply", "generate", "--max-usd", cap]

    with pytest.raises(BadParameter, match=f"{cap} is not a finite number"):
        command_line(words)(words, standalone_mode=False)
