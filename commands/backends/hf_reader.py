"""Read texts with Hugging Face weights on this machine: the Reader port, for real."""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import partial
from typing import cast

from commands.backends.batching import BatchQueue, grouped
from commands.backends.draining import drained
from commands.backends.hf_quiet import quiet_transformers
from commands.backends.hf_reading import HfReading, can_share
from commands.backends.hf_worker import HfWorker
from commands.backends.hydra_reading import HydraReading
from commands.backends.hydra_weights import LoadedHydra
from commands.backends.loading import Loaded
from commands.backends.pair_tokens import encode_pairs
from commands.backends.reading_plans import Finished, Found, ReadingPlan, WaitingPlans, plan_reading
from commands.backends.shared_context import Bundle, batchable, bundled, weigh_bundles
from commands.backends.weighing import Reading
from commands.backends.windows import Window
from commands.ports import Passage, PassageUnread
from ledger.events.registration import Entrant, Hydra


class HfReader(HfWorker):
    """Reads passages, in one forward pass each.

    In float32 what is read does not depend on the batch. Passages that begin alike share the pass
    through what they have in common, if they name the same context.
    """

    def read(self, passages: Sequence[Passage]) -> Iterator[Finished]:
        """Yield what each finished batch showed, each passage exactly once.

        Raises:
            WeightsError: An entrant cannot be loaded as registered; what can be told of that before
                its turn is told before the first passage is read.
        """
        yield from self._load_by_load(passages, self._read_load)

    def _read_load(self, loaded: Loaded, passages: Sequence[Passage]) -> Iterator[Finished]:
        for same in grouped(passages, lambda passage: _reading_key(passage.entrant)):
            yield from self._read_as_one(loaded, same)

    def _read_as_one(self, loaded: Loaded, passages: Sequence[Passage]) -> Iterator[Finished]:
        """Read passages to which the entrant is the same."""
        with quiet_transformers():
            pairs = encode_pairs(loaded.tokenizer, ((each.context, each.text) for each in passages))
        planned = [
            plan_reading(passage, pair, loaded.n_positions)
            for passage, pair in zip(passages, pairs, strict=True)
        ]
        if unread := tuple(each for each in planned if isinstance(each, PassageUnread)):
            yield unread
        plans = [each for each in planned if isinstance(each, ReadingPlan)]
        waiting = WaitingPlans(plans, loaded.tokenizer, self._device)
        for found in self._weighed(loaded, passages[0].entrant, waiting.labels()):
            if finished := waiting.finish(found):
                yield finished

    def _weighed(
        self, loaded: Loaded, entrant: Entrant, labels: Mapping[Window, Hashable]
    ) -> Iterator[Found]:
        begin_reading = _reading(loaded, entrant)
        may_share = isinstance(loaded, LoadedHydra) or can_share(loaded)
        bundles = bundled(labels, may_share=may_share)
        for alike in batchable(bundles):
            yield from self._weigh(begin_reading, alike)

    def _weigh(
        self, begin_reading: Callable[[], Reading], bundles: Sequence[Bundle]
    ) -> Iterator[Found]:
        """Yield what windows weigh; None of one that does not fit into memory, alone."""
        queue = BatchQueue(bundles, lambda bundle: bundle.n_tokens, self._batch_tokens)
        for batch, found in drained(queue, partial(weigh_bundles, begin_reading), self._device):
            if found is not None:
                yield found
            elif len(batch[0].rows) > 1:
                yield from self._weigh(begin_reading, batch[0].apart())
            else:
                yield dict.fromkeys(batch[0].rows[0].windows)


def _reading(loaded: Loaded, entrant: Entrant) -> Callable[[], Reading]:
    if isinstance(loaded, LoadedHydra):
        return partial(HydraReading, loaded, cast("Hydra", entrant.hydra))
    return partial(HfReading, loaded)


def _reading_key(entrant: Entrant) -> Hashable:
    """Return what else decides how likely a text is, beside what an entrant loads."""
    return entrant.hydra and (entrant.hydra.bypass_jury, entrant.hydra.beta)
