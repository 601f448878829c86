"""Batches keep to their budget and lose no row."""

from hypothesis import given
from hypothesis import strategies as st

from commands.backends.loads import BatchQueue

widths = st.lists(st.integers(min_value=1, max_value=500), min_size=1, max_size=60)
budgets = st.integers(min_value=1, max_value=5000)


def same(width: int) -> int:
    """Let a row be its own width."""
    return width


def drained(queue: BatchQueue[int]) -> list[tuple[int, ...]]:
    """Take every batch."""
    return list(iter(queue.take, ()))


@given(widths, budgets)
def test_batches_are_as_large_as_the_budget_allows_and_the_widest_rows_come_first(
    rows: list[int], budget: int
) -> None:
    """The budget counts padding; running out of memory after hours would be worse than at once."""
    batches = drained(BatchQueue(rows, same, budget))

    assert [row for batch in batches for row in batch] == sorted(rows, reverse=True)
    assert all(len(batch) == 1 or len(batch) * batch[0] <= budget for batch in batches)
    assert all((len(batch) + 1) * batch[0] > budget for batch in batches[:-1])


@given(widths, budgets)
def test_halving_gives_the_same_rows_again_in_half_as_large_batches(
    rows: list[int], budget: int
) -> None:
    """It must end at one row, lose none, and count for later batches, too."""
    queue = BatchQueue(rows, same, budget)
    batch = queue.take()

    queue.halve(batch)
    again = drained(queue)

    assert again[0] == batch[: max(1, len(batch) // 2)]
    assert [row for each in again for row in each] == sorted(rows, reverse=True)
    assert all(
        len(each) == 1 or len(each) * each[0] <= len(batch) * batch[0] // 2 for each in again
    )
