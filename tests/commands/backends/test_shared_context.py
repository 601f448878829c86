"""What choices have in common is found, and put together only where that saves time."""

from collections.abc import Hashable, Sequence

from hypothesis import given
from hypothesis import strategies as st

from commands.backends.huggingface.reader import (
    MIN_SHARED,
    PrefixGroup,
    compute_groups,
    group_by_length,
    group_by_prefix,
)
from commands.backends.weights.likelihoods import InputRow, WindowLikelihood
from commands.backends.weights.windows import Window

CONTEXT = (0, *range(10, 10 + MIN_SHARED))  # MIN_SHARED tokens but the last, which is no prefix


def choices(*texts: tuple[int, ...], context: tuple[int, ...] = CONTEXT) -> list[Window]:
    """Return the windows of choices."""
    return [Window(context + text, len(context)) for text in texts]


def labelled(windows: Sequence[Window], label: Hashable = "q") -> dict[Window, Hashable]:
    """Return windows of one question."""
    return dict.fromkeys(windows, label)


class CountingReading:
    """Counts what it reads, and weighs nothing."""

    def __init__(self) -> None:
        self.prefixes: list[Sequence[int]] = []
        self.parts: list[list[tuple[int, InputRow]]] = []

    def read_prefixes(self, prefixes: Sequence[Sequence[int]]) -> None:
        """Keep the prefixes."""
        self.prefixes += prefixes

    def compute(
        self, rows: Sequence[InputRow], prefix_of: Sequence[int]
    ) -> dict[Window, WindowLikelihood]:
        """Keep the rows."""
        self.parts.append([*zip(prefix_of, rows, strict=True)])
        return {window: WindowLikelihood(0.0, ()) for row in rows for window in row.windows}


def test_choices_share_all_but_the_last_token_of_their_context() -> None:
    """Behind that one stands what tells them apart."""
    [bundle] = group_by_prefix(labelled(choices((1, 2), (3, 4), (5,))), may_share=True)

    assert (len(bundle.rows), bundle.n_shared) == (3, len(CONTEXT) - 1)
    assert bundle.n_tokens == len(CONTEXT) + 1


def test_choices_of_one_token_are_one_row() -> None:
    """They read the same, and differ in what is only weighed."""
    windows = choices((1,), (2,), (3,))

    assert group_by_prefix(labelled(windows), may_share=False) == [
        PrefixGroup((InputRow(CONTEXT, tuple(windows)),))
    ]


def test_contexts_that_differ_at_the_end_share_what_comes_before() -> None:
    """A token may join the context's end and a choice's beginning."""
    longer = choices((7, 8), context=(*CONTEXT, 6))

    [bundle] = group_by_prefix(labelled([*choices((1, 2)), *longer]), may_share=True)

    assert bundle.n_shared == len(CONTEXT) - 1


def test_a_short_context_is_read_again() -> None:
    """To keep it in mind takes longer."""
    windows = choices((1, 2), (3, 4), context=CONTEXT[:-1])

    assert [each.n_shared for each in group_by_prefix(labelled(windows), may_share=True)] == [0, 0]


def test_nothing_is_shared_by_other_labels_or_where_it_may_not_be() -> None:
    """A state that has read on cannot go back."""
    first, second = choices((1, 2), (3, 4))

    assert len(group_by_prefix({first: "a", second: "b"}, may_share=True)) == 2
    assert len(group_by_prefix(labelled([first, second]), may_share=False)) == 2


def test_prefixes_are_read_once_and_as_many_rows_at_a_time() -> None:
    """Memory is wanted for twice as many rows as there are bundles, whatever they ask."""
    reading = CountingReading()
    bundles = [
        *group_by_prefix(labelled(choices((1, 2), (3, 4), (5, 6))), may_share=True),
        *group_by_prefix(labelled(choices((1, 2), (3,), context=(*CONTEXT, 9))), may_share=True),
    ]

    weighed = compute_groups(lambda: reading, bundles)

    assert reading.prefixes == [CONTEXT[:-1], CONTEXT]
    assert [[owner for owner, _ in part] for part in reading.parts] == [[0, 0], [0, 1], [1]]
    assert len(weighed) == 5


@given(st.lists(st.integers(min_value=1, max_value=500), max_size=40))
def test_texts_of_a_batch_are_less_than_twice_as_long_as_each_other(lengths: list[int]) -> None:
    """Beside one long document, a hundred short ones would be padding for the most part."""
    bundles = [PrefixGroup((InputRow((0,) * length, ()),)) for length in lengths]

    groups = group_by_length(bundles)

    assert sorted(each.n_tokens for group in groups for each in group) == sorted(lengths)
    assert all(group[0].n_tokens < 2 * group[-1].n_tokens for group in groups)
