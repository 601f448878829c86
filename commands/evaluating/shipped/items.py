"""What the shipped evaluations share: a list of items, and stable shuffling."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from pydantic import ConfigDict, validate_call

from commands.evaluating.evaluation import Evaluation
from ledger.identity import Json, digest_of

Item = TypeVar("Item")

check_arguments = validate_call(config=ConfigDict(arbitrary_types_allowed=True))
"""Validate a constructor's arguments, which come from a settings file."""


class ListedEvaluation(Evaluation, Generic[Item]):
    """Base of evaluations whose items are all made by the constructor, maybe each with a label."""

    def __init__(self, items: Mapping[str, Item] | Sequence[Item]) -> None:
        """Set the items, maybe by label."""
        self._labels = tuple(items) if isinstance(items, Mapping) else ()
        self.items = tuple(items.values() if isinstance(items, Mapping) else items)

    def __len__(self) -> int:
        """Count the items."""
        return len(self.items)

    def get(self, index: int) -> Any:  # noqa: ANN401  # of each kind its own
        """Return an item's parts, by default the item."""
        return self.items[index]

    def label(self, index: int) -> str:
        """Return where an item comes from, if it is labelled."""
        return self._labels[index] if self._labels else super().label(index)


def shuffle(texts: Iterable[str], *seed: Json) -> list[str]:
    """Return texts sorted by the SHA-256 of seed and text: the same on every machine."""
    return sorted(texts, key=lambda text: digest_of([*seed, text]))
