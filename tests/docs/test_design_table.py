"""The table of designs on the page about money is what simulated tournaments give."""

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Final, NamedTuple

import numpy as np
import pytest

from ledger.events.ratings import BradleyTerryParameters
from projections.battles.columns import Battles
from projections.intervals import critical_value
from projections.ratings.bradley_terry.component import ELO
from projections.ratings.bradley_terry.leaderboard import differences
from projections.ratings.bradley_terry.rate import rate
from projections.tournament.designs import drawn_pairs
from tests.docs.pages import DOCS
from tests.support.builders.battles import VerdictsByOrder, counterbalanced, draw_orders, in_both

USD_A_QUERY: Final = 0.009  # 1,500 tokens and a reply of 300, at $3 and $15 for a million
N_TOURNAMENTS: Final = 6
DEVIATION: Final = 150 / ELO  # of the entrants' strengths


class Cells(NamedTuple):
    """Queries, dollars, and how far intervals of differences reach: from the first, and others."""

    queries: float
    usd: float
    from_baseline: float
    of_others: float


def pairs_of(design: str, n: int, n_prompts: int) -> Sequence[Sequence[tuple[int, int]]]:
    """Return the pairs that meet on each prompt, by places."""
    every = [*combinations(range(n), 2)]
    if design == "all pairs":
        return [every] * n_prompts
    if design == "baseline":
        return [[pair for pair in every if 0 in pair]] * n_prompts
    names, texts = tuple(map(str, range(n))), tuple(map(str, range(n_prompts)))
    return drawn_pairs(names, texts, int(design.removeprefix("sparse = ")), 0)


def asked(verdicts: VerdictsByOrder, design: str) -> VerdictsByOrder:
    """Return the verdicts on the pairs of a design."""
    forward, n = verdicts.forward, len(verdicts.forward.entrants)
    n_prompts = int(forward.cluster.max()) + 1
    met = np.zeros((n_prompts, n, n), dtype=np.bool_)
    for prompt, pairs in enumerate(pairs_of(design, n, n_prompts)):
        for a, b in pairs:
            met[prompt, a, b] = True
    is_asked = met[forward.cluster, forward.a, forward.b]
    return VerdictsByOrder(*(each.take(is_asked) for each in verdicts))


def cells(battles: Battles) -> Cells:
    """Rate battles, and return what a row says of them."""
    found = differences(rate(battles, BradleyTerryParameters()))
    reach = critical_value(0.95, found.freedom) * found.error
    n_queries = 2 * battles.weight.sum()
    others = np.triu_indices(len(battles.entrants) - 1, k=1)
    return Cells(
        n_queries, USD_A_QUERY * n_queries, reach[0, 1:].mean(), reach[1:, 1:][others].mean()
    )


def means(n_entrants: int, n_prompts: int, design: str) -> Iterator[Cells]:
    """Yield the cells of a design in both orders, then counterbalanced: means of tournaments."""
    steps = np.linspace(-1.0, 1.0, n_entrants)
    strengths = steps / steps.std() * DEVIATION
    drawn = [
        *draw_orders(N_TOURNAMENTS, n_prompts=n_prompts, strengths=strengths, slot=0.3, own=0.75)
    ]
    pairs = [asked(each, design) for each in drawn]
    both = [in_both(each) for each in pairs]
    once = [counterbalanced(each, seed) for seed, each in enumerate(pairs)]
    for battles in (both, once):
        yield Cells(*np.mean([cells(each) for each in battles], axis=0))


def on_the_page() -> dict[tuple[int, int, str], list[float]]:
    """Return the numbers of each row, by entrants, prompts and design."""
    rows: dict[tuple[int, int, str], list[float]] = {}
    n_entrants, n_prompts = 0, 0
    for line in (DOCS / "money.md").read_text(encoding="utf-8").splitlines():
        name, *numbers = (cell.strip().replace("`", "") for cell in line.strip("|").split("|"))
        if " entrants, " in name and len(numbers) == 8:
            size, _, name = name.partition(": ")
            n_entrants, n_prompts = (int(each.split()[0]) for each in size.split(", "))
        if n_entrants and len(numbers) == 8:
            rows[n_entrants, n_prompts, name] = [float(each.replace(",", "")) for each in numbers]
    return rows


@pytest.mark.nightly
@pytest.mark.parametrize("row", on_the_page(), ids=str)
def test_the_page_says_what_designs_cost_and_how_sure_they_leave_ratings(
    row: tuple[int, int, str],
) -> None:
    """To the point, seed 2026; whoever chooses a design by the table gets what it says."""
    both, once = means(*row)

    assert on_the_page()[row] == pytest.approx([*both, *once], abs=0.6, rel=0.005)
