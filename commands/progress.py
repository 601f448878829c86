"""How a use case says how far it is, without knowing who listens."""

from typing import Protocol


class OnProgress(Protocol):
    """Listens to a use case."""

    def __call__(self, what: str, done: int, total: int) -> None:
        """Hear that of a total this much is done."""
        ...


def unheard(what: str, done: int, total: int) -> None:
    """Listen to nothing."""
