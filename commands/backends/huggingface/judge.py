"""A judge with Hugging Face weights on this machine."""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from threading import Event

import torch
from transformers import PreTrainedTokenizerBase

from commands.backends.huggingface.local import batch_budget
from commands.backends.loads import BatchQueue
from commands.backends.weights.answers import (
    Decoded,
    DecodingRules,
    Ending,
    PromptRow,
    as_answer,
)
from commands.backends.weights.chat import encode, require_chat, show_chat
from commands.backends.weights.decoding import decode
from commands.backends.weights.folder import quiet_transformers
from commands.backends.weights.loaded import LoadedWeights, load_folder, prepare_device, run_batches
from commands.errors import ConfigurationError
from commands.ports import Answer, GenerationFailure, NoReply, Reply
from ledger.events.money import Usage
from projections.verdicts.queries import JudgeQuery

_SYSTEM, _USER = "tourney-probe-system", "tourney-probe-user"


class JudgeChat:
    """Encodes queries by a chat template so that their texts never become control tokens."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        """Find the control tokens that the template writes; it must show the user's text."""
        self._tokenizer = tokenizer
        probe = encode(tokenizer, self._shown(_SYSTEM, _USER))
        self._controls = _control_ids(tokenizer, probe)
        self._written = self._controls_in(probe)
        self._letters = _first_letters(tokenizer, self._controls)

    def encode(self, query: JudgeQuery) -> tuple[int, ...] | None:
        """Return the tokens of a query, up to where the reply begins.

        None if a text would become a control token, however it is split.
        """
        cut = (
            f"\ue000{query.query_key}\ue000"  # a digest of the texts, so it occurs in none of them
        )
        system, user = (self._letters.sub(rf"\1{cut}", each) for each in (query.system, query.user))
        pieces = self._shown(system, user).split(cut)
        tokens = tuple(token for piece in pieces for token in encode(self._tokenizer, piece))
        return tokens if self._controls_in(tokens) == self._written else None

    def _shown(self, system: str, user: str) -> str:
        return show_chat(self._tokenizer, (("system", system), ("user", user)))

    def _controls_in(self, tokens: Sequence[int]) -> list[int]:
        return [token for token in tokens if token in self._controls]


def _control_ids(tokenizer: PreTrainedTokenizerBase, probe: Sequence[int]) -> frozenset[int]:
    """Return the special tokens, and other added tokens that the template writes."""
    added = tokenizer.added_tokens_decoder
    special = {token for token, shown in added.items() if shown.special}
    return frozenset(special | set(tokenizer.all_special_ids) | (added.keys() & set(probe)))


def _first_letters(tokenizer: PreTrainedTokenizerBase, controls: frozenset[int]) -> re.Pattern[str]:
    """Return a pattern for the first letter of every control token in a text."""
    written = sorted(filter(None, map(str, tokenizer.convert_ids_to_tokens(sorted(controls)))))
    any_of_them = "|".join(map(re.escape, written)) or "(?!)"  # matches nothing
    return re.compile(rf"(?=(?:{any_of_them}))(.)", re.DOTALL)


class HfJudge:
    """Judges with greedy decoding, in batches; in float32 a reply does not depend on its batch."""

    def __init__(
        self,
        folder: Path,
        model: str,
        *,
        dtype: str,
        max_tokens: int,
        batch_tokens: int | None,
        device: str = "auto",
        load: Callable[..., LoadedWeights] = load_folder,
    ) -> None:
        """Load the weights.

        Args:
            folder: The weights and their tokenizer.
            model: The model's name in replies.
            dtype: The type to compute in.
            max_tokens: Largest length of a reply.
            batch_tokens: Token budget of a batch: queries, padding and replies; None if free
                memory decides.
            device: The device; "auto" is the best one available.
            load: Loads the weights.

        Raises:
            ConfigurationError: The device is not available, or max_tokens leaves queries no room.
            WeightsError: The weights cannot be loaded.
        """
        self._loaded = load(folder, prepare_device(device), dtype=dtype)
        self._ending = Ending(self._loaded.end_ids)
        self._limit = _limit(self._loaded, folder, max_tokens)
        with quiet_transformers():
            require_chat(self._loaded.tokenizer, folder)
            self._chat = JudgeChat(self._loaded.tokenizer)
        self._model, self._dtype = model, dtype
        self._max_tokens, self._batch_tokens = max_tokens, batch_tokens

    n_together = 256  # sorted by length into batches

    def answers(self, queries: Sequence[JudgeQuery], stops: Event) -> Iterator[tuple[Answer, ...]]:
        """Yield the answers of each finished batch, longest queries first."""
        with quiet_transformers():
            rows = [self._row(query) for query in queries]
        if unfit := tuple(row for row in rows if isinstance(row, NoReply)):
            yield unfit
        fitting = [row for row in rows if isinstance(row, PromptRow)]
        batch_tokens = batch_budget(self._batch_tokens, self._loaded)
        queue = BatchQueue(fitting, lambda row: row.n_tokens, batch_tokens)
        rules = DecodingRules(self._ending)
        device = self._loaded.device
        for batch, decoded in run_batches(queue, partial(decode, self._loaded, rules), device):
            if decoded is None:
                yield (_out_of_memory(batch[0], device),)
            else:
                yield tuple(map(self._answer, decoded))
            if stops.is_set():
                return

    def _row(self, query: JudgeQuery) -> PromptRow | NoReply:
        rejected = partial(NoReply, query.query_key, "rejected")
        prompt_ids = self._chat.encode(query)
        if prompt_ids is None:
            return rejected("a text in it cannot be told from the chat template's control tokens")
        row = PromptRow(query.query_key, prompt_ids, self._max_tokens)
        if row.n_tokens > self._limit:
            n_most = self._limit - self._max_tokens
            return rejected(
                f"{len(prompt_ids)} tokens, at most {n_most} leave room for {self._max_tokens}"
                f" of a reply in the {self._limit} positions of the weights"
            )
        return row

    def _answer(self, decoded: Decoded) -> Answer:
        said = as_answer(decoded, self._loaded.tokenizer, self._ending, dtype=self._dtype)
        if isinstance(said, GenerationFailure):
            return NoReply(decoded.row.key, "errored", said.detail)
        return Reply(
            query_key=decoded.row.key,
            text=said.text,
            stop_reason="end_turn" if said.finish_reason == "stop" else "max_tokens",
            model=self._model,
            usage=Usage(n_input=len(said.prompt_ids), n_output=len(said.generated_ids)),
        )


def _limit(loaded: LoadedWeights, folder: Path, max_tokens: int) -> float:
    """Return how many tokens a query and its reply may have together."""
    limit = float("inf") if loaded.n_positions is None else loaded.n_positions
    if max_tokens >= limit:
        fault = (
            f"judge {folder.name!r}: max_tokens = {max_tokens} leaves no room for a query in"
            f" the {limit} positions of its weights; lower it"
        )
        raise ConfigurationError([fault])
    return limit


def _out_of_memory(row: PromptRow, device: torch.device) -> NoReply:
    detail = (
        f"{len(row.prompt_ids)} tokens and {row.max_new_tokens} of a reply do not fit into the"
        f" memory of {device}, alone in a batch"
    )
    return NoReply(row.key, "errored", detail)
