"""Compute log-likelihoods of continuations with weights in memory, plain or as a Hydra.

Continuations are split into windows, and the results are put together again per continuation.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import fsum, isfinite
from pathlib import Path
from typing import TypeAlias

from transformers import PreTrainedTokenizerBase

from commands.backends.hydra.answers import HydraHeads
from commands.backends.loads import BatchQueue, group_by
from commands.backends.weights.chat import decode_text, require_chat, show_chat
from commands.backends.weights.folder import quiet_transformers
from commands.backends.weights.likelihoods import (
    PlainHead,
    WindowLikelihood,
    compute_rows,
    input_rows,
)
from commands.backends.weights.loaded import LoadedWeights, run_batches
from commands.backends.weights.windows import (
    TokenPair,
    Window,
    encode_as_tokenizer,
    encode_pairs,
    split_windows,
)
from commands.ports import Continuation, ContinuationLikelihood, LikelihoodFailure

Likelihood: TypeAlias = ContinuationLikelihood | LikelihoodFailure


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
        if failed := tuple(
            failure for failure in planned if isinstance(failure, LikelihoodFailure)
        ):
            yield failed
        waiting: dict[Window, list[_Plan]] = {}
        for plan in planned:
            if isinstance(plan, _Plan):
                for window in plan.windows:
                    waiting.setdefault(window, []).append(plan)
        queue = BatchQueue(input_rows(waiting), lambda row: len(row[0].inputs), batch_tokens)
        found: dict[Window, WindowLikelihood | None] = {}  # None: it did not fit into memory
        for batch, computed in run_batches(queue, partial(compute_rows, heads), heads.device):
            news = dict.fromkeys(batch[0]) if computed is None else computed
            found |= news
            touched = {plan.continuation.key: plan for window in news for plan in waiting[window]}
            if done := [plan for plan in touched.values() if plan.is_done(found)]:
                yield tuple(_finished(loaded, plan, found) for plan in done)


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
        chats = dict.fromkeys(
            continuation.messages for continuation in continuations
        )  # choices share theirs
        shown = {chat: show_chat(tokenizer, chat, chosen) for chat in chats}
        contexts = [shown[continuation.messages] for continuation in continuations]
    else:
        contexts = [continuation.context for continuation in continuations]
    texts = [continuation.text for continuation in continuations]
    if first.bos and not first.messages:
        return encode_pairs(tokenizer, zip(contexts, texts, strict=True))
    passages = zip(
        contexts, texts, (continuation.rolls for continuation in continuations), strict=True
    )
    return encode_as_tokenizer(tokenizer, passages, adds_special=not first.bos)


@dataclass(frozen=True)
class _Plan:
    """A continuation, and the windows to compute for it."""

    continuation: Continuation
    pair: TokenPair
    windows: tuple[Window, ...]

    def is_done(self, found: Mapping[Window, object]) -> bool:
        """Return whether all of its windows were computed."""
        return all(window in found for window in self.windows)


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


def _finished(
    loaded: LoadedWeights, plan: _Plan, computed: Mapping[Window, WindowLikelihood | None]
) -> Likelihood:
    likelihoods = [computed[window] for window in plan.windows]
    window_likelihoods = [likelihood for likelihood in likelihoods if likelihood is not None]
    first, continuation = plan.windows[0], plan.continuation
    if len(window_likelihoods) < len(likelihoods):
        detail = f"{len(first.ids)} tokens do not fit into the memory of {loaded.device}, alone"
        return LikelihoodFailure(continuation.key, "out_of_memory", detail)
    log_likelihood = fsum(likelihood.log_likelihood for likelihood in window_likelihoods)
    if not isfinite(log_likelihood):
        detail = f"the log-likelihood is not finite, in {continuation.entrant.dtype}"
        return LikelihoodFailure(continuation.key, "not_finite", detail)
    predicted = tuple(token for likelihood in window_likelihoods for token in likelihood.predicted)
    tokenizer, is_shown = loaded.tokenizer, continuation.shows_predicted
    return ContinuationLikelihood(
        key=continuation.key,
        log_likelihood=log_likelihood,
        context_ids=first.ids[: first.n_context],
        text_ids=plan.pair.text_ids,
        predicted_ids=predicted,
        predicted=decode_text(tokenizer, predicted) if is_shown else "",
        is_truncated=first.n_context < len(plan.pair.context_ids),
        n_windows=len(plan.windows),
    )
