"""Compute log-likelihoods of continuations with weights in memory, plain or as a Hydra.

Continuations are split into windows, and the results are put together again per continuation.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import fsum, isfinite
from pathlib import Path
from typing import TypeAlias

from transformers import PreTrainedTokenizerBase

from commands.backends.hydra.likelihoods import HydraHeads
from commands.backends.loads import BatchQueue, group_by
from commands.backends.weights.batching import run_batches
from commands.backends.weights.chat import decode_text, require_chat, show_chat
from commands.backends.weights.folder import quiet_transformers
from commands.backends.weights.likelihoods import (
    PlainHead,
    WindowLikelihood,
    compute_rows,
    rows_by_length,
)
from commands.backends.weights.loaded import LoadedWeights
from commands.backends.weights.windows import (
    TextWindows,
    TokenPair,
    Window,
    encode_as_tokenizer,
    encode_pairs,
    split_windows,
)
from commands.ports import Continuation, ContinuationLikelihood, LikelihoodFailure

Likelihood: TypeAlias = ContinuationLikelihood | LikelihoodFailure
Computed: TypeAlias = Mapping[Window, WindowLikelihood | None]  # None: did not fit into memory


def read_continuations(
    loaded: LoadedWeights, continuations: Sequence[Continuation], batch_tokens: int
) -> Iterator[tuple[Likelihood, ...]]:
    """Yield the results of each finished batch of one load's continuations.

    In float32 a result does not depend on its batch.

    Raises:
        WeightsError: There is no chat template for chats, or it fails.
    """
    for alike in group_by(continuations, likelihood_key):
        hydra = alike[0].entrant.hydra
        heads = PlainHead(loaded) if hydra is None else HydraHeads(loaded.model, hydra)
        with quiet_transformers():
            pairs = token_pairs(loaded.tokenizer, alike)
        planned = [
            _plan_windows(continuation, pair, loaded.n_positions)
            for continuation, pair in zip(alike, pairs, strict=True)
        ]
        if failed := tuple(each for each in planned if isinstance(each, LikelihoodFailure)):
            yield failed
        pending = _PendingTexts((each for each in planned if isinstance(each, _Plan)), loaded)
        for rows in rows_by_length(pending.windows):
            queue = BatchQueue(rows, lambda row: len(row.inputs), batch_tokens)
            batches = run_batches(queue, partial(compute_rows, heads), heads.device)
            for batch, computed in batches:
                lost = dict.fromkeys(batch[0].windows)
                if finished := pending.finish(lost if computed is None else computed):
                    yield finished


def likelihood_key(continuation: Continuation) -> Hashable:
    """Return the settings that decide a likelihood, besides what an entrant loads."""
    hydra, chosen = continuation.entrant.hydra, continuation.entrant.chosen
    chat = (chosen.system, chosen.template_arguments) if continuation.messages else None
    return continuation.bos, chat, hydra and (hydra.bypass_jury, hydra.beta)


def token_pairs(
    tokenizer: PreTrainedTokenizerBase, continuations: Sequence[Continuation]
) -> list[TokenPair]:
    """Return the tokens of continuations that are alike in `bos` and in how chats are shown."""
    first = continuations[0]
    if first.messages:
        chosen = first.entrant.chosen
        require_chat(tokenizer, Path(first.entrant.weights), [chosen])
        chats = dict.fromkeys(each.messages for each in continuations)  # choices share theirs
        shown = {chat: show_chat(tokenizer, chat, chosen) for chat in chats}
        contexts = [shown[each.messages] for each in continuations]
    else:
        contexts = [each.context for each in continuations]
    texts = [each.text for each in continuations]
    if first.bos and not first.messages:
        return encode_pairs(tokenizer, zip(contexts, texts, strict=True))
    passages = zip(contexts, texts, (each.rolls for each in continuations), strict=True)
    return encode_as_tokenizer(tokenizer, passages, adds_special=not first.bos)


@dataclass(frozen=True)
class _Plan:
    """A continuation, and the windows to compute for it."""

    continuation: Continuation
    pair: TokenPair
    windows: TextWindows


def _plan_windows(
    continuation: Continuation, pair: TokenPair, n_positions: int | None
) -> _Plan | LikelihoodFailure:
    """Return the windows of a continuation for n_positions positions, or why there are none."""
    if not pair.text_ids:
        return LikelihoodFailure(continuation.key, "empty", "the text has no tokens")
    pieces = split_windows(pair, n_positions, rolls=continuation.rolls)
    if pieces is None:
        detail = (
            f"the text's {len(pair.text_ids)} tokens are more than the {n_positions} positions"
            " of the weights"
        )
        return LikelihoodFailure(continuation.key, "too_long", detail)
    return _Plan(continuation, pair, pieces)


class _PendingTexts:
    """The continuations that are not finished, by the windows that they wait for."""

    def __init__(self, plans: Iterable[_Plan], loaded: LoadedWeights) -> None:
        self._loaded = loaded
        self._found: dict[Window, WindowLikelihood | None] = {}
        self._waiting: dict[Window, list[_Plan]] = {}
        for plan in plans:
            for window in plan.windows.windows:
                self._waiting.setdefault(window, []).append(plan)

    @property
    def windows(self) -> Iterable[Window]:
        """Every window, once."""
        return self._waiting

    def finish(self, computed: Computed) -> tuple[Likelihood, ...]:
        """Add computed windows; return the continuations that they complete."""
        self._found.update(computed)
        touched = {
            plan.continuation.key: plan for window in computed for plan in self._waiting[window]
        }
        return tuple(
            self._finished(plan, [self._found[window] for window in plan.windows.windows])
            for plan in touched.values()
            if all(window in self._found for window in plan.windows.windows)
        )

    def _finished(self, plan: _Plan, likelihoods: Sequence[WindowLikelihood | None]) -> Likelihood:
        found = [each for each in likelihoods if each is not None]
        first, continuation = plan.windows.windows[0], plan.continuation
        if len(found) < len(likelihoods):
            where = f"the memory of {self._loaded.device}, alone"
            detail = f"{len(first.ids)} tokens do not fit into {where}"
            return LikelihoodFailure(continuation.key, "out_of_memory", detail)
        log_likelihood = fsum(each.log_likelihood for each in found)
        if not isfinite(log_likelihood):
            detail = f"the log-likelihood is not finite, in {continuation.entrant.dtype}"
            return LikelihoodFailure(continuation.key, "not_finite", detail)
        predicted = tuple(token for each in found for token in each.predicted)
        tokenizer, is_shown = self._loaded.tokenizer, continuation.shows_predicted
        return ContinuationLikelihood(
            key=continuation.key,
            log_likelihood=log_likelihood,
            context_ids=first.ids[: first.n_context],
            text_ids=plan.pair.text_ids,
            predicted_ids=predicted,
            predicted=decode_text(tokenizer, predicted) if is_shown else "",
            is_truncated=plan.windows.n_dropped > 0,
            n_windows=len(plan.windows.windows),
        )
