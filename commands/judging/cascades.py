"""Use case: forecast what asking a strong judge on a share of the prompts only would gain.

A cheap judge is asked on all prompts, and the strong one corrects it: `tourney project bt --truth`.
"""

from collections.abc import Callable, Collection, Iterator
from itertools import islice
from typing import Final, NamedTuple

from commands.errors import counted
from commands.spending.pricing import Pricing
from ledger.events.registration import JudgeSettings
from ledger.identity import Dimension, PromptId
from projections.battles.columns import CannotRate
from projections.battles.voted import both_judged
from projections.ratings.forecast import FEWEST_PROMPTS
from projections.ratings.prediction_powered import (
    BUDGET,
    LEAST_GAIN,
    CascadeForecast,
    forecast_cascade,
)
from projections.tournament.bank import share_of, without_shares
from projections.tournament.matches import queries_to
from projections.tournament.settlement import by_dimension, settle
from projections.tournament.state import Tournament

_PRICED: Final = 200  # queries whose mean price stands for all


class CascadeAdvice(NamedTuple):
    """Whether a cascade is worth it on a dimension; without a forecast, why there is none."""

    dimension: Dimension
    cheap: str
    strong: str
    forecast: CascadeForecast | None
    why: str = ""

    @property
    def sentence(self) -> str:
        """What the two judges' verdicts say of a cascade, and whether to set one up."""
        forecast = self.forecast
        if forecast is None:
            return f"{self.dimension}: no forecast of a `share` for {self.strong}: {self.why}"
        return f"{self.dimension}: {self._advice(forecast)}. {self._evidence(forecast)}"

    def _advice(self, forecast: CascadeForecast) -> str:
        if forecast.gain is None:
            return f"set no share: {self.cheap} alone costs a third of {self.strong} or more"
        change = f"{abs(forecast.gain):.0%} {'lower' if forecast.gain >= 0 else 'higher'}"
        alone = f"than by {self.strong} alone for the same money, a third of its full cost"
        if forecast.is_worth_it:
            share = f"set share = {forecast.share:.2f} for {self.strong}"
            return f"{share}: standard errors are {change} {alone}"
        share = f"ask {self.strong} alone, without a share: with share = {forecast.share:.2f}"
        return (
            f"{share} standard errors are {change} {alone}; a second judge is worth it from"
            f" {LEAST_GAIN:.0%} lower on"
        )

    def _evidence(self, forecast: CascadeForecast) -> str:
        on = f"{counted(forecast.n_pairs, 'pair')} of {counted(forecast.n_prompts, 'prompt')}"
        return (
            f"Outcomes by {self.cheap} and {self.strong} correlate by rho ="
            f" {forecast.correlation:.2f} ({on}); what each prompt says of the ratings, by"
            f" {forecast.prompt_correlation:.2f}"
        )


def advise_on_cascade(
    state: Tournament,
    prompts: Collection[PromptId],
    judges: tuple[JudgeSettings, JudgeSettings],
    pricing_of: Callable[[JudgeSettings], Pricing],
) -> Iterator[CascadeAdvice]:
    """Forecast a cascade on each dimension; nothing where no saving is in sight or asked for.

    Args:
        state: What is recorded; verdicts count wherever both judges gave some.
        prompts: That are judged.
        judges: The cheap one and the strong one.
        pricing_of: Returns the prices of a judge.
    """
    evidence, (cheap, strong) = without_shares(state), judges
    cost, full = (_price(evidence, prompts, judge, pricing_of(judge)) for judge in judges)
    ratio = cost / full if cost is not None and full else None
    if share_of(state, strong) is None and (ratio is None or ratio >= BUDGET):
        return
    by_cheap, by_strong = (
        by_dimension(evidence, settle(evidence, prompts, judge)) for judge in judges
    )
    for dimension in (rubric.dimension for rubric in state.dimensions):
        battles = both_judged(by_cheap[dimension], by_strong[dimension], evidence.same_texts)
        advice = CascadeAdvice(dimension, cheap.judge_id, strong.judge_id, None)
        if ratio is None:
            yield advice._replace(why="it has no price, or the other judge has none")
        elif battles.n_prompts < FEWEST_PROMPTS:
            few = f"verdicts by it and by {cheap.judge_id} on {FEWEST_PROMPTS} prompts"
            why = f"it takes {few}, and there are some on {battles.n_prompts}"
            yield advice._replace(why=why)
        else:
            try:
                yield advice._replace(forecast=forecast_cascade(battles, ratio))
            except CannotRate as error:
                yield advice._replace(why=error.why)


def _price(
    state: Tournament, prompts: Collection[PromptId], judge: JudgeSettings, pricing: Pricing
) -> float | None:
    """Return the mean price of a query to a judge; None: unknown."""
    queries = [*islice(queries_to(state, prompts, judge), _PRICED)]
    whole = pricing.expected_usd(queries)
    return whole and whole / len(queries)
