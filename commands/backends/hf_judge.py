"""Judge with Hugging Face weights on this machine: the Judge port, without a provider."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch

from commands.backends.batching import BatchQueue
from commands.backends.device import prepare_device
from commands.backends.draining import drained
from commands.backends.ending import Ending
from commands.backends.finite import FiniteWatch
from commands.backends.hf_chat import require_chat, text_of
from commands.backends.hf_decoding import generate_tokens
from commands.backends.hf_judge_chat import JudgeChat
from commands.backends.hf_quiet import quiet_transformers
from commands.backends.hf_weights import LoadedWeights, load_folder
from commands.errors import ConfigurationError
from commands.ports import Answer, NoReply, Reply
from ledger.events.values import Usage
from ledger.identity import Digest
from projections.verdicts.queries import JudgeQuery


class QueryRow(NamedTuple):
    """A query as tokens."""

    query_key: Digest
    prompt_ids: tuple[int, ...]
    max_new_tokens: int

    @property
    def n_tokens(self) -> int:
        """Count the query's tokens and all that may be replied."""
        return len(self.prompt_ids) + self.max_new_tokens


class HfJudge:
    """Replies greedily, in batches; in float32 a reply does not depend on its batch."""

    def __init__(
        self,
        folder: Path,
        *,
        dtype: str,
        max_tokens: int,
        batch_tokens: int,
        device: str = "auto",
        cpu_threads: int | None = None,
        load: Callable[..., LoadedWeights] = load_folder,
    ) -> None:
        """Load the weights.

        Args:
            folder: The weights and their tokenizer; its name is the model's.
            dtype: What they are computed in.
            max_tokens: Of a reply.
            batch_tokens: Of a batch: queries, padding and replies together.
            device: Where; "auto" is the best one here.
            cpu_threads: For the whole process; None leaves torch's own choice.
            load: What loads.

        Raises:
            ConfigurationError: There is no such device here, or no room for any query.
            WeightsError: The weights cannot be loaded.
        """
        self._loaded = load(folder, prepare_device(device, cpu_threads), dtype=dtype)
        self._limit = _limit(self._loaded, folder, max_tokens)
        with quiet_transformers():
            require_chat(self._loaded.tokenizer, folder)
            self._chat = JudgeChat(self._loaded.tokenizer)
        self._model, self._dtype = folder.name, dtype
        self._max_tokens, self._batch_tokens = max_tokens, batch_tokens

    def answer(self, queries: Sequence[JudgeQuery]) -> Iterator[Answer]:
        """Yield the answers of each finished batch, longest queries first."""
        with quiet_transformers():
            rows = [self._row(query) for query in queries]
        yield from (row for row in rows if isinstance(row, NoReply))
        fitting = [row for row in rows if isinstance(row, QueryRow)]
        queue = BatchQueue(fitting, lambda row: row.n_tokens, self._batch_tokens)
        for batch, answers in drained(queue, self._answer_batch, self._loaded.device):
            yield from answers or (_out_of_memory(batch[0], self._loaded.device),)

    def _row(self, query: JudgeQuery) -> QueryRow | NoReply:
        rejected = partial(NoReply, query.query_key, "rejected")
        prompt_ids = self._chat.encode(query)
        if prompt_ids is None:
            return rejected("a text in it cannot be told from the chat template's control tokens")
        row = QueryRow(query.query_key, prompt_ids, self._max_tokens)
        if row.n_tokens > self._limit:
            n_most = self._limit - self._max_tokens
            return rejected(
                f"{len(prompt_ids)} tokens, at most {n_most} leave room for {self._max_tokens}"
                f" of a reply in the {self._limit} positions of the weights"
            )
        return row

    def _answer_batch(self, rows: Sequence[QueryRow]) -> tuple[Answer, ...]:
        watch = FiniteWatch(len(rows), self._loaded.device)
        generated = generate_tokens(
            self._loaded,
            [row.prompt_ids for row in rows],
            watch,
            ending=Ending(self._loaded.end_ids),
            max_new_tokens=self._max_tokens,
        )
        return tuple(
            self._broken(row, step) if step < len(tokens) else self._reply(row, tokens)
            for row, tokens, step in zip(rows, generated, watch.broken_at.tolist(), strict=True)
        )

    def _reply(self, row: QueryRow, tokens: list[int]) -> Reply:
        has_ended = tokens[-1] in self._loaded.end_ids
        return Reply(
            query_key=row.query_key,
            text=text_of(self._loaded.tokenizer, tokens[:-1] if has_ended else tokens),
            stop_reason="end_turn" if has_ended else "max_tokens",
            model=self._model,
            usage=Usage(n_input=len(row.prompt_ids), n_output=len(tokens)),
        )

    def _broken(self, row: QueryRow, step: int) -> NoReply:
        detail = f"the logits of new token {step + 1} are not finite, in {self._dtype}"
        return NoReply(row.query_key, "errored", detail)


def _limit(loaded: LoadedWeights, folder: Path, max_tokens: int) -> float:
    """Return how many tokens a query and its reply may have."""
    limit = float("inf") if loaded.n_positions is None else loaded.n_positions
    if max_tokens >= limit:
        fault = (
            f"judge {folder.name!r}: max_tokens = {max_tokens} leaves no room for a query in"
            f" the {limit} positions of its weights; lower it"
        )
        raise ConfigurationError([fault])
    return limit


def _out_of_memory(row: QueryRow, device: torch.device) -> NoReply:
    detail = (
        f"{len(row.prompt_ids)} tokens and {row.max_new_tokens} of a reply do not fit into the"
        f" memory of {device}, alone in a batch"
    )
    return NoReply(row.query_key, "errored", detail)
