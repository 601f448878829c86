"""Batches keep to their budget and lose no row."""

from hypothesis import given
from hypothesis import strategies as st

from commands.backends.weights.batching import BatchQueue, group_by

widths = st.lists(st.integers(min_value=1, max_value=500), min_size=1, max_size=60)
budgets = st.integers(min_value=1, max_value=5000)


def same(width: int) -> int:
    """Let a row be its own width."""
    return width


def drained(queue: BatchQueue[int]) -> list[tuple[int, ...]]:
    """Take every batch."""
    return list(iter(queue.take, ()))


@given(widths, budgets)
def test_a_batch_of_several_rows_keeps_to_the_budget(rows: list[int], budget: int) -> None:
    """The budget counts padding: memory is paid for the widest row, as often as there are rows."""
    batches = drained(BatchQueue(rows, same, budget))

    assert all(len(batch) == 1 or len(batch) * max(batch) <= budget for batch in batches)


@given(widths, budgets)
def test_a_batch_is_as_large_as_the_budget_allows(rows: list[int], budget: int) -> None:
    """A device that waits on half-empty batches is paid for nothing."""
    batches = drained(BatchQueue(rows, same, budget))

    assert all((len(batch) + 1) * batch[0] > budget for batch in batches[:-1])


@given(widths, budgets)
def test_the_widest_rows_come_first(rows: list[int], budget: int) -> None:
    """Running out of memory after hours would be worse than after seconds."""
    batches = drained(BatchQueue(rows, same, budget))

    assert [row for batch in batches for row in batch] == sorted(rows, reverse=True)


@given(widths, budgets)
def test_halving_gives_the_same_rows_again_in_half_as_large_a_batch(
    rows: list[int], budget: int
) -> None:
    """Halving must end at one row, and must neither skip nor repeat any."""
    queue = BatchQueue(rows, same, budget)
    batch = queue.take()

    queue.halve(batch)
    again = queue.take()

    assert again == batch[: max(1, len(batch) // 2)]
    assert len(queue) == len(rows) - len(again)


@given(widths, budgets)
def test_what_follows_a_halving_is_no_larger(rows: list[int], budget: int) -> None:
    """Later batches would run out of memory too, one by one, had only the first been halved."""
    queue = BatchQueue(rows, same, budget)
    batch = queue.take()

    queue.halve(batch)

    limit = len(batch) * batch[0] // 2
    assert all(len(b) == 1 or len(b) * b[0] <= limit for b in drained(queue))


@given(st.lists(st.integers(0, 99)))
def test_groups_keep_all_items_in_order(items: list[int]) -> None:
    """Each load comes once, and a run that is resumed works in the same order."""
    groups = group_by(items, lambda item: item % 10)

    firsts = list(dict.fromkeys(item % 10 for item in items))
    assert groups == [[item for item in items if item % 10 == key] for key in firsts]


def test_an_empty_queue_gives_an_empty_batch() -> None:
    """A resumed run may owe nothing."""
    assert BatchQueue([], same, 100).take() == ()
