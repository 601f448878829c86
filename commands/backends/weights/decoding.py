"""Decode prompts in batches: in a loop that rows leave as they end, or by transformers' `generate`.

`generate` is for families whose layers keep more than keys and values, such as Mamba's.
"""

import inspect
import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Protocol, TypeVar

import torch
import transformers

from commands.backends.weights.answers import Decoded, DecodingRules, Ending, PromptRow
from commands.backends.weights.folder import quiet_transformers
from commands.backends.weights.loaded import PAD_ID, LoadedWeights, padded
from commands.backends.weights.sampling import BROKEN, NO_TOKEN, RowNoise, choose


class Steps(Protocol):
    """The model's side of a batch: it reads what was said, and chooses the next tokens."""

    def next_tokens(self) -> list[int]:
        """Return the next token of each row, BROKEN where there is none."""

    def keep(self, rows: Sequence[int]) -> None:
        """Drop all rows but these."""


Row = TypeVar("Row", bound=Decoded)


def follow(steps: Steps, batch: Sequence[Row], ending: Ending) -> Sequence[Row]:
    """Decode a batch; rows that have ended leave it, so that the others go on faster.

    In float32 a row's tokens depend on its prompt and seed alone.

    Raises:
        torch.OutOfMemoryError: The rows are too many for the device.
    """
    rows = batch
    with torch.inference_mode(), quiet_transformers():
        while rows:
            tokens = steps.next_tokens()
            have_ended = [
                row.extend(token, ending) for row, token in zip(rows, tokens, strict=True)
            ]
            staying = [n for n, has_ended in enumerate(have_ended) if not has_ended]
            if 0 < len(staying) < len(rows):
                steps.keep(staying)
            rows = [rows[n] for n in staying]
    return batch


def decode(
    loaded: LoadedWeights, rules: DecodingRules, prompts: Sequence[PromptRow]
) -> Sequence[Decoded]:
    """Decode a batch with plain weights."""
    batch = [Decoded(prompt) for prompt in prompts]
    if not loaded.may_leave:
        _generate(loaded, rules, batch)
        return batch
    return follow(_PlainSteps(loaded, rules, prompts), batch, rules.ending)


class _PlainSteps:
    def __init__(
        self, loaded: LoadedWeights, rules: DecodingRules, prompts: Sequence[PromptRow]
    ) -> None:
        ids, mask = padded([prompt.prompt_ids for prompt in prompts], loaded.device)
        self._ids = ids.masked_fill(mask == 0, NO_TOKEN)  # (B, K)
        self._noise = RowNoise([prompt.seed for prompt in prompts], loaded.device)
        self._past = transformers.DynamicCache()  # keeps all columns; the mask knows the windows
        self._loaded, self._how = loaded, rules.how

    def next_tokens(self) -> list[int]:
        n_new = self._ids.shape[1] - self._past.get_seq_length()
        mask = (self._ids != NO_TOKEN).long()
        ids = self._ids[:, -n_new:].clamp(min=PAD_ID)
        logits = read_tokens(self._loaded, ids, 1, mask=mask, past=self._past)[:, -1]  # (B, V)
        choice = choose(logits, self._ids, self._how, self._noise)
        tokens = torch.where(choice.is_finite, choice.tokens, BROKEN)
        self._ids = torch.cat([self._ids, tokens[:, None]], dim=1)
        return tokens.tolist()

    def keep(self, rows: Sequence[int]) -> None:
        kept = torch.tensor(rows)  # on no device: layers may be on several
        self._past.batch_select_indices(kept)
        self._ids = self._ids[kept]
        self._noise.keep(kept)


def read_tokens(
    loaded: LoadedWeights,
    ids: torch.Tensor,
    n_last: int,
    *,
    mask: torch.Tensor | None = None,
    past: transformers.Cache | None = None,
) -> torch.Tensor:
    """Let a model read tokens.

    Args:
        loaded: The model.
        ids: (R, S) long.
        n_last: How many of the last columns are asked for.
        mask: (R, K) long, 1 on real tokens, of all K columns read so far; None: no row is padded
            on the left, and there is no past.
        past: A cache of the K - S columns before, which takes these, too.

    Returns:
        (R, n_last, V) logits of the token behind each.
    """
    settings: dict[str, object] = {"logits_to_keep": n_last, "use_cache": past is not None}
    if mask is not None:
        positions = (mask.cumsum(dim=1) - 1).clamp(min=0)  # padding takes one that is valid
        settings |= {"attention_mask": mask, "position_ids": positions[:, -ids.shape[1] :]}
    if past is not None:
        settings["past_key_values"] = past
    taken = _arguments_of(type(loaded.model).forward)
    settings = {name: value for name, value in settings.items() if name in taken}
    logits: torch.Tensor = loaded.model(ids, **settings).logits
    return logits[:, -n_last:]


@cache
def _arguments_of(forward: Callable[..., object]) -> frozenset[str]:
    """Return the names of what a family's `forward` takes."""
    return frozenset(inspect.signature(forward).parameters)


def _generate(loaded: LoadedWeights, rules: DecodingRules, batch: Sequence[Decoded]) -> None:
    """Decode a batch by `generate`, which sees one possible token a row: the one that was chosen.

    It derives position ids from the mask (cumsum - 1), so rows that are padded on the left get the
    tokens they would get alone.
    """
    prompts = [decoded.row for decoded in batch]
    ids, mask = padded([prompt.prompt_ids for prompt in prompts], loaded.device)
    noise = RowNoise([prompt.seed for prompt in prompts], loaded.device)
    have_ended = [False] * len(batch)

    def choose_alone(whole: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Rule out all tokens but the chosen ones, for (B, T) tokens and (B, V) logits."""
        history = whole.clone()
        history[:, : mask.shape[1]].masked_fill_(mask == 0, NO_TOKEN)
        choice = choose(scores, history, rules.how, noise)
        tokens = torch.where(choice.is_finite, choice.tokens, BROKEN).tolist()
        for n, (row, token) in enumerate(zip(batch, tokens, strict=True)):
            have_ended[n] = have_ended[n] or row.extend(token, rules.ending)
        return torch.full_like(scores, -math.inf).scatter(-1, choice.tokens[:, None], 0.0)

    settings = {
        "do_sample": False,
        "max_new_tokens": max(prompt.max_new_tokens for prompt in prompts),
        "eos_token_id": None,
        "pad_token_id": PAD_ID,
    }

    with torch.inference_mode(), quiet_transformers():
        loaded.model.generate(
            ids,
            attention_mask=mask,
            generation_config=transformers.GenerationConfig.from_dict(settings),
            logits_processor=[choose_alone],
            stopping_criteria=[
                lambda whole, *_, **__: torch.tensor(have_ended, device=whole.device)
            ],
        )
