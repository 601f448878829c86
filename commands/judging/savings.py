"""Use cases: forecast what looks will save, and what a cascade of two judges would.

Looks leave out queries about what is decided. In a cascade a cheap judge is asked on all prompts,
and a strong one, asked on a share of them, corrects it: `tourney project bt --truth`.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import islice
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from commands.errors import counted
from commands.spending.budget import dollars
from commands.spending.pricing import PRICED_OF_ALL, Pricing, evenly_spaced
from ledger.events.registration import JudgeSettings, Rubric
from ledger.identity import Dimension, PromptId
from projections.battles.columns import CannotRate
from projections.battles.voted import both_judged
from projections.intervals import Floats
from projections.ratings.forecast import FEWEST_PROMPTS
from projections.ratings.looks import waves_to_ask
from projections.ratings.prediction_powered import (
    BUDGET,
    LEAST_GAIN,
    CascadeForecast,
    forecast_cascade,
)
from projections.tournament.bank import share_of, without_shares
from projections.tournament.matches import complete_matches, queries_to
from projections.tournament.remaining import OpenQuery
from projections.tournament.settlement import by_dimension, settle
from projections.tournament.state import Tournament
from projections.tournament.waves import looked_at, n_looks_of, waves_to_come

_ENDS: Final = (0.05, 0.95)  # of an interval of 90 %
_SEED: Final = 20260427


def forecast_stops(
    state: Tournament,
    judge: JudgeSettings,
    pricing: Pricing,
    queries: Sequence[OpenQuery],
    awaited: Sequence[OpenQuery],
) -> Iterator[str]:
    """Yield a sentence on each dimension with verdicts enough, if looks are planned.

    Args:
        state: The tournament.
        judge: Who is asked.
        pricing: Its prices.
        queries: All that are open.
        awaited: All that wait for responses, whose length is not known.
    """
    if n_looks_of(state) is None or judge != looked_at(state):
        return
    for rubric in state.dimensions:
        with_responses = [query for query in queries if _is_about(query, rubric)]
        without = [query for query in awaited if _is_about(query, rubric)]
        try:
            n_waves = waves_to_ask(state, rubric)
        except CannotRate:  # then there is nothing to forecast by
            continue
        if n_waves and (with_responses or without):
            n_now, n_later = (
                _n_asked(state, with_responses, n_waves),
                _n_asked(state, without, n_waves),
            )
            low, high = np.quantile(n_now + n_later, _ENDS).round().astype(int)
            usd_now = _known_usd(pricing, with_responses, n_now)
            usd_later = _expected_usd(without, n_later, _costs(state, judge, rubric, pricing))
            yield (
                f"{rubric.dimension}: in 9 of 10 cases the looks leave {low:,} to {high:,} of"
                f" {len(with_responses) + len(without):,} queries to ask"
                f"{_amount(usd_now, usd_later)}"
            )


def _is_about(request: OpenQuery, rubric: Rubric) -> bool:
    return any(query.subject == rubric.dimension for query in request.every)


def _known_usd(pricing: Pricing, requests: Sequence[OpenQuery], n_asked: Floats) -> Floats | None:
    """Return what requests whose responses are known cost in each world; None: unknown."""
    usd = pricing.expected_usd([request.asked for request in requests])
    n_queries = sum(len(request.every) for request in requests)
    return None if usd is None else np.asarray(n_asked * (usd / max(1, n_queries)))


def _amount(usd_now: Floats | None, usd_later: Floats | None) -> str:
    """Say what all costs; nothing if a part is unknown."""
    if usd_now is None or usd_later is None:
        return ""
    low, high = np.quantile(usd_now + usd_later, _ENDS)
    return f", {dollars(float(low))} to {dollars(float(high))}"


def _n_asked(
    state: Tournament,
    queries: Sequence[OpenQuery],
    n_waves: Mapping[AbstractSet[str], NDArray[np.intp]],
) -> Floats:
    """Return how many of some queries are asked in each world."""
    waves = enumerate(waves_to_come(state))
    wave_of = {prompt: number for number, prompts in waves for prompt in prompts}
    pairings = (query.match.pairing for query in queries)
    counts = Counter(
        (pairing.entrants, wave_of.get(pairing.prompt.prompt_id, 0)) for pairing in pairings
    )
    asked = np.zeros(len(next(iter(n_waves.values()))))
    for (pair, wave), n in counts.items():
        asked += n * (n_waves[pair] > wave) if pair in n_waves else n
    return asked


def _expected_usd(
    queries: Sequence[OpenQuery], n_asked: Floats, costs: Floats | None
) -> Floats | None:
    """Return what queries whose responses are not known cost in each world; None: unknown.

    Args:
        queries: Those queries.
        n_asked: (n_worlds,) how many of them are asked.
        costs: (n_prompts,) what a query costs where responses are known; None: unknown.
    """
    if not queries:
        return np.zeros_like(n_asked)
    if costs is None:
        return None
    mean = costs.mean() if costs.any() else 0.0
    spread = costs.std() / mean if mean else 0.0
    n_more = len({query.match.pairing.prompt.prompt_id for query in queries})
    error = spread * np.sqrt(1 / max(1, len(costs)) + 1 / n_more)
    noise = np.random.default_rng(_SEED).standard_normal(len(n_asked))
    return np.asarray(n_asked * mean * np.maximum(0.0, 1 + error * noise))


def _costs(
    state: Tournament, judge: JudgeSettings, rubric: Rubric, pricing: Pricing
) -> Floats | None:
    """Return what a query costs on each prompt whose responses are known; None: no price."""
    bank = [prompt.prompt_id for prompt in state.bank]
    matches = [
        match for match in complete_matches(state, bank, judge) if match.pairing.rubric == rubric
    ]
    by_prompt: dict[PromptId, list[float]] = {}
    for match in evenly_spaced(matches, PRICED_OF_ALL):
        usd = pricing.expected_usd([match.forward])
        if usd is None:
            return None
        costs = by_prompt.setdefault(match.pairing.prompt.prompt_id, [])
        costs.append(usd / match.forward.n_verdicts)
    return np.array([np.mean(costs) for costs in by_prompt.values()])


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
