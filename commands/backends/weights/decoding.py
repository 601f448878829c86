"""Decode prompts in batches: in a loop that rows leave as they end, or by transformers' `generate`.

`generate` is for families whose layers keep more than keys and values, such as Mamba's.
"""

import inspect
import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Any, Generic, TypeAlias, cast

import torch
import transformers

from commands.backends.weights.answers import Decoded, DecodingRules, Row
from commands.backends.weights.batching import PAD_ID, BatchQueue, pad_left, run_batches
from commands.backends.weights.folder import quiet_transformers
from commands.backends.weights.loaded import LoadedWeights
from commands.backends.weights.sampling import BROKEN, NO_TOKEN, RowNoise, choose

Ended: TypeAlias = Sequence[Decoded[Row] | Row]
"""Rows that have ended; those that do not fit into memory, alone in a batch, are not decoded."""


def decode(
    loaded: LoadedWeights, queue: BatchQueue[Row], rules: DecodingRules
) -> Iterator[Ended[Row]]:
    """Decode all rows of a queue, which share their rules; yield them batch by batch.

    In float32 a row's tokens depend on its prompt and seed alone.
    """
    way = _decoded if loaded.may_leave else _generated
    for batch, ended in run_batches(queue, partial(way, loaded, rules), loaded.device):
        yield batch if ended is None else ended


def _decoded(
    loaded: LoadedWeights, rules: DecodingRules, prompts: Sequence[Row]
) -> list[Decoded[Row]]:
    """Decode a batch; rows that have ended leave it, so that the others go on faster."""
    batch = [Decoded(prompt) for prompt in prompts]
    padded, mask = (each.to(loaded.device) for each in pad_left([p.prompt_ids for p in prompts]))
    ids = padded.masked_fill(mask == 0, NO_TOKEN)  # (B, K)
    noise = RowNoise([prompt.seed for prompt in prompts], loaded.device)
    past = transformers.DynamicCache()  # keeps all columns; the mask knows a layer's window
    rows = batch
    with torch.inference_mode(), quiet_transformers():
        while rows:
            logits = _next_logits(loaded, ids, past)  # (B, V)
            choice = choose(logits, ids, rules.how, noise)
            tokens = torch.where(choice.is_finite, choice.tokens, BROKEN)
            ids = torch.cat([ids, tokens[:, None]], dim=1)
            have_ended = [
                row.extend(token, rules) for row, token in zip(rows, tokens.tolist(), strict=True)
            ]
            if any(have_ended):
                staying = [n for n, has_ended in enumerate(have_ended) if not has_ended]
                rows = [rows[n] for n in staying]
                kept = torch.tensor(staying, dtype=torch.long)  # layers may be on several devices
                past.batch_select_indices(kept)
                ids = ids[kept]
                noise.keep(kept)
    return batch


def _next_logits(
    loaded: LoadedWeights, ids: torch.Tensor, past: transformers.Cache
) -> torch.Tensor:
    """Read those of the tokens (B, K) that the past lacks; return (B, V) of the next."""
    model = cast("Any", loaded.model)
    n_new = ids.shape[1] - past.get_seq_length()
    mask = (ids != NO_TOKEN).long()
    positions = (mask.cumsum(dim=1) - 1).clamp(min=0)
    optional = {"position_ids": positions[:, -n_new:], "logits_to_keep": 1}
    taken = _arguments(type(model).forward)
    read = model(
        ids[:, -n_new:].clamp(min=PAD_ID),
        attention_mask=mask,
        past_key_values=past,
        use_cache=True,
        **{name: value for name, value in optional.items() if name in taken},
    )
    return cast("torch.Tensor", read.logits[:, -1])


@cache
def _arguments(forward: Callable[..., object]) -> frozenset[str]:
    """Return the names of what a family's `forward` takes."""
    return frozenset(inspect.signature(forward).parameters)


def _generated(
    loaded: LoadedWeights, rules: DecodingRules, rows: Sequence[Row]
) -> list[Decoded[Row]]:
    """Decode a batch by `generate`, which sees one possible token a row: the one that was chosen.

    It derives position ids from the mask (cumsum - 1), so rows that are padded on the left get the
    tokens they would get alone.
    """
    padded, mask = (each.to(loaded.device) for each in pad_left([row.prompt_ids for row in rows]))
    batch = [Decoded(row) for row in rows]
    chooser = _Chooser(batch, mask, rules)
    settings = {
        "do_sample": False,
        "max_new_tokens": rules.max_new_tokens,
        "eos_token_id": None,
        "pad_token_id": PAD_ID,
    }
    with torch.inference_mode(), quiet_transformers():
        loaded.model.generate(
            padded,
            attention_mask=mask,
            generation_config=transformers.GenerationConfig.from_dict(settings),
            logits_processor=transformers.LogitsProcessorList([chooser]),
            stopping_criteria=transformers.StoppingCriteriaList([_HaveEnded(chooser)]),
        )
    return batch


class _Chooser(transformers.LogitsProcessor, Generic[Row]):
    """Chooses each row's tokens, and tells the rows."""

    def __init__(
        self, rows: Sequence[Decoded[Row]], mask: torch.Tensor, rules: DecodingRules
    ) -> None:
        """Take the rows, of which mask (B, T) says where their prompts are."""
        self._rows, self._mask, self._rules = rows, mask.bool(), rules
        self._noise = RowNoise([each.row.seed for each in rows], mask.device)
        self.have_ended = [False] * len(rows)

    def __call__(self, whole: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Rule out all tokens but the chosen ones, for (B, T) tokens and (B, V) logits."""
        history = whole.clone()
        history[:, : self._mask.shape[1]].masked_fill_(~self._mask, NO_TOKEN)
        choice = choose(scores, history, self._rules.how, self._noise)
        tokens = torch.where(choice.is_finite, choice.tokens, BROKEN).tolist()
        for n, (row, token) in enumerate(zip(self._rows, tokens, strict=True)):
            if not self.have_ended[n]:
                self.have_ended[n] = row.extend(token, self._rules)
        chosen = torch.full_like(scores, -math.inf)
        return chosen.scatter(-1, choice.tokens[:, None], 0.0)


class _HaveEnded(transformers.StoppingCriteria):
    """Ends the rows that have ended."""

    def __init__(self, chooser: _Chooser[Row]) -> None:
        self._chooser = chooser

    def __call__(self, whole: torch.Tensor, _: object, **__: object) -> torch.BoolTensor:
        """Return (B,) bool, true for the rows to end."""
        have_ended = torch.tensor(self._chooser.have_ended, device=whole.device)
        return cast("torch.BoolTensor", have_ended)
