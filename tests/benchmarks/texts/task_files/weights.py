"""Tiny random weights of four families, whose tokenizers begin texts in different ways."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import (
    GPT2LMHeadModel,
    LlamaForCausalLM,
    Olmo2ForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Qwen2ForCausalLM,
)

from tests.benchmarks.bench import CORPUS
from tests.support.weights.tiny import save_weights, tiny

N_POSITIONS: Final = 1024
_END, _BEGIN = "<|endoftext|>", "<s>"
_TEMPLATE: Final = (
    "{{ bos_token or '' }}{% for message in messages %}<|{{ message.role }}|>\n"
    "{{ message.content | trim }}{{ eos_token }}\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
)


class Family(NamedTuple):
    """A family of weights, and how its tokenizer begins a text."""

    name: str
    kind: type[PreTrainedModel]
    bos: str | None
    adds_bos: bool = False  # the tokenizer by itself


FAMILIES: Final = (
    Family("Olmo 2, has BOS, does not add it", Olmo2ForCausalLM, _END),
    Family("Llama, adds BOS", LlamaForCausalLM, _BEGIN, adds_bos=True),
    Family("GPT-2, has BOS, does not add it", GPT2LMHeadModel, _END),
    Family("Qwen 2, has no BOS", Qwen2ForCausalLM, None),
)


class Size(NamedTuple):
    """Settings of weights under a name."""

    name: str
    settings: Mapping[str, int] = {}
    tries_auto: bool = False  # lm-eval's automatic batch size: it reads 64 whole windows to find it


TINY: Final = Size("tiny", tries_auto=True)
LARGER: Final = Size(
    "larger",
    {
        "hidden_size": 192,
        "intermediate_size": 512,
        "num_hidden_layers": 4,
        "num_key_value_heads": 4,
    },
)


def made_weights(folder: Path, size: Size = TINY) -> Iterator[tuple[str, Path]]:
    """Write each family's weights, and yield its name and folder."""
    for seed, family in enumerate(FAMILIES):
        tokenizer = _tokenizer(family)
        begin, end = (tokenizer.convert_tokens_to_ids(each) for each in (family.bos or _END, _END))
        model = tiny(
            family.kind,
            seed=seed,
            vocab_size=len(tokenizer),
            max_position_embeddings=N_POSITIONS,
            bos_token_id=begin,
            eos_token_id=end,
            pad_token_id=end,
            initializer_range=0.2,
            **size.settings,
        )
        yield family.name, save_weights(model, tokenizer, folder / str(seed))


def _tokenizer(family: Family) -> PreTrainedTokenizerFast:
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=600,
        special_tokens=[_END, _BEGIN],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    backend.train_from_iterator(CORPUS.read_text(encoding="utf-8").splitlines(), trainer)
    if family.adds_bos:
        backend.post_processor = processors.TemplateProcessing(
            single=f"{_BEGIN} $A", special_tokens=[(_BEGIN, backend.token_to_id(_BEGIN))]
        )
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]  # theirs
        tokenizer_object=backend,
        bos_token=family.bos,
        eos_token=_END,
        pad_token=_END,
        chat_template=_TEMPLATE,
    )
