"""Answer one batch of prompts with loaded weights."""

import time
from collections.abc import Sequence
from typing import NamedTuple

import torch
from transformers import (
    GenerationConfig,
    LogitsProcessor,
    LogitsProcessorList,
    PreTrainedTokenizerBase,
    StoppingCriteriaList,
)

from commands.backends.finite import FiniteWatch, StopBrokenRows
from commands.backends.gumbel import GumbelNoise
from commands.backends.hf_quiet import quiet_transformers
from commands.backends.hf_weights import LoadedWeights
from commands.ports import GeneratedText, GenerationFailure, GenerationTask

PAD_ID = 0  # masked wherever it stands, so any token of the vocabulary does


class PromptRow(NamedTuple):
    """A task and its prompt's tokens."""

    task: GenerationTask
    prompt_ids: tuple[int, ...]
    n_afterwards: int = 0  # tokens of a question about the answer

    @property
    def n_tokens(self) -> int:
        """Count the prompt's tokens, all that may be generated, and what is asked of that."""
        return len(self.prompt_ids) + self.task.entrant.max_new_tokens + self.n_afterwards


def answer_batch(
    loaded: LoadedWeights, rows: Sequence[PromptRow]
) -> tuple[GeneratedText | GenerationFailure, ...]:
    """Generate an answer to each row; all rows are of one temperature and length limit.

    Raises:
        torch.OutOfMemoryError: The batch is too large for the device.
    """
    started = time.perf_counter()
    watch = FiniteWatch(len(rows), loaded.device)
    generated = generate_tokens(
        loaded,
        [row.prompt_ids for row in rows],
        watch,
        max_new_tokens=rows[0].task.entrant.max_new_tokens,
        processors=sampling(rows),
    )
    elapsed_s = time.perf_counter() - started
    return tuple(
        broken(row, step)
        if step < len(tokens)
        else answered(row, tokens, loaded.tokenizer, loaded.end_ids, elapsed_s=elapsed_s)
        for row, tokens, step in zip(rows, generated, watch.broken_at.tolist(), strict=True)
    )


def generate_tokens(
    loaded: LoadedWeights,
    prompts: Sequence[Sequence[int]],
    watch: FiniteWatch,
    *,
    max_new_tokens: int,
    processors: Sequence[LogitsProcessor] = (),
) -> list[list[int]]:
    """Return each prompt's new tokens, up to and with its first end token.

    generate() derives position ids from the mask (cumsum - 1, for Llama's kind of positions as
    well as GPT-2's), so rows that are padded on the left get the tokens they would get alone.
    """
    padded, mask = pad_left(prompts)  # (B, T), (B, T)
    with torch.inference_mode(), quiet_transformers():
        whole = loaded.model.generate(
            padded.to(loaded.device),
            attention_mask=mask.to(loaded.device),
            generation_config=decoding_settings(loaded, max_new_tokens),
            logits_processor=LogitsProcessorList([watch, *processors]),
            stopping_criteria=StoppingCriteriaList([StopBrokenRows(watch)]),
        )  # (B, T + new)
    new = whole[:, padded.shape[1] :].tolist()
    return [up_to_end(tokens, loaded.end_ids) for tokens in new]


def decoding_settings(loaded: LoadedWeights, max_new_tokens: int) -> GenerationConfig:
    """Return settings for a greedy search; sampling is the work of the logits processors."""
    settings = {
        "do_sample": False,
        "max_new_tokens": max_new_tokens,
        "eos_token_id": sorted(loaded.end_ids) or None,
        "pad_token_id": PAD_ID,
    }
    return GenerationConfig.from_dict(settings)


def sampling(rows: Sequence[PromptRow]) -> list[LogitsProcessor]:
    """Return the noise that turns the greedy search into sampling; none for greedy entrants."""
    temperature = rows[0].task.entrant.temperature
    if temperature is None:
        return []
    return [GumbelNoise([row.task.seed for row in rows], temperature)]


def pad_left(prompts: Sequence[Sequence[int]]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (B, T) tokens, padded on the left, and the (B, T) mask that is 1 on real tokens."""
    width = max(len(prompt) for prompt in prompts)
    tokens = [[PAD_ID] * (width - len(prompt)) + list(prompt) for prompt in prompts]
    mask = [[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in prompts]
    return torch.tensor(tokens), torch.tensor(mask)


def up_to_end(tokens: list[int], end_ids: frozenset[int]) -> list[int]:
    """Cut off the padding that follows a row's first end token."""
    for index, token in enumerate(tokens):
        if token in end_ids:
            return tokens[: index + 1]
    return tokens


def text_of(tokenizer: PreTrainedTokenizerBase, tokens: list[int]) -> str:
    """Decode a whole answer at once, without its special tokens."""
    return str(
        tokenizer.decode(tokens, skip_special_tokens=True, clean_up_tokenization_spaces=False)
    )


def answered(
    row: PromptRow,
    tokens: list[int],
    tokenizer: PreTrainedTokenizerBase,
    end_ids: frozenset[int],
    *,
    elapsed_s: float,
) -> GeneratedText:
    """Return what a row answered: one new token at least, the last of them maybe an end token."""
    has_ended = tokens[-1] in end_ids
    return GeneratedText(
        response_key=row.task.response_key,
        text=text_of(tokenizer, tokens[:-1] if has_ended else tokens),
        finish_reason="stop" if has_ended else "length",
        n_prompt_tokens=len(row.prompt_ids),
        n_generated_tokens=len(tokens),
        elapsed_s=elapsed_s,
    )


def broken(row: PromptRow, n_tokens: int) -> GenerationFailure:
    """Return why a row has no answer: after n_tokens the logits were no numbers."""
    detail = f"the logits of new token {n_tokens + 1} are not finite, in {row.task.entrant.dtype}"
    return GenerationFailure(row.task.response_key, "not_finite", detail)
