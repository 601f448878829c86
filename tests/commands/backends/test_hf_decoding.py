"""Tokens become text once, whole, and without what only the weights should see."""

import torch
from transformers import PreTrainedTokenizerFast

from commands.backends.weights.batching import pad_left
from commands.backends.weights.chat import decode_text


def test_special_tokens_are_not_in_the_text(tokenizer: PreTrainedTokenizerFast) -> None:
    """A judge that reads <|im_end|> learns which entrant is which, and parsers trip on it."""
    tokens = tokenizer.encode("<|assistant|>a dose<|pad|>", add_special_tokens=False)

    assert decode_text(tokenizer, tokens) == "a dose"


def test_a_character_of_several_tokens_survives(tokenizer: PreTrainedTokenizerFast) -> None:
    """Decoding token by token would make of it what nobody wrote."""
    tokens = tokenizer.encode("5 µg → ½ ?", add_special_tokens=False)

    assert decode_text(tokenizer, tokens) == "5 µg → ½ ?"


def test_prompts_are_padded_on_the_left_and_masked_there() -> None:
    """New tokens must follow the prompt, not its padding."""
    tokens, mask = pad_left([(5, 6, 7), (8,)])

    assert torch.equal(tokens, torch.tensor([[5, 6, 7], [0, 0, 8]]))
    assert torch.equal(mask, torch.tensor([[1, 1, 1], [0, 0, 1]]))
