"""The tokenizer with its chat template, and the sequences that training shows."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerBase

END, PAD = "<|endoftext|>", "<|pad|>"
SPECIAL_TOKENS = (END, PAD, "<|user|>", "<|assistant|>", "<|system|>")
CHAT_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}"
    "{{ '<|' + message['role'] + '|>\n' + message['content'] }}"
    "{% if message['role'] == 'assistant' %}{{ eos_token }}{% endif %}"
    "{% if not loop.last or message['role'] != 'assistant' %}{{ '\n' }}{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif %}"
)
VOCABULARY_SIZE = 2048
IGNORED = -100  # a label that torch's cross entropy leaves out


class Example(NamedTuple):
    """One training sequence of T tokens."""

    inputs: torch.Tensor  # (T,) token ids, or (T, D) what a trunk made of them
    labels: torch.Tensor  # (T,)


def save_tokenizer(texts: Sequence[str], directory: Path) -> None:
    """Train a byte-level BPE on `texts` and save it with the chat template."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY_SIZE,
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    directory.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(directory / "tokenizer.json"))
    write_json(
        directory / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "bos_token": END,
            "eos_token": END,
            "pad_token": PAD,
            "padding_side": "left",
            "model_max_length": 512,
            "clean_up_tokenization_spaces": False,
            "chat_template": CHAT_TEMPLATE,
        },
    )


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Write `value` as indented JSON with sorted keys."""
    path.write_text(json.dumps(value, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def plain_example(tokenizer: PreTrainedTokenizerBase, text: str) -> Example:
    """Make an example whose loss is on every token of a plain text."""
    ids = torch.tensor(tokenizer.encode(END + text + END))
    return Example(ids, ids)


def chat_example(tokenizer: PreTrainedTokenizerBase, prompt: str, response: str) -> Example:
    """Make an example whose loss is on the response and the end token that closes it."""
    left = tokenizer.encode(render_chat(tokenizer, prompt))
    right = tokenizer.encode(response + END)
    return Example(torch.tensor(left + right), torch.tensor([IGNORED] * len(left) + right))


def render_chat(tokenizer: PreTrainedTokenizerBase, prompt: str) -> str:
    """Render one user turn and the opening of the assistant's."""
    turns = [{"role": "user", "content": prompt}]
    return str(tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True))
