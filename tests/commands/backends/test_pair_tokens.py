"""Every token that holds a byte of the text is weighed, and each has a token before it."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from transformers import PreTrainedTokenizerFast

from commands.backends.weights.windows import TokenPair, encode_pairs

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


@pytest.mark.parametrize("context", ["", "a dose"])
def test_an_empty_text_has_nothing_to_weigh(
    tokenizer: PreTrainedTokenizerFast, context: str
) -> None:
    """It would be the likeliest of all answers."""
    assert pair_of(tokenizer, context, "").text_ids == ()
