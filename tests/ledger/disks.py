"""A disk that tests can look at."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass
class Disk:
    """A log whose flushes are counted; something happens before each is over."""

    meanwhile: Callable[[], object]
    n_flushes: int = 0

    def require_sound(self) -> None:
        """Do nothing: it is."""

    def flush(self) -> None:
        """Take as long as what happens meanwhile."""
        self.meanwhile()
        self.n_flushes += 1

    def close(self) -> None:
        """Do nothing: nothing is open."""
