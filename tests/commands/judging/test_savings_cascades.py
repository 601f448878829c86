"""Whether a strong judge is better asked on a share of the prompts, beside a cheap one on all."""

import json
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from msgspec.structs import replace

from commands.judging.savings import CascadeAdvice, advise_on_cascade
from commands.spending.pricing import FREE_OF_CHARGE, Pricing
from ledger.events.registration import JudgeSettings, TournamentOpened
from projections.tournament.state import Tournament
from tests.support.builders.events import entrant, judge, known, opened, prompt
from tests.support.builders.money import FlatRate
from tests.support.builders.worlds import TIE, A, B, Said, answered, everything, heard

CHEAP, STRONG = judge("cheap", model="a"), judge("strong", model="b")
N_PROMPTS = 24


@cache
def judged(alike: float, n_by_strong: int = N_PROMPTS, share: float | None = None) -> Tournament:
    """Return a tournament of three entrants that both judges judged.

    Args:
        alike: How often the strong judge says what the cheap one said.
        n_by_strong: On how many prompts it says anything.
        share: Of the prompts, as the settings say.
    """
    rng = np.random.default_rng(5)
    judges, names = [CHEAP, STRONG], ("zoe", "amy", "kim")
    opening, *others = opened(
        prompts=[prompt(f"p{n}") for n in range(N_PROMPTS)],
        entrants=[entrant(name) for name in names],
        judges=judges,
    )
    assert isinstance(opening, TournamentOpened)
    configuration = json.dumps({"jury": [{"id": "strong", "share": share}]})
    said: list[Said] = [(A, B, TIE)[n] for n in rng.choice(3, 3 * N_PROMPTS, p=(0.5, 0.3, 0.2))]
    other: list[Said] = [
        one if rng.random() < alike else (A, B, TIE)[rng.integers(3)] for one in said
    ]
    events = answered((replace(opening, configuration=configuration), *others))
    return known(*heard(events, said, other[: 3 * n_by_strong]))


def advice(
    state: Tournament, cheap: float | None = 0.01, strong: float | None = 1.0
) -> list[CascadeAdvice]:
    """Return the advice where a query costs so much."""
    prices: dict[JudgeSettings, Pricing] = {CHEAP: FlatRate(cheap), STRONG: FlatRate(strong)}
    pricing_of: Callable[[JudgeSettings], Pricing] = prices.__getitem__
    return [*advise_on_cascade(state, everything(state), (CHEAP, STRONG), pricing_of)]


def test_judges_that_agree_are_worth_a_cascade() -> None:
    """The correlations, the share that a third of the money buys, and the gain are said."""
    (found,) = advice(judged(0.95))

    assert found.forecast is not None
    assert found.forecast.share == pytest.approx(1 / 3 - 0.01)
    assert "factuality: set share = 0.32 for strong: standard errors are " in found.sentence
    assert "lower than by strong alone for the same money" in found.sentence
    assert "Outcomes by cheap and strong correlate by rho = 0." in found.sentence
    assert "(72 pairs of 24 prompts); what each prompt says of the ratings, by" in found.sentence


@pytest.mark.parametrize(
    ("alike", "cheap", "how"), [(0.4, 0.01, "lower"), (0.0, 0.2, "higher"), (0.95, 0.3, "higher")]
)
def test_others_are_advised_against_one(alike: float, cheap: float, how: str) -> None:
    """They agree too little, or the cheap one costs too much."""
    (found,) = advice(judged(alike), cheap)

    assert "factuality: ask strong alone, without a share: with share = " in found.sentence
    assert f"% {how} than by strong alone" in found.sentence
    assert "a second judge is worth it from 15% lower on" in found.sentence


def test_verdicts_outside_the_share_count_here() -> None:
    """They were paid for, and say how alike the judges are."""
    (found,) = advice(judged(0.95, share=0.01))

    assert found.forecast == advice(judged(0.95))[0].forecast


def test_without_verdicts_by_both_the_advice_says_what_it_takes() -> None:
    """A small share is a pilot."""
    (found,) = advice(judged(0.95, 3))

    assert found.sentence == (
        "factuality: no forecast of a `share` for strong: it takes verdicts by it and by cheap on"
        " 20 prompts, and there are some on 3"
    )


@pytest.mark.parametrize(
    ("cheap", "strong"), [(0.01, None), (None, 1.0), (1.0, 1.0), (0.0, 0.0), (1.0, 0.0)]
)
def test_no_saving_in_sight_is_no_advice(cheap: float | None, strong: float | None) -> None:
    """Jurors of about one price are no cascade, unless the settings say so."""
    assert advice(judged(0.95), cheap, strong) == []
    (found,) = advice(judged(0.95, share=0.5), cheap, strong)
    assert "set no share: cheap alone costs a third" in found.sentence or "price" in found.sentence


def test_what_cannot_be_rated_is_not_forecast() -> None:
    """Somebody won every verdict."""
    opening = opened(
        prompts=[prompt(f"p{n}") for n in range(N_PROMPTS)],
        entrants=[entrant("zoe"), entrant("amy")],
        judges=[CHEAP, STRONG],
    )
    state = known(*heard(answered(opening), [A] * N_PROMPTS, [A] * N_PROMPTS))

    (found,) = advice(state)

    assert "no forecast of a `share` for strong: the votes and verdicts" in found.sentence


def test_a_free_judge_needs_no_share() -> None:
    """It may be asked everywhere."""
    state = judged(0.95)
    found = advise_on_cascade(state, everything(state), (CHEAP, STRONG), lambda _: FREE_OF_CHARGE)

    assert [*found] == []
