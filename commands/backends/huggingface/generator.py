"""Answer tasks with weights in memory, plain or as a Hydra."""

from bisect import bisect_left
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch
from jinja2 import TemplateError
from transformers import PreTrainedTokenizerBase

from commands.backends.hydra.answers import answer_as_hydra, n_correctness_tokens
from commands.backends.loads import BatchQueue, group_by
from commands.backends.remote.bodies import first_line
from commands.backends.weights.answers import DecodingRules, PromptRow, as_answer, make_ending
from commands.backends.weights.chat import encode, require_chat, show_chat
from commands.backends.weights.decoding import decode
from commands.backends.weights.folder import quiet_transformers
from commands.backends.weights.loaded import LoadedWeights, run_batches
from commands.backends.weights.sampling import sampling_settings
from commands.backends.weights.windows import own_tokens
from commands.entrants.chats import n_shortenable, prompt_messages, shortened
from commands.ports import GeneratedText, GenerationFailure, GenerationTask

Answer = GeneratedText | GenerationFailure
Finished = tuple[Answer, ...]


def answer_tasks(
    loaded: LoadedWeights, tasks: Sequence[GenerationTask], batch_tokens: int
) -> Iterator[Finished]:
    """Yield what each finished batch of one load's tasks made, each task exactly once.

    In float32 an answer does not depend on its batch.

    Raises:
        WeightsError: The chat template fails.
    """
    chats = [task for task in tasks if is_chat(task)]
    with quiet_transformers():
        if chats:
            options = {task.entrant.chosen for task in chats if task.options.is_chat}
            require_chat(loaded.tokenizer, Path(tasks[0].entrant.weights), options)
        rows: list[tuple[PromptRow, GenerationTask]] = []
        for task in tasks:
            try:
                rows.append((prompt_row(loaded, task), task))
            except TemplateError as error:  # it can show a question, but not this conversation
                detail = f"the chat template fails: {first_line(error)}"
                yield (GenerationFailure(task.response_key, "rejected", detail),)
    limit = float("inf") if loaded.n_positions is None else loaded.n_positions
    if too_long := tuple(_too_long(row, limit) for row, _ in rows if row.n_tokens > limit):
        yield too_long
    fitting = [(row, task) for row, task in rows if row.n_tokens <= limit]
    for alike in group_by(fitting, lambda each: _batch_key(loaded, *each)):
        queue = BatchQueue([row for row, _ in alike], lambda row: row.n_tokens, batch_tokens)
        answer = partial(_answer_batch, loaded, alike[0][1])
        for batch, answers in run_batches(queue, answer, loaded.device):
            yield (_out_of_memory(batch[0], loaded.device),) if answers is None else tuple(answers)


def is_chat(task: GenerationTask) -> bool:
    """Return whether the chat template is needed: for the prompt, or to ask about the answer."""
    return task.options.is_chat or _is_rated(task)


def _is_rated(task: GenerationTask) -> bool:
    """Return whether the uncertainty head will rate the answer."""
    return task.entrant.hydra is not None and task.entrant.hydra.uncertainty is not None


def _batch_key(loaded: LoadedWeights, row: PromptRow, task: GenerationTask) -> Hashable:
    """Return what rows of one batch share: their decoding, and their length if none is padded."""
    entrant, options = task.entrant, task.options
    heads = entrant.hydra and (entrant.hydra.bypass_jury, entrant.hydra.beta)
    length = None if loaded.may_pad else len(row.prompt_ids)
    return entrant.temperature, entrant.max_new_tokens, options, heads, length


def _answer_batch(
    loaded: LoadedWeights, alike: GenerationTask, prompts: Sequence[PromptRow]
) -> list[Answer]:
    """Answer prompts, whose decoding is that of the task `alike`."""
    entrant = alike.entrant
    ending = make_ending(loaded.tokenizer, loaded.end_ids, alike.options.stop)
    rules = DecodingRules(ending, sampling_settings(alike))
    if entrant.hydra is not None:
        return answer_as_hydra(loaded, entrant.hydra, rules, entrant.dtype, prompts)
    answers = [
        as_answer(decoded, loaded.tokenizer, ending, dtype=entrant.dtype)
        for decoded in decode(loaded, rules, prompts)
    ]
    return [
        replace(answer, attention=loaded.attention) if isinstance(answer, GeneratedText) else answer
        for answer in answers
    ]


def prompt_row(loaded: LoadedWeights, task: GenerationTask) -> PromptRow:
    """Return a task's prompt as tokens, truncated if allowed; it may still be too long."""
    row, limit = _row(loaded, task), loaded.n_positions
    if limit is None or row.n_tokens <= limit or not task.options.may_truncate:
        return row
    return _shortened(loaded, task, limit) if task.options.bos else _last_tokens(row, limit)


def _row(loaded: LoadedWeights, task: GenerationTask) -> PromptRow:
    return PromptRow(
        task.response_key,
        _encoded(loaded.tokenizer, task),
        task.entrant.max_new_tokens,
        task.seed,
        task.prompt_text,
        n_correctness_tokens(loaded.tokenizer) if _is_rated(task) else 0,
    )


def _encoded(tokenizer: PreTrainedTokenizerBase, task: GenerationTask) -> tuple[int, ...]:
    """Return the tokens of a task's prompt, as its entrant is prompted."""
    options, has_bos = task.entrant.chosen, task.options.bos
    prompt = options.around(task.prompt_text)
    if task.options.is_chat:
        messages = task.messages or prompt_messages(options.system, prompt)
        chat = show_chat(tokenizer, messages, options)
        return encode(tokenizer, chat) if has_bos else own_tokens(tokenizer, chat)
    return encode_text(tokenizer, prompt) if has_bos else own_tokens(tokenizer, prompt)


def encode_text(tokenizer: PreTrainedTokenizerBase, text: str) -> tuple[int, ...]:
    """Return the tokens of a plain text, after the start token if the tokenizer has one.

    Without a start token an empty text becomes the end token, since a prompt needs one token.
    """
    ids = encode(tokenizer, text)
    first = tokenizer.bos_token_id
    if first is None and not ids:
        first = tokenizer.eos_token_id
    return ids if first is None or ids[:1] == (first,) else (first, *ids)


def _last_tokens(row: PromptRow, limit: int) -> PromptRow:
    """Cut off first tokens until a row fits, as lm-evaluation-harness does.

    If not even one token of the prompt fits, the row is returned unchanged.
    """
    n_kept = limit - (row.n_tokens - len(row.prompt_ids))
    if n_kept < 1:
        return row
    return row._replace(prompt_ids=row.prompt_ids[-n_kept:], is_truncated=True)


def _shortened(loaded: LoadedWeights, task: GenerationTask, limit: int) -> PromptRow:
    """Cut off the beginning of a task's text, or of what is said, until its row fits a limit.

    The chat template's own tokens stay. A shorter text can have more tokens, so the search may stop
    a few characters short of the longest text that fits. If even an empty text does not fit, the
    row is whole.
    """
    text, messages = task.prompt_text, task.messages
    n_most = n_shortenable(messages) if messages else len(text)

    def without(n_characters: int) -> PromptRow:
        if messages:
            cut = replace(task, messages=shortened(messages, n_characters))
        else:
            cut = replace(task, prompt_text=text[n_characters:])
        return _row(loaded, cut)._replace(is_truncated=n_characters > 0)

    n_characters = bisect_left(range(n_most + 1), 1, key=lambda n: without(n).n_tokens <= limit)
    return without(0 if n_characters > n_most else n_characters)


def _too_long(row: PromptRow, limit: float) -> GenerationFailure:
    detail = f"{row.sizes} are more than the {limit} positions of the weights"
    return GenerationFailure(row.key, "prompt_too_long", detail)


def _out_of_memory(row: PromptRow, device: torch.device) -> GenerationFailure:
    detail = f"{row.sizes} do not fit into the memory of {device}, alone in a batch"
    return GenerationFailure(row.key, "out_of_memory", detail)
