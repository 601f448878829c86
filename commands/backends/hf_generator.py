"""Answer prompts with Hugging Face weights on this machine: the Generator port, for real."""

from collections.abc import Hashable, Iterator, Sequence
from functools import partial
from pathlib import Path

import torch

from commands.backends.batching import BatchQueue, grouped
from commands.backends.draining import drained
from commands.backends.hf_chat import require_chat
from commands.backends.hf_decoding import PromptRow, answer_batch
from commands.backends.hf_prompts import is_rated, prompt_row
from commands.backends.hf_quiet import quiet_transformers
from commands.backends.hf_worker import HfWorker
from commands.backends.hydra_answers import answer_as_hydra
from commands.backends.hydra_weights import LoadedHydra
from commands.backends.loading import Loaded
from commands.ports import GeneratedText, GenerationFailure, GenerationTask

Finished = tuple[GeneratedText | GenerationFailure, ...]


class HfGenerator(HfWorker):
    """Answers tasks; in float32 an answer does not depend on its batch."""

    def generate(self, tasks: Sequence[GenerationTask]) -> Iterator[Finished]:
        """Yield what each finished batch made, each task exactly once.

        Raises:
            WeightsError: An entrant cannot be loaded as registered; what can be told of that before
                its turn is told before the first answer.
        """
        yield from self._load_by_load(tasks, self._answer_load)

    def _answer_load(self, loaded: Loaded, tasks: Sequence[GenerationTask]) -> Iterator[Finished]:
        with quiet_transformers():
            if any(task.asking.is_chat or is_rated(task) for task in tasks):
                require_chat(loaded.tokenizer, Path(tasks[0].entrant.weights))
            rows = [prompt_row(loaded, task) for task in tasks]
        limit = float("inf") if loaded.n_positions is None else loaded.n_positions
        too_long = tuple(_too_long(row, limit) for row in rows if row.n_tokens > limit)
        if too_long:
            yield too_long
        fitting = [row for row in rows if row.n_tokens <= limit]
        for same_decoding in grouped(fitting, lambda row: decoding_key(row.task)):
            yield from self._answer_rows(loaded, same_decoding)

    def _answer_rows(self, loaded: Loaded, rows: Sequence[PromptRow]) -> Iterator[Finished]:
        queue = BatchQueue(rows, lambda row: row.n_tokens, self._batch_tokens)
        for batch, finished in drained(queue, partial(_answer, loaded), self._device):
            yield finished or (_out_of_memory(batch[0], self._device),)


def decoding_key(task: GenerationTask) -> Hashable:
    """Return what the rows of a batch must have in common."""
    entrant, asking = task.entrant, task.asking
    heads = entrant.hydra and (
        entrant.hydra.bypass_jury,
        entrant.hydra.gamma,
        entrant.hydra.beta,
    )
    return entrant.temperature, asking.top_p, entrant.max_new_tokens, asking.stop, heads


def _answer(loaded: Loaded, rows: Sequence[PromptRow]) -> Finished:
    if isinstance(loaded, LoadedHydra):
        return answer_as_hydra(loaded, rows)
    return answer_batch(loaded, rows)


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
