"""How open queries are cut into batches: by bytes, and the first of each rubric."""

from collections.abc import Callable, Sequence
from itertools import accumulate, takewhile
from typing import Final

from projections.tournament.progress import OpenQuery
from projections.verdicts.queries import JudgeQuery

# Anthropic takes 256 MB a batch (2026), but its SDK holds a body twice in memory.
_MOST_BYTES: Final = 64_000_000


def portion(
    queries: Sequence[OpenQuery], n_bytes: Callable[[JudgeQuery], int]
) -> Sequence[OpenQuery]:
    """Return the longest start of the queries whose bytes fit a batch; one query always does.

    Args:
        queries: What is to be sent.
        n_bytes: What a batch grows by with a query.
    """
    sizes = accumulate(n_bytes(query.asked) for query in queries)
    n_fitting = sum(1 for _ in takewhile(lambda size: size <= _MOST_BYTES, sizes))
    return queries[: max(n_fitting, 1)]


def first_of_each_rubric(queries: Sequence[OpenQuery]) -> tuple[OpenQuery, ...]:
    """Return one query for each system text: what a provider caches before the rest comes."""
    firsts: dict[str, OpenQuery] = {}
    for query in queries:
        firsts.setdefault(query.asked.system, query)
    return tuple(firsts.values())
