"""Tokens become text once and whole, and an answer ends where it is told to."""

from collections.abc import Sequence
from functools import partial

from hypothesis import given
from hypothesis import strategies as st
from transformers import PreTrainedTokenizerFast

from commands.backends.weights.answers import Ending
from commands.backends.weights.chat import decode_text

PIECES = ["<s>", "a", "b", "ab", "ba", "\n", "\n\n", "b\n"]


def spelled(tokens: Sequence[int]) -> str:
    """Read tokens of PIECES; the first of them is special and writes nothing."""
    return "".join(PIECES[token] for token in tokens if token)


def ending(*texts: str) -> Ending:
    """Return what ends answers by texts alone."""
    return Ending(frozenset(), texts, spelled)


def decoded(rule: Ending, tokens: list[int]) -> list[int]:
    """Return the tokens of an answer that is decoded one by one until it ends."""
    lengths = range(1, len(tokens) + 1)
    return tokens[: next((n for n in lengths if rule.is_at(tokens[:n])), len(tokens))]


def test_the_text_ends_before_the_first_stop_text() -> None:
    """Even where the token that completes it says more than it, before it or behind it."""
    assert ending("b", "\n").cut("aa\nab") == "aa"
    assert ending("b", "\n").cut("aab\n") == "aa"
    assert ending("c").cut("aab\n") == "aab\n"
    assert Ending(frozenset()).cut("aab\n") == "aab\n"


@given(
    st.lists(st.integers(0, len(PIECES) - 1), min_size=1, max_size=30),
    st.lists(st.text("ab\n", min_size=1, max_size=4), min_size=1, max_size=3),
)
def test_what_is_kept_is_the_shortest_beginning_with_a_stop_text(
    tokens: list[int], texts: list[str]
) -> None:
    """As it is found token by token in a tail, so it must be in the whole, or rows go on talking.

    Special tokens between the letters of a stop text are the one exception, if they are many.
    """
    kept = decoded(ending(*texts), tokens)

    has_stop = [
        any(text in spelled(tokens[:n]) for text in texts) for n in range(1, len(tokens) + 1)
    ]
    if tokens.count(0) <= 8:
        assert len(kept) == (has_stop.index(True) + 1 if True in has_stop else len(tokens))


def test_a_letter_of_several_tokens_ends_an_answer_when_it_is_whole(
    tokenizer: PreTrainedTokenizerFast,
) -> None:
    """Half of it reads as a replacement character, which no stop text should match."""
    tokens = tokenizer("½ a dose → b")["input_ids"]
    stopped = Ending(frozenset(), ("→",), partial(decode_text, tokenizer))

    kept = decoded(stopped, tokens)

    assert decode_text(tokenizer, kept) == "½ a dose →"
    assert stopped.cut("½ a dose →") == "½ a dose "


def test_a_tail_that_begins_within_a_letter_is_not_mistaken_for_a_stop_text(
    tokenizer: PreTrainedTokenizerFast,
) -> None:
    """A reader may well ask to stop at the sign of a broken letter."""
    tokens = tokenizer("→" * 9)["input_ids"]
    broken = "\N{REPLACEMENT CHARACTER}" * 2
    stopped = Ending(frozenset(), (broken,), partial(decode_text, tokenizer))

    assert decoded(stopped, tokens) == tokens
