"""Each token of a text is weighed once, with a token before it, and none is read too far away."""

import copy

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tokenizers.processors import TemplateProcessing
from transformers import PreTrainedTokenizerFast

from commands.backends.weights.windows import (
    DEFAULT_WINDOW,
    TokenPair,
    Window,
    encode_as_tokenizer,
    encode_pairs,
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
    windows = pieces
    assert tuple(token for window in windows for token in window.targets) == of_both.text_ids
    assert all(1 <= window.n_context <= len(window.inputs) <= limit for window in windows)


@given(lengths, lengths, limits)
def test_a_window_reaches_back_as_far_as_it_must(n_context: int, n_text: int, limit: int) -> None:
    """One token is read twice, but for the last window, whose own would have too few before."""
    n_context = min(n_context, limit)

    pieces = split_windows(pair(n_context, limit + n_text), limit, rolls=True)

    assert pieces is not None
    first, *others = pieces
    assert first.ids == tuple(range(limit + 1))
    assert all(window.n_context == 1 for window in others[:-1])
    assert all(len(window.inputs) == limit for window in others)


@pytest.mark.parametrize(
    ("whole", "rolls", "windows"),
    [
        (pair(6, 2), False, [Window((0, 4, 5, 6, 7), 3)]),
        (pair(6, 2, is_marked=False), False, [Window((3, 4, 5, 6, 7), 3)]),
        (pair(6, 4), False, [Window((0, 6, 7, 8, 9), 1)]),  # the last needs no position
        (pair(1, 5), True, [Window((0, 1, 2, 3, 4), 1), Window((1, 2, 3, 4, 5), 4)]),
    ],
)
def test_a_long_context_loses_its_beginning_but_not_its_mark(
    whole: TokenPair, windows: list[Window], *, rolls: bool
) -> None:
    """What the question asks stands at the end; and weights expect the mark."""
    assert split_windows(whole, 4, rolls=rolls) == (*windows,)


def test_weights_without_a_limit_roll_by_a_window_of_their_own() -> None:
    """The sum must not depend on the memory of who computes it."""
    pieces = split_windows(pair(1, 2 * DEFAULT_WINDOW), None, rolls=True)
    whole = split_windows(pair(1, 2 * DEFAULT_WINDOW), None, rolls=False)

    assert pieces is not None
    assert whole is not None
    assert (len(pieces), len(whole)) == (2, 1)


BEGIN = 0  # <|endoftext|>, the BOS and the EOS of the tests' tokenizer
texts = st.text(alphabet="a dose\n~é", max_size=12)


def pair_of(tokenizer: PreTrainedTokenizerFast, context: str, text: str) -> TokenPair:
    """Return the tokens of one pair."""
    [pair] = encode_pairs(tokenizer, [(context, text)])
    return pair


def ids(tokenizer: PreTrainedTokenizerFast, text: str) -> tuple[int, ...]:
    """Return a text's tokens and nothing else."""
    return tuple(tokenizer.encode(text, add_special_tokens=False))


def without_bos(tokenizer: PreTrainedTokenizerFast, *, eos: str | None) -> PreTrainedTokenizerFast:
    """Return the tokenizer with another EOS, or none."""
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]  # theirs
        tokenizer_object=tokenizer.backend_tokenizer, eos_token=eos
    )


@example("a d", "ose")
@given(texts, texts)
def test_what_is_weighed_holds_the_text(
    tokenizer: PreTrainedTokenizerFast, context: str, text: str
) -> None:
    """A choice whose first letter is merged into the context would be judged by its rest."""
    pair = pair_of(tokenizer, context, text)

    whole = (*pair.context_ids, *pair.text_ids)
    assert whole == (BEGIN, *ids(tokenizer, context + text))
    before = str(tokenizer.decode([*pair.context_ids[1:]]))
    assert context.startswith(before.rstrip("\ufffd"))


def test_spaces_between_context_and_text_are_the_texts(tokenizer: PreTrainedTokenizerFast) -> None:
    """'Answer: ' and 'a' are read as they would be written, with ' a' in one token."""
    [token] = ids(tokenizer, " a")

    pair = pair_of(tokenizer, "dose: ", "a")

    assert pair == pair_of(tokenizer, "dose:", " a")
    assert pair.text_ids == (token,)


def test_a_token_that_joins_both_is_weighed(tokenizer: PreTrainedTokenizerFast) -> None:
    """Cut at as many tokens as the context has alone, it would be left out."""
    [token] = ids(tokenizer, "pat")

    pair = pair_of(tokenizer, "dose p", "at")

    assert pair == TokenPair((BEGIN, *ids(tokenizer, "dose ")), (token,), is_marked=True)


def test_the_mark_that_begins_a_text_is_written_once(tokenizer: PreTrainedTokenizerFast) -> None:
    """Templates bring their own; twice it is nothing that the weights have ever seen."""
    marked = pair_of(tokenizer, "<|endoftext|>a", " dose")

    assert marked == pair_of(tokenizer, "a", " dose")
    assert marked.context_ids.count(BEGIN) == 1
    assert pair_of(tokenizer, "", "<|endoftext|>a") == TokenPair(
        (BEGIN,), ids(tokenizer, "a"), is_marked=True
    )


def test_without_bos_a_text_stands_behind_the_eos(tokenizer: PreTrainedTokenizerFast) -> None:
    """It stands between texts; behind a context it would say that it is over."""
    only_eos = without_bos(tokenizer, eos="<|endoftext|>")

    assert pair_of(only_eos, "", "a dose").context_ids == (BEGIN,)
    assert pair_of(only_eos, "a", " dose").context_ids == ids(tokenizer, "a")


def test_without_either_the_first_token_is_not_weighed(tokenizer: PreTrainedTokenizerFast) -> None:
    """Nothing says how likely it is."""
    first, *others = ids(tokenizer, "a dose")

    pair = pair_of(without_bos(tokenizer, eos=None), "", "a dose")

    assert pair == TokenPair((first,), (*others,), is_marked=False)


def adding_bos(tokenizer: PreTrainedTokenizerFast) -> PreTrainedTokenizerFast:
    """Return the same tokenizer, which begins each text with BOS by itself."""
    other = copy.deepcopy(tokenizer)
    begin = str(tokenizer.bos_token)
    other.backend_tokenizer.post_processor = TemplateProcessing(
        single=f"{begin} $A", special_tokens=[(begin, tokenizer.bos_token_id)]
    )
    return other


@pytest.mark.parametrize("adds", [False, True])
def test_a_text_can_begin_as_the_tokenizer_begins_it(
    tokenizer: PreTrainedTokenizerFast, *, adds: bool
) -> None:
    """As lm-evaluation-harness reads it: BOS where the tokenizer adds it, and behind nothing."""
    own = adding_bos(tokenizer) if adds else tokenizer
    start = tokenizer.bos_token_id
    plain = {each: tuple(tokenizer.encode(each, add_special_tokens=False)) for each in ("a", " b")}
    begin = (start,) if adds else ()

    behind, alone, rolled, marked = encode_as_tokenizer(
        own,
        [
            ("a", " b", False),
            ("", " b", False),
            ("", "a", True),
            (f"{tokenizer.bos_token}a", " b", False),
        ],
    )

    assert behind == TokenPair((*begin, *plain["a"]), plain[" b"], is_marked=False)
    assert alone == TokenPair((start,), plain[" b"], is_marked=False)
    assert rolled == TokenPair((start,), (*begin, *plain["a"]), is_marked=False)
    assert marked == TokenPair((start, *plain["a"]), plain[" b"], is_marked=False)
