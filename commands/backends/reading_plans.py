"""What is read of each passage, and what it comes to when all of that is weighed."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, isfinite

import torch
from transformers import PreTrainedTokenizerBase

from commands.backends.hf_chat import text_of
from commands.backends.pair_tokens import Pair
from commands.backends.weighing import Weighed
from commands.backends.windows import Cut, Window, cut
from commands.ports import Passage, PassageRead, PassageUnread

Finished = tuple[PassageRead | PassageUnread, ...]
Found = Mapping[Window, Weighed | None]  # None: it does not fit into memory


@dataclass(frozen=True)
class ReadingPlan:
    """A passage, and what of it is read."""

    passage: Passage
    pair: Pair
    cut: Cut

    @property
    def label(self) -> Hashable:
        """What it has in common with those that it may share a context with."""
        return self.passage.context, self.cut.n_dropped


def plan_reading(
    passage: Passage, pair: Pair, n_positions: int | None
) -> ReadingPlan | PassageUnread:
    """Return what is read of a passage by weights of so many positions, or why it cannot be."""
    if not pair.text_ids:
        return PassageUnread(passage.key, "empty", "the text has no token to weigh")
    pieces = cut(pair, n_positions, rolls=passage.rolls)
    if pieces is None:
        detail = (
            f"the text's {len(pair.text_ids)} tokens are more than the {n_positions} positions"
            " of the weights"
        )
        return PassageUnread(passage.key, "too_long", detail)
    return ReadingPlan(passage, pair, pieces)


class WaitingPlans:
    """The passages that are not read yet, by the windows that they wait for."""

    def __init__(
        self,
        plans: Iterable[ReadingPlan],
        tokenizer: PreTrainedTokenizerBase,
        device: torch.device,
    ) -> None:
        """Wait for windows that are weighed on a device, in a tokenizer's tokens."""
        self._tokenizer, self._device = tokenizer, device
        self._found: dict[Window, Weighed | None] = {}
        self._waiting: dict[Window, list[ReadingPlan]] = {}
        for plan in plans:
            for window in plan.cut.windows:
                self._waiting.setdefault(window, []).append(plan)

    def labels(self) -> dict[Window, Hashable]:
        """Return every window once, with the label of the first passage that waits for it."""
        return {window: plans[0].label for window, plans in self._waiting.items()}

    def finish(self, found: Found) -> Finished:
        """Return the passages whose last windows these are."""
        self._found.update(found)
        touched = {plan.passage.key: plan for window in found for plan in self._waiting[window]}
        return tuple(
            self._finished(plan, [self._found[window] for window in plan.cut.windows])
            for plan in touched.values()
            if all(window in self._found for window in plan.cut.windows)
        )

    def _finished(
        self, plan: ReadingPlan, weighed: Sequence[Weighed | None]
    ) -> PassageRead | PassageUnread:
        found = [each for each in weighed if each is not None]
        first, key = plan.cut.windows[0], plan.passage.key
        if len(found) < len(weighed):
            detail = f"{len(first.ids)} tokens do not fit into the memory of {self._device}, alone"
            return PassageUnread(key, "out_of_memory", detail)
        log_likelihood = fsum(each.log_likelihood for each in found)
        if not isfinite(log_likelihood):
            detail = f"the log-likelihood is not finite, in {plan.passage.entrant.dtype}"
            return PassageUnread(key, "not_finite", detail)
        predicted = [token for each in found for token in each.predicted]
        return PassageRead(
            key=key,
            log_likelihood=log_likelihood,
            context_ids=first.ids[: first.n_context],
            text_ids=plan.pair.text_ids,
            predicted_ids=tuple(predicted),
            predicted=text_of(self._tokenizer, predicted),
            is_truncated=plan.cut.n_dropped > 0,
            n_windows=len(plan.cut.windows),
        )
