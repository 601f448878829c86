"""Money and time in the report: spend by judge and entrant, and the cost of a response."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import ceil, floor, log10
from statistics import fmean
from typing import Final, NamedTuple

from commands.runs.report.drawings import embedded, svg
from commands.runs.report.subject import RatedDimension, Subject
from commands.runs.report.text import dollars
from projections.ratings.bradley_terry.comparisons import pairs
from projections.ratings.bradley_terry.rate import BradleyTerryRatings
from projections.tournament.requests import Bill, endpoint_spend
from projections.tournament.spend import Spend, is_free
from projections.tournament.state import Tournament

_FEWEST: Final = 2  # entrants on a map


class SpendLine(NamedTuple):
    """What somebody spent for something."""

    who: str
    what: str
    n: int
    n_input: int
    n_output: int
    usd: str
    at_most: str  # beside it, for requests of unknown fate; empty: none


class Spending(NamedTuple):
    """All that was spent."""

    entrants: str
    judges: str
    total: str
    note: str
    lines: tuple[SpendLine, ...]


def spending_of(state: Tournament, spend: Spend) -> Spending:
    """Return what was spent, by whom and for what."""
    free = {each.judge_id for each in state.judges.values() if is_free(each)}
    bills: defaultdict[tuple[str, str], Bill] = defaultdict(Bill)
    for key, bill in spend.bills.items():
        bills[key.judge, key.dimension or "unknown"] += bill
    served = endpoint_spend(spend.entrants)
    of_judges = sum(bills.values(), Bill())
    judged = None if of_judges.n_unpriced else of_judges.usd
    answered = _sum([each.usd for each in served])
    return Spending(
        entrants=dollars(answered),
        judges=dollars(judged),
        total=dollars(_sum([answered, judged])),
        note=_note(
            is_local=not served and all(each.loader != "endpoint" for each in state.roster),
            is_free_of_charge=all(map(is_free, state.panel))
            and all(key[0] in free for key in bills),
        ),
        lines=(
            *(
                SpendLine(
                    each.entrant_id,
                    f"responses by {each.model}",
                    each.n_answers,
                    each.n_input,
                    each.n_output,
                    dollars(each.usd),
                    dollars(each.maybe_usd) if each.n_maybe_billed else "",
                )
                for each in served
            ),
            *(_of_judge(*key, bill) for key, bill in sorted(bills.items())),
        ),
    )


def _of_judge(judge: str, dimension: str, bill: Bill) -> SpendLine:
    return SpendLine(
        judge,
        f"judging {dimension}",
        bill.n_replies,
        bill.tokens.n_prompt,
        bill.tokens.n_output,
        dollars(None if bill.n_unpriced else bill.usd),
        dollars(bill.most_usd) if bill.n_maybe_billed else "",
    )


def _sum(parts: Sequence[float | None]) -> float | None:
    """Add up amounts; one that is not known leaves the sum unknown."""
    known = [each for each in parts if each is not None]
    return sum(known) if len(known) == len(parts) else None


def _note(*, is_local: bool, is_free_of_charge: bool) -> str:
    """Say what costs no dollars."""
    match is_local, is_free_of_charge:
        case True, True:
            return "Entrants and judges run on the user's machine, which costs no dollars."
        case True, False:
            return "The entrants run on the user's machine, which costs no dollars."
        case False, True:
            return "The judges run on the user's machine, which costs no dollars."
        case _:
            return ""


class ValueMap(NamedTuple):
    """Ratings against what a response takes."""

    drawing: svg.Drawing
    unit: str
    rows: tuple[tuple[int, str, str, str, str], ...]  # place, entrant, rating, cost, best value


def value_map_of(subject: Subject, rated: RatedDimension) -> ValueMap | None:
    """Return the map by dollars where they are known, else by seconds; None: neither is."""
    ratings = {
        place.entrant: (number, place.rating)
        for number, place in enumerate(rated.board.rows, 1)
        if place.rating is not None
    }
    by_usd = _usd_per_response(subject)
    costs, unit, is_usd = by_usd, "US dollars a response", True
    if len(costs.keys() & ratings.keys()) < _FEWEST:
        costs, unit, is_usd = _seconds(subject), "mean seconds for a response", False
    placed = [
        (number, name, rating, costs[name])
        for name, (number, rating) in ratings.items()
        if name in costs
    ]
    if len(placed) < _FEWEST or len({cost for *_, cost in placed}) == 1:  # on one line
        return None
    is_best = _best_value(rated.board.ratings, {name: cost for _, name, _, cost in placed})
    spots = [
        embedded.Spot(number, name, cost, rating, is_best[name] == "yes")
        for number, name, rating, cost in placed
    ]
    ticks = [(each, _cost(each, is_usd)) for each in _ticks(costs[name] for _, name, *_ in placed)]
    rows = [
        (number, name, f"{rating:.0f}", _cost(cost, is_usd), is_best[name])
        for number, name, rating, cost in placed
    ]
    return ValueMap(embedded.value_map(spots, f"{unit} (log scale)", ticks), unit, tuple(rows))


def _usd_per_response(subject: Subject) -> Mapping[str, float]:
    """Return what an answer of each endpoint entrant cost on average, where all are priced."""
    return {
        each.entrant_id: each.usd / each.n_answers
        for each in endpoint_spend(subject.spend.entrants)
        if each.usd and each.n_answers
    }


def _seconds(subject: Subject) -> Mapping[str, float]:
    """Return how long each entrant's responses took on average."""
    taken: defaultdict[str, list[float]] = defaultdict(list)
    for response in subject.results.tournament.responses.values():
        if response.elapsed_s:
            taken[response.entrant_id].append(response.elapsed_s)
    return {entrant: fmean(times) for entrant, times in taken.items()}


def _best_value(ratings: BradleyTerryRatings, costs: Mapping[str, float]) -> dict[str, str]:
    """Say of each entrant whether its price is justified, as far as that is shown.

    yes: it is significantly better than all that are as cheap or cheaper; no: one of those is
    significantly better than it; not shown: neither.
    """
    found = pairs(ratings, "max-t")
    shown = {(each.entrant_a, each.entrant_b) for each in found if each.low and each.low > 0}

    def verdict(name: str) -> str:
        others = [each for each in costs if each != name and costs[each] <= costs[name]]
        if any((each, name) in shown for each in others):
            return "no"
        return "yes" if all((name, each) in shown for each in others) else "not shown"

    return {name: verdict(name) for name in costs}


def _ticks(costs: Iterable[float]) -> list[float]:
    """Return 1, 2 and 5 times powers of ten around the costs."""
    found = list(costs)
    low, high = floor(log10(min(found))), ceil(log10(max(found)))
    every = [step * 10.0**power for power in range(low - 1, high + 1) for step in (1, 2, 5)]
    first = max(each for each in every if each <= min(found))
    last = min(each for each in (*every, 10.0 ** (high + 1)) if each > max(found))
    return [each for each in (*every, 10.0 ** (high + 1)) if first <= each <= last]


def _cost(cost: float, is_usd: bool) -> str:
    return f"${cost:.2g}" if is_usd else f"{cost:.2g} s"
