"""What runs in a process of Ray's: one generator and one likelihood model, on one accelerator."""

from collections.abc import Callable
from functools import cache

from commands.backends.huggingface.shares import Assignment, Backends, ShareResult, do_share


class ShareActor:
    """Does chunks of work, one after the other, and keeps the weights that it loaded."""

    def __init__(self, make: Callable[[], Backends]) -> None:
        """Take what makes the backends, which the first chunk does: it can tell of failures."""
        self._make = cache(make)

    def is_up(self) -> bool:
        """Answer once the process runs."""
        return True

    def share(self, assignment: Assignment) -> ShareResult:
        """Do a chunk; failures are values, as Ray cannot send every error."""
        return do_share(self._make, assignment)
