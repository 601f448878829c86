"""A generator with Hugging Face weights on this machine, plain or as a Hydra."""

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch
from transformers import PreTrainedTokenizerBase

from commands.backends.huggingface.worker import HfWorker, Loaded
from commands.backends.hydra.answers import answer_as_hydra, n_correctness_tokens
from commands.backends.hydra.weights import LoadedHydra
from commands.backends.weights.answers import (
    Decoded,
    DecodingRules,
    Ending,
    PromptRow,
    generated_text,
    make_ending,
    not_finite,
)
from commands.backends.weights.batching import BatchQueue, group_by, run_batches
from commands.backends.weights.chat import (
    encode,
    require_chat,
    require_options,
    show_chat,
)
from commands.backends.weights.decoding import decode
from commands.backends.weights.folder import quiet_transformers
from commands.backends.weights.loaded import LoadedWeights, check_chat
from commands.backends.weights.sampling import sampling_settings
from commands.backends.weights.windows import own_tokens
from commands.entrants.chats import n_shortenable, prompt_messages, shortened
from commands.ports import GeneratedText, GenerationFailure, GenerationTask


def prompt_row(loaded: Loaded, task: GenerationTask) -> PromptRow:
    """Return a task's prompt as tokens, truncated if allowed; it may still be too long."""
    encoded = partial(_encoded, loaded.tokenizer)
    n_afterwards = n_correctness_tokens(loaded.tokenizer) if is_rated(task) else 0
    row = PromptRow(task, encoded(task), n_afterwards)
    limit = loaded.n_positions
    if limit is None or row.n_tokens <= limit or not task.options.may_truncate:
        return row
    return truncate_prompt(row, encoded, limit) if task.options.bos else _last_tokens(row, limit)


def _last_tokens(row: PromptRow, limit: int) -> PromptRow:
    """Cut off first tokens until a row fits, as lm-evaluation-harness does.

    If not even one token of the prompt fits, the row is returned unchanged.
    """
    n_kept = limit - (row.n_tokens - len(row.prompt_ids))
    if n_kept < 1:
        return row
    return row._replace(prompt_ids=row.prompt_ids[-n_kept:], is_truncated=True)


def _encoded(tokenizer: PreTrainedTokenizerBase, task: GenerationTask) -> tuple[int, ...]:
    """Return the tokens of a task's prompt, as its entrant is prompted."""
    options, has_bos = task.entrant.chosen, task.options.bos
    prompt = options.around(task.prompt_text)
    if task.options.is_chat:
        messages = task.messages or prompt_messages(options.system, prompt)
        chat = show_chat(tokenizer, messages, options)
        return encode(tokenizer, chat) if has_bos else own_tokens(tokenizer, chat)
    return encode_text(tokenizer, prompt) if has_bos else own_tokens(tokenizer, prompt)


def is_rated(task: GenerationTask) -> bool:
    """Return whether the uncertainty head will rate the answer."""
    return task.entrant.hydra is not None and task.entrant.hydra.uncertainty is not None


def truncate_prompt(
    row: PromptRow, encoded: Callable[[GenerationTask], tuple[int, ...]], limit: int
) -> PromptRow:
    """Cut off the beginning of a row's text, or of what is said, until the row fits a limit.

    The chat template's own tokens stay. A shorter text can have more tokens, so the search may stop
    a few characters short of the longest text that fits. If even an empty text does not fit, the
    row is returned unchanged.
    """
    text, messages = row.task.prompt_text, row.task.messages
    n_most = n_shortenable(messages) if messages else len(text)

    def without(n_characters: int) -> PromptRow:
        if messages:
            task = replace(row.task, messages=shortened(messages, n_characters))
        else:
            task = replace(row.task, prompt_text=text[n_characters:])
        return row._replace(task=task, prompt_ids=encoded(task), is_truncated=n_characters > 0)

    n_characters = bisect_left(
        range(n_most + 1), 1, key=lambda n_characters: without(n_characters).n_tokens <= limit
    )
    return row if n_characters > n_most else without(n_characters)


def encode_text(tokenizer: PreTrainedTokenizerBase, text: str) -> tuple[int, ...]:
    """Return the tokens of a plain text, after the start token if the tokenizer has one.

    Without a start token an empty text becomes the end token, since a prompt needs one token.
    """
    ids = encode(tokenizer, text)
    first = tokenizer.bos_token_id
    if first is None and not ids:
        first = tokenizer.eos_token_id
    return ids if first is None or ids[:1] == (first,) else (first, *ids)


Finished = tuple[GeneratedText | GenerationFailure, ...]


class HfGenerator(HfWorker):
    """Answers tasks in batches; in float32 an answer does not depend on its batch."""

    def generate(self, tasks: Sequence[GenerationTask]) -> Iterator[Finished]:
        """Check the entrants, then yield what each finished batch made, each task exactly once.

        Raises:
            WeightsError: An entrant cannot be loaded as registered; its faults, but those of the
                tensors of its weights, are found here, before the first answer of any.
        """
        chats = {task.entrant: task for task in tasks if task.options.is_chat or is_rated(task)}
        if len(chats) > 1:
            for entrant in chats:
                check_chat(entrant)
        return self._load_by_load(tasks, self._answer_load)

    def _answer_load(self, loaded: Loaded, tasks: Sequence[GenerationTask]) -> Iterator[Finished]:
        folder = Path(tasks[0].entrant.weights)
        with quiet_transformers():
            if any(task.options.is_chat or is_rated(task) for task in tasks):
                require_chat(loaded.tokenizer, folder)
            for options in {task.entrant.chosen for task in tasks if task.options.is_chat}:
                require_options(loaded.tokenizer, folder, options)
            rows = [prompt_row(loaded, task) for task in tasks]
        limit = float("inf") if loaded.n_positions is None else loaded.n_positions
        too_long = tuple(_too_long(row, limit) for row in rows if row.n_tokens > limit)
        if too_long:
            yield too_long
        fitting = [row for row in rows if row.n_tokens <= limit]
        for alike in group_by(fitting, partial(_batch_key, loaded)):
            queue = BatchQueue(alike, lambda row: row.n_tokens, self._budget(loaded))
            if isinstance(loaded, LoadedHydra):
                yield from _hydra_answers(loaded, queue)
            else:
                yield from _answers(loaded, queue, alike[0])


def decoding_key(task: GenerationTask) -> Hashable:
    """Return the decoding settings that rows of one batch must share."""
    entrant, options = task.entrant, task.options
    heads = entrant.hydra and (entrant.hydra.bypass_jury, entrant.hydra.beta)
    return entrant.temperature, entrant.max_new_tokens, options, heads


def _batch_key(loaded: Loaded, row: PromptRow) -> Hashable:
    """Return what rows of one batch share: their decoding, and their length if none may be padded.

    The heads of a Hydra may be padded: they are OLMo 2.
    """
    may_pad = isinstance(loaded, LoadedHydra) or loaded.may_pad
    return decoding_key(row.task), None if may_pad else len(row.prompt_ids)


def _hydra_answers(loaded: LoadedHydra, queue: BatchQueue[PromptRow]) -> Iterator[Finished]:
    """Yield answers to a queue's prompts, which share their decoding."""
    for batch, answers in run_batches(queue, partial(answer_as_hydra, loaded), loaded.device):
        yield (_out_of_memory(batch[0], loaded.device),) if answers is None else answers


def _answers(
    loaded: LoadedWeights, queue: BatchQueue[PromptRow], alike: PromptRow
) -> Iterator[Finished]:
    """Yield answers to a queue's prompts, whose decoding is that of `alike`."""
    ending = make_ending(loaded.tokenizer, loaded.end_ids, alike)
    rules = DecodingRules(ending, alike.task.entrant.max_new_tokens, sampling_settings(alike.task))
    for ended in decode(loaded, queue, rules):
        yield tuple(
            _answer(loaded, each, ending)
            if isinstance(each, Decoded)
            else _out_of_memory(each, loaded.device)
            for each in ended
        )


def _answer(
    loaded: LoadedWeights, decoded: Decoded[PromptRow], ending: Ending
) -> GeneratedText | GenerationFailure:
    row, tokens = decoded.row, decoded.tokens
    if decoded.is_broken:
        return not_finite(row, len(tokens))
    text = generated_text(row, tokens, loaded.tokenizer, ending, elapsed_s=decoded.elapsed_s)
    return replace(text, attention=loaded.attention)


def _too_long(row: PromptRow, limit: float) -> GenerationFailure:
    detail = f"{_sizes(row)} are more than the {limit} positions of the weights"
    return GenerationFailure(row.task.response_key, "prompt_too_long", detail)


def _out_of_memory(row: PromptRow, device: torch.device) -> GenerationFailure:
    detail = f"{_sizes(row)} do not fit into the memory of {device}, alone in a batch"
    return GenerationFailure(row.task.response_key, "out_of_memory", detail)


def _sizes(row: PromptRow) -> str:
    n_prompt, n_new = len(row.prompt_ids), row.task.entrant.max_new_tokens
    if row.n_afterwards:
        return (
            f"{n_prompt} prompt tokens, {n_new} new ones"
            f" and {row.n_afterwards} to ask if they are right"
        )
    return f"{n_prompt} prompt tokens and {n_new} new ones"
