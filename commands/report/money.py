"""Money and time in the report: spend by judge and entrant, and the cost of a response."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from math import ceil, floor, log10
from operator import itemgetter
from statistics import fmean
from typing import Annotated, Final, NamedTuple

from commands.errors import counted
from commands.report.drawings.embedded import Spot, value_map
from commands.report.drawings.svg import Drawing
from commands.report.subject import RatedDimension, Subject
from commands.spending.budget import dollars, total_usd
from ledger.events.responses import ResponseGenerated
from projections.ratings.bradley_terry.leaderboard import pairs
from projections.ratings.bradley_terry.rate import BradleyTerryRatings
from projections.results.columns import Column, Shown
from projections.results.money import EntrantSpendRow, SpendRow
from projections.tournament.requests import Bill, endpoint_spend
from projections.tournament.spend import Spend, is_free
from projections.tournament.state import Tournament

_FEWEST: Final = 2  # entrants on a map


class Spending(NamedTuple):
    """All that was spent."""

    entrants: str
    judges: str
    total: str
    notes: str  # what costs nothing, or perhaps more
    by_entrant: tuple[EntrantSpendRow, ...]
    by_judge: tuple[SpendRow, ...]  # on all days
    by_day: tuple[SpendRow, ...]  # on all dimensions


def spending_of(state: Tournament, spend: Spend) -> Spending:
    """Return what was spent, by whom and for what."""
    served = endpoint_spend(spend.entrants)
    total = spend.total
    judged = None if total.n_unpriced else total.usd
    answered = total_usd(row.usd for row in served)
    maybe = total_usd([total.most_usd, *(row.maybe_usd for row in served)])
    n_maybe = total.n_maybe_billed + sum(row.n_maybe_billed for row in served)
    return Spending(
        entrants=dollars(answered),
        judges=dollars(judged),
        total=dollars(total_usd([answered, judged])),
        notes=" ".join(filter(None, (_free_of_charge(state, spend), _unsure(n_maybe, maybe)))),
        by_entrant=served,
        by_judge=_judge_rows(spend),
        by_day=tuple(SpendRow(*key, **bill.fields) for key, bill in spend.by_day.items()),
    )


def _judge_rows(spend: Spend) -> tuple[SpendRow, ...]:
    """Return judges' bills on each dimension, those of all days added up."""
    bills: defaultdict[tuple[str, str], Bill] = defaultdict(Bill)
    for key, bill in spend.bills.items():
        bills[key.judge, key.dimension or "unknown"] += bill
    return tuple(
        SpendRow(*key, None, **bill.fields)
        for key, bill in sorted(bills.items(), key=itemgetter(0))
    )


def _free_of_charge(state: Tournament, spend: Spend) -> str:
    """Say what costs no dollars."""
    free = {judge.judge_id for judge in state.judges.values() if is_free(judge)}
    loaders = {entrant.loader for entrant in state.roster}
    given = "The answers were given in files." if loaders == {"recorded"} else ""
    who = {
        "entrants": not spend.entrants.bills and not given and "endpoint" not in loaders,
        "judges": all(map(is_free, state.panel)) and {key.judge for key in spend.bills} <= free,
    }
    named = " and ".join(name for name, is_free_of_charge in who.items() if is_free_of_charge)
    subject = named.capitalize() if all(who.values()) else f"The {named}"
    ran = f"{subject} run on the user's machine, which costs no dollars." if named else ""
    return " ".join(filter(None, (given, ran)))


def _unsure(n: int, usd: float | None) -> str:
    if not n:
        return ""
    return f"Beside this, {counted(n, 'request')} may have been billed: {dollars(usd)} at most."


class ValueRow(NamedTuple):
    """A rating beside what a response takes."""

    entrant: Shown[str]
    number: Annotated[int, Column("#", meaning="on the map")]
    rating: Annotated[float, Column(digits=0)]
    cost: Annotated[str, Column("A response")]
    best_value: Shown[str]


class ValueMap(NamedTuple):
    """Ratings against what a response takes."""

    drawing: Drawing
    unit: str
    rows: tuple[ValueRow, ...]


def value_map_of(subject: Subject, rated: RatedDimension) -> ValueMap | None:
    """Return the map by dollars where they are known, else by seconds; None: neither is."""
    places = [
        (number, place.entrant, place.rating)
        for number, place in enumerate(rated.board.rows, 1)
        if place.rating is not None
    ]
    costs, unit, shown = _usd_per_response(subject), "US dollars a response", "${:.2g}"
    if len(costs.keys() & {entrant for _, entrant, _ in places}) < _FEWEST:
        costs = _means(subject, lambda response: response.elapsed_s)
        unit, shown = "mean seconds for a response", "{:.2g} s"
    placed = [place for place in places if place[1] in costs]
    taken = [costs[entrant] for _, entrant, _ in placed]
    if len(placed) < _FEWEST or len({*taken}) == 1:  # on one line
        return None
    best = _best_value(rated.board.ratings, {entrant: costs[entrant] for _, entrant, _ in placed})
    spots = [
        Spot(number, entrant, costs[entrant], rating, best[entrant] == "yes")
        for number, entrant, rating in placed
    ]
    ticks = [(cost, shown.format(cost)) for cost in _ticks(taken)]
    rows = (
        ValueRow(entrant, number, rating, shown.format(costs[entrant]), best[entrant])
        for number, entrant, rating in placed
    )
    return ValueMap(value_map(spots, f"{unit} (log scale)", ticks), unit, tuple(rows))


def _usd_per_response(subject: Subject) -> Mapping[str, float]:
    """Return what an answer of each entrant cost on average: by its bill, or as its file says."""
    return _means(subject, lambda response: response.usd or None) | {
        row.entrant: row.usd / row.n_answers
        for row in endpoint_spend(subject.spend.entrants)
        if row.usd and row.n_answers
    }


def _means(
    subject: Subject, figure: Callable[[ResponseGenerated], float | None]
) -> dict[str, float]:
    """Return the mean of a figure of each entrant's responses that have it, above 0."""
    taken: defaultdict[str, list[float]] = defaultdict(list)
    for response in subject.results.tournament.responses.values():
        if value := figure(response):
            taken[response.entrant_id].append(value)
    return {entrant: fmean(values) for entrant, values in taken.items()}


def _best_value(ratings: BradleyTerryRatings, costs: Mapping[str, float]) -> dict[str, str]:
    """Say of each entrant whether its price is justified, as far as that is shown.

    yes: it is significantly better than all that are as cheap or cheaper; no: one of those is
    significantly better than it; not shown: neither.
    """
    found = pairs(ratings)
    shown = {(pair.entrant_a, pair.entrant_b) for pair in found if pair.low and pair.low > 0}

    def verdict(name: str) -> str:
        others = [cost for cost in costs if cost != name and costs[cost] <= costs[name]]
        if any((each, name) in shown for each in others):
            return "no"
        return "yes" if all((name, each) in shown for each in others) else "not shown"

    return {name: verdict(name) for name in costs}


def _ticks(costs: Sequence[float]) -> list[float]:
    """Return 1, 2 and 5 times powers of ten around the costs."""
    low, high = floor(log10(min(costs))), ceil(log10(max(costs)))
    every = [step * 10.0**power for power in range(low - 1, high + 2) for step in (1, 2, 5)]
    first = max(tick for tick in every if tick <= min(costs))
    last = min(tick for tick in every if tick > max(costs))
    return [tick for tick in every if first <= tick <= last]
