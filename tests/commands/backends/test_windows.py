"""Each token of a text is weighed once, with a token before it, and none is read too far away."""

from hypothesis import given
from hypothesis import strategies as st

from commands.backends.weights.windows import (
    DEFAULT_WINDOW,
    TextWindows,
    TokenPair,
    Window,
    split_windows,
)

lengths = st.integers(min_value=1, max_value=40)
limits = st.integers(min_value=1, max_value=15)


def pair(n_context: int, n_text: int, *, is_marked: bool = True) -> TokenPair:
    """Return tokens that count up."""
    ids = tuple(range(n_context + n_text))
    return TokenPair(ids[:n_context], ids[n_context:], is_marked)


@given(lengths, lengths, limits, st.booleans())
def test_each_token_is_weighed_once(
    n_context: int, n_text: int, limit: int, is_marked: bool
) -> None:
    """A document's likelihood is a sum over its tokens, however it is cut."""
    of_both = pair(n_context, n_text, is_marked=is_marked)

    pieces = split_windows(of_both, limit, rolls=True)

    assert pieces is not None
    windows = pieces.windows
    assert tuple(token for window in windows for token in window.targets) == of_both.text_ids
    assert all(1 <= window.n_context <= len(window.inputs) <= limit for window in windows)


@given(lengths, lengths, limits)
def test_a_window_reaches_back_as_far_as_it_must(n_context: int, n_text: int, limit: int) -> None:
    """One token is read twice, but for the last window, whose own would have too few before."""
    n_context = min(n_context, limit)

    pieces = split_windows(pair(n_context, limit + n_text), limit, rolls=True)

    assert pieces is not None
    first, *others = pieces.windows
    assert first.ids == tuple(range(limit + 1))
    assert all(window.n_context == 1 for window in others[:-1])
    assert all(len(window.inputs) == limit for window in others)


def test_a_long_context_loses_its_beginning_but_not_its_mark() -> None:
    """What the question asks stands at the end; and weights expect the mark."""
    assert split_windows(pair(6, 2), 4, rolls=False) == TextWindows(
        (Window((0, 4, 5, 6, 7), 3),), 3
    )
    unmarked = split_windows(pair(6, 2, is_marked=False), 4, rolls=False)
    assert unmarked == TextWindows((Window((3, 4, 5, 6, 7), 3),), 3)


def test_a_text_as_long_as_the_window_stands_behind_one_token() -> None:
    """Its last token is only weighed, and needs no position."""
    assert split_windows(pair(6, 4), 4, rolls=False) == TextWindows(
        (Window((0, 6, 7, 8, 9), 1),), 5
    )


def test_a_text_that_is_longer_is_not_cut_unless_it_rolls() -> None:
    """An answer that is weighed in part would be another answer."""
    assert split_windows(pair(1, 5), 4, rolls=False) is None
    assert split_windows(pair(1, 5), 4, rolls=True) == TextWindows(
        (Window((0, 1, 2, 3, 4), 1), Window((1, 2, 3, 4, 5), 4)), 0
    )


def test_weights_without_a_limit_roll_by_a_window_of_their_own() -> None:
    """The sum must not depend on the memory of who computes it."""
    pieces = split_windows(pair(1, 2 * DEFAULT_WINDOW), None, rolls=True)
    whole = split_windows(pair(1, 2 * DEFAULT_WINDOW), None, rolls=False)

    assert pieces is not None
    assert whole is not None
    assert (len(pieces.windows), len(whole.windows)) == (2, 1)
