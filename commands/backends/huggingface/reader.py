"""What is read of each passage, and what it comes to when all of that is weighed."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from math import fsum, isfinite
from typing import Final, NamedTuple, cast

import torch
from transformers import PreTrainedTokenizerBase

from commands.backends.huggingface.worker import HfWorker, Loaded
from commands.backends.hydra.likelihoods import HydraBatchLikelihoods
from commands.backends.hydra.weights import LoadedHydra
from commands.backends.weights.batching import BatchQueue, group_by, run_batches
from commands.backends.weights.chat import decode_text
from commands.backends.weights.folder import quiet_transformers
from commands.backends.weights.likelihoods import (
    BatchLikelihoods,
    HfBatchLikelihoods,
    InputRow,
    WindowLikelihood,
    can_share_prefixes,
)
from commands.backends.weights.windows import (
    TextWindows,
    TokenPair,
    Window,
    encode_pairs,
    n_common,
    split_windows,
)
from commands.ports import Continuation, ContinuationLikelihood, LikelihoodFailure
from ledger.events.registration import Entrant, Hydra

Finished = tuple[ContinuationLikelihood | LikelihoodFailure, ...]
Computed = Mapping[Window, WindowLikelihood | None]  # None: it does not fit into memory


@dataclass(frozen=True)
class PlannedText:
    """A passage, and what of it is read."""

    passage: Continuation
    pair: TokenPair
    windows: TextWindows

    @property
    def label(self) -> Hashable:
        """What it has in common with those that it may share a context with."""
        return self.passage.context, self.windows.n_dropped


def plan_windows(
    passage: Continuation, pair: TokenPair, n_positions: int | None
) -> PlannedText | LikelihoodFailure:
    """Return what is read of a passage by weights of so many positions, or why it cannot be."""
    if not pair.text_ids:
        return LikelihoodFailure(passage.key, "empty", "the text has no token to weigh")
    pieces = split_windows(pair, n_positions, rolls=passage.rolls)
    if pieces is None:
        detail = (
            f"the text's {len(pair.text_ids)} tokens are more than the {n_positions} positions"
            " of the weights"
        )
        return LikelihoodFailure(passage.key, "too_long", detail)
    return PlannedText(passage, pair, pieces)


class PendingTexts:
    """The passages that are not read yet, by the windows that they wait for."""

    def __init__(
        self,
        plans: Iterable[PlannedText],
        tokenizer: PreTrainedTokenizerBase,
        device: torch.device,
    ) -> None:
        """Wait for windows that are weighed on a device, in a tokenizer's tokens."""
        self._tokenizer, self._device = tokenizer, device
        self._found: dict[Window, WindowLikelihood | None] = {}
        self._waiting: dict[Window, list[PlannedText]] = {}
        for plan in plans:
            for window in plan.windows.windows:
                self._waiting.setdefault(window, []).append(plan)

    def labels(self) -> dict[Window, Hashable]:
        """Return every window once, with the label of the first passage that waits for it."""
        return {window: plans[0].label for window, plans in self._waiting.items()}

    def finish(self, found: Computed) -> Finished:
        """Return the passages whose last windows these are."""
        self._found.update(found)
        touched = {plan.passage.key: plan for window in found for plan in self._waiting[window]}
        return tuple(
            self._finished(plan, [self._found[window] for window in plan.windows.windows])
            for plan in touched.values()
            if all(window in self._found for window in plan.windows.windows)
        )

    def _finished(
        self, plan: PlannedText, weighed: Sequence[WindowLikelihood | None]
    ) -> ContinuationLikelihood | LikelihoodFailure:
        found = [each for each in weighed if each is not None]
        first, key = plan.windows.windows[0], plan.passage.key
        if len(found) < len(weighed):
            detail = f"{len(first.ids)} tokens do not fit into the memory of {self._device}, alone"
            return LikelihoodFailure(key, "out_of_memory", detail)
        log_likelihood = fsum(each.log_likelihood for each in found)
        if not isfinite(log_likelihood):
            detail = f"the log-likelihood is not finite, in {plan.passage.entrant.dtype}"
            return LikelihoodFailure(key, "not_finite", detail)
        predicted = [token for each in found for token in each.predicted]
        return ContinuationLikelihood(
            key=key,
            log_likelihood=log_likelihood,
            context_ids=first.ids[: first.n_context],
            text_ids=plan.pair.text_ids,
            predicted_ids=tuple(predicted),
            predicted=decode_text(self._tokenizer, predicted),
            is_truncated=plan.windows.n_dropped > 0,
            n_windows=len(plan.windows.windows),
        )


MIN_SHARED: Final = 16  # tokens; to read fewer twice takes no longer than to keep them in mind


class PrefixGroup(NamedTuple):
    """Rows that begin alike, or one row alone."""

    rows: tuple[InputRow, ...]
    n_shared: int = 0  # tokens they begin with that are read once

    @property
    def n_tokens(self) -> int:
        """Count the tokens of the longest row."""
        return max(len(row.inputs) for row in self.rows)

    def split(self) -> list["PrefixGroup"]:
        """Return each row alone."""
        return [PrefixGroup((row,)) for row in self.rows]


def group_by_prefix(labels: Mapping[Window, Hashable], *, may_share: bool) -> list[PrefixGroup]:
    """Return windows in rows, and rows of one label together where that saves time.

    Windows that read the same tokens are one row: the choices of a question are, if they are one
    token each.
    """
    rows = [InputRow(windows[0].inputs, (*windows,)) for windows in group_by(labels, _inputs)]
    if not may_share:
        return [PrefixGroup((row,)) for row in rows]
    alike = group_by(rows, lambda row: labels[row.windows[0]])
    return [
        bundle
        for same in alike
        for bundle in _shared_or_alone(PrefixGroup((*same,), _n_shared(same)))
    ]


def group_by_length(bundles: Iterable[PrefixGroup]) -> list[list[PrefixGroup]]:
    """Return bundles by what they may be in one batch with, the longest first.

    Of texts that are less than twice as long as each other, less than half is padding.
    """
    longest_first = sorted(bundles, key=lambda bundle: bundle.n_tokens, reverse=True)
    return group_by(longest_first, lambda each: (each.n_shared > 0, each.n_tokens.bit_length()))


def compute_groups(
    begin_reading: Callable[[], BatchLikelihoods], bundles: Sequence[PrefixGroup]
) -> dict[Window, WindowLikelihood]:
    """Read what each bundle's rows begin with, once, and then as many rows at a time as bundles.

    So memory is wanted for twice as many rows as there are bundles, however many each has.

    Raises:
        torch.OutOfMemoryError: The bundles are too many for the device.
    """
    owned = iter([(owner, row) for owner, bundle in enumerate(bundles) for row in bundle.rows])
    weighed: dict[Window, WindowLikelihood] = {}
    with torch.inference_mode():
        reading = begin_reading()
        if all(bundle.n_shared for bundle in bundles):
            reading.read_prefixes([bundle.rows[0].inputs[: bundle.n_shared] for bundle in bundles])
        while part := [*islice(owned, len(bundles))]:
            weighed |= reading.compute([row for _, row in part], [owner for owner, _ in part])
    return weighed


def _inputs(window: Window) -> tuple[int, ...]:
    return window.inputs


def _n_shared(rows: Sequence[InputRow]) -> int:
    """Count the tokens that all rows begin with, and behind which none has a target yet."""
    inputs = [row.inputs for row in rows]
    n_before = min(window.n_context - 1 for row in rows for window in row.windows)
    return min(n_before, n_common(min(inputs), max(inputs)))  # of all, these two differ the soonest


def _shared_or_alone(bundle: PrefixGroup) -> Iterable[PrefixGroup]:
    if len(bundle.rows) > 1 and bundle.n_shared >= MIN_SHARED:
        return [bundle]
    return bundle.split()


class HfLikelihoodModel(HfWorker):
    """Reads passages, in one forward pass each.

    In float32 what is read does not depend on the batch. Passages that begin alike share the pass
    through what they have in common, if they name the same context.
    """

    def log_likelihoods(self, passages: Sequence[Continuation]) -> Iterator[Finished]:
        """Yield what each finished batch showed, each passage exactly once.

        Raises:
            WeightsError: An entrant cannot be loaded as registered; what can be told of that before
                its turn is told before the first passage is read.
        """
        yield from self._load_by_load(passages, self._read_load)

    def _read_load(self, loaded: Loaded, passages: Sequence[Continuation]) -> Iterator[Finished]:
        for same in group_by(passages, lambda passage: _likelihood_key(passage.entrant)):
            yield from self._read_as_one(loaded, same)

    def _read_as_one(self, loaded: Loaded, passages: Sequence[Continuation]) -> Iterator[Finished]:
        """Read passages to which the entrant is the same."""
        with quiet_transformers():
            pairs = encode_pairs(loaded.tokenizer, ((each.context, each.text) for each in passages))
        planned = [
            plan_windows(passage, pair, loaded.n_positions)
            for passage, pair in zip(passages, pairs, strict=True)
        ]
        if unread := tuple(each for each in planned if isinstance(each, LikelihoodFailure)):
            yield unread
        plans = [each for each in planned if isinstance(each, PlannedText)]
        waiting = PendingTexts(plans, loaded.tokenizer, self._device)
        for found in self._compute_windows(loaded, passages[0].entrant, waiting.labels()):
            if finished := waiting.finish(found):
                yield finished

    def _compute_windows(
        self, loaded: Loaded, entrant: Entrant, labels: Mapping[Window, Hashable]
    ) -> Iterator[Computed]:
        begin_reading = _batch_likelihoods(loaded, entrant)
        may_share = isinstance(loaded, LoadedHydra) or can_share_prefixes(loaded)
        bundles = group_by_prefix(labels, may_share=may_share)
        for alike in group_by_length(bundles):
            yield from self._compute(begin_reading, alike)

    def _compute(
        self, begin_reading: Callable[[], BatchLikelihoods], bundles: Sequence[PrefixGroup]
    ) -> Iterator[Computed]:
        """Yield what windows weigh; None of one that does not fit into memory, alone."""
        queue = BatchQueue(bundles, lambda bundle: bundle.n_tokens, self._batch_tokens)
        for batch, found in run_batches(
            queue, partial(compute_groups, begin_reading), self._device
        ):
            if found is not None:
                yield found
            elif len(batch[0].rows) > 1:
                yield from self._compute(begin_reading, batch[0].split())
            else:
                yield dict.fromkeys(batch[0].rows[0].windows)


def _batch_likelihoods(loaded: Loaded, entrant: Entrant) -> Callable[[], BatchLikelihoods]:
    if isinstance(loaded, LoadedHydra):
        return partial(HydraBatchLikelihoods, loaded, cast("Hydra", entrant.hydra))
    return partial(HfBatchLikelihoods, loaded)


def _likelihood_key(entrant: Entrant) -> Hashable:
    """Return what else decides how likely a text is, beside what an entrant loads."""
    return entrant.hydra and (entrant.hydra.bypass_jury, entrant.hydra.beta)
