"""Words for what is wrong with files, short enough for one line on a terminal."""

from collections.abc import Sequence

N_LISTED = 8


def listed(faults: Sequence[str]) -> str:
    """Join faults, the first few in full."""
    n_more = len(faults) - N_LISTED
    return ", ".join(faults[:N_LISTED]) + (f", and {n_more} more" if n_more > 0 else "")


def gist(error: Exception | Warning) -> str:
    """Return the first line of a library's message; the rest stays on the cause's traceback."""
    return str(error).strip().partition("\n")[0]
