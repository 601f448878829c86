"""Continuations of chats are those of the text that the weights' template makes."""

from collections.abc import Callable

import pytest
from msgspec import structs
from tokenizers import processors
from transformers import PreTrainedTokenizerFast

from commands.backends.huggingface.reader import token_pairs
from commands.errors import WeightsError
from commands.ports import Continuation
from ledger.events.conversations import Messages
from ledger.events.registration import Entrant, EntrantOptions
from tests.support.weights.tiny import with_template

Build = Callable[..., Entrant]
ASKED: Messages = (("user", "a dose?"),)
SHOWN = "<|endoftext|><|user|>\na dose?<|im_end|>\n<|assistant|>\n"


def chat(who: Entrant, messages: Messages, text: str, *, bos: bool = True) -> Continuation:
    """Return a text behind a chat."""
    return Continuation(text, who, "", text, bos=bos, messages=messages)


@pytest.mark.parametrize("bos", [True, False])
def test_a_chat_begins_as_its_template_says(
    entrant: Build, tokenizer: PreTrainedTokenizerFast, *, bos: bool
) -> None:
    """With the beginning token that it writes, once; spaces at its end are the text's."""
    who = entrant()

    pairs = token_pairs(tokenizer, [chat(who, ASKED, each, bos=bos) for each in ("a", "b")])

    for pair, text in zip(pairs, "ab", strict=True):
        assert tokenizer.decode([*pair.context_ids]) == SHOWN.rstrip()
        assert tokenizer.decode([*pair.text_ids]) == f"\n{text}"
        assert pair.context_ids.count(0) == 1


def test_a_tokenizers_own_beginning_is_added_if_it_is_asked_to(
    entrant: Build, tokenizer: PreTrainedTokenizerFast
) -> None:
    """As lm-evaluation-harness does where a template writes none."""
    template = "{% for m in messages %}{{ m.role }}: {{ m.content }}{% endfor %}"
    own = with_template(tokenizer, template)
    mark = ("<|endoftext|>", 0)
    begun = processors.TemplateProcessing(single=f"{mark[0]} $A", special_tokens=[mark])
    own.backend_tokenizer.post_processor = begun

    assert own("a")["input_ids"][0] == 0
    for bos, n_marks in ((True, 0), (False, 1)):
        (pair,) = token_pairs(own, [chat(entrant(), ASKED, "a", bos=bos)])
        assert pair.context_ids.count(0) == n_marks


def test_an_answer_that_has_begun_goes_on(
    entrant: Build, tokenizer: PreTrainedTokenizerFast
) -> None:
    """Its turn is not ended, and no other begins."""
    (pair,) = token_pairs(tokenizer, [chat(entrant(), (*ASKED, ("assistant", "It is")), " a")])

    assert tokenizer.decode([*pair.context_ids]) == f"{SHOWN}It is"


def test_a_chat_is_shown_whole(entrant: Build, tokenizer: PreTrainedTokenizerFast) -> None:
    """It has its system prompt already; the entrant's would stand there twice."""
    who = structs.replace(entrant(), options=EntrantOptions(system="Short."))

    (pair,) = token_pairs(tokenizer, [chat(who, (("system", "Short.\nDoses."), *ASKED), "a")])

    shown = tokenizer.decode([*pair.context_ids])
    assert "<|system|>\nShort.\nDoses.<|im_end|>" in shown
    assert shown.count("Short.") == 1


def test_weights_without_a_template_are_refused(
    entrant: Build, tokenizer: PreTrainedTokenizerFast
) -> None:
    """Plain text in a chat's place would be another test."""
    with pytest.raises(WeightsError, match="no chat template"):
        token_pairs(with_template(tokenizer, None), [chat(entrant(), ASKED, "a")])
