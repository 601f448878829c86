"""Answer prompts with Hugging Face weights on this machine: the Generator port, for real."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import partial
from typing import TypeVar

import torch

from commands.backends.batching import BatchQueue
from commands.backends.device import free_memory, pick_device
from commands.backends.draining import drained
from commands.backends.hf_chat import encode_prompt
from commands.backends.hf_decoding import PromptRow, answer_batch
from commands.backends.hf_quiet import quiet_transformers
from commands.backends.hf_weights import LoadedWeights, load_weights
from commands.ports import GeneratedText, GenerationFailure, GenerationTask
from ledger.events.registration import Entrant

Finished = tuple[GeneratedText | GenerationFailure, ...]
Item = TypeVar("Item")


class HfGenerator:
    """Answers tasks load by load and batch by batch.

    A load is weights, adapters and dtype: entrants that share one are answered together, and it
    is freed before the next. In float32 an answer does not depend on the batch it was made in.
    """

    def __init__(
        self,
        batch_tokens: int,
        device: str = "auto",
        cpu_threads: int | None = None,
        load: Callable[[Entrant, torch.device], LoadedWeights] = load_weights,
    ) -> None:
        """Allow batches of that many tokens, prompts, padding and new tokens together.

        cpu_threads is set for the whole process; None leaves torch's own choice.

        Raises:
            ConfigurationError: There is no such device here.
        """
        if cpu_threads is not None:
            torch.set_num_threads(cpu_threads)
        self._batch_tokens = batch_tokens
        self._device = pick_device(device)
        self._load = load

    def generate(self, tasks: Sequence[GenerationTask]) -> Iterator[Finished]:
        """Yield what each finished batch made, each task exactly once.

        Raises:
            WeightsError: An entrant cannot be loaded as registered.
        """
        for same_load in grouped(tasks, lambda task: load_key(task.entrant)):
            yield from self._answer_load(same_load)
            free_memory(self._device)

    def _answer_load(self, tasks: Sequence[GenerationTask]) -> Iterator[Finished]:
        loaded = self._load(tasks[0].entrant, self._device)
        with quiet_transformers():
            rows = [PromptRow(t, encode_prompt(loaded.tokenizer, t.prompt_text)) for t in tasks]
        limit = float("inf") if loaded.n_positions is None else loaded.n_positions
        too_long = tuple(_too_long(row, limit) for row in rows if row.n_tokens > limit)
        if too_long:
            yield too_long
        fitting = [row for row in rows if row.n_tokens <= limit]
        for same_decoding in grouped(fitting, lambda row: decoding_key(row.task.entrant)):
            yield from self._answer_rows(loaded, same_decoding)

    def _answer_rows(self, loaded: LoadedWeights, rows: Sequence[PromptRow]) -> Iterator[Finished]:
        queue = BatchQueue(rows, lambda row: row.n_tokens, self._batch_tokens)
        for batch, finished in drained(queue, partial(answer_batch, loaded), self._device):
            yield finished or (_out_of_memory(batch[0], self._device),)


def grouped(items: Iterable[Item], key: Callable[[Item], Hashable]) -> list[list[Item]]:
    """Return the items in groups of one key, in the order in which the keys are first seen."""
    groups: dict[Hashable, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return list(groups.values())


def load_key(entrant: Entrant) -> Hashable:
    """Return what an entrant loads."""
    adapters = tuple(adapter.digest for adapter in entrant.adapters)
    return entrant.weights_digest, adapters, entrant.dtype


def decoding_key(entrant: Entrant) -> Hashable:
    """Return what the rows of a batch must have in common."""
    return entrant.temperature, entrant.max_new_tokens


def _too_long(row: PromptRow, limit: float) -> GenerationFailure:
    detail = (
        f"{len(row.prompt_ids)} prompt tokens and {row.task.entrant.max_new_tokens} new ones"
        f" are more than the {limit} positions of the weights"
    )
    return GenerationFailure(row.task.response_key, "prompt_too_long", detail)


def _out_of_memory(row: PromptRow, device: torch.device) -> GenerationFailure:
    detail = (
        f"{len(row.prompt_ids)} prompt tokens and {row.task.entrant.max_new_tokens} new ones"
        f" do not fit into the memory of {device}, alone in a batch"
    )
    return GenerationFailure(row.task.response_key, "out_of_memory", detail)
