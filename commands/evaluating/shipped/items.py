"""What the shipped evaluations share: a list of items, which may have parts; stable shuffling."""

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from typing import Any, Generic, Self, TypeVar

from pydantic import ConfigDict, validate_call

from commands.evaluating.evaluation import Evaluation
from commands.evaluating.samples import subset
from commands.settings.sections import EvaluationOptions
from ledger.identity import Digest, Json, digest_of

Item = TypeVar("Item")

check_arguments = validate_call(config=ConfigDict(arbitrary_types_allowed=True))
"""Validate a constructor's arguments, which come from a settings file."""


class ListedEvaluation(Evaluation, Generic[Item]):
    """Base of evaluations whose items are all made by the constructor, each with a label.

    The items may belong to parts, such as the subjects of MMLU.
    """

    whole: str = ""  # name of the evaluation that this is a part of

    def __init__(
        self, items: Mapping[str, Item] | Sequence[Item], part_of: Sequence[str] = ()
    ) -> None:
        """Set the items, maybe by label, and the part to which each belongs, if there are any."""
        named = items if isinstance(items, Mapping) else dict(enumerate(items))
        self.items: tuple[Item, ...] = tuple(named.values())
        self._labels = tuple(named)  # or their numbers
        self._part_of = tuple(part_of)

    def __len__(self) -> int:
        """Count the items."""
        return len(self.items)

    def get(self, index: int) -> Any:  # noqa: ANN401  # of each kind its own
        """Return an item's parts, by default the item."""
        return self.items[index]

    def label(self, index: int) -> str:
        """Return where an item comes from, if it is labelled."""
        label = self._labels[index]
        return label if isinstance(label, str) else super().label(index)

    def parts(self) -> Mapping[str, Self]:
        """Return each part as an evaluation of its own, by name; none if there are no parts.

        Log-likelihoods of a part are also those of the whole: nothing is computed twice.
        """
        return {name: self._part(name) for name in dict.fromkeys(self._part_of)}

    def _part(self, name: str) -> Self:
        part = copy(self)
        part.whole = self.whole or self.id
        chosen = [n for n, of in enumerate(self._part_of) if of == name]
        ListedEvaluation.__init__(part, {self.label(n): self.items[n] for n in chosen})
        return part

    def drawn(self, items: Sequence[Digest], options: EvaluationOptions) -> tuple[Digest, ...]:
        """Return the items to observe: of each part as many as of an evaluation of its own."""
        by_part: dict[str, list[Digest]] = {}
        for item, part in zip(items, self._part_of or [""] * len(items), strict=True):
            by_part.setdefault(part, []).append(item)
        chosen = {
            item
            for of_part in by_part.values()
            for item in subset(of_part, options.length, options.seed)
        }
        return tuple(item for item in items if item in chosen)


def shuffle(texts: Iterable[str], *seed: Json) -> list[str]:
    """Return texts sorted by the SHA-256 of seed and text: the same on every machine."""
    return sorted(texts, key=lambda text: digest_of([*seed, text]))
