"""Log-likelihoods of continuations with Hugging Face weights on this machine.

Continuations are split into windows, windows that begin alike share a forward pass through the
common prefix, and the results are put together again per continuation.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from math import fsum, isfinite
from operator import attrgetter
from pathlib import Path
from typing import Final, NamedTuple, cast

import torch
from transformers import PreTrainedTokenizerBase

from commands.backends.huggingface.worker import HfWorker, Loaded
from commands.backends.hydra.likelihoods import HydraBatchLikelihoods
from commands.backends.hydra.weights import LoadedHydra
from commands.backends.weights.batching import BatchQueue, group_by, run_batches
from commands.backends.weights.chat import (
    decode_text,
    require_chat,
    require_options,
    show_chat,
)
from commands.backends.weights.folder import quiet_transformers
from commands.backends.weights.likelihoods import (
    HfBatchLikelihoods,
    InputRow,
    WindowLikelihood,
    can_share_prefixes,
)
from commands.backends.weights.windows import (
    TextWindows,
    TokenPair,
    Window,
    encode_as_tokenizer,
    encode_pairs,
    n_common,
    split_windows,
)
from commands.ports import Continuation, ContinuationLikelihood, LikelihoodFailure
from ledger.events.registration import Entrant, Hydra

BatchLikelihoods = HfBatchLikelihoods | HydraBatchLikelihoods
Finished = tuple[ContinuationLikelihood | LikelihoodFailure, ...]
Computed = Mapping[Window, WindowLikelihood | None]  # None: did not fit into memory


def encoding_key(continuation: Continuation) -> Hashable:
    """Return what continuations that are encoded together have in common."""
    chosen = continuation.entrant.chosen
    chat = (chosen.system, chosen.template_arguments) if continuation.messages else None
    return continuation.bos, chat


def token_pairs(
    tokenizer: PreTrainedTokenizerBase, continuations: Sequence[Continuation]
) -> list[TokenPair]:
    """Return the tokens of continuations that have one `encoding_key`.

    Raises:
        WeightsError: There is no chat template for chats, or it fails.
    """
    first = continuations[0]
    if first.messages:
        contexts = _shown(tokenizer, continuations)
    else:
        contexts = [each.context for each in continuations]
    pairs = zip(contexts, continuations, strict=True)
    if first.bos and not first.messages:
        return encode_pairs(tokenizer, ((context, each.text) for context, each in pairs))
    passages = ((context, each.text, each.rolls) for context, each in pairs)
    return encode_as_tokenizer(tokenizer, passages, adds_special=not first.bos)


def _shown(tokenizer: PreTrainedTokenizerBase, continuations: Sequence[Continuation]) -> list[str]:
    """Return the chats of continuations as text; choices share theirs."""
    entrant = continuations[0].entrant
    folder = Path(entrant.weights)
    require_chat(tokenizer, folder)
    require_options(tokenizer, folder, entrant.chosen)
    chats = dict.fromkeys(each.messages for each in continuations)
    shown = {chat: show_chat(tokenizer, chat, entrant.chosen) for chat in chats}
    return [shown[each.messages] for each in continuations]


@dataclass(frozen=True)
class PlannedText:
    """A continuation, and the windows to compute for it."""

    continuation: Continuation
    pair: TokenPair
    windows: TextWindows

    @property
    def label(self) -> Hashable:
        """A key that is equal for continuations that may share their context."""
        return self.continuation.context, self.windows.n_dropped


def plan_windows(
    continuation: Continuation, pair: TokenPair, n_positions: int | None
) -> PlannedText | LikelihoodFailure:
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
    return PlannedText(continuation, pair, pieces)


class PendingTexts:
    """The continuations that are not finished, by the windows that they wait for."""

    def __init__(
        self,
        plans: Iterable[PlannedText],
        tokenizer: PreTrainedTokenizerBase,
        device: torch.device,
    ) -> None:
        self._tokenizer, self._device = tokenizer, device
        self._found: dict[Window, WindowLikelihood | None] = {}
        self._waiting: dict[Window, list[PlannedText]] = {}
        for plan in plans:
            for window in plan.windows.windows:
                self._waiting.setdefault(window, []).append(plan)

    def labels(self) -> dict[Window, Hashable]:
        """Return every window once, with the label of the first continuation that waits for it."""
        return {window: plans[0].label for window, plans in self._waiting.items()}

    def finish(self, found: Computed) -> Finished:
        """Add computed windows; return the continuations that they complete."""
        self._found.update(found)
        touched = {
            plan.continuation.key: plan for window in found for plan in self._waiting[window]
        }
        return tuple(
            self._finished(plan, [self._found[window] for window in plan.windows.windows])
            for plan in touched.values()
            if all(window in self._found for window in plan.windows.windows)
        )

    def _finished(
        self, plan: PlannedText, likelihoods: Sequence[WindowLikelihood | None]
    ) -> ContinuationLikelihood | LikelihoodFailure:
        found = [each for each in likelihoods if each is not None]
        first, key = plan.windows.windows[0], plan.continuation.key
        shows_predicted = plan.continuation.shows_predicted
        if len(found) < len(likelihoods):
            detail = f"{len(first.ids)} tokens do not fit into the memory of {self._device}, alone"
            return LikelihoodFailure(key, "out_of_memory", detail)
        log_likelihood = fsum(each.log_likelihood for each in found)
        if not isfinite(log_likelihood):
            detail = f"the log-likelihood is not finite, in {plan.continuation.entrant.dtype}"
            return LikelihoodFailure(key, "not_finite", detail)
        predicted = [token for each in found for token in each.predicted]
        return ContinuationLikelihood(
            key=key,
            log_likelihood=log_likelihood,
            context_ids=first.ids[: first.n_context],
            text_ids=plan.pair.text_ids,
            predicted_ids=tuple(predicted),
            predicted=decode_text(self._tokenizer, predicted) if shows_predicted else "",
            is_truncated=plan.windows.n_dropped > 0,
            n_windows=len(plan.windows.windows),
        )


MIN_SHARED: Final = 16  # tokens; computing fewer twice is as fast as caching them


class PrefixGroup(NamedTuple):
    """Rows that share a prefix, or one row alone."""

    rows: tuple[InputRow, ...]
    n_shared: int = 0  # length of the prefix that is computed once

    @property
    def n_tokens(self) -> int:
        """Count the tokens of the longest row."""
        return max(len(row.inputs) for row in self.rows)

    def split(self) -> list["PrefixGroup"]:
        """Return each row alone."""
        return [PrefixGroup((row,)) for row in self.rows]


def group_by_prefix(labels: Mapping[Window, Hashable], *, may_share: bool) -> list[PrefixGroup]:
    """Group windows into rows, and rows of one label into prefix groups if that saves time.

    Windows with the same inputs become one row, such as the one-token choices of a question.
    """
    rows = [
        InputRow(windows[0].inputs, (*windows,))
        for windows in group_by(labels, attrgetter("inputs"))
    ]
    if not may_share:
        return [PrefixGroup((row,)) for row in rows]
    alike = group_by(rows, lambda row: labels[row.windows[0]])
    return [
        group
        for same in alike
        for group in _shared_or_alone(PrefixGroup((*same,), _n_shared(same)))
    ]


def group_by_length(groups: Iterable[PrefixGroup]) -> list[list[PrefixGroup]]:
    """Sort groups into those that may share a batch, the longest first.

    Lengths within a batch differ by less than a factor of two, so less than half is padding.
    """
    longest_first = sorted(groups, key=lambda group: group.n_tokens, reverse=True)
    return group_by(longest_first, lambda each: (each.n_shared > 0, each.n_tokens.bit_length()))


def compute_groups(
    make_batch: Callable[[], BatchLikelihoods], groups: Sequence[PrefixGroup]
) -> dict[Window, WindowLikelihood]:
    """Compute each group's prefix once, then as many rows at a time as there are groups.

    So it needs memory for twice as many rows as groups, however many rows each has.

    Raises:
        torch.OutOfMemoryError: The groups are too many for the device.
    """
    owned = iter([(owner, row) for owner, group in enumerate(groups) for row in group.rows])
    likelihoods: dict[Window, WindowLikelihood] = {}
    with torch.inference_mode():
        reading = make_batch()
        if all(group.n_shared for group in groups):
            reading.read_prefixes([group.rows[0].inputs[: group.n_shared] for group in groups])
        while part := [*islice(owned, len(groups))]:
            likelihoods |= reading.compute([row for _, row in part], [owner for owner, _ in part])
    return likelihoods


def _n_shared(rows: Sequence[InputRow]) -> int:
    """Count the tokens of the prefix that all rows share, up to the first target."""
    inputs = [row.inputs for row in rows]
    n_before = min(window.n_context - 1 for row in rows for window in row.windows)
    return min(n_before, n_common(min(inputs), max(inputs)))  # the two that differ first


def _shared_or_alone(group: PrefixGroup) -> Iterable[PrefixGroup]:
    if len(group.rows) > 1 and group.n_shared >= MIN_SHARED:
        return [group]
    return group.split()


MOST_ON_CPU: Final = 1 << 11  # tokens of a batch; with more a fifth of the time maps memory


class HfLikelihoodModel(HfWorker):
    """Computes log-likelihoods, with one forward pass per window.

    In float32 a result does not depend on its batch. Continuations of the same context share the
    forward pass through their common prefix.
    """

    def log_likelihoods(self, continuations: Sequence[Continuation]) -> Iterator[Finished]:
        """Yield the results of each finished batch, each continuation exactly once.

        Raises:
            WeightsError: An entrant cannot be loaded as registered; most faults are found before
                the first result.
        """
        yield from self._load_by_load(continuations, self._read_load)

    def _budget(self, loaded: Loaded) -> int:
        """Return the token budget of a batch: less than for answers, unless the user names it."""
        budget = super()._budget(loaded)
        is_free = self._batch_tokens is None and loaded.device.type == "cpu"
        return min(budget, MOST_ON_CPU) if is_free else budget

    def _read_load(
        self, loaded: Loaded, continuations: Sequence[Continuation]
    ) -> Iterator[Finished]:
        for same in group_by(continuations, _likelihood_key):
            yield from self._read_as_one(loaded, same)

    def _read_as_one(
        self, loaded: Loaded, continuations: Sequence[Continuation]
    ) -> Iterator[Finished]:
        """Compute continuations of entrants that give the same likelihoods."""
        with quiet_transformers():
            pairs = token_pairs(loaded.tokenizer, continuations)
        planned = [
            plan_windows(continuation, pair, loaded.n_positions)
            for continuation, pair in zip(continuations, pairs, strict=True)
        ]
        if failed := tuple(each for each in planned if isinstance(each, LikelihoodFailure)):
            yield failed
        plans = [each for each in planned if isinstance(each, PlannedText)]
        waiting = PendingTexts(plans, loaded.tokenizer, self._device)
        for found in self._compute_windows(loaded, continuations[0].entrant, waiting.labels()):
            if finished := waiting.finish(found):
                yield finished

    def _compute_windows(
        self, loaded: Loaded, entrant: Entrant, labels: Mapping[Window, Hashable]
    ) -> Iterator[Computed]:
        make_batch = _batch_likelihoods(loaded, entrant)
        may_share = isinstance(loaded, LoadedHydra) or can_share_prefixes(loaded)
        groups = group_by_prefix(labels, may_share=may_share)
        for alike in group_by_length(groups):
            yield from self._compute(make_batch, alike, self._budget(loaded))

    def _compute(
        self,
        make_batch: Callable[[], BatchLikelihoods],
        groups: Sequence[PrefixGroup],
        batch_tokens: int,
    ) -> Iterator[Computed]:
        """Yield the windows' likelihoods; None for one that does not fit into memory alone."""
        queue = BatchQueue(groups, lambda group: group.n_tokens, batch_tokens)
        for batch, found in run_batches(queue, partial(compute_groups, make_batch), self._device):
            if found is not None:
                yield found
            elif len(batch[0].rows) > 1:
                yield from self._compute(make_batch, batch[0].split(), batch_tokens)
            else:
                yield dict.fromkeys(batch[0].rows[0].windows)


def _batch_likelihoods(loaded: Loaded, entrant: Entrant) -> Callable[[], BatchLikelihoods]:
    if isinstance(loaded, LoadedHydra):
        return partial(HydraBatchLikelihoods, loaded, cast("Hydra", entrant.hydra))
    return partial(HfBatchLikelihoods, loaded)


def _likelihood_key(continuation: Continuation) -> Hashable:
    """Return the settings that decide a likelihood, besides what an entrant loads."""
    hydra = continuation.entrant.hydra
    return encoding_key(continuation), hydra and (hydra.bypass_jury, hydra.beta)
