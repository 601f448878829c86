"""Generate answers to a batch of prompts: where they end, how they are sampled, their results."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NamedTuple, cast

import torch
import transformers

from commands.backends.weights.batching import PAD_ID, pad_left
from commands.backends.weights.chat import decode_text
from commands.backends.weights.folder import quiet_transformers
from commands.backends.weights.loaded import LoadedWeights
from commands.backends.weights.sampling import FiniteWatch, GumbelNoise, StopBrokenRows
from commands.backends.weights.warping import warping_processors
from commands.ports import GeneratedText, GenerationFailure, GenerationTask

_N_SILENT: Final = 8  # extra tokens beyond a stop text's bytes: special tokens decode to nothing


class StopTexts(NamedTuple):
    """Texts that end an answer as soon as one is complete."""

    texts: tuple[str, ...]
    read: Callable[[Sequence[int]], str]  # decodes tokens

    def is_complete(self, tokens: Sequence[int]) -> bool:
        """Return whether the last of these tokens completes one of the texts.

        This runs after every token, so it decodes only the tail, and everything only if the tail
        contains a text: a tail that starts inside a character can decode differently.
        """
        n_bytes = max(len(text.encode()) for text in self.texts)
        return self._is_in(tokens[-n_bytes - _N_SILENT :]) and self._is_in(tokens)

    def _is_in(self, tokens: Sequence[int]) -> bool:
        whole = self.read(tokens)
        return any(text in whole for text in self.texts)

    def cut(self, whole: str) -> str:
        """Return the part of a text before the first of the texts."""
        places = [whole.index(text) for text in self.texts if text in whole]
        return whole[: min(places, default=len(whole))]


class Ending(NamedTuple):
    """What ends an answer, other than its length."""

    end_ids: frozenset[int]
    stop: StopTexts | None = None

    def is_at(self, tokens: Sequence[int]) -> bool:
        """Return whether the last of an answer's tokens ends it."""
        return tokens[-1] in self.end_ids or bool(self.stop and self.stop.is_complete(tokens))

    def up_to(self, tokens: Sequence[int]) -> list[int]:
        """Return the tokens up to and including the first that ends the answer."""
        lengths = range(1, len(tokens) + 1)
        n_kept = next((n for n in lengths if self.is_at(tokens[:n])), len(tokens))
        return list(tokens[:n_kept])

    def cut(self, text: str) -> str:
        """Return the part of an answer's text before a stop text."""
        return self.stop.cut(text) if self.stop else text


class StopAtTexts(transformers.StoppingCriteria):
    """Ends each row of a batch that contains a stop text."""

    def __init__(self, stop: StopTexts, n_prompt_tokens: int) -> None:
        """Look after the prompts, which are padded to n_prompt_tokens tokens."""
        self._stop = stop
        self._n_prompt_tokens = n_prompt_tokens

    def __call__(self, whole: torch.Tensor, _: object, **__: object) -> torch.BoolTensor:
        """Return (B,) bool, true for the rows to end, for their (B, T + new) tokens."""
        answers = whole[:, self._n_prompt_tokens :].tolist()
        is_done = [self._stop.is_complete(answer) for answer in answers]
        return cast("torch.BoolTensor", torch.tensor(is_done, device=whole.device))


class PromptRow(NamedTuple):
    """A task and its prompt's tokens, both truncated alike."""

    task: GenerationTask
    prompt_ids: tuple[int, ...]
    n_afterwards: int = 0  # tokens of the question whether the answer is correct
    is_truncated: bool = False

    @property
    def n_tokens(self) -> int:
        """Count the tokens of the prompt, of the longest answer, and of the question about it."""
        return len(self.prompt_ids) + self.task.entrant.max_new_tokens + self.n_afterwards


def answer_batch(
    loaded: LoadedWeights, rows: Sequence[PromptRow]
) -> tuple[GeneratedText | GenerationFailure, ...]:
    """Generate an answer to each row; all rows share their decoding settings.

    Raises:
        torch.OutOfMemoryError: The batch is too large for the device.
    """
    started = time.perf_counter()
    watch = FiniteWatch(len(rows), loaded.device)
    ending = make_ending(loaded.tokenizer, loaded.end_ids, rows[0])
    generated = generate_tokens(
        loaded,
        [row.prompt_ids for row in rows],
        watch,
        ending=ending,
        max_new_tokens=rows[0].task.entrant.max_new_tokens,
        processors=sampling_processors(rows),
    )
    elapsed_s = time.perf_counter() - started
    return tuple(
        not_finite(row, step)
        if step < len(tokens)
        else generated_text(row, tokens, loaded.tokenizer, ending, elapsed_s=elapsed_s)
        for row, tokens, step in zip(rows, generated, watch.broken_at.tolist(), strict=True)
    )


def generate_tokens(
    loaded: LoadedWeights,
    prompts: Sequence[Sequence[int]],
    watch: FiniteWatch,
    *,
    ending: Ending,
    max_new_tokens: int,
    processors: Sequence[transformers.LogitsProcessor] = (),
) -> list[list[int]]:
    """Return each prompt's new tokens, up to and including the first that ends the answer.

    generate() derives position ids from the mask (cumsum - 1, for Llama's kind of positions as
    well as GPT-2's), so rows that are padded on the left get the tokens they would get alone.
    """
    padded, mask = pad_left(prompts)  # (B, T), (B, T)
    stops = [StopAtTexts(ending.stop, padded.shape[1])] if ending.stop else []
    with torch.inference_mode(), quiet_transformers():
        whole = loaded.model.generate(
            padded.to(loaded.device),
            attention_mask=mask.to(loaded.device),
            generation_config=decoding_settings(ending.end_ids, max_new_tokens),
            logits_processor=transformers.LogitsProcessorList([watch, *processors]),
            stopping_criteria=transformers.StoppingCriteriaList([StopBrokenRows(watch), *stops]),
        )  # (B, T + new)
    new = whole[:, padded.shape[1] :].tolist()
    return [ending.up_to(tokens) for tokens in new]


def make_ending(
    tokenizer: transformers.PreTrainedTokenizerBase, end_ids: frozenset[int], row: PromptRow
) -> Ending:
    """Return what ends the answers of a row's batch.

    A stop text that is a special token becomes an end token, since decoding drops it.
    """
    texts = row.task.options.stop
    if not texts:
        return Ending(end_ids)
    added = tokenizer.added_tokens_decoder.items()
    special = frozenset(token for token, shown in added if shown.content in texts)
    return Ending(end_ids | special, StopTexts(texts, partial(decode_text, tokenizer)))


def decoding_settings(
    end_ids: frozenset[int], max_new_tokens: int
) -> transformers.GenerationConfig:
    """Return settings for a greedy search; sampling is the work of the logits processors."""
    settings = {
        "do_sample": False,
        "max_new_tokens": max_new_tokens,
        "eos_token_id": sorted(end_ids) or None,
        "pad_token_id": PAD_ID,
    }
    return transformers.GenerationConfig.from_dict(settings)


def sampling_processors(rows: Sequence[PromptRow]) -> list[transformers.LogitsProcessor]:
    """Return what warps the logits, and the noise that turns the greedy search into sampling."""
    first = rows[0].task
    warpers = warping_processors(first, [len(row.prompt_ids) for row in rows])
    if first.entrant.temperature is None:
        return warpers
    seeds = [row.task.seed for row in rows]
    return [*warpers, GumbelNoise(seeds, first.entrant.temperature, first.options.top_p)]


def generated_text(
    row: PromptRow,
    tokens: list[int],
    tokenizer: transformers.PreTrainedTokenizerBase,
    ending: Ending,
    *,
    elapsed_s: float,
) -> GeneratedText:
    """Return a row's answer from its new tokens, one at least.

    The tokens include the end; the text does not, and may end inside the last token.
    """
    has_ended = tokens[-1] in ending.end_ids
    whole = decode_text(tokenizer, tokens[:-1] if has_ended else tokens)
    text = ending.cut(whole)
    return GeneratedText(
        response_key=row.task.response_key,
        text=text,
        finish_reason="stop" if has_ended or text != whole else "length",
        n_prompt_tokens=len(row.prompt_ids),
        n_generated_tokens=len(tokens),
        elapsed_s=elapsed_s,
        is_truncated=row.is_truncated,
        prompt_ids=row.prompt_ids,
        generated_ids=tuple(tokens),
    )


def not_finite(row: PromptRow, n_tokens: int) -> GenerationFailure:
    """Return the failure of a row whose logits were not finite after n_tokens."""
    detail = f"the logits of new token {n_tokens + 1} are not finite, in {row.task.entrant.dtype}"
    return GenerationFailure(row.task.response_key, "not_finite", detail)
